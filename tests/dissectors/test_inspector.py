"""The inspector accepts any bytes in any pieces: nothing raises and every byte is accounted for.

The properties of any bytes are checked for all protocols in test_messages.py.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable
from itertools import count

import msgspec
import pytest
from strength import times
from table_driver import Play

from kiebitz.dissectors.game.context import SNAPSHOT_EVERY
from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.grammar.grammar import UNREADABLE
from kiebitz.dissectors.inspection.inspector import MAX_IDLE_SERVERS, Inspector
from kiebitz.dissectors.inspection.recognition import MAX_UNDECIDED_ITEMS
from kiebitz.dissectors.model import (
    Chunk,
    End,
    Findings,
    Ids,
    Item,
    Stream,
    Transport,
)
from kiebitz.dissectors.registry import BUILT_IN


def inspect(items: Iterable[Item]) -> Findings:
    inspector = Inspector(BUILT_IN, Ids())
    for item in items:
        inspector.feed(item)
    inspector.finish()
    return inspector.drain()


def test_data_before_detection_of_the_protocol_is_kept() -> None:
    stream = Stream(1, "udp", "127.0.0.1:5", "127.0.0.1:4711", 0)
    rubbish, sound = b"register;x", b"REGISTER;alice"
    found = inspect([Chunk(stream, "c2s", 1, 0, rubbish), Chunk(stream, "c2s", 2, len(rubbish), sound)])
    assert [violation.code for violation in found.diagnostics] == ["unknown-message"]
    assert [message.name for message in found.messages] == [UNREADABLE, "REGISTER"]
    assert stream.protocol == "maexchen"


def test_a_client_that_only_makes_slips_is_recognised_in_the_end() -> None:
    stream = Stream(1, "udp", "127.0.0.1:5", "127.0.0.1:4711", 0)
    found = inspect([Chunk(stream, "c2s", 1, 0, b"register;klein")])
    assert [violation.code for violation in found.diagnostics] == ["unknown-message"]


@pytest.mark.parametrize("beginning", [b"", b"SCHELLEN\nSAU\n!END\n", b"!dran\n0\n!END\n", b"\0\0\n"])
def test_data_before_detection_of_a_stream_is_kept(beginning: bytes) -> None:
    stream = Stream(1, "tcp", "127.0.0.1:5", "127.0.0.1:4711", 0)
    data = beginning + b"!ID\n0\n!END\n!DRAN\n2\n!END\n"
    found = inspect(Chunk(stream, "s2c", at, at, data[at : at + 1]) for at in range(len(data)))
    assert [(m.name, m.offset) for m in found.messages if m.name != UNREADABLE] == [
        ("ID", len(beginning)),
        ("DRAN", len(beginning) + 11),
    ]
    assert [m.length for m in found.messages if m.name == UNREADABLE] == [len(beginning)] * bool(beginning)
    assert stream.protocol == "schafkopf"


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_foreign_traffic_is_left_alone_and_does_not_pile_up(
    transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each is compared with all that might be meant.
    monkeypatch.setitem(MAX_UNDECIDED_ITEMS, "tcp", times(MAX_UNDECIDED_ITEMS["tcp"]))
    stream = Stream(1, transport, "127.0.0.1:5", "127.0.0.1:53", 0)
    count = 2 * MAX_UNDECIDED_ITEMS[transport]
    found = inspect(Chunk(stream, "c2s", n, n * 4, b"\x00\x01\x02\n") for n in range(count))
    assert found.messages == []
    assert found.diagnostics == []
    assert stream.protocol is None


@pytest.mark.full
@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_much_foreign_traffic_to_many_servers_does_not_pile_up_either(
    transport: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound = 2 << 20
    monkeypatch.setattr("kiebitz.dissectors.inspection.recognition.MAX_UNDECIDED_BYTES", bound)
    inspector = Inspector(BUILT_IN, Ids())
    tracemalloc.start()
    try:
        for number in range(50):
            stream = Stream(number, transport, "127.0.0.1:5", f"10.0.{number >> 8}.{number & 255}:53", 0)
            for piece in range(10):
                # Each time new bytes, as they come from a file.
                data = bytes([piece]) * 16_000
                inspector.feed(Chunk(stream, "s2c", number, piece * 16_000, data))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # What waits, and of byte streams the beginnings once more.
    assert held < 3 * bound


@pytest.mark.full
def test_idle_servers_are_evicted() -> None:
    inspector = Inspector(BUILT_IN, Ids())
    numbers = count(1)

    def register(server: str, ends: bool = True) -> list[str]:
        """Register a player; which tables are new with that."""
        stream = Stream(next(numbers), "udp", "127.0.0.1:5", server, 0)
        inspector.feed(Chunk(stream, "c2s", 0, 0, b"REGISTER;alice"))
        if ends:
            inspector.feed(End(stream, 0, "idle"))
        return [table.server for table in inspector.drain().tables]

    assert register("127.0.0.1:1", ends=False) == ["127.0.0.1:1"]
    for port in range(2, MAX_IDLE_SERVERS + 3):
        assert register(f"127.0.0.1:{port}") == [f"127.0.0.1:{port}"]
    assert register(f"127.0.0.1:{MAX_IDLE_SERVERS}") == []
    assert register("127.0.0.1:1") == []
    assert register("127.0.0.1:2") == ["127.0.0.1:2"]


@pytest.mark.full
def test_a_server_that_is_forgotten_before_it_was_recognised_loses_nothing() -> None:
    inspector = Inspector(BUILT_IN, Ids())
    for number in range(1, MAX_IDLE_SERVERS + 2):
        stream = Stream(number, "udp", "127.0.0.1:5", f"127.0.0.1:{number}", 0)
        inspector.feed(Chunk(stream, "c2s", 0, 0, b"REGISTER"))
        inspector.feed(End(stream, 0, "idle"))
    found = inspector.drain()
    assert [message.stream.server for message in found.messages] == ["127.0.0.1:1"]


def test_snapshots_are_the_state_that_the_changes_lead_to() -> None:
    play = Play()
    play.register("alice", "bob")
    for number in range(1, 30):
        play.start(number, "alice", "bob")
        play.turn("alice bob", "alice", "5,3", "5,3", f"{number}a")
        play.turn("alice bob", "bob", "4,1", "4,1", f"{number}b")
        play.server("alice bob", "PLAYER LOST;bob;ANNOUNCED_LOSING_DICE")
        play.server("alice bob", f"SCORE;alice:{number},bob:0")
    assert play.diagnostics == []
    assert len(play.found_so_far().snapshots) == len(play.events) // SNAPSHOT_EVERY >= 1
    for snapshot in play.found_so_far().snapshots:
        state: State = {}
        for event in play.events[: snapshot.seq]:
            apply(state, event.changes)
        assert msgspec.json.decode(snapshot.state_json) == state
