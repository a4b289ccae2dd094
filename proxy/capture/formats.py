"""The two capture file formats: records of pcap, blocks of pcapng, read in one pass from a stream.

scapy, which captures live packets, could read files, too. Its readers take a tenth of a second to load and a
named tuple for each packet, and have serious faults. They cut packets at 65,535 bytes, ask for up to 4 GiB at
once if a length field says so, and number the interfaces of a second section on from the first. They drop
if_tsoffset, read no Simple Packet Block with an unlimited snap length, and cannot tell an end from a
truncation.

pcap: draft-ietf-opsawg-pcap. pcapng: draft-ietf-opsawg-pcapng; the clause numbers below refer to it.
"""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Callable, Iterator
from struct import Struct, unpack

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.proxy.capture.block_search import (
    BYTE_ORDERS,
    SECTION_HEADER,
    RereadableInput,
    Source,
    find_block,
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

Fault = tuple[str, str]
"""(noun, participle): a kind of damage, as in `3 packets were left out: interface not described`."""

UNDESCRIBED: Fault = ("packet", "left out: interface not described")
TOO_LONG: Fault = ("packet", "left out: longer than its block")
BROKEN_PACKET: Fault = ("packet", "left out: block too short")
BROKEN_INTERFACE: Fault = ("interface description", "not read: block too short")
TOO_MANY_INTERFACES: Fault = ("interface description", "left out: too many interfaces")
IMPOSSIBLE_TIME: Fault = ("packet", "given the previous packet's time: impossible time")

_FCS_PRESENT, _FCS_UNITS = 1 << 26, 28
"""Flag in pcap's link type field, and the first of the bits that count an FCS in units of two bytes."""
# libpcap's MAXIMUM_SNAPLEN and its limit for a pcapng block: a longer one is a damaged length field.
_MAX_CAPTURED = 262_144
_MAX_BLOCK = 16 << 20
_LEAST_SECTION = 28
_MOST_DAMAGES = 100
"""Maximum number of damaged blocks before the rest of a file is left out."""

_MOST_SKIPPED = 64 << 20
"""Maximum total of bytes in damaged places before the rest is left out; compressed files may be huge."""

# Zeros are read as packets of no bytes, at a time of 0; a small compressed file may contain a vast number.
_MOST_EMPTY = 100_000
_MAX_INTERFACES = 65_536
# Options of a packet block: a comment or two, each of 65,535 bytes at most.
_MOST_OPTIONS = 1 << 18
# No LINKTYPE_ has this number.
_NO_LINKTYPE = -1
_MAX_NS = (1 << 63) - 1
_SECOND = 1_000_000_000
_END_OF_OPTIONS, _TSRESOL, _FCSLEN, _TSOFFSET = 0, 9, 13, 14


class HeaderError(KiebitzError):
    """The header of a capture file, or of a section in it, cannot be read. The text describes its state."""

    def __init__(self, state: str = "broken or incomplete") -> None:
        super().__init__(state)


def _broken_off(what: str, offset: int, have: int, want: int) -> str:
    return f"the capture ends inside {what} at byte {offset}: {have} of its {want} bytes are there"


def _damaged(what: str, offset: int, why: str) -> str:
    return f"the capture is damaged at byte {offset}: {what} {why}; what follows cannot be read"


class PcapRecords:
    """The packets of a pcap file from a stream positioned after the magic. Raises HeaderError."""

    def __init__(self, stream: io.BufferedReader[io.RawIOBase], magic: bytes) -> None:
        self.truncated: str | None = None
        self.damages: list[str] = []
        self.faults: Counter[Fault] = Counter()
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
                self.truncated = _broken_off(what, offset, len(header), header_length)
                return
            seconds, fraction, captured, wirelen = unpack_header(header)
            if may_be_swapped and captured > wirelen:
                captured, wirelen = wirelen, captured
            if captured > _MAX_CAPTURED:
                self.truncated = _damaged(f"packet {number}", offset, f"claims {captured} bytes")
                return
            if not wirelen:
                empty += 1
                if empty > _MOST_EMPTY:
                    why = f"is one of over {_MOST_EMPTY:,} packets of no bytes"
                    self.truncated = _damaged(f"packet {number}", offset, why)
                    return
            data = read(captured)
            if len(data) < captured:
                have, want = header_length + len(data), header_length + captured
                self.truncated = _broken_off(f"packet {number}", offset, have, want)
                return
            if check_length:
                data, wirelen = _without_check_sequence(data, wirelen, check_length)
            yield seconds * _SECOND + fraction * unit, linktype, data, wirelen
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
            if captured > _MAX_CAPTURED:
                return False
            if header_length >= 24:
                interface, packet_type = unpack(self._byte_order + "I2xB", header[16:23])
                if interface > _MOST_PROBABLE_INTERFACE or packet_type > _MOST_PACKET_TYPE:
                    return False
            position += header_length + captured
        return position > 0


class PcapNgRecords:
    """The packets of a pcapng file from a stream positioned after the first 4 bytes. Raises HeaderError."""

    def __init__(self, stream: Source) -> None:
        self.truncated: str | None = None
        self.damages: list[str] = []
        self.faults: Counter[Fault] = Counter()
        self._stream = stream
        # For each interface of the section: linktype, snap length (0 is unlimited), length of the check
        # sequence, and how to get nanoseconds from its ticks: multiply, divide, add.
        self._interfaces: list[tuple[int, int, int, int, int, int]] = []
        self._offset = 0
        self._last_ns = 0
        self._searchable = _MOST_SKIPPED
        # Bytes of the current block, to search in them if it turns out to be damaged.
        self._seen = b""
        self._begin_section()

    def records(self) -> Iterator[RawPacket]:
        """Yield each whole packet once; afterwards `truncated` says what is missing, if anything is.

        `damages` has a clause for each damaged place in between.
        """
        read = self._stream.read
        while block_type := read(4):
            if block_type == SECTION_HEADER:
                try:
                    self._begin_section()
                except HeaderError as error:
                    if not self._skip_damage("a section header", f"is {error}", 0):
                        return
                    read = self._stream.read
                continue
            length_field = read(4)
            if len(length_field) < 4:
                have = len(block_type) + len(length_field)
                self.truncated = _broken_off("the header of a block", self._offset, have, 8)
                return
            (length,) = self._unpack_length(length_field)
            if length < 12 or length > _MAX_BLOCK:
                self._seen = block_type + length_field
                if not self._skip_damage("a block", f"claims a length of {length} bytes", 0):
                    return
                read = self._stream.read
                continue
            body = read(length - 8)
            if length & 3 and body[-4:] != length_field:
                # Wireshark takes such a length as rounded up; an unpadded block is read as well.
                body += read(-length % 4)
            if body[-4:] != length_field or len(body) < length - 8:
                self._seen = block_type + length_field + body
                if len(body) < length - 8 and not self._is_inconsistent(block_type, length, body):
                    self.truncated = _broken_off("a block", self._offset, 8 + len(body), length)
                    return
                if block_type == self._interface_type:
                    self._add_broken_interface()
                why = "does not repeat its length at its end"
                if not self._skip_damage("a block", why, 8 + len(body)):
                    return
                read = self._stream.read
                continue
            self._offset += 8 + len(body)
            reader = self._readers.get(block_type)
            if reader is not None:
                packet = reader(body)
                if packet is not None:
                    yield packet

    def _is_inconsistent(self, block_type: bytes, length: int, body: bytes) -> bool:
        """Return True if a seemingly truncated packet block has a length that does not fit its packet."""
        if self._readers.get(block_type) != self._read_enhanced or len(body) < 20:
            return False
        captured = self._unpack_enhanced(body)[3]
        return not 0 <= length - 32 - captured <= _MOST_OPTIONS

    def _skip_damage(self, what: str, why: str, expected: int) -> bool:
        """Skip a damaged block, up to the block `expected` bytes further, or the next one found.

        Returns False, after setting `truncated`, if there is none.
        """
        source = self._stream
        if not isinstance(source, RereadableInput):
            self._stream = source = RereadableInput(source)
        source.put_back(self._seen)
        offset = self._offset
        if len(self.damages) < _MOST_DAMAGES:
            skipped = find_block(source, self._byte_order, expected, self._searchable)
            if skipped is not None:
                self._searchable -= skipped
                self._offset += skipped
                self.damages.append(f"damaged at byte {offset}: {what} {why}; {skipped} bytes were left out")
                return True
        self.truncated = _damaged(what, offset, why)
        return False

    def _begin_section(self) -> None:
        """Start a section (4.1) and its own numbering of interfaces. Raises HeaderError."""
        head = self._stream.read(8)
        self._seen = SECTION_HEADER + head
        byte_order = BYTE_ORDERS.get(head[4:])
        if byte_order is None:
            raise HeaderError
        (length,) = unpack(byte_order + "I", head[:4])
        if length < _LEAST_SECTION or length > _MAX_BLOCK:
            raise HeaderError
        # An unrounded length is taken as rounded up.
        rest = self._stream.read(length - 12 + -length % 4)
        self._seen += rest
        if len(rest) < length - 12 or rest[-4:] != head[:4]:
            raise HeaderError
        (major,) = unpack(byte_order + "H", rest[:2])
        if major != 1:
            raise HeaderError(f"of version {major}, and only version 1 is read")
        self._byte_order = byte_order
        self._offset += len(self._seen)
        self._interfaces.clear()
        self._unpack_length = Struct(byte_order + "I").unpack
        self._unpack_enhanced = Struct(byte_order + "5I").unpack_from
        # Appendix A, the obsolete Packet Block: a drop count shares a word with the interface.
        self._unpack_obsolete = Struct(byte_order + "H2x4I").unpack_from
        block_type = Struct(byte_order + "I").pack
        self._interface_type = block_type(1)
        self._readers: dict[bytes, Callable[[bytes], RawPacket | None]] = {
            self._interface_type: self._read_interface,
            block_type(2): self._read_obsolete,
            block_type(3): self._read_simple,
            block_type(6): self._read_enhanced,
        }

    def _read_interface(self, body: bytes) -> None:
        """Register an interface (4.2) with its if_tsresol, if_tsoffset and if_fcslen."""
        if len(self._interfaces) >= _MAX_INTERFACES:
            self.faults[TOO_MANY_INTERFACES] += 1
            return
        if len(body) < 12:
            self.faults[BROKEN_INTERFACE] += 1
            self._add_broken_interface()
            return
        linktype, snaplen = unpack(self._byte_order + "H2xI", body[:8])
        options = self._options(body[8:-4])
        per_second = _per_second(options.get(_TSRESOL, b""))
        seconds = options.get(_TSOFFSET, b"")
        common = math.gcd(_SECOND, per_second)
        offset_s = unpack(self._byte_order + "q", seconds)[0] if len(seconds) == 8 else 0
        multiply, divide, add = _SECOND // common, per_second // common, offset_s * _SECOND
        check_length = _CHECK_LENGTHS.get(options.get(_FCSLEN, b""), 0)
        self._interfaces.append((linktype, snaplen, check_length, multiply, divide, add))

    def _add_broken_interface(self) -> None:
        """Give an unreadable interface its number, as otherwise all later ones would shift."""
        if len(self._interfaces) < _MAX_INTERFACES:
            self._interfaces.append((_NO_LINKTYPE, 0, 0, 1, 1, 0))

    def _options(self, block: bytes) -> dict[int, bytes]:
        """Return the options of a block (3.5) by code, without those that exceed the block."""
        options = {}
        offset = 0
        while offset + 4 <= len(block):
            code, length = unpack(self._byte_order + "HH", block[offset : offset + 4])
            if code == _END_OF_OPTIONS:
                break
            offset += 4
            if offset + length <= len(block):
                options[code] = block[offset : offset + length]
            offset += length + -length % 4
        return options

    def _read_enhanced(self, body: bytes) -> RawPacket | None:
        if len(body) < 24:
            self.faults[BROKEN_PACKET] += 1
            return None
        return self._timed_packet(body, *self._unpack_enhanced(body))

    def _read_obsolete(self, body: bytes) -> RawPacket | None:
        if len(body) < 24:
            self.faults[BROKEN_PACKET] += 1
            return None
        return self._timed_packet(body, *self._unpack_obsolete(body))

    def _timed_packet(
        self, body: bytes, interface: int, high: int, low: int, captured: int, wirelen: int
    ) -> RawPacket | None:
        if captured > len(body) - 24:
            self.faults[TOO_LONG] += 1
            return None
        if interface >= len(self._interfaces):
            self.faults[UNDESCRIBED] += 1
            return None
        linktype, _, check_length, multiply, divide, add = self._interfaces[interface]
        if linktype == _NO_LINKTYPE:
            self.faults[UNDESCRIBED] += 1
            return None
        ts_ns = (high << 32 | low) * multiply // divide + add
        if not 0 <= ts_ns <= _MAX_NS:
            self.faults[IMPOSSIBLE_TIME] += 1
            ts_ns = self._last_ns
        self._last_ns = ts_ns
        data = body[20 : 20 + captured]
        if check_length:
            data, wirelen = _without_check_sequence(data, wirelen, check_length)
        return ts_ns, linktype, data, wirelen

    def _read_simple(self, body: bytes) -> RawPacket | None:
        """Read a Simple Packet Block (4.4) of the first interface; it gets the last packet's time."""
        if not self._interfaces or self._interfaces[0][0] == _NO_LINKTYPE:
            self.faults[UNDESCRIBED] += 1
            return None
        if len(body) < 8:
            self.faults[BROKEN_PACKET] += 1
            return None
        linktype, snaplen, check_length = self._interfaces[0][:3]
        (wirelen,) = self._unpack_length(body[:4])
        # No field says how much was captured: all of it, up to the snap length and to the end of the block.
        data = body[4 : 4 + min(wirelen, snaplen or wirelen, len(body) - 8)]
        if check_length:
            data, wirelen = _without_check_sequence(data, wirelen, check_length)
        return self._last_ns, linktype, data, wirelen


def _without_check_sequence(data: bytes, wirelen: int, check_length: int) -> tuple[bytes, int]:
    """Return a frame and its length without the frame check sequence at its end."""
    wirelen = max(max(wirelen, len(data)) - check_length, 0)
    return data[:wirelen], wirelen


_CHECK_LENGTHS = {b"\x04": 4, b"\x02": 2, b"\x10": 2, b"\x20": 4}
"""if_fcslen -> bytes of a frame check sequence: it is in bits, though the specification's example is 4."""


def _per_second(resolution: bytes) -> int:
    """Return the time units per second from an if_tsresol option; microseconds without it."""
    if len(resolution) != 1:
        return 1_000_000
    (value,) = resolution
    return int((2 if value & 0x80 else 10) ** (value & 0x7F))
