"""Conversations: whose datagram it is, which way it went, at which byte, and when it is over."""

from __future__ import annotations

import itertools
import random
import socket
import struct
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from cleanup import close_after_test
from command import kiebitz
from followed_streams import CAPTURES
from packet_reordering import Packets, duplicate_packets, write_packets
from strength import a_few

from kiebitz.dissectors.model import Chunk, Direction, End, Item
from kiebitz.proxy.capture.duplicate_packets import (
    DUPLICATE_NS,
    FREQUENT_DUPLICATE_NS,
    MAX_REMEMBERED,
    UNIDENTIFIED_DUPLICATE_NS,
    DuplicateDetector,
)
from kiebitz.proxy.capture.files import open_capture
from kiebitz.proxy.capture.packets import RawPacket
from kiebitz.proxy.flows.server_detection import DirectionDetector
from kiebitz.proxy.flows.udp import UdpFlows
from kiebitz.services.importing.packets import import_capture
from kiebitz.storage.database.schema import MEMORY

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


GAMES = ("maexchen-head-port4711.pcap", "maexchen-old-20111003.pcap")
TWICE = "captured-twice"


def packets_of(name: str) -> Packets:
    with open_capture(str(CAPTURES / name)) as capture:
        return list(capture)


def found(packets: Packets, folder: Path) -> tuple[list[Any], list[Any], list[Any], int]:
    path = folder / "captured.pcap"
    write_packets(path, packets)
    recording, _ = import_capture(str(path), MEMORY, {}, lambda _done, _all: None)
    connection = close_after_test(recording.recorder.connection)
    diagnostics = connection.execute(
        "SELECT code, severity, blame, stream_id, offset FROM diagnostics"
    ).fetchall()
    copies = [diagnostic for diagnostic in diagnostics if diagnostic[0] == TWICE]
    assert {(severity, blame) for _, severity, blame, *_ in copies} <= {("note", "network")}
    assert len({stream for *_, stream, _ in copies}) == len(copies)
    return (
        connection.execute("SELECT stream_id, direction, name, fields, offset FROM messages").fetchall(),
        connection.execute("SELECT kind, actor, data, changes FROM events").fetchall(),
        sorted(diagnostic for diagnostic in diagnostics if diagnostic[0] != TWICE),
        len(copies),
    )


def as_it_is(packet: bytes) -> bytes:
    return packet


def other_link_header(packet: bytes) -> bytes:
    return b"\x02" * 12 + b"\x81\x00\x00\x05" + packet[12:22] + bytes([packet[22] - 1]) + packet[23:]


def without_identification(packets: Packets) -> Packets:
    return [
        (ts_ns, linktype, data[:18] + b"\0\0" + data[20:], wirelen)
        for ts_ns, linktype, data, wirelen in packets
    ]


def with_copies(
    packets: Packets, share: float, change: Callable[[bytes], bytes], later_ns: int = 200_000
) -> Packets:
    """Return a share of the packets a second time, a moment later, as `change` has it."""
    chance = random.Random(5)
    copies: list[RawPacket] = []
    for ts_ns, linktype, data, _ in packets:
        if chance.random() < share:
            again = change(data)
            copies.append((ts_ns + later_ns, linktype, again, len(again)))
    return sorted(packets + copies, key=lambda packet: packet[0])


def accused(diagnostics: list[Any]) -> Counter[tuple[str, str, str]]:
    return Counter((code, severity, blame) for code, severity, blame, *_ in diagnostics)


@pytest.mark.full(but=1)
@pytest.mark.parametrize("share", a_few([0.05, 1], [0.05]))
@pytest.mark.parametrize("change", [as_it_is, other_link_header])
@pytest.mark.parametrize(
    "prepare", [list, without_identification], ids=["identified", "without identification"]
)
@pytest.mark.parametrize("name", a_few(GAMES, GAMES[:1]))
def test_the_same_game(
    name: str,
    prepare: Callable[[Packets], Packets],
    change: Callable[[bytes], bytes],
    share: float,
    tmp_path: Path,
) -> None:
    packets = packets_of(name)
    before = found(packets, tmp_path)
    after = found(with_copies(prepare(packets), share, change), tmp_path)
    assert before[3] == 0
    assert after[3] > 0
    if prepare is without_identification:
        # What was really sent twice at once counts once there, and makes nothing of its own.
        assert after[1] == before[1]
        assert not accused(after[2]) - accused(before[2])
    else:
        assert after[:3] == before[:3]


