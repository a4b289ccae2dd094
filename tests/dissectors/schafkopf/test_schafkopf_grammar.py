"""Schafkopf's Pakete: framing, decoding and encoding, driven by the table of cases and the grammar's rows."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from message_cases import Case, cases
from strength import every, times

from kiebitz.dissectors.grammar.field_type import FieldType
from kiebitz.dissectors.grammar.framing import FRAME_LIMIT, Frame
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocols.schafkopf.cards import PACK
from kiebitz.dissectors.protocols.schafkopf.codec import card_place
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF
from kiebitz.dissectors.protocols.schafkopf.grammar import (
    END,
    GRAMMAR,
    Choice,
    Digits,
    Each,
    Flag,
    Karte,
    Konto,
    String,
    notation,
)

CASES = cases(SCHAFKOPF)
SOUND = cases(SCHAFKOPF, "sound")


def shortly(case: Case) -> str:
    return f"{case.direction} {case.data[:40]!r}"


# Values that a field of a type can carry.

NAMES = st.one_of(
    st.sampled_from(["§", "!DRAN", "!MODEL", "Ωmega✓", "x" * 5000, "\t \0"]),
    st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=40),
).filter(lambda name: not name.endswith("\r") and name not in (END, "Â§"))


def values(kind: FieldType) -> st.SearchStrategy[Any]:
    """Values of a field, from the grammar's own types."""
    match kind:
        case Each():
            return st.lists(
                values(kind.item),
                min_size=kind.least,
                max_size=kind.least,
            )
        case Karte():
            return st.one_of(st.none(), st.sampled_from(sorted(PACK)))
        case Digits():
            return st.sampled_from([int(word) for word in kind.words])
        case Flag():
            return st.sampled_from([word[1:] for word in kind.words])
        case Choice():
            return st.sampled_from(kind.words)
        case Konto():
            return st.integers(-(10**14), 10**14)
        case String():
            return NAMES
        case _:
            raise AssertionError(f"no values are known for {kind.title}: add them here")


def fields_of(row: MessageType) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({field.name: values(field.type) for field in row.fields})


# Decoding and encoding.


@pytest.mark.full(but=7)
@pytest.mark.parametrize("row", GRAMMAR.rows, ids=lambda row: f"{row.direction}-{notation(row)}")
@given(data=st.data())
@settings(max_examples=times(50))
def test_decode_after_encode_is_the_identity_for_every_row(row: MessageType, data: st.DataObject) -> None:
    fields = data.draw(fields_of(row))
    paket = SCHAFKOPF.codec.encode(row.name, row.direction, fields)
    decoded = SCHAFKOPF.codec.decode(paket, row.direction)
    assert decoded.valid
    assert decoded.row is not None
    assert (decoded.row.name, len(decoded.row.fields)) == (row.name, len(row.fields))
    assert decoded.fields == fields
    assert cut([paket], row.direction) == [Frame(0, paket, len(paket))]


@pytest.mark.parametrize(
    "case",
    [case for case in (*SOUND, *cases(SCHAFKOPF, "loose")) if case.name == "MODEL"],
    ids=lambda case: repr(case.data[-30:]),
)
def test_a_card_of_a_model_is_found_in_its_bytes(case: Case) -> None:
    decoded = SCHAFKOPF.codec.decode(case.data, case.direction)
    for field in ("spielerhand", "tisch", "letzter_stich"):
        for number, card in enumerate(case.fields[field]):
            offset, length = card_place(case.direction, decoded.fields, len(case.data), field, number)
            lines = case.data[offset : offset + length].split(b"\n")
            if card is not None:
                assert [line.rstrip(b"\r").decode() for line in lines] == card.split()
            else:
                assert len(lines) == 2


# Framing.


def cut(pieces: Iterable[bytes], direction: Direction, start: int = 0) -> list[Frame]:
    framer = SCHAFKOPF.framer(direction)
    frames: list[Frame] = []
    for piece in pieces:
        frames += framer.feed(start, piece)
        start += len(piece)
    return [*frames, *framer.eof()]


