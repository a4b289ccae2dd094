"""Conversations: whose datagram it is, which way it went, at which byte, and when it is over."""

from __future__ import annotations

import itertools
import socket
import struct
from collections.abc import Iterable

import pytest

from kiebitz.dissectors.model import Chunk, Direction, End, Item
from kiebitz.proxy.flows.server_detection import DirectionDetector
from kiebitz.proxy.flows.udp import UdpFlows

SECOND = 1_000_000_000


def packed(endpoint: str) -> tuple[bytes, bytes]:
    host, _, port = endpoint.rpartition(":")
    if host.startswith("["):
        return socket.inet_pton(socket.AF_INET6, host[1:-1]), struct.pack(">H", int(port))
    return socket.inet_aton(host), struct.pack(">H", int(port))


def flow(source: str, destination: str) -> bytes:
    (source_ip, source_port), (destination_ip, destination_port) = packed(source), packed(destination)
    return source_ip + destination_ip + source_port + destination_port


A, B, C, S = "10.0.0.1:50000", "10.0.0.2:50001", "10.0.0.3:50002", "10.0.0.9:9000"
A6, S6 = "[2001:db8::1]:50000", "[2001:db8::9]:9000"


def cannot_tell(payload: bytes, source: str, destination: str) -> Direction | None:
    return None


def by_word(payload: bytes, source: str, destination: str) -> Direction | None:
    words: dict[bytes, Direction] = {b"REGISTER": "c2s", b"REGISTERED": "s2c"}
    return words.get(payload)


Sent = tuple[int, str, str, bytes]


def conversation(
    sent: Iterable[Sent],
    orient: DirectionDetector = cannot_tell,
    ports: frozenset[int] = frozenset(),
    streams: int = 100,
) -> list[Item]:
    """Return the items of datagrams (second, source, destination, payload), up to an end at second 10,000."""
    conversations = UdpFlows(itertools.count(1), orient, ports, max_streams=streams)
    items: list[Item] = []
    for second, source, destination, payload in sent:
        conversations.feed((flow(source, destination), payload, 0, 0), second * SECOND, items)
    conversations.close(10_000 * SECOND, items)
    return items


def told(items: list[Item]) -> list[str]:
    lines = []
    for item in items:
        stream = item.stream
        if isinstance(item, Chunk):
            text = f"{item.direction} {stream.client} {stream.server} @{item.offset} {item.data.decode()}"
        else:
            assert isinstance(item, End)
            text = f"{item.reason} {item.ts_ns // SECOND}"
        lines.append(f"{stream.id} {text}".rstrip())
    return lines


def test_both_ways_are_one_stream_and_offsets_count_per_direction() -> None:
    sent = [
        (0, A, S, b"hello"),
        (1, S, A, b"hi"),
        (2, B, S, b""),
        (3, A, S, b"abc"),
        (4, S, A, b""),
        (5, S, A, b"x"),
    ]
    assert told(conversation(sent)) == [
        f"1 c2s {A} {S} @0 hello",
        f"1 s2c {A} {S} @0 hi",
        f"2 c2s {B} {S} @0",
        f"1 c2s {A} {S} @5 abc",
        f"1 s2c {A} {S} @2",
        f"1 s2c {A} {S} @2 x",
        "1 end 10000",
        "2 end 10000",
    ]


def test_missing_bytes_count() -> None:
    conversations = UdpFlows(itertools.count(1), cannot_tell, frozenset())
    items: list[Item] = []
    conversations.feed((flow(A, S), b"abc", 4, 0), 5, items)
    conversations.feed((flow(A, S), b"d", 0, 0), 6, items)
    first, second = items
    assert isinstance(first, Chunk)
    assert isinstance(second, Chunk)
    assert (first.missing, second.missing, second.offset) == (4, 0, 7)
    assert first.stream is second.stream
    assert (first.stream.transport, first.stream.opened_ns, first.ts_ns) == ("udp", 5, 5)


