"""Knobeln, the protocol that the documents add as an example: its datagrams."""

from __future__ import annotations

import pytest
from kiebitz_knobeln.dissector import KNOBELN
from message_cases import Case, cases

from kiebitz.dissectors.dissector import Likeness
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Chunk, Direction, Findings, Gap, Ids, Item, Stream
from kiebitz.dissectors.registry import BUILT_IN

CASES = cases(KNOBELN)
SERVER = "127.0.0.1:5000"
ALICE = Stream(1, "udp", "127.0.0.1:40001", SERVER, 0)

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case.data))


def inspect(*items: Item) -> Findings:
    inspector = Inspector([*BUILT_IN, KNOBELN], Ids(), {("udp", 5000): KNOBELN})
    for item in items:
        inspector.feed(item)
    inspector.finish()
    return inspector.drain()


@each_case
def test_a_datagram_says_the_same_after_a_gap_and_in_mid_stream(case: Case) -> None:
    whole = inspect(Chunk(ALICE, case.direction, 1, 0, case.data))
    after_gap = inspect(Gap(ALICE, case.direction, 0, 0, 10), Chunk(ALICE, case.direction, 1, 10, case.data))
    assert [(m.name, m.fields) for m in whole.messages] == [(m.name, m.fields) for m in after_gap.messages]
    gap, *violations = after_gap.diagnostics
    assert gap.code == "gap"
    assert [(d.code, d.offset + 10) for d in whole.diagnostics] == [(d.code, d.offset) for d in violations]


@pytest.mark.parametrize(
    ("data", "direction", "expected"),
    [
        *((case.data, case.direction, "certain") for case in cases(KNOBELN, "sound")),
        (b"hallo alice", "c2s", "similar"),
        (b"HALLO", "c2s", "similar"),
        (b"REGISTER;alice", "c2s", None),
        (b"\x12\x34\x01\x00\x00\x01", "c2s", None),
        (b"", "c2s", None),
    ],
)
def test_recognition(data: bytes, direction: Direction, expected: Likeness | None) -> None:
    assert KNOBELN.recognise(data, direction) == expected
