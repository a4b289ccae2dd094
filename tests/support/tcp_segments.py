"""Made-up TCP, placed by each segment's first byte, and the items that come of it or of captured packets."""

from __future__ import annotations

import itertools
import socket
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from hypothesis import strategies as st

from kiebitz.dissectors.model import Chunk, Direction, End, Fault, Gap, Item
from kiebitz.proxy.capture.packets import PacketDecoder, RawPacket, Segment
from kiebitz.proxy.flows.tcp import TcpFlows
from kiebitz.proxy.flows.tcp_order import SegmentReorderer

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
    return socket.inet_aton(host), struct.pack(">H", int(port))


def flow(source: str, destination: str) -> bytes:
    (source_ip, source_port), (destination_ip, destination_port) = packed(source), packed(destination)
    return source_ip + destination_ip + source_port + destination_port


def sender_and_receiver(number: int) -> tuple[Side, Side]:
    """Return the sides of a line of a conversation: each third one is the server's."""
    return ("c", "s") if number % 3 else ("s", "c")


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


def segments_of(text: str) -> list[Sent]:
    """Return the segments of a text such as "handshake; 1 c PA at=5 'hello'": see `sent`."""
    found: list[Sent] = []
    for part in text.split("; "):
        if part == "handshake":
            found += handshake()
            continue
        head, _, data = part.rstrip("'").partition(" '")
        ms, who, flags, *options = head.split()
        pairs = (option.split("=") for option in options)
        values: dict[str, Any] = {
            key: value if key in ("client", "server") else int(value) for key, value in pairs
        }
        said = data.encode().decode("unicode_escape").encode("latin-1")
        found.append(sent(float(ms), "c" if who == "c" else "s", flags.strip("-"), said, **values))
    return found


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


def told(items: Iterable[Item]) -> list[str]:
    """Describe items: stream, direction, offset and content; the time in milliseconds for an End."""
    lines = []
    for item in items:
        number = item.stream.id
        if isinstance(item, Chunk):
            lines.append(f"{number} {item.direction} @{item.offset} {item.data.decode('latin-1')}")
        elif isinstance(item, Gap):
            lines.append(f"{number} {item.direction} @{item.offset} gap {item.length or '?'}")
        elif isinstance(item, Fault):
            lines.append(f"{number} {item.direction} @{item.offset} {item.code} {item.length}")
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
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262_144, 101))
        for ts_ns, segment in segments:
            data = packet(segment)
            length = len(data) + segment.missing
            file.write(struct.pack("<IIII", ts_ns // SECOND, ts_ns % SECOND, len(data), length) + data)


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
