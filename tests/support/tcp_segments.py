"""Made-up TCP, placed by each segment's first byte, and UDP; the items of them and of captured packets."""

from __future__ import annotations

import itertools
import socket
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Literal, Protocol

from hypothesis import strategies as st
from packet_reordering import write_packets

from kiebitz.dissectors.model import Chunk, Direction, End, Fault, Gap, Item
from kiebitz.proxy.capture.packets import PacketDecoder, RawPacket, Segment
from kiebitz.proxy.flows.packet_flows import PacketReorderer
from kiebitz.proxy.flows.server_detection import DirectionDetector
from kiebitz.proxy.flows.tcp import TcpFlows
from kiebitz.proxy.flows.tcp_order import REORDER_TIMEOUT_NS, RESET_TIMEOUT_NS, SegmentReorderer

SECOND = 1_000_000_000
MILLISECOND = 1_000_000
# The client's port is above the server's: who knows nothing else takes the lower one for the server.
CLIENT, SERVER = "10.0.0.1:50000", "10.0.0.9:9000"
ISN = {"c": 1000, "s": 4_294_967_290}
"""The numbers of the SYNs; the server's wraps around after six bytes."""

_FLAGS = {"F": 1, "S": 2, "R": 4, "P": 8, "A": 16, "U": 32}

Side = Literal["c", "s"]

Sent = tuple[int, Segment]
"""A segment with its time of arrival (ns)."""


def packed(endpoint: str) -> tuple[bytes, bytes]:
    """Return address and port as packed in packets."""
    host, _, port = endpoint.rpartition(":")
    if host.startswith("["):
        return socket.inet_pton(socket.AF_INET6, host[1:-1]), struct.pack(">H", int(port))
    return socket.inet_aton(host), struct.pack(">H", int(port))


def flow(source: str, destination: str) -> bytes:
    (source_ip, source_port), (destination_ip, destination_port) = packed(source), packed(destination)
    return source_ip + destination_ip + source_port + destination_port


def sent(
    ms: float,
    who: Side,
    flags: str,
    data: bytes = b"",
    *,
    at: int = 0,
    ack: int = 0,
    missing: int = 0,
    window: int = 65_535,
    scale: int | None = None,
    isn: int | None = None,
    peer_isn: int | None = None,
    client: str = CLIENT,
    server: str = SERVER,
) -> Sent:
    """Return a segment of the client or the server at a time (milliseconds).

    `at` is the offset of its first byte, `ack` the offset of the other side's next byte. A SYN precedes
    offset 0.
    """
    other = "s" if who == "c" else "c"
    seq = (ISN[who] if isn is None else isn) + 1 + at - ("S" in flags)
    number = (ISN[other] if peer_isn is None else peer_isn) + 1 + ack if "A" in flags else 0
    bits = sum(_FLAGS[flag] for flag in flags)
    ends = (client, server) if who == "c" else (server, client)
    text = ""
    if "R" in flags:
        text, data = data.decode(), b""
    numbers = seq % (1 << 32), number % (1 << 32)
    segment = Segment(flow(*ends), data, missing, *numbers, bits, window, scale, text)
    return int(ms * MILLISECOND), segment


def handshake(ms: float = 0, client: str = CLIENT, server: str = SERVER) -> list[Sent]:
    return [
        sent(ms, "c", "S", client=client, server=server),
        sent(ms, "s", "SA", client=client, server=server),
        sent(ms, "c", "A", client=client, server=server),
    ]


def line_of(number: int) -> bytes:
    """Return a line of a conversation."""
    return b"line %d, which is so long\n" % number


def conversation(lines: int, pause_ms: float = 1) -> list[Sent]:
    """Return a whole connection with this many lines: each third one is the server's."""
    segments = handshake()
    at = {"c": 0, "s": 0}
    sides: tuple[Side, Side]
    for number in range(lines):
        sides = ("c", "s") if number % 3 else ("s", "c")
        who, other = sides
        segments.append(sent(1 + number * pause_ms, who, "PA", line_of(number), at=at[who], ack=at[other]))
        at[who] += len(line_of(number))
    ms = 1 + lines * pause_ms
    segments.append(sent(ms, "c", "FA", at=at["c"], ack=at["s"]))
    segments.append(sent(ms + 1, "s", "FA", at=at["s"], ack=at["c"] + 1))
    segments.append(sent(ms + 2, "c", "A", at=at["c"] + 1, ack=at["s"] + 1))
    return segments


class Flows(Protocol):
    """Converter of packets to items."""

    def feed(self, packet: Any, ts_ns: int, items: list[Item], /) -> None: ...

    def expire(self, ts_ns: int, items: list[Item], /) -> None: ...

    def close(self, ts_ns: int, items: list[Item], /) -> None: ...


