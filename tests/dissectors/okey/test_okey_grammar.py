"""Okey's messages: quoting, decoding, encoding, framing and recognising, driven by the table of cases."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from message_cases import Case, cases
from strength import times

from kiebitz.dissectors.grammar.framing import FRAME_LIMIT, Frame
from kiebitz.dissectors.grammar.grammar import Decoded, Field, MessageType
from kiebitz.dissectors.model import DIRECTIONS, Direction
from kiebitz.dissectors.protocols.okey.dissector import OKEY
from kiebitz.dissectors.protocols.okey.grammar import CODEC, GRAMMAR, TYPES, WORDS
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


# Messages of all rows, made from the types of their fields.

texts = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=20)
names = texts.filter(bool)
tiles = st.builds("{}:{}".format, st.integers(0, HIGHEST), st.sampled_from(COLOURS))
slots = st.one_of(st.none(), tiles)
places = st.lists(st.one_of(st.none(), names), max_size=4)
lobbies = st.lists(st.fixed_dictionaries({"lobby": st.integers(-99, 99), "players": places}), max_size=3)


def _games(**behind: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(st.fixed_dictionaries({"lobby": st.integers(-99, 99), **behind}), max_size=3)


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "wanted-name": texts,
    "name": texts,
    "names": places,
    "lobby": st.integers(-(2**31), 2**31 - 1),
    "seat": st.integers(0, 3),
    "tile": slots,
    "deck": st.lists(slots, max_size=24),
    "stacks": st.lists(slots, min_size=4, max_size=4),
    "titled-lobbies": lobbies,
    "lobbies": lobbies,
    "open-games": _games(players=st.integers(0, 4)),
    "running-games": _games(),
    "finished-games": _games(winner=st.one_of(st.none(), names)),
    "high-scores": st.lists(
        st.fixed_dictionaries({"name": names, "date": names, "turns": st.integers(0, 99)}), max_size=3
    ),
}


def values(field: Field) -> st.SearchStrategy[Any]:
    name = next((name for name, kind in TYPES.items() if kind is field.type), None)
    if name is not None:
        return VALUES[name]
    words = [field.type.decode(word) for word in field.type.words]
    return st.sampled_from(words) if words else texts


@pytest.mark.full(but=14)
@pytest.mark.parametrize(
    "row", GRAMMAR.rows, ids=lambda row: f"{row.direction} {row.name} {row.deviation or ''}"
)
@given(data=st.data(), pad=st.sampled_from(WORDS.pads))
@settings(max_examples=times(40))
def test_decode_after_encode_is_the_identity_for_every_row(
    row: MessageType, data: st.DataObject, pad: str
) -> None:
    fields = {
        field.name: data.draw(values(field))
        for field in row.fields
        if not field.optional or data.draw(st.booleans())
    }
    frame = CODEC.encode_padded(row.name, row.direction, fields, pad)
    decoded = OKEY.codec.decode(frame, row.direction)
    assert (name_of(decoded), decoded.fields, decoded.valid) == (row.name, fields, True)


# Long lines.


def frames(direction: Direction, pieces: list[bytes | None]) -> list[Frame]:
    framer = OKEY.framer(direction)
    found: list[Frame] = []
    offset = 0
    for piece in pieces:
        if piece is None:
            found.extend(framer.gap(offset, 7))
            offset += 7
        else:
            found.extend(framer.feed(offset, piece))
            offset += len(piece)
    return [*found, *framer.eof()]


@pytest.mark.full(but=3)
@pytest.mark.parametrize("end", [b"\r\n", b"\n", b"\r"])
@pytest.mark.parametrize("size", [FRAME_LIMIT - 10, FRAME_LIMIT, FRAME_LIMIT + 1, 3 * FRAME_LIMIT])
def test_a_line_that_is_too_long_is_one_frame_however_it_comes(size: int, end: bytes) -> None:
    line = b"CATC b " + b"x" * size + end
    rest = b"PING\r\n"
    whole = frames("c2s", [line + rest])
    pieces = frames("c2s", [(line + rest)[at : at + 65_535] for at in range(0, len(line + rest), 65_535)])
    assert whole == pieces
    assert [(frame.size, frame.cut) for frame in whole] == [
        (len(line), "limit" if len(line) > FRAME_LIMIT else None),
        (len(rest), None),
    ]


def test_a_line_that_ends_with_cr_is_taken_when_the_server_answers() -> None:
    framer = OKEY.framer("c2s")
    assert framer.feed(0, b"LOGI x\r") == []
    assert [frame.data for frame in framer.settle()] == [b"LOGI x\r"]
    # The other half is late, and precedes the next line.
    assert [frame.data for frame in framer.feed(7, b"\nPING\r\n")] == [b"\nPING\r\n"]
    assert name_of(OKEY.codec.decode(b"\nPING\r\n", "c2s")) == "PING"


@pytest.mark.parametrize(
    ("data", "name", "codes"),
    [
        (b"PING", "PING", []),
        (b"CATC b hallo", "CATC", []),
        (b"PUTT 1:RED 2:RE", "PUTT", ["truncated"]),
        (b'CATC b "hal', "CATC", ["truncated"]),
        (b"LO", "unreadable", ["truncated"]),
    ],
)
def test_a_stream_that_is_closed_in_a_line(data: bytes, name: str, codes: list[str]) -> None:
    decoded = OKEY.codec.truncated(data, "c2s")
    assert (name_of(decoded) or "unreadable", [violation.code for violation in decoded.violations]) == (
        name,
        codes,
    )


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


@given(st.lists(tiles, min_size=14, max_size=14))
@settings(max_examples=times(200))
def test_every_deck_is_classified_as_winning_or_not(deck: list[str]) -> None:
    assert is_won(deck) in (True, False)
