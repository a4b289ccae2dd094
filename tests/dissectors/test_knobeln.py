"""Knobeln, the protocol that the documents add as an example: its datagrams and its table."""

from __future__ import annotations

import pytest
from kiebitz_knobeln.dissector import KNOBELN
from message_cases import Case, cases

from kiebitz.dissectors.dissector import Likeness
from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.inspection.inspector import Inspector
from kiebitz.dissectors.model import Chunk, Direction, End, Findings, Gap, Ids, Item, Stream
from kiebitz.dissectors.registry import BUILT_IN

CASES = cases(KNOBELN)
SERVER = "127.0.0.1:5000"
ALICE = Stream(1, "udp", "127.0.0.1:40001", SERVER, 0)
BOB = Stream(2, "udp", "127.0.0.1:40002", SERVER, 0)
MS = 1_000_000

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case.data))


def inspect(*items: Item) -> Findings:
    inspector = Inspector([*BUILT_IN, KNOBELN], Ids(), {("udp", 5000): KNOBELN})
    for item in items:
        inspector.feed(item)
    inspector.finish()
    return inspector.drain()


def told(found: Findings) -> list[str]:
    return [KNOBELN.presentation.describe(event) for event in found.events]


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


def test_a_game_is_reported_once_from_all_conversations() -> None:
    found = inspect(
        Chunk(ALICE, "c2s", 1 * MS, 0, b"HALLO alice"),
        Chunk(ALICE, "s2c", 2 * MS, 0, b"WILLKOMMEN"),
        Chunk(BOB, "c2s", 3 * MS, 0, b"HALLO bob"),
        Chunk(BOB, "s2c", 4 * MS, 0, b"WILLKOMMEN"),
        Chunk(ALICE, "s2c", 5 * MS, 10, b"WURF alice 6"),
        Chunk(BOB, "s2c", 5 * MS, 10, b"WURF alice 6"),
        Chunk(ALICE, "s2c", 3005 * MS, 22, b"WURF alice 6"),
        Chunk(BOB, "s2c", 3005 * MS, 22, b"WURF alice 6"),
        End(BOB, 3006 * MS, "idle"),
        Chunk(ALICE, "s2c", 4005 * MS, 34, b"WURF bob 1"),
    )
    assert told(found) == [
        "alice joins",
        "bob joins",
        "alice rolls 6",
        "alice rolls 6",
        "bob rolls 1",
    ]
    assert [message.event_id for message in found.messages] == [None, 1, None, 2, 3, 3, 4, 4, 5]
    assert found.diagnostics == []
    state: State = {}
    for event in found.events:
        apply(state, event.changes)
    assert state == {"players": {"alice": {}, "bob": {}}, "rolls": {"alice": 6, "bob": 1}}


def test_a_very_long_name_is_cut_short() -> None:
    name = b"x" * 50_000
    asked = Chunk(ALICE, "c2s", 1, 0, b"HALLO " + name)
    found = inspect(
        asked, Chunk(ALICE, "s2c", 2, 0, b"WILLKOMMEN"), Chunk(ALICE, "s2c", 3, 10, b"WURF " + name + b" 3")
    )
    assert told(found) == [f"{'x' * 60}… joins", f"{'x' * 60}… rolls 3"]
    assert all(len(str(event.changes)) < 200 for event in found.events)


def test_a_welcome_without_a_request_changes_nothing() -> None:
    assert told(inspect(Chunk(ALICE, "s2c", 1, 0, b"WILLKOMMEN"))) == []
