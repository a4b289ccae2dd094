"""The two capture file formats: records of pcap, blocks of pcapng, as scapy's raw readers give them.

scapy reads the headers, the options and the interface descriptions. Its way through the packets is
overridden here, because it is slow (a named tuple for each) and because it is wrong in ways that matter:
it cuts packets at 65,535 bytes, asks for up to 4 GiB at once where a length field says so, numbers the
interfaces of a second section on from the first, drops if_tsoffset, reads no Simple Packet Block where the
snap length is unlimited, ends the whole file at one odd option, and does not tell an end from a break.

pcap: draft-ietf-opsawg-pcap. pcapng: draft-ietf-opsawg-pcapng; the clause numbers below are those.
"""

from __future__ import annotations

import io
import logging
import math
from collections import Counter
from collections.abc import Callable, Iterator
from struct import Struct, unpack

from scapy.error import Scapy_Exception
from scapy.utils import RawPcapNgReader, RawPcapReader

from kiebitz.proxy.packets import RawPacket

# What scapy would print to standard error is said in `truncated` and `faults`.
logging.getLogger("scapy").setLevel(logging.CRITICAL)

PCAP_MAGICS = frozenset({b"\xa1\xb2\xc3\xd4", b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x4d\x3c\xb2\xa1"})
SECTION_HEADER = b"\x0a\x0d\x0d\x0a"

_PCAP_HEADER_LENGTH = 24
# libpcap's MAXIMUM_SNAPLEN and its limit for a pcapng block: a longer one is a damaged length field.
_MAX_CAPTURED = 262_144
_MAX_BLOCK = 16 << 20
# Zeros are read as packets of no bytes, at a time of 0; a small compressed file may stand for many.
_MOST_EMPTY = 100_000
_MAX_INTERFACES = 65_536
# No LINKTYPE_ has this number.
_NO_LINKTYPE = -1
_MAX_NS = (1 << 63) - 1
_SECOND = 1_000_000_000


def _broken_off(what: str, offset: int, have: int, want: int) -> str:
    return f"the capture ends inside {what} at byte {offset}: {have} of its {want} bytes are there"


def _damaged(what: str, offset: int, why: str) -> str:
    return f"the capture is damaged at byte {offset}: {what} {why}; what follows cannot be read"


class PcapRecords(RawPcapReader):  # type: ignore[misc]  # scapy has no types, so its class is Any
    """The packets of a pcap file. `f` is a buffered stream that stands behind the magic."""

    f: io.BufferedIOBase
    truncated: str | None = None

    def __init__(self, name: str, f: io.BufferedIOBase, magic: bytes) -> None:
        super().__init__(name, f, magic)
        self.faults: Counter[str] = Counter()

    def records(self) -> Iterator[RawPacket]:
        """Give each whole packet once; afterwards `truncated` says what is missing, if anything is."""
        read = self.f.read
        unpack_header = Struct(self.endian + "4I").unpack
        unit = 1 if self.nano else 1000
        # Section 4: the upper half of the field says how long a frame check sequence is, if any.
        linktype = self.linktype & 0xFFFF
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


class PcapNgRecords(RawPcapNgReader):  # type: ignore[misc]  # scapy has no types, so its class is Any
    """The packets of a pcapng file. `f` is a buffered stream that stands behind the magic."""

    f: io.BufferedIOBase
    truncated: str | None = None

    def __init__(self, name: str, f: io.BufferedIOBase, magic: bytes) -> None:
        # For each interface of the section: linktype, snap length (0 is unlimited), and how to get
        # nanoseconds from its ticks: multiply, divide, add.
        self._clocks: list[tuple[int, int, int, int, int]] = []
        self._offset = 0
        self._last_ns = 0
        self.faults: Counter[str] = Counter()
        super().__init__(name, f, magic)

    def records(self) -> Iterator[RawPacket]:
        """Give each whole packet once; afterwards `truncated` says what is missing, if anything is."""
        read = self.f.read
        while block_type := read(4):
            if block_type == SECTION_HEADER:
                try:
                    self._read_block_shb()
                except (EOFError, Scapy_Exception):
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

    def _read_block_shb(self) -> None:
        """Start a section (4.1): interfaces are numbered anew. Raises EOFError or Scapy_Exception."""
        head = self.f.read(8)
        byte_order = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}.get(head[4:])
        if byte_order is None:
            raise EOFError
        (length,) = unpack(byte_order + "I", head[:4])
        if length > _MAX_BLOCK:
            raise EOFError
        # scapy reads the block from the file field by field; it gets the block alone, bounded.
        stream = self.f
        self.f = io.BytesIO(head + stream.read(max(length - 12, 0)))
        try:
            super()._read_block_shb()
        finally:
            self.f = stream
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
        """Note an interface (4.2) with its if_tsresol (option 9) and if_tsoffset (option 14)."""
        if len(self._clocks) >= _MAX_INTERFACES:
            self.faults["interface beyond the limit"] += 1
            return
        block = body[:-4]
        try:
            self._read_block_idb(block, 0)
            seconds = self._read_options(block[8:]).get(14, b"")
        except EOFError:
            # It still takes its number, or all later interfaces would shift.
            self.faults["broken interface description"] += 1
            self._clocks.append((_NO_LINKTYPE, 0, 1, 1, 0))
            return
        linktype, snaplen, options = self.interfaces.pop()
        per_second = options["tsresol"]
        common = math.gcd(_SECOND, per_second)
        offset_s = unpack(self.endian + "q", seconds)[0] if len(seconds) == 8 else 0
        self._clocks.append((linktype, snaplen, _SECOND // common, per_second // common, offset_s * _SECOND))

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
