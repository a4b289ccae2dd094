"""Reader of pcapng files (draft-ietf-opsawg-pcapng), in one pass from a stream.

The clause numbers below refer to that draft. Damaged blocks are skipped (`find_block`).
"""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from struct import Struct, unpack
from typing import Any

from kiebitz.proxy.capture.formats import (
    BROKEN_INTERFACE,
    BROKEN_PACKET,
    BYTE_ORDERS,
    IMPOSSIBLE_TIME,
    OVERLONG_PACKET,
    SECOND,
    SECTION_HEADER,
    TOO_MANY_INTERFACES,
    UNDESCRIBED_INTERFACE,
    ByteSource,
    CaptureDefect,
    HeaderError,
    RereadableInput,
    damage_text,
    find_block,
    truncation_text,
    without_check_sequence,
)
from kiebitz.proxy.capture.packets import RawPacket

_MAX_BLOCK = 16 << 20
"""libpcap's limit: a longer block is a damaged length field."""

_MIN_BLOCK, _MIN_ENHANCED, _MIN_SECTION = 12, 32, 28
_MAX_DAMAGES = 100
"""Maximum number of damaged blocks before the rest of a file is left out."""

MAX_SKIPPED = 64 << 20
"""Maximum total of bytes in damaged places before the rest is left out; compressed files may be huge."""

_MAX_INTERFACES = 65_536
_MAX_OPTIONS = 1 << 18
"""Options of a packet block: a comment or two, each of 65,535 bytes at most."""

_NO_LINKTYPE = -1
_MAX_NS = (1 << 63) - 1
_END_OF_OPTIONS, _TSRESOL, _FCSLEN, _TSOFFSET = 0, 9, 13, 14
_IFDROP, _OSDROP = 5, 7
"""Options of statistics: packets dropped for lack of resources by the interface, and by the system."""

_CHECK_LENGTHS = {b"\x04": 4, b"\x02": 2, b"\x10": 2, b"\x20": 4}
"""if_fcslen -> bytes of a frame check sequence: it is in bits, though the specification's example is 4."""


