"""Reassembly of IP fragments in any order, bounded in memory and in time.

RFC 791, 3.2 (IPv4) and RFC 8200, 4.5 (IPv6). Overlapping bytes must agree; a packet with contradicting
fragments is dropped, as its receiver's interpretation is unknown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from kiebitz.proxy.capture.duplicate_packets import DUPLICATE_NS
from kiebitz.proxy.capture.interval_buffer import PIECE_COST, IntervalBuffer

TIMEOUT_NS = 30_000_000_000
MAX_PACKETS = 1024
MAX_BYTES = 8 << 20
MAX_REMEMBERED = 1 << 20
"""Maximum number of bytes of complete packets to recognise copies of their fragments."""

_MAX_LENGTH = 65_535


class _Packet:
    """The fragments of one packet received so far."""

    __slots__ = ("first_header", "first_ns", "is_dropped", "length", "pieces")

    def __init__(self, first_ns: int) -> None:
        self.first_ns = first_ns
        self.pieces = IntervalBuffer()
        self.length: int | None = None
        self.first_header = 0
        self.is_dropped = False

    @property
    def cost(self) -> int:
        return PIECE_COST + self.pieces.cost

    def joined(self) -> bytes:
        """Return the bytes from the start to the first one that the snap length cut off."""
        whole = []
        pieces = self.pieces
        for start, end, data in zip(pieces.starts, pieces.ends, pieces.data, strict=True):
            whole.append(data)
            if len(data) < end - start:
                break
        return b"".join(whole)


class FragmentReassembler:
    """Packets in reassembly; `malformed` counts dropped ones by reason.

    Bounded: beyond MAX_PACKETS packets or about MAX_BYTES bytes the oldest is dropped, and so is a packet
    that is incomplete TIMEOUT_NS after its first fragment, in capture time. A fragment that agrees with a
    packet completed right before was captured twice, and is ignored. Any other begins a new packet, even with
    the same key: some senders give all packets the same identification.
    """

    def __init__(self, malformed: Counter[str]) -> None:
        self._malformed = malformed
        self._packets: dict[Hashable, _Packet] = {}
        # The latest complete packets: time of completion, bytes up to the first hole, length.
        self._complete: dict[Hashable, tuple[int, bytes, int]] = {}
        self._remembered = 0
        self._cost = 0

    def __len__(self) -> int:
        return len(self._packets)

    def add(
        self, key: Hashable, ts_ns: int, start: int, more: bool, length: int, data: bytes, header: int
    ) -> tuple[bytes, int, int] | None:
        """Add a fragment.

        Args:
            key: The fragment's packet.
            ts_ns: Time of capture.
            start: Offset of the fragment in its packet.
            more: True unless it is the last fragment.
            length: Length of the fragment in bytes.
            data: The captured bytes.
            header: Protocol number that the fragment states.

        Returns:
            None, or once the packet is complete: its bytes up to the first one not captured, its length, and
            the protocol number of its first fragment.
        """
        end = start + length
        if length == 0 or end > _MAX_LENGTH or (more and length % 8):
            self._malformed["impossible fragment"] += 1
            return None
        self._drop_old(ts_ns)
        packet = self._packets.get(key)
        if self._is_copy(key, ts_ns, start, end, data):
            return None
        if packet is None:
            packet = self._packets[key] = _Packet(ts_ns)
            self._cost += packet.cost
        elif packet.is_dropped:
            return None
        pieces = packet.pieces
        self._cost -= packet.cost
        agrees = not pieces.add(start, end, data)
        self._cost += packet.cost
        if not more:
            agrees = agrees and packet.length in (None, end)
            packet.length = end
        if not agrees or (packet.length is not None and pieces.ends[-1] > packet.length):
            # Kept without its bytes until it times out, so that later fragments do not start a new packet.
            self._malformed["contradicting fragments"] += 1
            self._cost -= packet.cost
            dead = self._packets[key] = _Packet(packet.first_ns)
            dead.is_dropped = True
            self._cost += dead.cost
            return None
        if start == 0:
            packet.first_header = header
        if pieces.held == packet.length:
            del self._packets[key]
            self._cost -= packet.cost
            whole = packet.joined()
            self._remember(key, ts_ns, whole, pieces.held)
            return whole, pieces.held, packet.first_header
        return None

    def _is_copy(self, key: Hashable, ts_ns: int, start: int, end: int, data: bytes) -> bool:
        """Return True if a fragment agrees with the packet that was complete right before."""
        complete_ns, whole, length = self._complete.get(key, (0, b"", 0))
        return (
            end <= length
            and abs(ts_ns - complete_ns) < DUPLICATE_NS
            and data.startswith(whole[start : start + len(data)])
        )

    def _remember(self, key: Hashable, ts_ns: int, whole: bytes, length: int) -> None:
        """Remember a complete packet, and forget the oldest ones."""
        known = self._complete
        if key in known:
            self._remembered -= len(known.pop(key)[1])
        known[key] = ts_ns, whole, length
        self._remembered += len(whole)
        while len(known) > MAX_PACKETS or self._remembered > MAX_REMEMBERED:
            self._remembered -= len(known.pop(next(iter(known)))[1])

    def close(self) -> None:
        """Drop and count all incomplete packets."""
        while self._packets:
            self._drop_oldest()

    def _drop_old(self, ts_ns: int) -> None:
        """Make room. Packets are in order of their first fragment; merged captures may jump in time."""
        while self._packets:
            oldest = next(iter(self._packets.values()))
            full = len(self._packets) >= MAX_PACKETS or self._cost >= MAX_BYTES
            if not full and abs(ts_ns - oldest.first_ns) <= TIMEOUT_NS:
                return
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        packet = self._packets.pop(next(iter(self._packets)))
        self._cost -= packet.cost
        if not packet.is_dropped:
            self._malformed["incomplete fragments"] += 1
