"""Capture files with something spoilt: packets of recorded games, in both formats, compressed or not."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from functools import cache

from inspected_captures import CAPTURES
from mutation import Choices, mutate
from zstd_data import zstd_compressed

from kiebitz.proxy.capture.files import open_capture
from kiebitz.proxy.capture.packets import RawPacket

SOURCES = (
    *("maexchen-head-odd.pcap", "schafkopf-1.3-1human-tiny.pcap", "catan-yaks-lobby.pcap.gz"),
    *("okey-seed-tiny.pcap.gz", "cgml-tiny.pcap.gz"),
)
PACKETS = 40
"""Packets of one input."""

_MILLISECOND = 1_000_000
_LINK_HEADER = {1: 14, 113: 16, 276: 20}
"""Link type -> where IP begins."""


@cache
def _recorded() -> list[list[RawPacket]]:
    captures = []
    for name in SOURCES:
        with open_capture(str(CAPTURES / name)) as capture:
            captures.append(list(capture))
    return captures


def spoilt_packets(choices: Choices) -> list[RawPacket]:
    """Packets of a recorded game: some lost, moved, sent again, cut, or with another header or content."""
    recorded = choices.of(_recorded())
    begin = choices.below(len(recorded)) if choices.one_in(3) else 0
    rate = choices.of((16, 4, 2))
    packets: list[RawPacket] = []
    shift_ns = 0
    for ts_ns, linktype, data, wirelen in recorded[begin : begin + PACKETS]:
        if choices.spent:
            break
        if choices.one_in(rate):
            kind = choices.below(12)
            if kind < 6:
                data = _other_header(linktype, data, choices)
            elif kind == 6:
                data = mutate(data, choices, [packet[2] for packet in recorded[:PACKETS]])
            elif kind == 7:
                data = data[: choices.below(len(data) + 1)]
            elif kind == 8:
                wirelen = choices.of((0, len(data) + 1, 65_535, (1 << 32) - 1))
            elif kind == 9:
                linktype = choices.of((0, 1, 12, 101, 113, 228, 229, 276, 147))
            elif kind == 10:
                shift_ns += choices.of((300, 6_000, 700_000, -5_000)) * _MILLISECOND
            elif packets:
                packets.append(choices.of(packets))
            if choices.one_in(4):
                continue
        packets.append((max(0, ts_ns + shift_ns), linktype, data, max(wirelen, len(data))))
    return packets


def _other_header(linktype: int, data: bytes, choices: Choices) -> bytes:
    """Return a packet with a changed header: any bit, or numbers and flags of TCP by a small amount."""
    link = _LINK_HEADER.get(linktype, 0)
    changed = bytearray(data)
    kind = choices.below(4)
    if kind == 0 and len(data) >= link + 38:
        # Change a sequence or acknowledgment number a little, by half the range, or at random.
        place = link + 24 + 4 * choices.below(2)
        (number,) = struct.unpack_from(">I", data, place)
        number += choices.of((1, -1, 100, -100, 1 << 31, -(1 << 31), choices.below(1 << 32)))
        struct.pack_into(">I", changed, place, number % (1 << 32))
    elif kind == 1 and len(data) > link + 33:
        changed[link + 33] ^= 1 << choices.below(6)
    elif kind == 2 and len(data) > link + 7:
        # IPv4: more fragments, or a fragment's place.
        struct.pack_into(">H", changed, link + 6, choices.of((0x2000, 1, 0x2001, 0x1FFF, 4)))
    elif data:
        at = choices.below(min(len(data), link + 60))
        changed[at] = choices.below(256)
    return bytes(changed)


def spoilt_pcap(choices: Choices) -> bytes:
    """Return a pcap file of such packets, whose records may be spoilt as well."""
    order = choices.of("<>")
    nano = choices.one_in(2)
    magic = 0xA1B23C4D if nano else 0xA1B2C3D4
    packets = spoilt_packets(choices)
    linktype = packets[0][1] if packets else 1
    header = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262_144, linktype)
    records = [
        struct.pack(order + "IIII", *_split(ts_ns, nano), len(data), wirelen) + data
        for ts_ns, _, data, wirelen in packets
    ]
    return _spoilt_file(header, records, choices)


def _split(ts_ns: int, nano: bool) -> tuple[int, int]:
    seconds, rest = divmod(ts_ns, 1_000_000_000)
    return seconds % (1 << 32), rest if nano else rest // 1000


def spoilt_pcapng(choices: Choices) -> bytes:
    """Return a pcapng file of such packets, with all kinds of packet blocks, and some other blocks."""
    order = choices.of("<>")
    packets = spoilt_packets(choices)
    blocks = [_interface(order, packets[0][1] if packets else 1, choices)]
    for ts_ns, linktype, data, wirelen in packets:
        match choices.below(16):
            case 0:
                blocks.append(_interface(order, linktype, choices))
            case 1:
                blocks.append(_block(order, 3, struct.pack(order + "I", wirelen) + data))
            case 2:
                head = struct.pack(
                    order + "HHIIII", 0, 0, *divmod(ts_ns // 1000, 1 << 32), len(data), wirelen
                )
                blocks.append(_block(order, 2, head + data))
            case 3:
                blocks.append(_block(order, choices.of((4, 5, 10, 0x0BAD, choices.below(1 << 32))), data))
            case 4:
                order = choices.of("<>")
                blocks += [_section(order, choices), _interface(order, linktype, choices)]
            case _:
                pass
        number = choices.of((0, 0, 0, 1, choices.below(1 << 32)))
        stamp = divmod(choices.of((ts_ns // 1000, choices.below(1 << 62))), 1 << 32)
        content = struct.pack(order + "IIIII", number, *stamp, len(data), wirelen)
        blocks.append(_block(order, 6, content + data + bytes(-len(data) % 4) + _options(order, choices)))
    return _spoilt_file(_section(order, choices), blocks, choices)


def _block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def _options(order: str, choices: Choices) -> bytes:
    """Options of a block, now and then; their lengths may be wrong."""
    options = b""
    while choices.one_in(6):
        value = choices.of(
            (b"", b"\x06", b"\x09", b"\x80", b"\xff", b"lo", bytes(8), b"\xff" * 8, b"x" * 400)
        )
        length = choices.of((len(value), len(value), len(value), choices.below(1 << 16)))
        kind = choices.of((0, 1, 2, 9, 14, choices.below(1 << 16)))
        options += struct.pack(order + "HH", kind, length) + value + bytes(-len(value) % 4)
    return options


def _interface(order: str, linktype: int, choices: Choices) -> bytes:
    snaplen = choices.of((0, 262_144, 60, choices.below(1 << 32)))
    return _block(order, 1, struct.pack(order + "HHI", linktype, 0, snaplen) + _options(order, choices))


def _section(order: str, choices: Choices) -> bytes:
    length = choices.of((-1, -1, 0, choices.below(1 << 32)))
    head = struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, length)
    return _block(order, 0x0A0D0D0A, head + _options(order, choices))


def _spoilt_file(header: bytes, records: list[bytes], choices: Choices) -> bytes:
    """Return a file of records: one of them changed, twice, lost or moved, or bytes changed anywhere."""
    while records and choices.one_in(3):
        at = choices.below(len(records))
        match choices.below(5):
            case 0:
                records[at] = mutate(records[at], choices, records)
            case 1:
                # Lengths are in the first bytes of a record or block.
                place = choices.below(min(20, len(records[at])) or 1)
                records[at] = records[at][:place] + bytes([choices.below(256)]) + records[at][place + 1 :]
            case 2:
                records[at:at] = [records[at]] * (1 + choices.below(3))
            case 3:
                del records[at]
            case _:
                records.append(records.pop(at))
    if choices.one_in(8):
        header = mutate(header, choices, records or [b""])
    return header + b"".join(records)


def spoilt_gzip(choices: Choices) -> bytes:
    """Return a capture in gzip, in one member or several, whose bytes may be spoilt."""
    return _compressed(choices, lambda data: gzip.compress(data, 1, mtime=0))


def spoilt_zstd(choices: Choices) -> bytes:
    """Return the same in zstd."""
    return _compressed(choices, zstd_compressed)


def _compressed(choices: Choices, compress: Callable[[bytes], bytes]) -> bytes:
    data = (spoilt_pcapng if choices.one_in(2) else spoilt_pcap)(choices)
    at = choices.below(len(data) + 1)
    members = [compress(piece) for piece in choices.of(([data], [data[:at], data[at:]], [b"", data, b""]))]
    packed = b"".join(members)
    while choices.one_in(3):
        place = choices.below(len(packed) + 1)
        match choices.below(4):
            case 0:
                packed = packed[:place]
            case 1:
                packed = packed[:place] + bytes([choices.below(256)]) + packed[place + 1 :]
            case 2:
                packed += choices.of((b"garbage", bytes(600), packed[:40], members[0]))
            case _:
                packed = packed[:place] + packed[place + choices.below(40) :]
    return packed
