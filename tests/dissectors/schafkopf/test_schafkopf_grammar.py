"""Cards in the bytes of Schafkopf's Pakete."""

from __future__ import annotations

import pytest
from message_cases import Case, cases

from kiebitz.dissectors.protocols.schafkopf.codec import card_place
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF

SOUND = cases(SCHAFKOPF, "sound")


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
