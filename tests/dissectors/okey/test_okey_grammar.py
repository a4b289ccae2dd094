"""Okey's messages: encoding, line ends, recognising, and winning decks."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from message_cases import Case, cases
from strength import times

from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.model import DIRECTIONS, Direction
from kiebitz.dissectors.protocols.okey.dissector import OKEY
from kiebitz.dissectors.protocols.okey.grammar import CODEC, WORDS
from kiebitz.dissectors.protocols.okey.tiles import COLOURS, HIGHEST, is_won

CASES = cases(OKEY)


def shortly(case: Case) -> str:
    return f"{case.direction} {case.data[:70].decode(errors='backslashreplace')!r}"


def each(*cases: Case) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=shortly)


def name_of(decoded: Decoded) -> str | None:
    return decoded.row.name if decoded.row is not None else None


# The table of cases.


@each(*(case for case in cases(OKEY, "dialects")))
def test_messages_of_the_last_dialect_encode_to_the_same_bytes(case: Case) -> None:
    assert case.name is not None
    assert CODEC.encode_padded(case.name, case.direction, case.fields, WORDS.pads[1]) == case.data


# Line ends.


def test_a_line_that_ends_with_cr_is_taken_when_the_server_answers() -> None:
    framer = OKEY.framer("c2s")
    assert framer.feed(0, b"LOGI x\r") == []
    assert [frame.data for frame in framer.settle()] == [b"LOGI x\r"]
    # The other half is late, and precedes the next line.
    assert [frame.data for frame in framer.feed(7, b"\nPING\r\n")] == [b"\nPING\r\n"]
    assert name_of(OKEY.codec.decode(b"\nPING\r\n", "c2s")) == "PING"


# Recognising.


@settings(max_examples=times(200))
@given(
    st.lists(st.sampled_from(["LOBBY", "PUT", "JOIN", '"', "\\", " ", "%", "x", "\n", "é"])).map(
        lambda parts: "".join(parts).encode()
    )
    | st.binary(),
    st.sampled_from(DIRECTIONS),
)
def test_a_line_without_the_name_of_a_message_has_no_row(line: bytes, direction: Direction) -> None:
    assert CODEC.names_message(line, direction) or OKEY.codec.decode(line, direction).row is None


# What a winning deck is.


@pytest.mark.parametrize(
    ("deck", "won"),
    [
        ("1R 2R 3R 4R 0K - 1B 2B 3B 4B - 1Y 2Y 3Y 4Y 5Y", True),
        ("0K 2B 3B - 1R 2R 3R 4R - 1Y 2Y 3Y 4Y 5Y 6Y 7Y", True),
        ("1R 1B 1Y 1K 2R 2B 2Y 2K 3R 3B 3Y 4R 4B 4Y", True),
        ("1R 1B 1Y 1K 2R 2B 2Y 2K 3R 3B 3Y 4R 4B 5Y", False),
        ("12R 13R 1R 5B 6B 7B 8B 9B 10B 11B 1Y 2Y 3Y 4Y", True),
        ("1R 2R 3R 1R 2R 3R 1B 2B 3B 1B 2B 3B 0K 0R", True),
        ("1R 2R 3R 1R 2R 3R 1B 2B 3B 1B 2B 3B 5Y 9K", False),
        ("1R 2R 3R 4R 5R 6R 7R 8R 9R 10R 11R 12R 13R", False),
        ("1R 2R 3R 4R 5R 6R 7R 8R 9R 10R 11R 12R 13R 1B", False),
        ("1R 1R 1R 2R 2R 2R 3R 3R 3R 4R 4R 4R 5R 5R", False),
        ("", False),
    ],
)
def test_a_winning_deck(deck: str, won: bool) -> None:
    colours = {"R": "RED", "B": "BLUE", "Y": "YELLOW", "K": "BLACK"}
    slots = [None if tile == "-" else f"{tile[:-1]}:{colours[tile[-1]]}" for tile in deck.split()]
    assert is_won(slots) is won


@given(
    st.lists(
        st.builds("{}:{}".format, st.integers(0, HIGHEST), st.sampled_from(COLOURS)), min_size=14, max_size=14
    )
)
@settings(max_examples=times(200))
def test_every_deck_is_classified_as_winning_or_not(deck: list[str]) -> None:
    assert is_won(deck) in (True, False)
