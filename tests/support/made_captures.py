"""Capture files from a line of text for each, as in tests/data/capture_files.txt."""

from __future__ import annotations

import gzip
import re
import struct

from snapshots import as_bytes
from zstd_data import zstd_compressed

SECOND = 1_000_000_000
PACKETS = [
    (1_700_000_000 * SECOND + 123_456_000, b"first"),
    (1_700_000_001 * SECOND, b""),
    (SECOND, b"x" * 999),
]
TOKEN = re.compile(r"'[^']*'|[^\s']+")
NUMBERS = {"u16": "H", "u32": "I", "u64": "Q"}


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


def file_of(text: str, order: str = "<") -> bytes:
    """Return the file that a line of capture_files.txt describes."""
    made: list[bytes] = []
    for part in text.split("; "):
        word, *tokens = TOKEN.findall(part)
        if tokens[:1] in (["<"], [">"]):
            order = tokens.pop(0)
        named = dict(token.split("=") for token in tokens if re.match(r"\w+=", token))
        plain = [token for token in tokens if not re.match(r"\w+=", token)]
        if word in ("gzip", "zstd", "keep"):
            data = b"".join(made)
            packed = {"gzip": gzipped, "zstd": zstd_compressed}
            made = [packed[word](data) if word in packed else data[: int(plain[0])]]
        elif word == "cut":
            made[-1] = made[-1][: int(plain[0])] + made[-1][int(plain[1]) :]
        elif word in ("at", "insert"):
            new = content(plain[1:], order)
            start = int(plain[0]) % len(made[-1])
            end = start + len(new) if word == "at" else start
            made[-1] = made[-1][:start] + new + made[-1][end:]
        elif word in ("pcap", "record", "records", "bytes"):
            made.append(pcap_part(word, order, plain, named))
        else:
            made.append(pcapng_part(word, order, plain, named))
    return b"".join(made)


def content(tokens: list[str], order: str) -> bytes:
    """Return the bytes of some tokens: 'text', hexadecimal digits, or u32:5 in a byte order."""
    data = b""
    for token in tokens:
        kind, colon, number = token.partition(":")
        if token.startswith("'"):
            data += as_bytes(token[1:-1])
        else:
            data += struct.pack(order + NUMBERS[kind], int(number)) if colon else bytes.fromhex(token)
    return data


def pcap_part(word: str, order: str, plain: list[str], named: dict[str, str]) -> bytes:
    if word == "bytes":
        return content(plain, order)
    if word == "pcap":
        magic = int(named.get("magic", "a1b23c4d" if "nano" in plain else "a1b2c3d4"), 16)
        version = (int(number) for number in named.get("version", "2.4").split("."))
        return struct.pack(order + "IHHIIII", magic, *version, 0, 0, 262144, int(named.get("link", "1"), 0))
    packets = PACKETS
    if word == "record":
        packets = [(int(plain[0].removeprefix("@")) * 1000, content(plain[1:], order))]
    data = b""
    for ts_ns, payload in packets:
        seconds, rest = divmod(ts_ns, SECOND)
        lengths = [len(payload), int(named.get("wire", len(payload) + 7))]
        data += struct.pack(order + "II", seconds, rest // (1 if "nano" in plain else 1000))
        data += struct.pack(order + "II", *(lengths[::-1] if "swapped" in plain else lengths))
        # An interface, a protocol, a packet type, and a rest.
        extra = int(named.get("extra", 0))
        data += struct.pack(order + "IHB", 2, 0x800, 4)[:extra].ljust(extra, b"\0") + payload
    return data


def pcapng_part(word: str, order: str, plain: list[str], named: dict[str, str]) -> bytes:
    def option(code: int, value: bytes) -> bytes:
        return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)

    def block(kind: int, body: bytes) -> bytes:
        length = len(body) + 12
        if "unpadded" not in plain:
            body += bytes(-len(body) % 4)
            length += 0 if "unrounded" in plain else -length % 4
        return struct.pack(order + "II", kind, length) + body + struct.pack(order + "I", length)

    def pack(form: str, *values: int) -> bytes:
        return struct.pack(order + form, *values)

    def packet(number: int, ticks: int, data: bytes, wirelen: int) -> bytes:
        head = pack("IIIII", number, ticks >> 32, ticks & 0xFFFFFFFF, len(data), wirelen)
        if {"unpadded", "unrounded"} & {*plain}:
            return block(6, head + data)
        # With a flags option behind the padding.
        return block(6, head + data + bytes(-len(data) % 4) + option(2, bytes(4)) + bytes(4))

    if word == "section":
        return block(0x0A0D0D0A, pack("IHHq", 0x1A2B3C4D, int(named.get("version", 1)), 0, -1))
    if word == "interface":
        body = pack("HHI", int(plain[0]), 0, int(named.get("snaplen", 0))) + option(2, b"lo")
        if "tsresol" in named:
            body += option(9, bytes.fromhex(named["tsresol"]))
        if "tsoffset" in named:
            body += option(14, pack("q", int(named["tsoffset"])))
        if "fcs" in named:
            body += option(13, bytes([int(named["fcs"])]))
        return block(1, body + bytes(4))
    if word == "statistics":
        body = b"".join(option(int(code), pack("Q", int(count))) for code, count in named.items())
        return block(5, pack("III", int(plain[0]), 0, 0) + body + bytes(4))
    if word == "packets":
        return b"".join(packet(0, 5, data, len(data)) for _, data in PACKETS)
    data = content([token for token in plain[1:] if token not in ("unpadded", "unrounded")], order)
    if word == "block":
        return block(int(plain[0], 0), data)
    wirelen = int(named.get("wire", len(data)))
    number, _, ticks = plain[0].partition("@")
    if word == "simple":
        return block(3, pack("I", wirelen) + data)
    if word == "old":
        return block(2, pack("HHIIII", int(number), 7, 0, int(ticks), len(data), wirelen) + data)
    assert word == "packet", word
    return packet(int(number), int(ticks), data, wirelen)
