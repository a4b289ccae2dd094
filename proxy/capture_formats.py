"""The two capture file formats: records of pcap, blocks of pcapng, read in one pass from a stream.

Written here, though scapy, which receives packets live, could read files, too: it takes a tenth of a second
to load, a named tuple for each packet, and it is wrong in ways that matter. It cuts packets at 65,535 bytes,
asks for up to 4 GiB at once where a length field says so, numbers the interfaces of a second section on from
the first, drops if_tsoffset, reads no Simple Packet Block where the snap length is unlimited, and does not
tell an end from a break.

pcap: draft-ietf-opsawg-pcap. pcapng: draft-ietf-opsawg-pcapng; the clause numbers below are those.
"""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Callable, Iterator
from struct import Struct, unpack

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.proxy.packets import RawPacket

PCAP_MAGICS = {
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\x3c\x4d": (">", 1),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
}
"""The first four bytes of a pcap file -> its byte order, and how many nanoseconds are a unit of its times."""

SECTION_HEADER = b"\x0a\x0d\x0d\x0a"
"""The first four bytes of a pcapng file; they are the same in both byte orders."""

_PCAP_HEADER_LENGTH = 24
# libpcap's MAXIMUM_SNAPLEN and its limit for a pcapng block: a longer one is a damaged length field.
_MAX_CAPTURED = 262_144
_MAX_BLOCK = 16 << 20
_LEAST_SECTION = 28
# Zeros are read as packets of no bytes, at a time of 0; a small compressed file may stand for many.
_MOST_EMPTY = 100_000
_MAX_INTERFACES = 65_536
# No LINKTYPE_ has this number.
_NO_LINKTYPE = -1
_MAX_NS = (1 << 63) - 1
_SECOND = 1_000_000_000
_END_OF_OPTIONS, _TSRESOL, _TSOFFSET = 0, 9, 14


class HeaderError(KiebitzError):
    """The header of a capture file, or of a section in it, is broken or not all there."""


def _broken_off(what: str, offset: int, have: int, want: int) -> str:
    return f"the capture ends inside {what} at byte {offset}: {have} of its {want} bytes are there"


def _damaged(what: str, offset: int, why: str) -> str:
    return f"the capture is damaged at byte {offset}: {what} {why}; what follows cannot be read"


class PcapRecords:
    """The packets of a pcap file, of which a stream stands behind the magic. Raises HeaderError."""

    def __init__(self, stream: io.BufferedIOBase, magic: bytes) -> None:
        self.truncated: str | None = None
        self.faults: Counter[str] = Counter()
        self._stream = stream
        self._byte_order, self._unit = PCAP_MAGICS[magic]
        # Section 4: versions, two fields that nobody uses, snap length, link type.
        header = stream.read(_PCAP_HEADER_LENGTH - 4)
        if len(header) < _PCAP_HEADER_LENGTH - 4:
            raise HeaderError
        (linktype,) = unpack(self._byte_order + "16xI", header)
        # The upper half of the field says how long a frame check sequence is, if any.
        self._linktype = linktype & 0xFFFF

    def records(self) -> Iterator[RawPacket]:
        """Give each whole packet once; afterwards `truncated` says what is missing, if anything is."""
        read = self._stream.read
        unpack_header = Struct(self._byte_order + "4I").unpack
        unit = self._unit
        linktype = self._linktype
        offset = _PCAP_HEADER_LENGTH
        number = empty = 0
        while header := read(16):
            number += 1
            if len(header) < 16:
                self.truncated = _broken_off(f"the header of packet {number}", offset, len(header), 16)
                return
            seconds, fraction, captured, wirelen = unpack_header(header)
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
                self.truncated = _broken_off(f"packet {number}", offset, 16 + len(data), 16 + captured)
                return
            yield seconds * _SECOND + fraction * unit, linktype, data, wirelen
            offset += 16 + captured