def live(rst_timeout_ns: int = REORDER_TIMEOUT_NS, streams: int = 100) -> SegmentReorderer:
    """Return the flows of live segments to port 9000."""
    flows = TcpFlows(itertools.count(1), by_word, frozenset({9000}), max_streams=streams)
    return SegmentReorderer(flows, rst_timeout_ns)


class FromFile:
    """The order of a whole file of segments."""

    def __init__(self, *_: object) -> None:
        self.segments: list[Sent] = []

    def feed(self, segment: Segment, ts_ns: int, _items: list[Item]) -> None:
        self.segments.append((ts_ns, segment))

    def expire(self, ts_ns: int, items: list[Item]) -> None:
        raise AssertionError("packets of a file are put in order at its end, before any time passes")

    def close(self, ts_ns: int, items: list[Item]) -> None:
        order = PacketReorderer()
        tcp = live(RESET_TIMEOUT_NS)
        for sent_ns, segment in [*order.add(self.segments, 0), *order.close()]:  # type: ignore[arg-type]  # pairs
            tcp.feed(segment, sent_ns, items)  # type: ignore[arg-type]  # a segment
        tcp.close(ts_ns, items)


END_NS = 10_000 * SECOND


def fed(sorter: Flows, segments: Iterable[tuple[int, Any]], close_ns: int | None = END_NS) -> list[Item]:
    """Return the items of packets, up to an end at a time, or without one."""
    items: list[Item] = []
    for ts_ns, segment in segments:
        sorter.feed(segment, ts_ns, items)
    if close_ns is not None:
        sorter.close(close_ns, items)
    return items


NAMES = {
    **{"A": CLIENT, "B": "10.0.0.2:50001", "C": "10.0.0.3:50002", "S": SERVER},
    **{"A6": "[2001:db8::1]:50000", "S6": "[2001:db8::9]:9000"},
}
"""Ends of datagrams."""


def packets_of(step: str) -> list[tuple[int, Any]]:
    """Return the packets of a step of tcp_flows.txt (see `sent`) or udp_flows.txt."""
    if step == "handshake":
        return [*handshake()]
    head, _, data = step.rstrip("'").partition(" '")
    ms, who, *rest = head.split()
    said = data.encode().decode("unicode_escape").encode("latin-1")
    if ">" in who:
        source, destination = who.split(">")
        return [(int(ms) * MILLISECOND, (flow(NAMES[source], NAMES[destination]), said, 0, 0))]
    flags, *options = rest
    pairs = (option.split("=") for option in options)
    values: dict[str, Any] = {
        key: NAMES.get(value, value) if key in ("client", "server") else int(value) for key, value in pairs
    }
    return [sent(float(ms), "c" if who == "c" else "s", flags.strip("-"), said, **values)]


def play(
    steps: Iterable[str], make: Callable[[DirectionDetector, frozenset[int]], Flows]
) -> tuple[list[str], list[Item]]:
    """Return the descriptions of the items that come of the steps of a text file, and the items.

    Besides packets these are `by word` and `ports 9000`, which help to find the server, and `expire 5000`,
    until which time goes on.
    """
    steps = "; ".join(steps).split("; ")
    ports = [int(port) for step in steps if step.startswith("ports ") for port in step.split()[1:]]
    flows = make(by_word if "by word" in steps else lambda *_: None, frozenset(ports))
    lines: list[str] = []
    items: list[Item] = []
    known: set[int] = set()
    shown = 0
    for step in steps:
        if step.startswith("expire "):
            lines += [*told(items[shown:], known), step]
            shown = len(items)
            flows.expire(round(float(step.split()[1]) * MILLISECOND), items)
        elif step != "by word" and not step.startswith("ports "):
            for ts_ns, packet in packets_of(step):
                flows.feed(packet, ts_ns, items)
    flows.close(END_NS, items)
    return lines + told(items[shown:], known), items


def items_of_packets(packets: Iterable[RawPacket], ports: Iterable[int] = ()) -> list[Item]:
    """Return the items of captured packets, if the server is not detected by content."""
    decoder = PacketDecoder()
    conversations = SegmentReorderer(TcpFlows(itertools.count(1), lambda *_: None, frozenset(ports)))
    items: list[Item] = []
    last_ns = 0
    for ts_ns, linktype, data, wirelen in packets:
        segment = decoder.decode(linktype, data, wirelen, ts_ns)
        if isinstance(segment, Segment):
            conversations.feed(segment, ts_ns, items)
        last_ns = ts_ns
    conversations.close(last_ns, items)
    return items


