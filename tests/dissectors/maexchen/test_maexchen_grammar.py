"""Mäxchen datagrams: decoding and encoding, driven by the table of cases and by the grammar's own rows."""

from __future__ import annotations

import pytest
from message_cases import CASES, Case, cases

from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Chunk, Direction, Findings, Gap, Ids, Stream
from kiebitz.dissectors.protocols.maexchen.dice import MIA, ROLLS, beats
from kiebitz.dissectors.protocols.maexchen.dissector import MAEXCHEN


@pytest.mark.parametrize(
    ("data", "direction", "expected"),
    [
        (b"register;klein", "c2s", "similar"),
        (b"REGISTER", "c2s", "similar"),
        (b"JOIN;x", "s2c", None),
        (b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03www\x02de\x00", "c2s", None),
        (b"GET / HTTP/1.1\r\n", "c2s", None),
        (b"", "c2s", None),
    ],
)
def test_slips_are_similar_and_foreign_traffic_is_not(
    data: bytes, direction: Direction, expected: object
) -> None:
    assert MAEXCHEN.recognise(data, direction) == expected


def inspect(*items: Chunk | Gap) -> Findings:
    inspector = Inspector([MAEXCHEN], Ids(), {("udp", 9000): MAEXCHEN})
    for item in items:
        inspector.feed(item)
    return inspector.drain()


@pytest.mark.parametrize("case", CASES[MAEXCHEN], ids=lambda case: repr(case.data[:40]))
def test_a_datagram_says_the_same_after_a_gap_and_in_mid_stream(case: Case) -> None:
    stream = Stream(1, "udp", "127.0.0.1:5", "127.0.0.1:9000", 0)
    whole = inspect(Chunk(stream, case.direction, 1, 0, case.data))
    after_gap = inspect(
        Gap(stream, case.direction, 0, 0, 10), Chunk(stream, case.direction, 1, 10, case.data)
    )
    assert [(m.name, m.fields) for m in whole.messages] == [(m.name, m.fields) for m in after_gap.messages]
    gap, *violations = after_gap.diagnostics
    assert (gap.code, gap.offset, gap.length) == ("gap", 0, 10)
    assert [(d.code, d.offset + 10) for d in whole.diagnostics] == [(d.code, d.offset) for d in violations]


@pytest.mark.parametrize("case", cases(MAEXCHEN, "sound"), ids=lambda case: repr(case.data[:40]))
def test_a_truncated_datagram_is_no_violation(case: Case) -> None:
    stream = Stream(1, "udp", "127.0.0.1:5", "127.0.0.1:9000", 0)
    found = inspect(Chunk(stream, case.direction, 1, 0, case.data[:3], missing=len(case.data) - 3))
    assert found.messages == []
    (violation,) = found.diagnostics
    assert (violation.code, violation.group, violation.blame) == ("cut-off", "network", "network")
    assert (violation.offset, violation.length) == (0, len(case.data))


def test_the_order_of_the_rolls() -> None:
    assert ROLLS[:3] == ("3,1", "3,2", "4,1")
    assert ROLLS[13:16] == ("6,5", "1,1", "2,2")
    assert ROLLS[-1] == MIA
    assert beats("1,1", "6,5")
    assert beats("4,1", "4,1") is False
    assert beats("7,7", "4,1") is None
