"""The inspector: whatever bytes come in whatever pieces, nothing raises and every byte is accounted for."""

from __future__ import annotations

import tracemalloc

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from maexchen_cases import FLAWED, LOOSE, SOUND
from playing import Play

from dissectors.grammar import UNREADABLE
from dissectors.inspector import UNDECIDED_BYTES, UNDECIDED_ITEMS, Inspector
from dissectors.maexchen.dissector import MAEXCHEN
from dissectors.records import Chunk, Direction, End, Fault, Findings, Gap, Item, Stream
from dissectors.registry import DISSECTORS
from dissectors.state import State, apply
from dissectors.table import SNAPSHOT_EVERY, Ids

DIRECTIONS: list[Direction] = ["c2s", "s2c"]

payloads = st.one_of(
    st.binary(max_size=60),
    st.sampled_from([case.data for case in (*SOUND, *LOOSE, *FLAWED)]),
    st.builds(
        lambda case, at, junk: case.data[:at] + junk + case.data[at:],
        st.sampled_from(SOUND),
        st.integers(0, 40),
        st.binary(max_size=4),
    ),
)


@st.composite
def traffic(draw: st.DrawFn) -> list[Item]:
    """Any items of a few streams to one or two servers, in order."""
    streams = [
        Stream(number, "udp", f"127.0.0.1:{number}", f"127.0.0.1:{draw(st.sampled_from([9000, 4711]))}", 0)
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
            case 0:
                length = draw(st.one_of(st.none(), st.integers(0, 100)))
                items.append(Gap(stream, direction, now, offset, length))
                offsets[stream.id, direction] = offset + (length or 0)
            case 1:
                items.append(Fault(stream, direction, now, offset, "port-unreachable", "nobody there"))
            case _:
                data = draw(payloads)
                missing = draw(st.sampled_from([0, 0, 0, 0, 7]))
                items.append(Chunk(stream, direction, now, offset, data, missing))
                offsets[stream.id, direction] = offset + len(data) + missing
    if draw(st.booleans()):
        items.extend(End(stream, now, "end") for stream in streams)
    return items


def inspect(items: list[Item], forced: bool) -> Findings:
    decode_as = {("udp", 9000): MAEXCHEN, ("udp", 4711): MAEXCHEN} if forced else {}
    inspector = Inspector(DISSECTORS, Ids(), decode_as)
    for item in items:
        inspector.feed(item)
    inspector.finish()
    return inspector.drain()


@given(traffic())
@settings(max_examples=300)
def test_every_byte_is_in_a_message_a_diagnostic_or_a_gap(items: list[Item]) -> None:
    found = inspect(items, forced=True)
    covered = {(m.stream.id, m.direction, m.offset, m.length) for m in found.messages}
    covered |= {
        (d.stream.id, d.direction, d.offset, d.length) for d in found.diagnostics if d.code == "cut-off"
    }
    for item in items:
        if isinstance(item, Chunk):
            length = len(item.data) + item.missing
            assert (item.stream.id, item.direction, item.offset, length) in covered
    blamed = {d.message_id for d in found.diagnostics}
    assert all(m.id in blamed for m in found.messages if m.name == UNREADABLE)


@given(traffic(), st.booleans())
@settings(max_examples=300)
def test_findings_are_sound_whatever_comes(items: list[Item], forced: bool) -> None:
    found = inspect(items, forced)
    events = {event.id for event in found.events}
    games = {game.id for game in found.games}
    assert [event.id for event in found.events] == sorted(events)
    for message in found.messages:
        assert message.event_id is None or message.event_id in events
        assert message.game_id is None or message.game_id in games
    states: dict[int, State] = {}
    for event in found.events:
        assert event.kind in MAEXCHEN.grammar.events
        assert set(event.data) == set(MAEXCHEN.grammar.events[event.kind].fields)
        MAEXCHEN.describe(event)
        apply(states.setdefault(event.table_id, {}), event.changes)
    for state in states.values():
        assert set(state) <= {"players", "scores", "games"}
        assert len(state.get("games", {})) <= 1


def test_what_came_before_the_protocol_was_recognised_is_not_lost() -> None:
    stream = Stream(1, "udp", "127.0.0.1:5", "127.0.0.1:4711", 0)
    rubbish, sound = b"register;x", b"REGISTER;alice"
    found = inspect(
        [Chunk(stream, "c2s", 1, 0, rubbish), Chunk(stream, "c2s", 2, len(rubbish), sound)], forced=False
    )
    assert [flaw.code for flaw in found.diagnostics] == ["unknown-message"]
    assert [message.name for message in found.messages] == [UNREADABLE, "REGISTER"]
    assert stream.protocol == "maexchen"


def test_a_client_that_only_makes_slips_is_recognised_in_the_end() -> None:
    stream = Stream(1, "udp", "127.0.0.1:5", "127.0.0.1:4711", 0)
    found = inspect([Chunk(stream, "c2s", 1, 0, b"register;klein")], forced=False)
    assert [flaw.code for flaw in found.diagnostics] == ["unknown-message"]


def test_foreign_traffic_is_left_alone_and_does_not_pile_up() -> None:
    stream = Stream(1, "udp", "127.0.0.1:5", "127.0.0.1:53", 0)
    items: list[Item] = [
        Chunk(stream, "c2s", n, n * 4, b"\x00\x01\x02\x03") for n in range(2 * UNDECIDED_ITEMS)
    ]
    found = inspect(items, forced=False)
    assert found.messages == []
    assert found.diagnostics == []
    assert stream.protocol is None


def test_much_foreign_traffic_to_many_servers_does_not_pile_up_either() -> None:
    inspector = Inspector(DISSECTORS, Ids())
    tracemalloc.start()
    try:
        for number in range(1000):
            stream = Stream(number, "udp", "127.0.0.1:5", f"10.0.{number >> 8}.{number & 255}:53", 0)
            for piece in range(UNDECIDED_ITEMS - 1):
                # Each time new bytes, as they come from a file.
                data = bytes([piece]) * 1000
                inspector.feed(Chunk(stream, "s2c", number, piece * 1000, data))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2 * UNDECIDED_BYTES


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
