"""Listings on terminals of several widths: what a row is found again by is whole, and no line is too long.

Lines that are too long for a terminal: broken between words, lists between their items.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from command import CAPTURES, ODD, TINY, kiebitz
from hypothesis import example, given, settings
from hypothesis import strategies as st
from session_factory import Conversation, record
from strength import a_few, times
from terminals import OnTerminal

from kiebitz.cli.terminal.screen import Console, Text
from kiebitz.services.evidence.cells import cell_len
from kiebitz.services.wording import counted

CATAN = str(CAPTURES / "catan-niedlichepixel-game2-3p.pcap.gz")
WIDTHS = [60, 80, 100, 160]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("terminal") / "game.db")
    assert kiebitz("import", TINY, ODD, CATAN, "-w", path).status == 0
    return path


def shown(columns: int, *arguments: str) -> tuple[list[str], list[list[str]]]:
    """Return the titles of a listing on a terminal, and its rows, in words."""
    with OnTerminal(*arguments, columns=columns) as command:
        assert command.ended() == 0
    lines = [line for line in command.lines if not line.startswith("kiebitz: ")]
    assert max(map(cell_len, lines)) <= columns
    titles = lines[0]
    assert "…" not in titles
    return titles.split(), [line.split() for line in lines[1:]]


def port(address: str) -> str:
    return address[address.rindex(":") :]


def whole(row: dict[str, Any], key: str, said: list[str]) -> bool:
    value = row[key]
    if value is None:
        return True
    if isinstance(value, float):
        return f"{value:.6f}" in said or f"{value:.3f}" in said
    if key == "client" and row.get("player") is not None:
        return row["player"] in said
    if key in ("client", "server"):
        return any(word.endswith(port(value)) for word in said)
    return str(value) in said


@pytest.mark.parametrize("columns", a_few(WIDTHS, [80]))
@pytest.mark.parametrize(
    ("command", "number", "filter_", "keys"),
    a_few(
        [
            ("sessions", 0, "", ["id"]),
            ("streams", 1, "", ["number", "opened", "closed", "client", "server"]),
            ("streams", 3, "", ["number", "opened", "closed", "client", "server"]),
            ("games", 1, "", ["number", "started", "ended"]),
            ("games", 3, "", ["number", "started", "ended"]),
            ("messages", 1, "", ["number", "time", "stream", "dir", "client"]),
            ("messages", 3, "time > 60.7 && time < 60.81", ["number", "time", "stream", "dir", "client"]),
            ("events", 1, "", ["number", "time", "game"]),
            ("events", 3, "time > 60.7 && time < 60.81", ["number", "time", "game"]),
        ],
        lambda row: row[0] in ("sessions", "games") and row[1] != 1,
    ),
)
@pytest.mark.full
def test_search_columns_of_a_row_are_complete(
    database: str, columns: int, command: str, number: int, filter_: str, keys: list[str]
) -> None:
    session = f"{database}:{number}" if number else database
    arguments = (command, session, *(("-Y", filter_) if filter_ else ()))
    rows = kiebitz(*arguments, "--json").json
    _, listed = shown(columns, *arguments)
    assert len(listed) == len(rows) > 0
    for row, said in zip(rows, listed, strict=True):
        for key in keys:
            assert whole(row, key, said), (key, row[key], said)


@pytest.mark.full
def test_later_rows_may_need_more_room(tmp_path: Path) -> None:
    talk = Conversation()
    for number in range(1200):
        talk.says(b"REGISTER;" + b"x" * (number // 100))
    session = record(tmp_path / "many.db", talk.items)
    _, rows = shown(60, "messages", session)
    assert [row[0] for row in rows] == [str(number) for number in range(1, 1201)]


TILES = ",".join(f"{number}:YELLOW" for number in range(1, 14))


def lines(text: str, width: int) -> list[str]:
    return [line.plain for line in Text(text).lines(Console(width=width, file=io.StringIO()), width)]


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("who has what", 8, ["who has ", "what"]),
        ("deck: 1:RED,2:RED,3:RED end", 14, ["deck: 1:RED,", "2:RED,3:RED ", "end"]),
        ('hand ["EICHEL ZEHN","GRAS NEUN"]', 16, ["hand ", '["EICHEL ZEHN",', '"GRAS NEUN"]']),
        ('he says "good game" again', 12, ["he says ", '"good game" ', "again"]),
        ('5" and more words', 8, ['5" and ', "more ", "words"]),
        ("a,b,c", 20, ["a,b,c"]),
        ("x" * 25, 10, ["x" * 10, "x" * 10, "x" * 5]),
    ],
)
def test_a_line_is_broken_between_words_and_items(text: str, width: int, expected: list[str]) -> None:
    assert lines(text, width) == expected


@pytest.mark.parametrize("width", [12, 30, 60, 80, 160])
def test_no_tile_is_torn(width: int) -> None:
    found = [tile for line in lines(f"deck: {TILES} and more", width) for tile in line.rstrip().split(",")]
    assert {tile.removeprefix("deck: ").split()[0] for tile in found if ":Y" in tile} == {*TILES.split(",")}


WORDS = st.lists(
    st.sampled_from(
        ["carl", "ü", "日本", "🎲🎲", "a,b,", '"', '"ja, ja"', "1:RED,2:RED,3:RED", ",", "x" * 30]
    )
)


@settings(max_examples=times(600))
@given(WORDS, st.integers(4, 40))
@example(["x" * 30, "a,b,"], 4)
def test_nothing_is_lost_and_no_line_is_too_wide(words: list[str], width: int) -> None:
    text = " ".join(words)
    found = lines(text, width)
    assert all(cell_len(line) <= width for line in found)
    assert "".join("".join(found).split()) == "".join(text.split())


def written(text: str, columns: int, is_terminal: bool) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=columns, force_terminal=is_terminal, color_system=None).show(Text(text))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def test_a_terminal_gets_what_is_left_of_a_line_further_in() -> None:
    text = "  A #13  boran gets his tiles"
    assert written(text, 20, True) == ["  A #13  boran", "      gets his tiles"]
    assert written(text, 80, True) == [text]
    assert written(text, 20, False) == [text]


@pytest.mark.parametrize(
    ("count", "what", "told"),
    [
        (0, ("case",), "0 cases"),
        (1, ("case",), "1 case"),
        (2, ("case",), "2 cases"),
        (2000, ("case",), "2,000 cases"),
        (1, ("other copy", "other copies"), "1 other copy"),
        (2, ("other copy", "other copies"), "2 other copies"),
    ],
)
def test_things_are_counted_in_words(count: int, what: tuple[str, ...], told: str) -> None:
    assert counted(count, *what) == told
