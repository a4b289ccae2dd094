"""Tables of a difference side by side or one below the other.

Snapshots are in `tests/snapshots/diff/`; `KIEBITZ_SNAPSHOTS=write pytest --full
tests/cli/test_side_by_side.py` rewrites them.
"""

from __future__ import annotations

import io
import re
from itertools import zip_longest

import pytest
from command import ROOT, kiebitz
from hostile_text import on_a_terminal
from hypothesis import given, settings
from hypothesis import strategies as st
from snapshots import check
from strength import a_few, times
from terminals import unstyled

from kiebitz.cli.differences.side_by_side import Drawn, two_tables
from kiebitz.cli.render.text import draw
from kiebitz.cli.terminal.screen import LINE_BREAK, Console, Text
from kiebitz.dissectors.game.view import Scene
from kiebitz.services.evidence.cells import cell_len

SNAPSHOTS = ROOT / "tests" / "snapshots" / "diff"

CATAN = "captures/catan-niedlichepixel-game2-3p.pcap.gz"
OKEY = "captures/okey-seed-game-win.pcap.gz"

DIFFERENT = {
    "maexchen": ["whatif", "captures/maexchen-head-tiny.pcap", "--edit", "#31 dice=2,1"],
    "schafkopf": [
        *("diff", "--state"),
        *("captures/schafkopf-1.3-badcard.pcap@9s", "captures/schafkopf-1.3-badcard.pcap@end"),
    ],
    "catan": ["diff", "--state", f"{CATAN}@30s", f"{CATAN}@32s"],
    "okey": ["diff", OKEY, "captures/okey-head-game-win.pcap.gz", "-Y", 'kind == "dealt"'],
    "cgml": ["diff", "--state", "captures/cgml-hands.pcap.gz@#40", "captures/cgml-hands.pcap.gz@#45"],
}
"""Protocol -> a command that draws two tables of it that differ."""

WIDTHS = (60, 80, 160)
QUICK = [("schafkopf", 160), ("okey", 60)]

PROGRESS = re.compile(r"(?:.*\x1b\[(?:2K|\?25[lh]|1A))+", re.DOTALL)


def seen(monkeypatch: pytest.MonkeyPatch, arguments: list[str], columns: int, **environment: str) -> str:
    monkeypatch.chdir(ROOT)
    for name, value in {
        "TERM": "xterm-256color",
        "COLUMNS": str(columns),
        "LINES": "50",
        **environment,
    }.items():
        monkeypatch.setenv(name, value)
    done = on_a_terminal(*arguments)
    assert done.status == 3
    return PROGRESS.sub("", done.out)


@pytest.mark.full(but=1)
@pytest.mark.parametrize(
    ("protocol", "columns"), a_few([(name, width) for name in DIFFERENT for width in WIDTHS], QUICK)
)
def test_it_looks_as_it_did(monkeypatch: pytest.MonkeyPatch, protocol: str, columns: int) -> None:
    text = seen(monkeypatch, DIFFERENT[protocol], columns, NO_COLOR="1")
    text = "".join(f"{line.rstrip()}\n" for line in unstyled(text).splitlines())
    path = SNAPSHOTS / f"{protocol}-{columns}.txt"
    check(path, text)
    assert all(cell_len(line) <= columns for line in text.splitlines())
    assert any("*" in line for line in text.splitlines())


def test_no_snapshot_is_left_that_nothing_makes() -> None:
    made = {f"{name}-{width}" for name in DIFFERENT for width in WIDTHS}
    assert {path.stem for path in SNAPSHOTS.iterdir()} == made


def test_differences_are_coloured_if_colours_are_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with_colours = seen(monkeypatch, DIFFERENT["maexchen"], 160)
    assert "\x1b[30;48;5;221m3,3\x1b[0m" in with_colours
    assert "\x1b[30;48;5;221m2,1\x1b[0m" in with_colours
    without = seen(monkeypatch, DIFFERENT["maexchen"], 160, NO_COLOR="1")
    assert "48;5" not in without
    assert unstyled(without) == unstyled(with_colours)


def test_into_a_pipe_they_are_one_below_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = kiebitz(*DIFFERENT["maexchen"]).out.splitlines()
    assert lines.index("A:") < lines.index("B:")
    assert [line for line in lines if line.startswith("*") and "carl has rolled 3,3" in line]
    assert [line for line in lines if line.startswith("*") and "carl has rolled 2,1" in line]
    # Of the second table only what is around that.
    assert lines.count("  watching: zuschauer") == 1
    assert lines.count("  …") == 2


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
