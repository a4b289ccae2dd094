"""IEEE 802.11 frames, and the radio headers that captures in monitor mode put before them.

Only unencrypted data frames are read; a frame that the network encrypts is counted, as its key is not known.
Clause numbers are those of IEEE 802.11-2020.
"""

from __future__ import annotations

from collections.abc import Iterator

from kiebitz.proxy.capture.layers import (
    AGGREGATE,
    LLC,
    Inner,
    MalformedPacket,
    NoTransport,
    UnsupportedLayer,
    short_at,
    skip,
)

_DATA = 2
"""Type of a frame that carries data (9.2.4.1.3)."""

_TYPES = ("802.11 management", "802.11 control", "802.11 data", "802.11 extension")
_NO_DATA, _QOS = 0x4, 0x8
"""Bits of a data frame's subtype."""

_BOTH_DS, _MORE_FRAGMENTS, _PROTECTED, _HT_CONTROL = 0x03, 0x04, 0x40, 0x80
"""Flags in the second byte of the frame control field (9.2.4.1)."""

_IS_AGGREGATE = 0x80
"""Bit of the QoS control field: the frame is an aggregate (9.2.4.5)."""

_FRAGMENT_NUMBER = 0x0F
_CHECK_SEQUENCE_LENGTH = 4

_FLAGS_PRESENT, _TSFT_PRESENT, _MORE_PRESENT = 1 << 1, 1 << 0, 1 << 31
"""Bits of radiotap's it_present (https://www.radiotap.org)."""

_HAS_CHECK_SEQUENCE, _IS_PADDED, _IS_DAMAGED = 0x10, 0x20, 0x40
"""Bits of radiotap's flags."""

_AVS_MAGIC = 0x80211000
_PRISM_LENGTH = 144


def read_80211(data: bytes, length: int, is_padded: bool = False) -> Inner:
    """Read an 802.11 header; if `is_padded`, its content begins at a multiple of four bytes."""
    skip(2, data, length)
    kind, subtype = data[0] >> 2 & 3, data[0] >> 4
    if data[0] & 3:
        raise MalformedPacket("impossible 802.11 header")
    if kind != _DATA or subtype & _NO_DATA:
        raise NoTransport(_TYPES[kind])
    flags = data[1]
    size = 30 if flags & _BOTH_DS == _BOTH_DS else 24
    control = size
    if subtype & _QOS:
        size += 6 if flags & _HT_CONTROL else 2
    content, length = skip(size + (-size % 4 if is_padded else 0), data, length)
    if flags & _PROTECTED:
        raise UnsupportedLayer("encrypted 802.11 data")
    if flags & _MORE_FRAGMENTS or data[22] & _FRAGMENT_NUMBER:
        raise UnsupportedLayer("802.11 fragments")
    if subtype & _QOS and data[control] & _IS_AGGREGATE:
        return AGGREGATE, content, length
    return LLC, content, length


def subframes(data: bytes, length: int) -> Iterator[Inner]:
    """Yield the frames in an A-MSDU (9.3.2.2): each with two addresses, its length, and padding."""
    position = 0
    while position + 14 < min(len(data), length):
        size = short_at(data, position + 12)
        start = position + 14
        yield LLC, data[start : start + size], min(size, length - start)
        position = start + size + -(14 + size) % 4


def read_radiotap(data: bytes, length: int) -> Inner:
    """Read a radiotap header, of which only the flags are used."""
    skip(8, data, length)
    size = int.from_bytes(data[2:4], "little")
    if data[0] != 0 or size < 8:
        raise MalformedPacket("impossible radiotap header")
    frame, length = skip(size, data, length)
    flags = _radiotap_flags(data[:size])
    if flags & _IS_DAMAGED:
        raise MalformedPacket("802.11 frame that was received with errors")
    if flags & _HAS_CHECK_SEQUENCE:
        length -= _CHECK_SEQUENCE_LENGTH
        frame = frame[: max(length, 0)]
    return read_80211(frame, length, bool(flags & _IS_PADDED))


def _radiotap_flags(header: bytes) -> int:
    """Return the flags in a radiotap header, 0 if there are none."""
    present = int.from_bytes(header[4:8], "little")
    position, word = 8, present
    # Further words of it_present; their fields come after those of the first word.
    while word & _MORE_PRESENT and position + 4 <= len(header):
        word = int.from_bytes(header[position : position + 4], "little")
        position += 4
    if present & _TSFT_PRESENT:
        # Eight bytes at a multiple of eight.
        position += -position % 8 + 8
    return header[position] if present & _FLAGS_PRESENT and position < len(header) else 0


def read_avs(data: bytes, length: int) -> Inner:
    """Read the header of AbsoluteValue Systems: a magic number and its own length."""
    skip(8, data, length)
    size = int.from_bytes(data[4:8], "big")
    if not _is_avs(data) or size < 8:
        raise MalformedPacket("impossible AVS header")
    return read_80211(*skip(size, data, length))


def read_prism(data: bytes, length: int) -> Inner:
    """Read a Prism header, in the byte order of the machine that captured; some drivers use AVS instead."""
    skip(8, data, length)
    if _is_avs(data):
        return read_avs(data, length)
    if _PRISM_LENGTH not in (int.from_bytes(data[4:8], "little"), int.from_bytes(data[4:8], "big")):
        raise MalformedPacket("impossible Prism header")
    return read_80211(*skip(_PRISM_LENGTH, data, length))


def _is_avs(data: bytes) -> bool:
    return int.from_bytes(data[:4], "big") & 0xFFFFF000 == _AVS_MAGIC
