"""Tables of a difference side by side or one below the other; see also tests/data/commands."""

from __future__ import annotations

import io
import re
from itertools import zip_longest

import pytest
from command import ROOT
from hostile_text import PROGRESS, on_a_terminal
from hypothesis import given, settings
from hypothesis import strategies as st
from strength import times
from terminals import unstyled

from kiebitz.cli.differences.side_by_side import Drawn, two_tables
from kiebitz.cli.render.text import draw
from kiebitz.cli.terminal.screen import LINE_BREAK, Console, Text
from kiebitz.dissectors.game.view import Scene

ROLL = ["whatif", "captures/maexchen-head-tiny.pcap", "--edit", "#31 dice=2,1"]


def seen(monkeypatch: pytest.MonkeyPatch, **environment: str) -> str:
    monkeypatch.chdir(ROOT)
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "160", "LINES": "50", **environment}.items():
        monkeypatch.setenv(name, value)
    return PROGRESS.sub("", on_a_terminal(*ROLL).out)


def test_differences_are_coloured_if_colours_are_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with_colours = seen(monkeypatch)
    assert "\x1b[30;48;5;221m3,3\x1b[0m" in with_colours
    assert "\x1b[30;48;5;221m2,1\x1b[0m" in with_colours
    without = seen(monkeypatch, NO_COLOR="1")
    assert "48;5" not in without
    assert unstyled(without) == unstyled(with_colours)


def test_states_that_nobody_has_drawn_are_compared_likewise() -> None:
    console = Console(width=160, file=io.StringIO())
    tables = (Drawn([], draw("noughts", Scene({"turn": turn, "won": False}))) for turn in ("anna", "bob"))
    assert [line.plain for line in two_tables(console, *tables)] == [
        "{                   {",
        '  "turn": "anna", *   "turn": "bob",',
        '  "won": false        "won": false',
        "}                   }",
    ]


# Anything.

LINES = st.lists(st.text(" ab│3", max_size=8).map(str.rstrip), max_size=12)


def two(a: list[str], b: list[str], columns: int) -> list[str]:
    """Return both pictures as they are shown."""
    drawn = [
        Drawn([Text(f"{name}:")], Text("", no_wrap=True, overflow="crop") + LINE_BREAK.join(map(Text, lines)))
        for name, lines in (("A", a), ("B", b))
    ]
    console = Console(width=columns, file=io.StringIO())
    return [line.plain for line in two_tables(console, *drawn)]


@pytest.mark.full
@settings(max_examples=times(600))
@given(LINES, LINES)
def test_side_by_side_each_line_is_marked_if_it_differs(a: list[str], b: list[str]) -> None:
    head, *rows = two(a, b, 160)
    assert re.fullmatch(r"A: +B:", head)
    column = head.index("B:")
    left = [row[: column - 3].rstrip() for row in rows]
    right = [row[column:].rstrip() for row in rows]
    assert [line for line in left if line] == [line for line in a if line]
    assert [line for line in right if line] == [line for line in b if line]
    for row, mine, other in zip(rows, left, right, strict=True):
        if mine != other:
            assert row[column - 2] == "*"
    if len(a) == len(b):
        assert [row[column - 2 : column - 1] == "*" for row in rows] == [
            mine != other for mine, other in zip_longest(a or [""], b or [""])
        ]


@settings(max_examples=times(600))
@given(LINES, LINES)
def test_below_each_other_the_first_is_whole_and_no_difference_is_left_out(
    a: list[str], b: list[str]
) -> None:
    lines = two(a, b, 80)
    assert lines[0] == "A:"
    end = lines.index("B:")
    first, second = lines[1 : end - 1], lines[end + 1 :]
    assert [line[2:].rstrip() for line in first] == (a or [""])
    shown = [line[2:].rstrip() for line in second if line[2:] not in ("…", "(looks the same)")]
    remaining = iter(b or [""])
    assert all(line in remaining for line in shown)
    if len(a) == len(b):
        marked = [line[2:].rstrip() for line in second if line.startswith("*")]
        assert marked == [other for mine, other in zip(a, b, strict=True) if mine != other]
        assert ("  (looks the same)" in second) == (a == b)