ORIENTATIONS = [
    # what: datagrams, orient, server ports, (client, server) of each stream
    ("sender is the client", [(0, S, A, b"?")], cannot_tell, (), [(S, A)]),
    ("known port", [(0, S, A, b"?")], cannot_tell, (9000,), [(A, S)]),
    ("known port, IPv6", [(0, S6, A6, b"?")], cannot_tell, (9000,), [(A6, S6)]),
    ("both ports known", [(0, S, A, b"?")], cannot_tell, (9000, 50000), [(S, A)]),
    ("known port is stronger", [(0, S, A, b"REGISTER")], by_word, (9000,), [(A, S)]),
    ("by what is said, client", [(0, A, S, b"REGISTER")], by_word, (), [(A, S)]),
    ("by what is said, server", [(0, S, A, b"REGISTERED")], by_word, (), [(A, S)]),
    (
        "server known from another stream",
        [(0, A, S, b"REGISTER"), (1, S, B, b"?")],
        by_word,
        (),
        [(A, S), (B, S)],
    ),
    ("not from a guess", [(0, A, S, b"?"), (1, S, B, b"?")], by_word, (), [(A, S), (S, B)]),
    ("not from the client", [(0, A, S, b"REGISTER"), (1, A, B, b"?")], by_word, (), [(A, S), (A, B)]),
    ("stays as begun", [(0, S, A, b"?"), (1, A, S, b"REGISTER")], by_word, (), [(S, A)]),
    ("after a pause as before", [(0, A, S, b"?"), (601, S, A, b"?")], by_word, (), [(A, S), (A, S)]),
    ("after a pause better", [(0, S, A, b"?"), (601, S, A, b"REGISTERED")], by_word, (), [(S, A), (A, S)]),
]


@pytest.mark.parametrize(
    ("sent", "orient", "ports", "expected"),
    [case[1:] for case in ORIENTATIONS],
    ids=[case[0] for case in ORIENTATIONS],
)
def test_orientation(
    sent: list[Sent], orient: DirectionDetector, ports: tuple[int, ...], expected: list[tuple[str, str]]
) -> None:
    items = conversation(sent, orient, frozenset(ports))
    streams = {item.stream.id: (item.stream.client, item.stream.server) for item in items}
    assert list(streams.values()) == expected


def test_a_socket_that_sends_to_itself() -> None:
    assert told(conversation([(0, A, A, b"ab"), (1, A, A, b"c")])) == [
        f"1 c2s {A} {A} @0 ab",
        f"1 c2s {A} {A} @2 c",
        "1 end 10000",
    ]


def test_silence_ends_a_stream() -> None:
    # The server alone keeps the stream alive; B's ends while others talk, A's when A speaks again.
    sent = [(0, A, S, b"a"), (0, B, S, b"b"), (600, S, A, b"c"), (700, C, S, b"d"), (1201, A, S, b"e")]
    assert told(conversation(sent)) == [
        f"1 c2s {A} {S} @0 a",
        f"2 c2s {B} {S} @0 b",
        f"1 s2c {A} {S} @0 c",
        "2 idle 600",
        f"3 c2s {C} {S} @0 d",
        "1 idle 1200",
        f"4 c2s {A} {S} @0 e",
        "3 end 10000",
        "4 end 10000",
    ]


def test_expire_without_traffic() -> None:
    conversations = UdpFlows(itertools.count(1), cannot_tell, frozenset(), idle_ns=5)
    items: list[Item] = []
    conversations.feed((flow(A, S), b"a", 0, 0), 10, items)
    conversations.expire(15, items)
    assert len(items) == 1
    conversations.expire(16, items)
    assert [(type(item), item.ts_ns) for item in items] == [(Chunk, 10), (End, 15)]
    conversations.close(20, items)
    assert len(items) == 2


def test_streams_are_bounded_and_each_ends_once() -> None:
    sent = [(second, f"10.1.{second % 250}.1:{1000 + second}", S, b"x") for second in range(300)]
    sent[20:20] = [(20, S, "10.1.0.1:1000", b"still here")]
    items = conversation(sent, streams=40)
    alive = most = 0
    ended: list[int] = []
    seen: set[int] = set()
    for item in items:
        if isinstance(item, End):
            ended.append(item.stream.id)
            assert item.reason in ("evicted", "end")
            alive -= 1
        elif item.stream.id not in seen:
            seen.add(item.stream.id)
            alive += 1
            most = max(most, alive)
    assert most <= 40
    assert sorted(ended) == sorted(seen)
    # The most recently active stays longest.
    assert ended[:3] == [2, 3, 4]


def test_hostile_times_do_no_harm() -> None:
    times = [0, 1 << 33, 5, 1 << 33, 0, 700, 1]
    items = conversation([(second, A, S, b"x") for second in times])
    assert sum(isinstance(item, Chunk) for item in items) == len(times)
