"""Lines that are too long for a terminal: broken between words, lists between their items."""

from __future__ import annotations

import io

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from strength import times

from kiebitz.cli.terminal.screen import Console, Text
from kiebitz.services.evidence.cells import cell_len

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
