"""TCP conversations: what is one connection, who is the client, what is missing, and how it ends."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import pytest
from conversation_files import Block, blocks, check
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
    Sent,
    by_word,
    check_order,
    handshake,
    segments_of,
    sent,
    told,
)

from kiebitz.dissectors.model import Chunk, Direction, End, Fault, Item
from kiebitz.proxy.capture.packets import Segment, endpoints
from kiebitz.proxy.flows import tcp as tcp_conversations
from kiebitz.proxy.flows.server_detection import DirectionDetector
from kiebitz.proxy.flows.tcp import TcpFlows

END_MS = 10_000_000


def cannot_tell(data: bytes, source: str, destination: str) -> Direction | None:
    return None


def conversations(
    orient: DirectionDetector = cannot_tell, ports: Iterable[int] = (), streams: int = 100
) -> TcpFlows:
    return TcpFlows(itertools.count(1), orient, frozenset(ports), max_streams=streams)


def items_of(
    segments: Iterable[Sent],
    orient: DirectionDetector = cannot_tell,
    ports: Iterable[int] = (),
    streams: int = 100,
) -> list[Item]:
    sorter = conversations(orient, ports, streams)
    items: list[Item] = []
    for ts_ns, segment in segments:
        sorter.feed(segment, ts_ns, items)
    sorter.close(END_MS * MILLISECOND, items)
    assert sorter._waiting_bytes == 0
    return items


HELLO = sent(1, "c", "PA", b"hello")


@pytest.mark.parametrize("block", blocks(DATA / "tcp_flows.txt").values(), ids=lambda block: block.title)
def test_cases(block: Block) -> None:
    items = items_of(segments_of("; ".join(block.steps)))
    check(block, "\n".join([*block.steps, *(f"    {line}" for line in told(items))]))
    check_order(items)
    assert all(
        (i.stream.client, i.stream.server, i.stream.transport) == (CLIENT, SERVER, "tcp") for i in items
    )


LOW, HIGH = "10.0.0.1:700", "10.0.0.9:9000"
WORDS = b"...HELLO..."
ORIENTATIONS: list[tuple[str, list[Sent], DirectionDetector, tuple[int, ...], list[tuple[str, str]]]] = [
    # The client's port is lower here, so that nothing but evidence makes the higher one the server's.
    ("the lower port", [sent(0, "c", "A", b"x", client=LOW)], cannot_tell, (), [(HIGH, LOW)]),
    (
        "equal ports: who sends first asks",
        [sent(0, "c", "A", b"x", client="10.0.0.1:9000")],
        cannot_tell,
        (),
        [("10.0.0.1:9000", HIGH)],
    ),
    (
        "who sent the SYN",
        [*handshake(client=LOW), sent(0, "s", "A", b"x", client=LOW)],
        by_word,
        (700,),
        [(LOW, HIGH)],
    ),
    (
        "the SYN alone",
        [sent(0, "c", "S", client=LOW), sent(0, "c", "A", b"x", client=LOW)],
        by_word,
        (700,),
        [(LOW, HIGH)],
    ),
    (
        "the SYN-ACK alone",
        [sent(0, "s", "SA", client=LOW), sent(0, "c", "A", b"x", client=LOW)],
        by_word,
        (700,),
        [(LOW, HIGH)],
    ),
    ("known port", [sent(0, "s", "A", b"x", client=LOW)], cannot_tell, (9000,), [(LOW, HIGH)]),
    ("both ports known", [sent(0, "s", "A", b"x", client=LOW)], cannot_tell, (9000, 700), [(HIGH, LOW)]),
    ("known port is stronger", [sent(0, "c", "A", b"WELCOME", client=LOW)], by_word, (9000,), [(LOW, HIGH)]),
    ("what the client says", [sent(0, "c", "A", b"HELLO", client=LOW)], by_word, (), [(LOW, HIGH)]),
    ("what the server says", [sent(0, "s", "A", b"WELCOME", client=LOW)], by_word, (), [(LOW, HIGH)]),
    (
        "what is said byte by byte",
        [sent(i, "c", "A", WORDS[i : i + 1], at=i, client=LOW) for i in range(len(WORDS))],
        by_word,
        (),
        [(LOW, HIGH)],
    ),
    (
        "what the other side says",
        [sent(0, "c", "A", b"x", client=LOW), sent(1, "s", "A", b"WELCOME", client=LOW)],
        by_word,
        (),
        [(LOW, HIGH)],
    ),
    (
        "a server from before, by its SYN-ACK",
        [
            *handshake(client=LOW),
            sent(0, "c", "A", client=LOW),
            sent(1, "s", "A", b"x", client="10.0.0.2:600"),
        ],
        cannot_tell,
        (),
        [("10.0.0.2:600", HIGH), (LOW, HIGH)],
    ),
    (
        "a server from before, by what it said",
        [sent(0, "s", "A", b"WELCOME", client=LOW), sent(1, "s", "A", b"x", client="10.0.0.2:600")],
        by_word,
        (),
        [(LOW, HIGH), ("10.0.0.2:600", HIGH)],
    ),
    (
        "simultaneous open: as if there were no SYN",
        [
            sent(0, "c", "S", client=LOW),
            sent(0, "s", "S", client=LOW),
            sent(1, "c", "SA", client=LOW),
            sent(1, "s", "SA", client=LOW),
            sent(2, "c", "A", b"HELLO", client=LOW),
        ],
        by_word,
        (),
        [(LOW, HIGH)],
    ),
]


@pytest.mark.parametrize(
    ("segments", "orient", "ports", "expected"),
    [case[1:] for case in ORIENTATIONS],
    ids=[case[0] for case in ORIENTATIONS],
)
def test_orientation(
    segments: list[Sent], orient: DirectionDetector, ports: tuple[int, ...], expected: list[tuple[str, str]]
) -> None:
    items = items_of(segments, orient, ports)
    streams = {item.stream.id: (item.stream.client, item.stream.server) for item in items}
    assert list(streams.values()) == expected
    # The items were turned round with the stream.
    senders = {endpoints(segment.flow)[0] for _, segment in segments}
    for item in items:
        if isinstance(item, Chunk):
            assert (item.stream.client if item.direction == "c2s" else item.stream.server) in senders
    check_order(items)


def test_items_are_held_back_until_the_server_is_known() -> None:
    sorter, items = conversations(by_word), list[Item]()
    for ms, data in ((0, b"who "), (1, b"are ")):
        ts_ns, segment = sent(ms, "s", "A", data, at=ms * 4)
        sorter.feed(segment, ts_ns, items)
        assert items == []
    ts_ns, segment = sent(2, "s", "A", b"WELCOME", at=8)
    sorter.feed(segment, ts_ns, items)
    expected = ["1 s2c @0 gap ?", "1 s2c @0 who ", "1 s2c @4 are ", "1 s2c @8 WELCOME"]
    assert told(items) == expected
    assert [item.ts_ns for item in items] == [0, 0, MILLISECOND, 2 * MILLISECOND]
    assert items[0].stream.opened_ns == 0


def test_undecided_for_long() -> None:
    # By time, by the number of segments, by their size.
    sorter, items = conversations(), list[Item]()
    sorter.feed(sent(0, "c", "A", b"x")[1], 0, items)
    sorter.expire(5 * SECOND - 1, items)
    assert items == []
    sorter.expire(5 * SECOND, items)
    assert told(items) == ["1 c2s @0 gap ?", "1 c2s @0 x"]
    for size, most in ((1, 300), (1000, 70)):
        sorter, items = conversations(), []
        for number in range(most):
            sorter.feed(sent(0, "c", "A", bytes(size), at=number * size)[1], 0, items)
        assert len(items) == most + 1


def test_a_socket_connected_to_itself() -> None:
    me = "10.0.0.1:700"
    segments = [
        sent(0, "c", "S", client=me, server=me),
        sent(0, "c", "SA", client=me, server=me, peer_isn=1000),
        sent(1, "c", "A", b"ab", client=me, server=me, peer_isn=1000),
        sent(2, "c", "A", b"c", at=2, ack=2, client=me, server=me, peer_isn=1000),
        sent(3, "c", "FA", at=3, ack=3, client=me, server=me, peer_isn=1000),
    ]
    expected = ["1 c2s @0 ab", "1 c2s @2 c", f"1 closed {END_MS}"]
    assert told(items_of(segments)) == expected


def test_silence_ends_a_stream_and_what_follows_is_another() -> None:
    hour_ms = 3_600_000
    segments = [
        *handshake(),
        sent(0, "c", "A", b"a"),
        sent(2 * hour_ms, "s", "A", b"b", ack=1),
    ]
    last_ms = 4 * hour_ms + 600_000
    last = sent(last_ms, "c", "A", b"c", at=1, ack=1)
    others = [
        sent(2 * hour_ms + minutes * 60_000, "c", "S", client="10.0.0.2:40000")
        for minutes in range(10, 121, 10)
    ]
    assert told(items_of([*segments, *others, last])) == [
        "1 c2s @0 a",
        "1 s2c @0 b",
        f"1 idle {last_ms}",
        "2 c2s @0 gap ?",
        "2 c2s @0 c",
        f"2 end {END_MS}",
    ]
    # Where no packet at all came meanwhile, the clock may have been set.
    assert told(items_of([*segments, last])) == [
        "1 c2s @0 a",
        "1 s2c @0 b",
        "1 c2s @1 c",
        f"1 end {END_MS}",
    ]


def test_expire_gives_up_without_traffic() -> None:
    sorter, items = conversations(), list[Item]()
    for ts_ns, segment in [*handshake(), sent(1, "c", "A", b"b", at=1), sent(2, "s", "A", ack=2)]:
        sorter.feed(segment, ts_ns, items)
    sorter.expire(201 * MILLISECOND, items)
    assert items == []
    sorter.expire(202 * MILLISECOND, items)
    assert told(items) == ["1 c2s @0 gap 1", "1 c2s @1 b"]


def test_the_refusal_is_a_sentence() -> None:
    fault = items_of([sent(0, "c", "S"), sent(1, "s", "RA")])[0]
    assert isinstance(fault, Fault)
    assert fault.text == "the server refused the connection"


@pytest.mark.full
def test_half_open_connections_go_first_and_make_no_stream() -> None:
    sorter, items = conversations(streams=40), list[Item]()
    for ts_ns, segment in [*handshake(), HELLO]:
        sorter.feed(segment, ts_ns, items)
    for number in range(10_000):
        client = f"10.{number >> 8}.{number & 255}.1:2000"
        sorter.feed(sent(2, "c", "S", client=client)[1], 2 * MILLISECOND, items)
        assert len(sorter._open) <= 40
        assert len(sorter._sides) <= 80
    sorter.feed(sent(3, "c", "A", b"!", at=5)[1], 3 * MILLISECOND, items)
    sorter.close(4 * MILLISECOND, items)
    assert told(items) == ["1 c2s @0 hello", "1 c2s @5 !", "1 end 4"]


def test_open_connections_are_bounded_and_those_silent_longest_end() -> None:
    segments = [sent(n, "c", "A", b"x", client=f"10.1.{n % 250}.1:{30_000 + n}") for n in range(1, 300)]
    segments[20:20] = [sent(20, "s", "A", b"still here", client="10.1.1.1:30001")]
    items = items_of(segments, ports=(9000,), streams=40)
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
    assert ended[:3] == [2, 3, 4]
    check_order(items)


@pytest.mark.full
def test_connections_that_are_over_are_bounded() -> None:
    sorter, items = conversations(), list[Item]()
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
    sorter, items = conversations(streams=1000), list[Item]()
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


@given(st.lists(st.tuples(TIMES, RUBBISH), max_size=40), st.sampled_from([1, 3, 100]))
@settings(max_examples=times(300, quick=10), deadline=None)
def test_any_segments(segments: list[tuple[int, Segment]], streams: int) -> None:
    items = items_of(((ms * MILLISECOND, segment) for ms, segment in segments), by_word, streams=streams)
    check_order(items)