def split(data: bytes, places: Iterable[int]) -> list[bytes]:
    """Data cut at these places."""
    cuts = sorted({0, len(data), *(place for place in places if place < len(data))})
    return [data[start:end] for start, end in pairwise(cuts)]


Piece = tuple[bytes, int]

ABOUT_THE_LIMIT = st.tuples(
    st.sampled_from([b"x", b"x" * 30 + b"\n", b"!NAME\nAnna\nmehr\n", b"HERZ\nSAU\n", "§\n§\n§\n".encode()]),
    st.integers(FRAME_LIMIT - 20, FRAME_LIMIT + 200),
)
SHORT = st.sampled_from([(case.data, len(case.data)) for case in CASES])

NEARLY_TOO_LONG = [(b"HERZ\nSAU\n", FRAME_LIMIT - 4), (b"!DRAN\n0\n!END\n", 13)]
"""A frame within the limit, which the flag of the next one crosses."""


ABOUT_A_CUT: list[tuple[list[Piece], list[int]]] = [
    (NEARLY_TOO_LONG, [FRAME_LIMIT - 2, FRAME_LIMIT - 1, FRAME_LIMIT + 1]),
    (NEARLY_TOO_LONG, []),
    ([(b"!MODEL\nSPIELSTDU\n", 17), (b"x", FRAME_LIMIT), (b"\n", 1)], [FRAME_LIMIT + 2]),
    ([(b"x\n", FRAME_LIMIT - 4), (b"!DRAN", 5)], [FRAME_LIMIT - 2]),
    ([(b"x\n", FRAME_LIMIT - 4), (b"!DRANBLEIBEN", 12)], [FRAME_LIMIT - 2]),
    ([(b"x\n", FRAME_LIMIT - 4), (b"!END\n", 5)], [FRAME_LIMIT - 2]),
]


@pytest.mark.full
@pytest.mark.parametrize(("pieces", "places"), every(6, ABOUT_A_CUT))
def test_a_cut_about_the_limit_gives_the_same_frames(pieces: list[Piece], places: list[int]) -> None:
    check_cuts(pieces, places, "s2c")


# Pieces represent megabytes, so that they can be printed and a failure is reported without shrinking.
@pytest.mark.full
@given(
    st.lists(st.one_of(ABOUT_THE_LIMIT, SHORT), max_size=4),
    st.lists(st.integers(0, 3 * FRAME_LIMIT), max_size=20),
    st.sampled_from(["c2s", "s2c"]),
)
@settings(max_examples=20, deadline=None, phases=set(Phase) - {Phase.shrink, Phase.explain})
def test_any_cut_of_more_than_a_frame_can_hold_gives_the_same_frames(
    pieces: list[Piece], places: list[int], direction: Direction
) -> None:
    check_cuts(pieces, places, direction)


def check_cuts(pieces: list[Piece], places: list[int], direction: Direction) -> None:
    data = b"".join((piece * (size // len(piece) + 1))[:size] for piece, size in pieces)
    frames = cut([data] if data else [], direction)
    assert cut(split(data, places), direction) == frames
    assert sum(frame.size for frame in frames) == len(data)
    for frame in frames:
        assert frame.cut == "limit" if frame.size > FRAME_LIMIT else frame.cut in (None, "end")
        assert frame.data == (b"" if frame.cut == "limit" else data[frame.offset : frame.offset + frame.size])
        assert frame.place <= frame.size


@pytest.mark.full(but=1)
@pytest.mark.parametrize("direction", ["c2s", "s2c"])
@pytest.mark.parametrize("line", [b"x" * 100, b"x" * 99 + b"\n"])
def test_endless_messages_are_not_held(direction: Direction, line: bytes) -> None:
    framer = SCHAFKOPF.framer(direction)
    piece = line * 1000
    tracemalloc.start()
    try:
        for offset in range(0, 4 * FRAME_LIMIT, len(piece)):
            framer.feed(offset, piece)
        held, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < FRAME_LIMIT
    assert peak < 3 * FRAME_LIMIT
