"""Conversations: what is one stream, who is the client, what is missing or out of order, and how it ends."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from conversation_files import Block, blocks, check_below
from hypothesis import given, settings
from hypothesis import strategies as st
from snapshots import DATA
from strength import times
from tcp_segments import (
    CLIENT,
    MILLISECOND,
    RUBBISH,
    SECOND,
    SERVER,
    TIMES,
    Flows,
    FromFile,
    by_word,
    check_order,
    conversation,
    fed,
    flow,
    handshake,
    live,
    play,
    sent,
    told,
)

from kiebitz.dissectors.model import Chunk, Direction, End, Fault, Gap, Item, Stream
from kiebitz.proxy.capture.packets import Segment
from kiebitz.proxy.flows import tcp as tcp_conversations
from kiebitz.proxy.flows import tcp_order, tcp_reassembly
from kiebitz.proxy.flows.server_detection import DirectionDetector
from kiebitz.proxy.flows.tcp import TcpFlows
from kiebitz.proxy.flows.tcp_reassembly import Reassembler, RecentBytes, unwrap
from kiebitz.proxy.flows.udp import UdpFlows

Make = Callable[[DirectionDetector, frozenset[int]], Flows]


def cannot_tell(data: bytes, source: str, destination: str) -> Direction | None:
    return None


def flows(orient: DirectionDetector = cannot_tell, ports: Iterable[int] = (), streams: int = 100) -> TcpFlows:
    return TcpFlows(itertools.count(1), orient, frozenset(ports), max_streams=streams)


def udp_flows(
    orient: DirectionDetector = cannot_tell, ports: Iterable[int] = (), streams: int = 100
) -> UdpFlows:
    return UdpFlows(itertools.count(1), orient, frozenset(ports), max_streams=streams)


class Shifted:
    """The same conversations with other sequence numbers."""

    def __init__(self, make: Make, by: int, *how: Any) -> None:
        self._flows = make(*how)
        self._by = by
        self.expire, self.close = self._flows.expire, self._flows.close

    def feed(self, segment: Segment, ts_ns: int, items: list[Item]) -> None:
        segment.seq = (segment.seq + self._by) % (1 << 32)
        segment.ack = (segment.ack + self._by) % (1 << 32)
        self._flows.feed(segment, ts_ns, items)


FILES: dict[str, Make] = {
    "tcp_flows.txt": flows,
    "tcp_order.txt": lambda *_: live(),
    "tcp_files.txt": lambda *_: FromFile(),
    "udp_flows.txt": udp_flows,
}


@pytest.mark.parametrize(
    "block",
    [block for name in FILES for block in blocks(DATA / name).values()],
    ids=lambda block: f"{block.path.stem}: {block.title}",
)
def test_cases(block: Block) -> None:
    make = FILES[block.path.name]
    lines, items = play(block.steps, make)
    check_below(block, lines)
    assert {item.stream.transport for item in items} <= {block.path.name[:3]}
    if block.path.name == "udp_flows.txt":
        return
    check_order(items)
    for by in (1 << 31, -1001, -1003):
        assert play(block.steps, partial(Shifted, make, by))[0] == lines


@pytest.mark.parametrize(("size", "most"), [(1, 300), (1000, 70)])
def test_a_server_is_sought_in_so_many_segments_or_bytes(size: int, most: int) -> None:
    segments = [sent(0, "c", "A", bytes(size), at=number * size) for number in range(most)]
    assert len(fed(flows(), segments, None)) == most + 1


def test_items_have_the_times_at_which_they_were_captured() -> None:
    held = [sent(2 * ms, "s", "A", data, at=4 * ms) for ms, data in enumerate((b"who ", b"are ", b"WELCOME"))]
    items = fed(flows(by_word), held, None)
    assert [item.ts_ns // MILLISECOND for item in items] == [0, 0, 2, 4]
    assert items[0].stream.opened_ns == 0


@pytest.mark.full
def test_half_open_connections_go_first_and_make_no_stream() -> None:
    sorter, items = flows(streams=40), list[Item]()
    for ts_ns, segment in [*handshake(), sent(1, "c", "PA", b"hello")]:
        sorter.feed(segment, ts_ns, items)
    for number in range(10_000):
        client = f"10.{number >> 8}.{number & 255}.1:2000"
        sorter.feed(sent(2, "c", "S", client=client)[1], 2 * MILLISECOND, items)
        assert len(sorter._open) <= 40
        assert len(sorter._sides) <= 80
    sorter.feed(sent(3, "c", "A", b"!", at=5)[1], 3 * MILLISECOND, items)
    sorter.close(4 * MILLISECOND, items)
    assert told(items) == ["1 c2s @0 hello", "1 c2s @5 !", "1 end 4"]


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_streams_are_bounded_and_those_silent_longest_end(transport: str) -> None:
    packets: list[tuple[int, Any]] = []
    for n in range(1, 300):
        client = f"10.1.{n % 250}.1:{30_000 + n}"
        datagram = (n * MILLISECOND, (flow(client, SERVER), b"x", 0, 0))
        packets.append(sent(n, "c", "A", b"x", client=client) if transport == "tcp" else datagram)
    first = "10.1.1.1:30001"
    still = (20 * MILLISECOND, (flow(SERVER, first), b"still here", 0, 0))
    packets.insert(20, sent(20, "s", "A", b"still here", client=first) if transport == "tcp" else still)
    items = fed((flows if transport == "tcp" else udp_flows)(ports=(9000,), streams=40), packets)
    alive, most, ended = set[int](), 0, list[int]()
    for item in items:
        if isinstance(item, End):
            ended.append(item.stream.id)
            assert item.reason in ("evicted", "end")
            alive.remove(item.stream.id)
        else:
            alive.add(item.stream.id)
            most = max(most, len(alive))
    assert most <= 40
    assert not alive
    # The most recently active stays longest.
    assert ended[:3] == [2, 3, 4]
    check_order(items)


@pytest.mark.full
def test_connections_that_are_over_are_bounded() -> None:
    sorter, items = flows(), list[Item]()
    for number in range(2 * tcp_conversations.MAX_ENDED):
        client = f"10.{number >> 8}.{number & 255}.1:2000"
        for ts_ns, segment in [*handshake(client=client), sent(1, "s", "A", b"x", client=client)]:
            sorter.feed(segment, ts_ns, items)
        sorter.feed(sent(1, "s", "R", at=1, client=client)[1], MILLISECOND, items)
        assert len(sorter._sides) <= 2 * tcp_conversations.MAX_ENDED + 2
    items.clear()
    sorter.expire(100 * SECOND, items)
    assert (items, sorter._sides, sorter._ended) == ([], {}, {})


def test_the_queue_is_bounded_over_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp_conversations, "MAX_WAITING_BYTES", 100_000)
    sorter, items = flows(streams=1000), list[Item]()
    for number in range(500):
        client = f"10.{number >> 8}.{number & 255}.1:2000"
        # A hole in every second one, and no server known in the others.
        server = f"10.200.0.1:{number}"
        start = handshake(client=client, server=server) if number % 2 else []
        for ts_ns, segment in [*start, sent(1, "c", "A", bytes(1000), at=1, client=client, server=server)]:
            sorter.feed(segment, ts_ns, items)
        assert sorter._waiting_bytes <= 100_000
    # The oldest did not wait any longer.
    assert "10.0.0.1:2000" in (items[0].stream.client, items[0].stream.server)
    sorter.close(2 * MILLISECOND, items)
    assert sum(check_order(items).values()) == 500 * 1000 + 250


def test_the_queue_of_a_connection_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp_order, "MAX_WAITING", 20)
    sorter = live()
    items = fed(sorter, [*handshake(), sent(1, "s", "PA", b"a1", ack=2)], None)
    for number in range(100):
        # Without a hole, and at the same time.
        sorter.feed(sent(1, "s", "PA", b"x", at=2 + number, ack=2)[1], MILLISECOND, items)
        assert number + 2 - len(items) <= 20
    assert told(items)[:2] == ["1 c2s @0 gap 2", "1 s2c @0 a1"]


@given(st.integers(1, 40), st.integers(2, 12), st.randoms(use_true_random=False))
@settings(max_examples=times(200), deadline=None)
def test_any_order_of_a_conversation_is_put_right(lines: int, places: int, chance: random.Random) -> None:
    segments = [(MILLISECOND, segment) for _, segment in conversation(lines)]
    mixed = sorted(range(len(segments)), key=lambda place: place + chance.randrange(places))
    assert told(fed(live(), [segments[place] for place in mixed])) == told(fed(live(), segments))


@pytest.mark.parametrize("make", [partial(flows, by_word), live], ids=["as they come", "in order"])
@given(st.lists(st.tuples(TIMES, RUBBISH), max_size=40), st.sampled_from([1, 3, 100]))
@settings(max_examples=times(300, quick=10), deadline=None)
def test_any_segments(make: Callable[..., Flows], segments: list[tuple[int, Segment]], streams: int) -> None:
    check_order(fed(make(streams=streams), [(ms * MILLISECOND, segment) for ms, segment in segments]))


def test_missing_bytes_of_datagrams_count() -> None:
    way = flow(CLIENT, SERVER)
    first, second = fed(udp_flows(), [(5, (way, b"abc", 4, 0)), (6, (way, b"d", 0, 0))], None)
    assert isinstance(first, Chunk)
    assert isinstance(second, Chunk)
    assert (first.missing, second.missing, second.offset) == (4, 0, 7)
    assert first.stream is second.stream
    assert (first.stream.opened_ns, first.ts_ns) == (5, 5)


# The reassembly of one direction.


def assembly(seq: int | None = 0) -> Reassembler:
    made = Reassembler(Stream(1, "tcp", CLIENT, SERVER, 0), "c2s", RecentBytes())
    if seq is not None:
        made.begin(seq)
    return made


def put(direction: Reassembler, seq: int, data: bytes, items: list[Item], missing: int = 0) -> None:
    """Bytes go the quick way if they can, as in a capture."""
    if missing or not direction.take_next(seq % (1 << 32), data, 0, items):
        direction.add(seq % (1 << 32), data, missing, 0, items)


def test_remembered_state_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp_reassembly, "MAX_RECENT_BYTES", 10_000)
    recent, items = RecentBytes(), list[Item]()
    directions = [Reassembler(Stream(n, "tcp", CLIENT, SERVER, 0), "c2s", recent) for n in range(30)]
    for direction in directions:
        direction.begin(0)
        for seq in range(0, 100, 10):
            put(direction, seq, bytes(10), items)
    items.clear()
    put(directions[0], 0, b"other", items)
    assert items == []
    put(directions[-1], 80, b"other", items)
    assert told(items)[0].startswith("29 c2s @80 retransmission-differs 5: ")


def test_the_queue_can_be_bounded() -> None:
    direction, items = assembly(), list[Item]()
    for seq in range(2, 2 * tcp_reassembly.MAX_AHEAD_PIECES + 2, 2):
        put(direction, seq, b"x", items)
        assert not direction.is_overfull
    put(direction, seq + 2, b"x", items)
    assert direction.is_overfull
    direction.give_up(0, items)
    assert not direction.is_overfull
    assert told(items) == ["1 c2s @0 gap 2", "1 c2s @2 x"]


@given(st.integers(-(1 << 31), (1 << 31) - 1), st.integers(0, 1 << 40))
def test_unwrap(distance: int, near: int) -> None:
    assert unwrap((near + distance) % (1 << 32), near) == near + distance


@st.composite
def cuts(draw: st.DrawFn) -> tuple[bytes, int, list[tuple[int, int]]]:
    """Return a text, the number before its first byte, and overlapping pieces of it in any order."""
    text = draw(st.binary(min_size=1, max_size=120))
    edges = sorted({0, len(text), *draw(st.lists(st.integers(0, len(text)), max_size=20))})
    pieces = list(pairwise(edges))
    twice = st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))
    pieces += [(min(two), max(two)) for two in draw(st.lists(twice, max_size=8)) if two[0] != two[1]]
    begin = draw(st.sampled_from([0, 5, (1 << 31) - 20, (1 << 32) - 60, (1 << 32) - 1]))
    return text, begin, draw(st.permutations(pieces))


@given(cuts())
@settings(max_examples=times(300))
def test_any_cut_gives_the_same_bytes(case: tuple[bytes, int, list[tuple[int, int]]]) -> None:
    text, begin, pieces = case
    direction, items = assembly(begin), list[Item]()
    for start, end in pieces:
        put(direction, begin + start, text[start:end], items)
    direction.finish(0, items)
    assert all(isinstance(item, Chunk) for item in items)
    items.append(End(direction.stream, 0, "end"))
    assert check_order(items) == {(1, "c2s"): len(text)}
    assert b"".join(item.data for item in items if isinstance(item, Chunk)) == text
    assert direction.cost == 0


@given(cuts(), st.data())
@settings(max_examples=times(300))
def test_bytes_and_gaps_cover_all(
    case: tuple[bytes, int, list[tuple[int, int]]], data: st.DataObject
) -> None:
    """With segments lost, cut and given up at any time, each byte is correct or missing."""
    text, begin, pieces = case
    direction, items = assembly(begin), list[Item]()
    seen = 0
    for start, end in pieces:
        fate = data.draw(st.sampled_from(["lost", "snapped", "whole", "whole", "whole"]))
        if fate == "lost":
            continue
        seen = max(seen, end)
        cut = data.draw(st.integers(0, end - start)) if fate == "snapped" else 0
        put(direction, begin + start, text[start : end - cut], items, cut)
        if direction.hole_end is not None and data.draw(st.booleans()):
            direction.give_up(0, items)
    direction.finish(0, items)
    items.append(End(direction.stream, 0, "end"))
    assert check_order(items).get((1, "c2s"), 0) == seen
    for item in items:
        if isinstance(item, Chunk):
            assert text[item.offset :].startswith(item.data)
    assert not any(isinstance(item, Fault) for item in items)
    lost = sum(item.length or 0 for item in items if isinstance(item, Gap))
    assert lost + sum(len(item.data) for item in items if isinstance(item, Chunk)) == seen
