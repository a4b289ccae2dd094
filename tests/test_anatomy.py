"""What a frame is made of: which production took which bytes, of every protocol and of plug-ins."""

from __future__ import annotations

import knobeln_cases
import noughts_cases
import pytest
from all_cases import CASES
from cases import Case
from kiebitz_knobeln.dissector import KNOBELN
from kiebitz_noughts.dissector import NOUGHTS
from recorded import CAPTURES, messages_of
from strength import few_captures

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.testing import check_anatomy

ALL_CASES: dict[Dissector, list[Case]] = {
    **CASES,
    KNOBELN: [*knobeln_cases.SOUND, *knobeln_cases.FLAWED],
    NOUGHTS: [*noughts_cases.SOUND, *noughts_cases.FLAWED],
}
RECORDED = sorted(
    path.name
    for path in CAPTURES.iterdir()
    if path.name.endswith((".pcap", ".pcapng", ".pcap.gz", ".pcapng.gz"))
)

each_protocol = pytest.mark.parametrize("dissector", ALL_CASES, ids=lambda dissector: dissector.protocol)


@each_protocol
def test_the_pieces_of_every_case_are_all_of_it(dissector: Dissector) -> None:
    for case in ALL_CASES[dissector]:
        pieces = check_anatomy(dissector, case.data, case.direction)
        decoded = dissector.decode(case.data, case.direction)
        if decoded.sound:
            assert not [piece for piece in pieces if piece.kind == "unread"], case.data
        elif case.data.strip() and decoded.row is None and any(f.severity == "error" for f in decoded.flaws):
            assert [piece for piece in pieces if piece.kind == "unread"], case.data


@pytest.mark.parametrize("name", few_captures(RECORDED))
def test_the_pieces_of_what_was_recorded_are_all_of_it(name: str) -> None:
    for dissector, direction, frame in messages_of(name):
        pieces = check_anatomy(dissector, frame, direction)
        if dissector.decode(frame, direction).sound:
            assert not [piece for piece in pieces if piece.kind == "unread"], frame