class PcapNgRecords:
    """The packets of a pcapng file, of which a stream stands behind the first 4 bytes. Raises HeaderError."""

    def __init__(self, stream: io.BufferedIOBase) -> None:
        self.truncated: str | None = None
        self.faults: Counter[str] = Counter()
        self._stream = stream
        # For each interface of the section: linktype, snap length (0 is unlimited), and how to get
        # nanoseconds from its ticks: multiply, divide, add.
        self._clocks: list[tuple[int, int, int, int, int]] = []
        self._offset = 0
        self._last_ns = 0
        self._begin_section()

    def records(self) -> Iterator[RawPacket]:
        """Give each whole packet once; afterwards `truncated` says what is missing, if anything is."""
        read = self._stream.read
        while block_type := read(4):
            if block_type == SECTION_HEADER:
                try:
                    self._begin_section()
                except HeaderError:
                    self.truncated = _damaged("a section header", self._offset, "is broken or cut short")
                    return
                continue
            length_field = read(4)
            if len(length_field) < 4:
                have = len(block_type) + len(length_field)
                self.truncated = _broken_off("the header of a block", self._offset, have, 8)
                return
            (length,) = self._unpack_length(length_field)
            if length < 12 or length % 4 or length > _MAX_BLOCK:
                self.truncated = _damaged("a block", self._offset, f"claims a length of {length} bytes")
                return
            body = read(length - 8)
            if len(body) < length - 8:
                self.truncated = _broken_off("a block", self._offset, 8 + len(body), length)
                return
            if body[-4:] != length_field:
                self.truncated = _damaged("a block", self._offset, "does not repeat its length at its end")
                return
            self._offset += length
            reader = self._readers.get(block_type)
            if reader is not None:
                packet = reader(body)
                if packet is not None:
                    yield packet

    def _begin_section(self) -> None:
        """Start a section (4.1): interfaces are numbered anew. Raises HeaderError."""
        head = self._stream.read(8)
        byte_order = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}.get(head[4:])
        if byte_order is None:
            raise HeaderError
        (length,) = unpack(byte_order + "I", head[:4])
        if length < _LEAST_SECTION or length % 4 or length > _MAX_BLOCK:
            raise HeaderError
        rest = self._stream.read(length - 12)
        if len(rest) < length - 12 or rest[-4:] != head[:4]:
            raise HeaderError
        (major,) = unpack(byte_order + "H", rest[:2])
        if major != 1:
            raise HeaderError
        self._byte_order = byte_order
        self._offset += length
        self._clocks.clear()
        self._unpack_length = Struct(byte_order + "I").unpack
        self._unpack_enhanced = Struct(byte_order + "5I").unpack_from
        # Appendix A, the obsolete Packet Block: a drop count shares a word with the interface.
        self._unpack_obsolete = Struct(byte_order + "H2x4I").unpack_from
        block_type = Struct(byte_order + "I").pack
        self._readers: dict[bytes, Callable[[bytes], RawPacket | None]] = {
            block_type(1): self._read_interface,
            block_type(2): self._read_obsolete,
            block_type(3): self._read_simple,
            block_type(6): self._read_enhanced,
        }

    def _read_interface(self, body: bytes) -> None:
        """Note an interface (4.2) with its if_tsresol and if_tsoffset."""
        if len(self._clocks) >= _MAX_INTERFACES:
            self.faults["interface beyond the limit"] += 1
            return
        if len(body) < 12:
            # It still takes its number, or all later interfaces would shift.
            self.faults["broken interface description"] += 1
            self._clocks.append((_NO_LINKTYPE, 0, 1, 1, 0))
            return
        linktype, snaplen = unpack(self._byte_order + "H2xI", body[:8])
        options = self._options(body[8:-4])
        per_second = _per_second(options.get(_TSRESOL, b""))
        seconds = options.get(_TSOFFSET, b"")
        common = math.gcd(_SECOND, per_second)
        offset_s = unpack(self._byte_order + "q", seconds)[0] if len(seconds) == 8 else 0
        self._clocks.append((linktype, snaplen, _SECOND // common, per_second // common, offset_s * _SECOND))

    def _options(self, block: bytes) -> dict[int, bytes]:
        """The options of a block (3.5), by their codes; one that is longer than the block is left out."""
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
            self.faults["broken packet block"] += 1
            return None
        return self._timed_packet(body, *self._unpack_enhanced(body))

    def _read_obsolete(self, body: bytes) -> RawPacket | None:
        if len(body) < 24:
            self.faults["broken packet block"] += 1
            return None
        return self._timed_packet(body, *self._unpack_obsolete(body))

    def _timed_packet(
        self, body: bytes, interface: int, high: int, low: int, captured: int, wirelen: int
    ) -> RawPacket | None:
        if captured > len(body) - 24:
            self.faults["packet longer than its block"] += 1
            return None
        if interface >= len(self._clocks):
            self.faults["packet of an undescribed interface"] += 1
            return None
        linktype, _, multiply, divide, add = self._clocks[interface]
        ts_ns = (high << 32 | low) * multiply // divide + add
        if not 0 <= ts_ns <= _MAX_NS:
            self.faults["impossible time"] += 1
            ts_ns = self._last_ns
        self._last_ns = ts_ns
        return ts_ns, linktype, body[20 : 20 + captured], wirelen

    def _read_simple(self, body: bytes) -> RawPacket | None:
        """A Simple Packet Block (4.4): of the first interface, without a time: that of the last packet."""
        if not self._clocks:
            self.faults["packet of an undescribed interface"] += 1
            return None
        if len(body) < 8:
            self.faults["broken packet block"] += 1
            return None
        linktype, snaplen = self._clocks[0][:2]
        (wirelen,) = self._unpack_length(body[:4])
        captured = min(wirelen, snaplen or wirelen)
        if captured > len(body) - 8:
            self.faults["packet longer than its block"] += 1
            return None
        return self._last_ns, linktype, body[4 : 4 + captured], wirelen


def _per_second(resolution: bytes) -> int:
    """What if_tsresol says: how many units of time are a second; without it, microseconds are meant."""
    if len(resolution) != 1:
        return 1_000_000
    (value,) = resolution
    return int((2 if value & 0x80 else 10) ** (value & 0x7F))
