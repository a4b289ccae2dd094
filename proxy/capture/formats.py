"""Common parts of the readers of pcap and pcapng: defects, limits, texts, search for the next block.

scapy, which captures live packets, could read files, too. Its readers take a tenth of a second to load and a
named tuple for each packet, and have serious faults. They cut packets at 65,535 bytes, ask for up to 4 GiB at
once if a length field says so, and number the interfaces of a second section on from the first. They drop
if_tsoffset, read no Simple Packet Block with an unlimited snap length, and cannot distinguish an end from a
truncation.

Search for the next whole block of a pcapng stream after a damaged one.

A block repeats its length at its end (draft-ietf-opsawg-pcapng, 3.1). So a known block type with a length
that is repeated at the right place is a block, at any position.
"""

from __future__ import annotations

import re
from struct import Struct, pack
from typing import Protocol

from kiebitz.dissectors.errors import KiebitzError

SECTION_HEADER = b"\x0a\x0d\x0d\x0a"
"""Type of a section header block; it is the same in both byte orders."""

BYTE_ORDERS = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}
"""A section's byte-order magic -> its byte order in the notation of the struct module."""

_TYPES = (1, 2, 3, 4, 5, 6, 10, 0xBAD, 0x40000BAD)
"""Types of blocks to search for: interface, packets, names, statistics, secrets, custom blocks."""

_WINDOWS = (1 << 12, 1 << 16, 1 << 21)
"""Increasing numbers of bytes to examine: near blocks are found before a live pipe has sent much more."""

_STEP = _MAX_BLOCK = 1 << 20
"""Length in bytes of the longest block that is found, and of the step from one window to the next."""

_MIN_BLOCK = 12


class ByteSource(Protocol):
    """A sequential stream of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return `size` bytes, fewer at the end."""


class RereadableInput:
    """A stream that supports putting bytes back and looking ahead."""

    def __init__(self, stream: ByteSource) -> None:
        self._stream = stream
        self._data = b""
        self._position = 0

    def read(self, size: int, /) -> bytes:
        """Return `size` bytes, fewer at the end."""
        start, end = self._position, self._position + size
        data = self._data
        if end <= len(data):
            self._position = end
            return data[start:end]
        self._data, self._position = b"", 0
        return data[start:] + self._stream.read(end - len(data))

    def put_back(self, data: bytes) -> None:
        """Put back `data`, which must be the bytes read last."""
        if self._position >= len(data):
            self._position -= len(data)
        else:
            self._data, self._position = data + self._data[self._position :], 0

    def look(self, size: int) -> bytes:
        """Return the next `size` bytes without consuming them, fewer at the end."""
        data = self._data[self._position :]
        if len(data) < size:
            data += self._stream.read(size - len(data))
            self._data, self._position = data, 0
        return data[:size]


def find_block(source: RereadableInput, byte_order: str, expected: int, most: int) -> int | None:
    """Skip bytes up to the next whole block; return their number.

    Args:
        source: Stream whose next bytes are a damaged block.
        byte_order: Byte order of the section, `<` or `>`.
        expected: Distance of the next block if the damaged block's length is right.
        most: Maximum number of bytes to skip.

    Returns:
        The number of bytes skipped, or None at the end of the stream or after `most` bytes.
    """
    types = [SECTION_HEADER, *(pack(byte_order + "I", number) for number in _TYPES)]
    pattern = re.compile(b"(?=" + b"|".join(map(re.escape, types)) + b")", re.DOTALL)
    length_at = {order: Struct(order + "I").unpack_from for order in "<>"}

    def length_of(data: bytes, position: int) -> int | None:
        """Return the length of a block at a position in bytes; None if there is none."""
        order: str | None = byte_order
        if data.startswith(SECTION_HEADER, position):
            order = BYTE_ORDERS.get(data[position + 8 : position + 12])
        if order is None or len(data) < position + 8:
            return None
        (length,) = length_at[order](data, position + 4)
        return length if _MIN_BLOCK <= length <= _MAX_BLOCK and length % 4 == 0 else None

    def is_whole(data: bytes, position: int, length: int) -> bool:
        end = position + length
        return data[end - 4 : end] == data[position + 4 : position + 8]

    data = source.look(expected + 8)
    length = length_of(data, expected) if expected and pattern.match(data, expected) else None
    if length is not None and is_whole(source.look(expected + length), expected, length):
        source.read(expected)
        return expected
    skipped = 0
    first = 4
    while skipped < most:
        for window in _WINDOWS:
            data = source.look(window)
            is_end = len(data) < window
            for match in pattern.finditer(data, first):
                position = match.start()
                length = length_of(data, position)
                if length is None:
                    continue
                if position + length > len(data) and not is_end:
                    # A larger window contains it whole.
                    break
                if is_whole(data, position, length):
                    source.read(position)
                    return skipped + position
            if is_end:
                return None
        source.read(_STEP)
        skipped += _STEP
        first = 0
    return None


SECOND = 1_000_000_000
"""Nanoseconds per second."""

CaptureDefect = tuple[str, str]
"""(noun, participle): a kind of damage, as in `3 packets were left out: interface not described`."""

UNDESCRIBED_INTERFACE: CaptureDefect = ("packet", "left out: interface not described")
OVERLONG_PACKET: CaptureDefect = ("packet", "left out: longer than its block")
BROKEN_PACKET: CaptureDefect = ("packet", "left out: block too short")
BROKEN_INTERFACE: CaptureDefect = ("interface description", "not read: block too short")
TOO_MANY_INTERFACES: CaptureDefect = ("interface description", "left out: too many interfaces")
IMPOSSIBLE_TIME: CaptureDefect = ("packet", "given the previous packet's time: impossible time")


class HeaderError(KiebitzError):
    """The header of a capture file, or of a section in it, cannot be read. The text describes its state."""

    def __init__(self, state: str = "broken or incomplete") -> None:
        super().__init__(state)


def truncation_text(what: str, offset: int, have: int, want: int) -> str:
    """Return a clause for a capture that ends inside `what`, at a byte offset."""
    return f"the capture ends inside {what} at byte {offset}: {have} of its {want} bytes are there"


def damage_text(what: str, offset: int, why: str) -> str:
    """Return a clause for a capture that is unreadable from a byte offset on."""
    return f"the capture is damaged at byte {offset}: {what} {why}; what follows cannot be read"


def without_check_sequence(data: bytes, wirelen: int, check_length: int) -> tuple[bytes, int]:
    """Return a frame and its length without the frame check sequence at its end."""
    wirelen = max(max(wirelen, len(data)) - check_length, 0)
    return data[:wirelen], wirelen
