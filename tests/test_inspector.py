"""The inspector: whatever bytes come in whatever pieces, nothing raises and every byte is accounted for.

What holds for any bytes holds for all registered protocols.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable
from itertools import count
from typing import Any

import catan_cases
import cgml_broken
import cgml_cases
import maexchen_cases
import msgspec
import okey_cases
import pytest
import schafkopf_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from playing import Play
from sound_findings import check_accounted, check_sound
from strength import times

from kiebitz.dissectors.catan.dissector import CATAN
from kiebitz.dissectors.cgml.dissector import CGML
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar import UNREADABLE
from kiebitz.dissectors.inspector import MOST_SERVERS, UNDECIDED_BYTES, UNDECIDED_ITEMS, Inspector
from kiebitz.dissectors.maexchen.dissector import MAEXCHEN
from kiebitz.dissectors.okey.dissector import OKEY
from kiebitz.dissectors.records import (
    DIRECTIONS,
    Chunk,
    Direction,
    End,
    Fault,
    Findings,
    Gap,
    Item,
    Stream,
    Transport,
)
from kiebitz.dissectors.registry import BUILT_IN
from kiebitz.dissectors.schafkopf.dissector import SCHAFKOPF
from kiebitz.dissectors.state import State, apply
from kiebitz.dissectors.table import SNAPSHOT_EVERY, Ids

SAID = {
    MAEXCHEN: [case.data for case in (*maexchen_cases.SOUND, *maexchen_cases.LOOSE, *maexchen_cases.FLAWED)],
    SCHAFKOPF: [
        case.data for case in (*schafkopf_cases.SOUND, *schafkopf_cases.LOOSE, *schafkopf_cases.FLAWED)
    ],
    CATAN: [
        case.data
        for case in (
            *(*catan_cases.SOUND, *catan_cases.DIALECTS, *catan_cases.LOOSE),
            *(*catan_cases.FLAWED, *catan_cases.NO_MESSAGE),
        )
    ],
    OKEY: [case.data for case in (*okey_cases.SEED, *okey_cases.HEAD, *okey_cases.LOOSE, *okey_cases.FLAWED)],
    CGML: [case.data for case in (*cgml_cases.SOUND, *cgml_cases.LOOSE, *cgml_broken.BROKEN)],
}
"""What peers of a protocol say; a protocol without an entry here gets any bytes."""

PORTS = {"udp": (9000, 4711), "tcp": (35555, 4711)}

each_protocol = pytest.mark.parametrize("dissector", BUILT_IN, ids=lambda dissector: dissector.protocol)


def payloads(dissector: Dissector) -> st.SearchStrategy[bytes]:
    said = st.sampled_from(SAID.get(dissector, [b""]))
    return st.one_of(
        st.binary(max_size=60),
        said,
        said,
        st.builds(
            lambda data, at, junk: data[:at] + junk + data[at:],
            said,
            st.integers(0, 80),
            st.binary(max_size=4),
        ),
        st.builds(lambda data, at: data[:at], said, st.integers(0, 150)),
    )


@st.composite
def traffic(draw: st.DrawFn, dissector: Dissector, gaps: bool = True) -> list[Item]:
    """Any items of a few streams to one or two servers, in order."""
    transport = dissector.transport
    streams = [
        Stream(
            number,
            transport,
            f"127.0.0.1:{number}",
            f"127.0.0.1:{draw(st.sampled_from(PORTS[transport]))}",
            0,
        )
        for number in range(1, 4)
    ]
    offsets: dict[tuple[int, Direction], int] = {}
    items: list[Item] = []
    now = 0
    for _ in range(draw(st.integers(0, 40))):
        stream = draw(st.sampled_from(streams))
        direction = draw(st.sampled_from(DIRECTIONS))
        now += draw(st.sampled_from([0, 1_000, 1_000_000, 300_000_000, 3_000_000_000]))
        offset = offsets.get((stream.id, direction), 0)
        match draw(st.integers(0, 11)):
            case 0 if gaps:
                length = draw(st.one_of(st.none(), st.integers(0, 100)))
                items.append(Gap(stream, direction, now, offset, length))
                offsets[stream.id, direction] = offset + (length or 0)
            case 1:
                items.append(Fault(stream, direction, now, offset, "port-unreachable", "nobody there"))
            case _:
                data = draw(payloads(dissector))
                # A snap length cuts datagrams; of a byte stream it makes a gap.
                missing = draw(st.sampled_from([0, 0, 0, 0, 7])) if transport == "udp" else 0
                items.append(Chunk(stream, direction, now, offset, data, missing))
                offsets[stream.id, direction] = offset + len(data) + missing
    if draw(st.booleans()):
        reason = draw(st.sampled_from(["end", "closed", "reset", "idle"]))
        items.extend(End(stream, now, reason) for stream in streams)
    return items


def inspect(items: Iterable[Item], forced: Dissector | None = None) -> Findings:
    """What comes of items, of which it may be known which protocol they are."""
    decode_as: dict[tuple[str, int], Dissector] = {}
    if forced is not None:
        decode_as = {(forced.transport, port): forced for port in PORTS[forced.transport]}
    inspector = Inspector(BUILT_IN, Ids(), decode_as)
    for item in items:
        inspector.feed(item)
    inspector.finish()
    return inspector.drain()


@each_protocol
@given(data=st.data())
@settings(max_examples=times(300))
def test_every_byte_is_accounted_for(dissector: Dissector, data: st.DataObject) -> None:
    items = data.draw(traffic(dissector))
    check_accounted(items, inspect(items, dissector))


@each_protocol
@given(data=st.data())
@settings(max_examples=times(200))
def test_any_cut_of_a_stream_gives_the_same_findings(dissector: Dissector, data: st.DataObject) -> None:
    if dissector.transport == "udp":
        # A datagram is not cut.
        return
    items = data.draw(traffic(dissector))
    sizes = data.draw(st.lists(st.integers(1, 60), min_size=1, max_size=5))
    assert said(inspect(recut(items, sizes), dissector)) == said(inspect(items, dissector))


def recut(items: list[Item], sizes: list[int]) -> list[Item]:
    """The same bytes in pieces of these sizes."""
    pieces: list[Item] = []
    for item in items:
        if not isinstance(item, Chunk) or not item.data:
            pieces.append(item)
            continue
        at = 0
        while at < len(item.data):
            size = sizes[len(pieces) % len(sizes)]
            piece = item.data[at : at + size]
            pieces.append(Chunk(item.stream, item.direction, item.ts_ns, item.offset + at, piece))
            at += size
    return pieces


def said(found: Findings) -> list[Any]:
    """Findings as they can be compared."""
    return [
        [(m.stream.id, m.direction, m.ts_ns, m.name, m.fields, m.offset, m.length) for m in found.messages],
        [
            (d.stream.id, d.direction, d.severity, d.code, d.text, d.offset, d.length, d.message_id)
            for d in found.diagnostics
        ],
        [(event.kind, event.actor, event.data, event.changes) for event in found.events],
    ]


@each_protocol
@given(data=st.data(), forced=st.booleans())
@settings(max_examples=times(300))
def test_findings_are_sound_whatever_comes(dissector: Dissector, data: st.DataObject, forced: bool) -> None:
    check_sound(dissector, inspect(data.draw(traffic(dissector)), dissector if forced else None))


def test_what_came_before_the_protocol_was_recognised_is_not_lost() -> None:
    stream = Stream(1, "udp", "127.0.0.1:5", "127.0.0.1:4711", 0)
    rubbish, sound = b"register;x", b"REGISTER;alice"
    found = inspect([Chunk(stream, "c2s", 1, 0, rubbish), Chunk(stream, "c2s", 2, len(rubbish), sound)])
    assert [flaw.code for flaw in found.diagnostics] == ["unknown-message"]
    assert [message.name for message in found.messages] == [UNREADABLE, "REGISTER"]
    assert stream.protocol == "maexchen"


def test_a_client_that_only_makes_slips_is_recognised_in_the_end() -> None:
    stream = Stream(1, "udp", "127.0.0.1:5", "127.0.0.1:4711", 0)
    found = inspect([Chunk(stream, "c2s", 1, 0, b"register;klein")])
    assert [flaw.code for flaw in found.diagnostics] == ["unknown-message"]


@pytest.mark.parametrize("beginning", [b"", b"SCHELLEN\nSAU\n!END\n", b"!dran\n0\n!END\n", b"\0\0\n"])
def test_what_came_before_a_stream_was_recognised_is_not_lost(beginning: bytes) -> None:
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
def test_foreign_traffic_is_left_alone_and_does_not_pile_up(transport: Transport) -> None:
    stream = Stream(1, transport, "127.0.0.1:5", "127.0.0.1:53", 0)
    count = 2 * UNDECIDED_ITEMS[transport]
    found = inspect(Chunk(stream, "c2s", n, n * 4, b"\x00\x01\x02\n") for n in range(count))
    assert found.messages == []
    assert found.diagnostics == []
    assert stream.protocol is None


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_much_foreign_traffic_to_many_servers_does_not_pile_up_either(transport: Transport) -> None:
    inspector = Inspector(BUILT_IN, Ids())
    tracemalloc.start()
    try:
        for number in range(200):
            stream = Stream(number, transport, "127.0.0.1:5", f"10.0.{number >> 8}.{number & 255}:53", 0)
            for piece in range(10):
                # Each time new bytes, as they come from a file.
                data = bytes([piece]) * 16_000
                inspector.feed(Chunk(stream, "s2c", number, piece * 16_000, data))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # What waits, and of byte streams the beginnings once more.
    assert held < 3 * UNDECIDED_BYTES


def test_servers_that_nobody_speaks_to_are_forgotten_at_some_time() -> None:
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
    for port in range(2, MOST_SERVERS + 3):
        assert register(f"127.0.0.1:{port}") == [f"127.0.0.1:{port}"]
    assert register(f"127.0.0.1:{MOST_SERVERS}") == []
    assert register("127.0.0.1:1") == []
    assert register("127.0.0.1:2") == ["127.0.0.1:2"]


def test_a_server_that_is_forgotten_before_it_was_recognised_loses_nothing() -> None:
    inspector = Inspector(BUILT_IN, Ids())
    for number in range(1, MOST_SERVERS + 2):
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
    assert play.flaws == []
    assert len(play.found.snapshots) == len(play.events) // SNAPSHOT_EVERY >= 1
    for snapshot in play.found.snapshots:
        state: State = {}
        for event in play.events[: snapshot.seq]:
            apply(state, event.changes)
        assert msgspec.json.decode(snapshot.state_json) == state
