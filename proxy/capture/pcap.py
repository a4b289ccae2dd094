"""Reader of pcap files (draft-ietf-opsawg-pcap), in one pass from a stream.

The clause numbers below refer to that draft.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from struct import Struct, unpack

from kiebitz.proxy.capture.formats import (
    SECOND,
    CaptureDefect,
    HeaderError,
    damage_text,
    truncation_text,
    without_check_sequence,
)
from kiebitz.proxy.capture.packets import RawPacket

_MICROSECOND = 1000
_STANDARD, _NANOSECOND = b"\xa1\xb2\xc3\xd4", b"\xa1\xb2\x3c\x4d"
# Alexey Kuznetsov's patches of libpcap; Ixia's hardware and software captures.
_MODIFIED, _IXIA_HARDWARE, _IXIA_SOFTWARE = b"\xa1\xb2\xcd\x34", b"\x1c\x00\x01\xac", b"\x1c\x00\x01\xab"

_PCAP_VARIANTS = {
    _STANDARD: (_MICROSECOND, 0, (16, 24, 20)),
    _NANOSECOND: (1, 0, (16,)),
    _MODIFIED: (_MICROSECOND, 0, (24, 28)),
    _IXIA_HARDWARE: (1, 4, (16,)),
    _IXIA_SOFTWARE: (_MICROSECOND, 4, (16,)),
}
"""Magic of a pcap file -> unit of its times in ns, further bytes of its header, lengths of record headers.

Of several lengths the first one applies, unless the first records fit only another one: one of the patches
kept the standard magic, as did Nokia, and two of them share one.
"""

PCAP_MAGICS = {
    head: (order, *variant)
    for magic, variant in _PCAP_VARIANTS.items()
    for order, head in ((">", magic), ("<", magic[::-1]))
}
"""The first four bytes of a pcap file -> its byte order and its variant."""

_PCAP_HEADER_LENGTH = 24
_RECORDS_TRIED = 3
_MOST_PROBABLE_LENGTH, _MOST_PROBABLE_INTERFACE, _MOST_PACKET_TYPE = 128 << 20, 10_000, 4
"""Largest plausible values in a record header: original length, interface index, packet type."""

_AIX_LINKTYPES = {6: 1, 9: 6, 15: 10, 24: 0}
"""Interface type (RFC 1573) in files of AIX -> LINKTYPE_ number. They have version 2.2, and count in ns."""

_AIX_VERSION, _VERSION_OF_LENGTHS = (2, 2), (2, 4)
_DG_UX = 543
"""Major version of the files of DG/UX; like those before 2.4, they have the original length first."""

_FCS_PRESENT, _FCS_UNITS = 1 << 26, 28
"""Flag in pcap's link type field, and the first of the bits that count an FCS in units of two bytes."""

MAX_CAPTURED = 262_144
"""libpcap's MAXIMUM_SNAPLEN: a longer packet is a damaged length field."""

MAX_EMPTY = 100_000
"""Maximum number of packets without bytes.

Zeros are read as such packets, at a time of 0; a small compressed file may contain a vast number.
"""


class PcapRecords:
    """The packets of a pcap file from a stream positioned after the magic. Raises HeaderError."""

    def __init__(self, stream: io.BufferedReader[io.RawIOBase], magic: bytes) -> None:
        self.truncated: str | None = None
        self.damages: list[str] = []
        self.faults: Counter[CaptureDefect] = Counter()
        self.dropped = 0
        self._stream = stream
        self._byte_order, self._unit, more, self._header_lengths = PCAP_MAGICS[magic]
        # Section 4: versions, two unused fields, snap length, link type.
        self._header_length = _PCAP_HEADER_LENGTH + more
        header = stream.read(self._header_length - 4)
        if len(header) < self._header_length - 4:
            raise HeaderError
        major, minor, linktype = unpack(self._byte_order + "HH12xI", header[:20])
        self._linktype = linktype & 0xFFFF
        self._check_length = (linktype >> _FCS_UNITS) * 2 if linktype & _FCS_PRESENT else 0
        version = (major, minor)
        self._may_be_swapped = version < _VERSION_OF_LENGTHS or major == _DG_UX
        if version == _AIX_VERSION and magic in (_STANDARD, _STANDARD[::-1]) and linktype in _AIX_LINKTYPES:
            self._linktype = _AIX_LINKTYPES[linktype]
            self._unit = 1
        if version != _VERSION_OF_LENGTHS:
            # The variants that only their records reveal have this version.
            self._header_lengths = self._header_lengths[:1]

    def records(self) -> Iterator[RawPacket]:
        """Yield each whole packet once; afterwards `truncated` says what is missing, if anything is."""
        read = self._stream.read
        header_length = self._record_header_length()
        unpack_header = Struct(f"{self._byte_order}4I{header_length - 16}x").unpack
        unit = self._unit
        linktype = self._linktype
        check_length, may_be_swapped = self._check_length, self._may_be_swapped
        offset = self._header_length
        number = empty = 0
        while header := read(header_length):
            number += 1
            if len(header) < header_length:
                what = f"the header of packet {number}"
                self.truncated = truncation_text(what, offset, len(header), header_length)
                return
            seconds, fraction, captured, wirelen = unpack_header(header)
            if may_be_swapped and captured > wirelen:
                captured, wirelen = wirelen, captured
            if captured > MAX_CAPTURED:
                self.truncated = damage_text(f"packet {number}", offset, f"claims {captured} bytes")
                return
            if not wirelen:
                empty += 1
                if empty > MAX_EMPTY:
                    why = f"is one of over {MAX_EMPTY:,} packets of no bytes"
                    self.truncated = damage_text(f"packet {number}", offset, why)
                    return
            data = read(captured)
            if len(data) < captured:
                have, want = header_length + len(data), header_length + captured
                self.truncated = truncation_text(f"packet {number}", offset, have, want)
                return
            if check_length:
                data, wirelen = without_check_sequence(data, wirelen, check_length)
            yield seconds * SECOND + fraction * unit, linktype, data, wirelen
            offset += header_length + captured

    def _record_header_length(self) -> int:
        """Return the length of the records' headers, judging by the first records."""
        first, *others = self._header_lengths
        if not others:
            return first
        # Buffered bytes, or else those of a single read: this does not wait for a live pipe.
        head = self._stream.peek(1)
        if self._fits(head, first):
            return first
        return next((length for length in others if self._fits(head, length)), first)

    def _fits(self, head: bytes, header_length: int) -> bool:
        """Return True if the first records, at least one, are plausible with this header length."""
        position = 0
        for _ in range(_RECORDS_TRIED):
            header = head[position : position + header_length]
            if len(header) < header_length:
                break
            _, fraction, captured, wirelen = unpack(self._byte_order + "4I", header[:16])
            if fraction >= 1_000_000 or not captured <= wirelen <= _MOST_PROBABLE_LENGTH:
                return False
            if captured > MAX_CAPTURED:
                return False
            if header_length >= 24:
                interface, packet_type = unpack(self._byte_order + "I2xB", header[16:23])
                if interface > _MOST_PROBABLE_INTERFACE or packet_type > _MOST_PACKET_TYPE:
                    return False
            position += header_length + captured
        return position > 0