class PcapNgRecords:
    """The packets of a pcapng file from a stream positioned after the first 4 bytes. Raises HeaderError."""

    def __init__(self, stream: ByteSource) -> None:
        self.truncated: str | None = None
        self.damages: list[str] = []
        self.faults: Counter[CaptureDefect] = Counter()
        self._dropped_before = 0
        # The latest counts of the section's interfaces: each includes the earlier ones.
        self._drops: dict[int, int] = {}
        self._stream = stream
        # For each interface of the section: linktype, snap length (0 is unlimited), length of the check
        # sequence, and how to get nanoseconds from its ticks: multiply, divide, add.
        self._interfaces: list[tuple[int, int, int, int, int, int]] = []
        self._offset = 0
        self._last_ns = 0
        self._searchable = MAX_SKIPPED
        # Bytes of the current block, to search in them if it turns out to be damaged.
        self._seen = b""
        self._begin_section()

    def records(self) -> Iterator[RawPacket]:
        """Yield each whole packet once; afterwards `truncated` says what is missing, if anything is.

        `damages` has a clause for each damaged place in between.
        """
        read = self._stream.read
        while True:
            yield from self._buffered_packets()
            block_type = read(4)
            if not block_type:
                return
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
                self.truncated = truncation_text("the header of a block", self._offset, have, 8)
                return
            (length,) = self._unpack_length(length_field)
            if length < _MIN_BLOCK or length > _MAX_BLOCK:
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
                    self.truncated = truncation_text("a block", self._offset, 8 + len(body), length)
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

    @property
    def dropped(self) -> int:
        """Number of packets that the capturing machine has dropped, as far as it has counted them."""
        return self._dropped_before + sum(self._drops.values())

    def _buffered_packets(self) -> list[RawPacket]:
        """Read the undamaged blocks at the start of the stream's buffer, up to a section header.

        Reading each block from the stream, as `records` does, takes 1.6 times as long. Only the case of its
        own for the commonest block makes the difference.
        """
        if not isinstance(self._stream, io.BufferedReader):
            return []
        data = self._stream.peek()
        packets: list[RawPacket] = []
        unpack_block, enhanced = self._unpack_block, self._enhanced_type
        position = 0
        last = len(data) - _MIN_ENHANCED
        while position <= last:
            block_type, length, interface, high, low, captured, wirelen = unpack_block(data, position)
            end = position + length
            if length < _MIN_BLOCK or length & 3 or data[end - 4 : end] != data[position + 4 : position + 8]:
                break
            if block_type == enhanced and length >= _MIN_ENHANCED:
                room = length - _MIN_ENHANCED
                packet = self._timed_packet(
                    data, position + 28, room, interface, high, low, captured, wirelen
                )
            elif block_type == SECTION_HEADER:
                break
            else:
                reader = self._readers.get(block_type)
                packet = reader(data[position + 8 : end]) if reader is not None else None
            if packet is not None:
                packets.append(packet)
            position = end
        self._stream.read(position)
        self._offset += position
        return packets

    def _is_inconsistent(self, block_type: bytes, length: int, body: bytes) -> bool:
        """Return True if a seemingly truncated packet block has a length that does not fit its packet."""
        if block_type != self._enhanced_type or len(body) < 20:
            return False
        captured = self._unpack_enhanced(body)[3]
        return not 0 <= length - 32 - captured <= _MAX_OPTIONS

    def _skip_damage(self, what: str, why: str, expected: int) -> bool:
        """Skip a damaged block, up to the block `expected` bytes further, or the next one found.

        Returns False, after setting `truncated`, if there is none.
        """
        source = self._stream
        if not isinstance(source, RereadableInput):
            self._stream = source = RereadableInput(source)
        source.put_back(self._seen)
        offset = self._offset
        if len(self.damages) < _MAX_DAMAGES:
            skipped = find_block(source, self._byte_order, expected, self._searchable)
            if skipped is not None:
                self._searchable -= skipped
                self._offset += skipped
                self.damages.append(f"damaged at byte {offset}: {what} {why}; {skipped} bytes were left out")
                return True
        self.truncated = damage_text(what, offset, why)
        return False

    def _begin_section(self) -> None:
        """Start a section (4.1) and its own numbering of interfaces. Raises HeaderError."""
        head = self._stream.read(8)
        self._seen = SECTION_HEADER + head
        byte_order = BYTE_ORDERS.get(head[4:])
        if byte_order is None:
            raise HeaderError
        (length,) = unpack(byte_order + "I", head[:4])
        if length < _MIN_SECTION or length > _MAX_BLOCK:
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
        self._dropped_before = self.dropped
        self._drops.clear()
        self._interfaces.clear()
        self._unpack_length = Struct(byte_order + "I").unpack
        self._unpack_enhanced = Struct(byte_order + "5I").unpack_from
        self._unpack_block = Struct(byte_order + "4s6I").unpack_from
        # Appendix A, the obsolete Packet Block: a drop count shares a word with the interface.
        unpack_obsolete = Struct(byte_order + "H2x4I").unpack_from
        block_type = Struct(byte_order + "I").pack
        self._interface_type = block_type(1)
        self._enhanced_type = block_type(6)
        self._readers: dict[bytes, Callable[[bytes], RawPacket | None]] = {
            self._interface_type: self._read_interface,
            block_type(2): partial(self._read_packet, unpack_obsolete),
            block_type(3): self._read_simple,
            block_type(5): self._read_statistics,
            self._enhanced_type: partial(self._read_packet, self._unpack_enhanced),
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
        common = math.gcd(SECOND, per_second)
        offset_s = unpack(self._byte_order + "q", seconds)[0] if len(seconds) == 8 else 0
        multiply, divide, add = SECOND // common, per_second // common, offset_s * SECOND
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

    def _read_statistics(self, body: bytes) -> None:
        """Read the number of dropped packets of an interface (4.6): isb_ifdrop and isb_osdrop."""
        if len(body) < 16:
            return
        (interface,) = self._unpack_length(body[:4])
        if interface >= len(self._interfaces):
            return
        options = self._options(body[12:-4])
        found = [options[code] for code in (_IFDROP, _OSDROP) if len(options.get(code, b"")) == 8]
        if found:
            self._drops[interface] = sum(unpack(self._byte_order + "Q", count)[0] for count in found)

    def _read_packet(
        self, unpack_header: Callable[[bytes], tuple[Any, ...]], body: bytes
    ) -> RawPacket | None:
        if len(body) < 24:
            self.faults[BROKEN_PACKET] += 1
            return None
        return self._timed_packet(body, 20, len(body) - 24, *unpack_header(body))

    def _timed_packet(
        self,
        block: bytes,
        start: int,
        room: int,
        interface: int,
        high: int,
        low: int,
        captured: int,
        wirelen: int,
    ) -> RawPacket | None:
        """Return the packet of a block, whose bytes begin at `start`; at most `room` bytes are there."""
        if captured > room:
            self.faults[OVERLONG_PACKET] += 1
            return None
        if interface >= len(self._interfaces):
            self.faults[UNDESCRIBED_INTERFACE] += 1
            return None
        linktype, _, check_length, multiply, divide, add = self._interfaces[interface]
        if linktype == _NO_LINKTYPE:
            self.faults[UNDESCRIBED_INTERFACE] += 1
            return None
        ts_ns = (high << 32 | low) * multiply // divide + add
        if not 0 <= ts_ns <= _MAX_NS:
            self.faults[IMPOSSIBLE_TIME] += 1
            ts_ns = self._last_ns
        self._last_ns = ts_ns
        data = block[start : start + captured]
        if check_length:
            data, wirelen = without_check_sequence(data, wirelen, check_length)
        return ts_ns, linktype, data, wirelen

    def _read_simple(self, body: bytes) -> RawPacket | None:
        """Read a Simple Packet Block (4.4) of the first interface; it gets the last packet's time."""
        if not self._interfaces or self._interfaces[0][0] == _NO_LINKTYPE:
            self.faults[UNDESCRIBED_INTERFACE] += 1
            return None
        if len(body) < 8:
            self.faults[BROKEN_PACKET] += 1
            return None
        linktype, snaplen, check_length = self._interfaces[0][:3]
        (wirelen,) = self._unpack_length(body[:4])
        # No field says how much was captured: all of it, up to the snap length and to the end of the block.
        data = body[4 : 4 + min(wirelen, snaplen or wirelen, len(body) - 8)]
        if check_length:
            data, wirelen = without_check_sequence(data, wirelen, check_length)
        return self._last_ns, linktype, data, wirelen


def _per_second(resolution: bytes) -> int:
    """Return the time units per second from an if_tsresol option; microseconds without it."""
    if len(resolution) != 1:
        return 1_000_000
    (value,) = resolution
    return int((2 if value & 0x80 else 10) ** (value & 0x7F))