@pytest.mark.full
def test_copies_that_other_packets_overtake(tmp_path: Path) -> None:
    packets = packets_of(GAMES[0])
    for seed in range(3):
        after = found(duplicate_packets(packets, random.Random(seed), 0.3), tmp_path)
        assert after[:3] == found(packets, tmp_path)[:3]


def test_real_duplicates_are_judged(tmp_path: Path) -> None:
    def sent_again(packet: bytes) -> bytes:
        number = (int.from_bytes(packet[18:20], "big") + 1) % 65_536 or 1
        return packet[:18] + number.to_bytes(2, "big") + packet[20:]

    before, after = (
        found(packets, tmp_path)
        for packets in (packets_of(GAMES[0]), with_copies(packets_of(GAMES[0]), 0.05, sent_again))
    )
    assert after[3] == 0
    assert len(after[0]) > len(before[0])
    assert ("used-token", "client") in {(code, blame) for code, _, blame, *_ in after[2]}


@pytest.mark.parametrize(
    ("identification", "later_ns", "payload", "is_repeated"),
    [
        (7, 0, b"a", True),
        (7, DUPLICATE_NS - 1, b"a", True),
        (7, DUPLICATE_NS, b"a", False),
        (7, -1_000_000, b"a", True),
        (7, 0, b"b", False),
        (8, 0, b"a", False),
    ],
)
def test_equal_elements(identification: int, later_ns: int, payload: bytes, is_repeated: bool) -> None:
    repeats = DuplicateDetector()
    assert not repeats.is_duplicate((b"flow", b"a", 0, 7), 10**12)
    assert repeats.is_duplicate((b"flow", payload, 0, identification), 10**12 + later_ns) == is_repeated
    assert not repeats.is_duplicate((b"other flow", b"a", 0, 7), 10**12)


def test_without_identification_immediate_copies_are_the_same() -> None:
    repeats = DuplicateDetector()
    assert not repeats.is_duplicate((b"flow", b"a", 0, 0), 0)
    assert repeats.is_duplicate((b"flow", b"a", 0, 0), DUPLICATE_NS - 1)
    # It counts from the first, or a repeated message would be recorded only once.
    assert not repeats.is_duplicate((b"flow", b"a", 0, 0), DUPLICATE_NS)


@pytest.mark.parametrize(
    ("told", "limit_ns"),
    [
        # Times of each: without another message in between, with one, and repeated.
        ([(b"a", 0)], DUPLICATE_NS),
        ([(b"a", 0), (b"b", 1)], UNIDENTIFIED_DUPLICATE_NS),
        ([(b"a", -DUPLICATE_NS), (b"a", 0), (b"b", 1)], FREQUENT_DUPLICATE_NS),
    ],
)
def test_without_identification_news_may_be_the_same_words(
    told: list[tuple[bytes, int]], limit_ns: int
) -> None:
    for later_ns, is_repeated in ((limit_ns - 1, True), (limit_ns, False)):
        repeats = DuplicateDetector()
        for payload, ts_ns in told:
            assert not repeats.is_duplicate((b"flow", payload, 0, 0), ts_ns)
        assert repeats.is_duplicate((b"flow", b"a", 0, 0), later_ns) == is_repeated


def test_remembered_state_is_bounded() -> None:
    repeats = DuplicateDetector()
    for number in range(3 * MAX_REMEMBERED):
        for ts_ns in (0, DUPLICATE_NS):
            repeats.is_duplicate((b"flow %d" % number, b"", 0, number % 2), ts_ns)
        assert len(repeats._first_ns) <= MAX_REMEMBERED
        assert len(repeats._latest) <= MAX_REMEMBERED
        assert len(repeats._frequent) <= MAX_REMEMBERED


def test_the_note_lasts(tmp_path: Path) -> None:
    """`check` shows it without failing, and `redissect` keeps it with its severity."""
    write_packets(tmp_path / "twice.pcap", with_copies(packets_of("maexchen-head-tiny.pcap"), 1, as_it_is))
    database = str(tmp_path / "game.db")
    kiebitz("import", str(tmp_path / "twice.pcap"), "-w", database)
    before = kiebitz("check", database)
    assert "a datagram was captured twice: it counts once" in before.out
    kiebitz("redissect", database)
    assert kiebitz("check", database).out == before.out