def told(items: Iterable[Item], known: set[int] | None = None) -> list[str]:
    """Describe items: stream, direction, offset and content; the time in milliseconds for an End.

    A stream that is not in `known` and has other ends than CLIENT and SERVER is described first.
    """
    known = set() if known is None else known
    lines = []
    for item in items:
        number = item.stream.id
        if number not in known:
            known.add(number)
            if (item.stream.client, item.stream.server) != (CLIENT, SERVER):
                lines.append(f"{number} {item.stream.client} {item.stream.server}")
        if isinstance(item, Chunk):
            text = f" {item.data.decode('latin-1')}" if item.data else ""
            lines.append(f"{number} {item.direction} @{item.offset}{text}")
        elif isinstance(item, Gap):
            lines.append(f"{number} {item.direction} @{item.offset} gap {item.length or '?'}")
        elif isinstance(item, Fault):
            lines.append(f"{number} {item.direction} @{item.offset} {item.code} {item.length}: {item.text}")
        elif isinstance(item, End):
            lines.append(f"{number} {item.reason} {item.ts_ns // MILLISECOND}")
    return lines


def check_order(items: Iterable[Item]) -> dict[tuple[int, Direction], int]:
    """Check items of any capture: in order per direction, no duplicates, each stream ends once.

    Returns the number of bytes of each direction, including gaps of known length, which may be gigabytes.
    """
    said: dict[tuple[int, Direction], int] = {}
    ended = set()
    numbers = []
    for item in items:
        assert item.stream.id not in ended
        if item.stream.id not in numbers:
            numbers.append(item.stream.id)
        if isinstance(item, End):
            ended.add(item.stream.id)
        elif isinstance(item, Chunk | Gap):
            way = (item.stream.id, item.direction)
            assert item.offset == said.get(way, 0)
            if isinstance(item, Chunk):
                assert item.data
                assert item.missing == 0
                said[way] = item.offset + len(item.data)
            else:
                assert item.length is None or item.length > 0
                said[way] = item.offset + (item.length or 0)
    assert numbers == list(range(1, len(numbers) + 1))
    assert ended == set(numbers)
    return said


def packet(segment: Segment) -> bytes:
    """Return the segment in an IPv4 packet, without sums, as a sending machine sees it."""
    header = struct.pack(">IIHHHH", segment.seq, segment.ack, 0x5000 | segment.flags, segment.window, 0, 0)
    content = segment.flow[8:] + header + segment.payload + segment.reset_text.encode()
    total = 20 + len(content) + segment.missing
    return struct.pack(">BBHHHBBH", 0x45, 0, total, 0, 0, 64, 6, 0) + segment.flow[:8] + content


def write_pcap(path: Path, segments: Iterable[Sent]) -> None:
    """A capture file of raw IP packets with times in nanoseconds."""
    packets = ((ts_ns, packet(segment), segment.missing) for ts_ns, segment in segments)
    write_packets(path, [(ts_ns, 101, data, len(data) + missing) for ts_ns, data, missing in packets])


def plain(item: Item) -> tuple[object, ...]:
    """Return an item as a value: its kind, its stream's id and all its fields."""
    fields = (getattr(item, name) for name in item.__struct_fields__ if name != "stream")
    return type(item).__name__, item.stream.id, *fields


def by_word(data: bytes, source: str, destination: str) -> Direction | None:
    words: dict[bytes, Direction] = {b"HELLO": "c2s", b"WELCOME": "s2c"}
    return next((direction for word, direction in words.items() if word in data), None)


FLOWS = [flow(*ends) for ends in ((CLIENT, SERVER), (SERVER, CLIENT), (CLIENT, CLIENT))]
NUMBERS = st.one_of(
    st.integers(0, 12), st.integers((1 << 32) - 6, (1 << 32) - 1), st.integers(0, (1 << 32) - 1)
)
RUBBISH = st.builds(
    Segment,
    flow=st.sampled_from(FLOWS),
    payload=st.one_of(st.just(b""), st.binary(max_size=6)),
    missing=st.sampled_from([0, 0, 0, 1, 5]),
    seq=NUMBERS,
    ack=NUMBERS,
    flags=st.one_of(st.sampled_from([0x10, 0x18, 0x02, 0x12, 0x11, 0x04]), st.integers(0, 255)),
    window=st.sampled_from([0, 5, 65_535]),
    scale=st.sampled_from([None, None, 0, 14]),
)
TIMES = st.one_of(st.integers(0, 400), st.integers(0, 8_000), st.integers(0, 20_000_000))
