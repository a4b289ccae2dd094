"""Schafkopf's Pakete: framing, decoding and encoding, driven by the table of cases and the grammar's rows."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from message_cases import Case, cases
from single_direction import frames, split
from strength import every

from kiebitz.dissectors.grammar.framing import FRAME_LIMIT
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocols.schafkopf.codec import card_place
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF

CASES = cases(SCHAFKOPF)
SOUND = cases(SCHAFKOPF, "sound")


def shortly(case: Case) -> str:
    return f"{case.direction} {case.data[:40]!r}"


# Decoding and encoding.


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
    whole = frames(SCHAFKOPF, direction, [data] if data else [])
    assert frames(SCHAFKOPF, direction, split(data, places)) == whole
    assert sum(frame.size for frame in whole) == len(data)
    for frame in whole:
        assert frame.cut == "limit" if frame.size > FRAME_LIMIT else frame.cut in (None, "end")
        assert frame.data == (b"" if frame.cut == "limit" else data[frame.offset : frame.offset + frame.size])
        assert frame.place <= frame.size
