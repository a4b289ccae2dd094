"""Fragments of IP packets put together again, in any order, bounded in memory and in time.

RFC 791, 3.2 (IPv4) and RFC 8200, 4.5 (IPv6). Where fragments overlap, the bytes must agree; a packet whose
overlapping fragments contradict each other is given up, as nobody can say what its receiver made of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable

TIMEOUT_NS = 30_000_000_000
MAX_PACKETS = 1024
MAX_BYTES = 8 << 20
_MAX_LENGTH = 65_535
# What keeping a piece costs beside its bytes, about.
_PIECE_COST = 128


class _Pieces:
    """What has come of one packet: pieces that do not overlap, in order."""

    __slots__ = ("cost", "data", "ends", "first_header", "first_ns", "given_up", "held", "length", "starts")

    def __init__(self, first_ns: int) -> None:
        self.first_ns = first_ns
        self.starts: list[int] = []
        self.ends: list[int] = []
        # The bytes of each piece; fewer than `end - start` where the snap length cut a fragment.
        self.data: list[bytes] = []
        self.held = 0
        self.cost = _PIECE_COST
        self.length: int | None = None
        self.first_header = 0
        self.given_up = False

    def add(self, start: int, end: int, data: bytes) -> bool:
        """Add what is new in a fragment; False if what is not new contradicts what is here."""
        index = max(bisect_left(self.starts, start) - 1, 0)
        position = start
        while position < end:
            if index < len(self.starts) and self.ends[index] <= position:
                index += 1
                continue
            here = self.starts[index] if index < len(self.starts) else end
            if position < here:
                upto = min(here, end)
                self.starts.insert(index, position)
                self.ends.insert(index, upto)
                self.data.insert(index, data[position - start : upto - start])
                self.held += upto - position
                self.cost += upto - position + _PIECE_COST
                position = upto
            else:
                upto = min(self.ends[index], end)
                old = self.data[index][position - here : upto - here]
                new = data[position - start : upto - start]
                common = min(len(old), len(new))
                if old[:common] != new[:common]:
                    return False
                position = upto
            index += 1
        return True

    def joined(self) -> bytes:
        """The bytes from the start to the first that the snap length cut off."""
        whole = []
        for start, end, data in zip(self.starts, self.ends, self.data, strict=True):
            whole.append(data)
            if len(data) < end - start:
                break
        return b"".join(whole)


class Reassembly:
    """Packets in assembly. `malformed` counts what was given up, by reason.

    Bounded: at most MAX_PACKETS packets and about MAX_BYTES bytes, else the oldest is given up; a packet
    that is not complete TIMEOUT_NS after its first fragment, in capture time, is given up.
    """

    def __init__(self, malformed: Counter[str]) -> None:
        self._malformed = malformed
        self._packets: dict[Hashable, _Pieces] = {}
        self._cost = 0

    def __len__(self) -> int:
        return len(self._packets)

    def add(
        self, key: Hashable, ts_ns: int, start: int, more: bool, length: int, data: bytes, header: int
    ) -> tuple[bytes, int, int] | None:
        """Add the fragment at byte `start` of the packet `key`; `more` if it is not the last one.

        It had `length` bytes, of which `data` were captured. `header` is the protocol number it states.
        Gives, once the packet is complete: its bytes as far as they were captured without a hole, its
        length, and the protocol number of its first fragment. Else None.
        """
        end = start + length
        if length == 0 or end > _MAX_LENGTH or (more and length % 8):
            self._malformed["impossible fragment"] += 1
            return None
        self._drop_old(ts_ns)
        pieces = self._packets.get(key)
        if pieces is None:
            pieces = self._packets[key] = _Pieces(ts_ns)
            self._cost += pieces.cost
        elif pieces.given_up:
            return None
        self._cost -= pieces.cost
        agrees = pieces.add(start, end, data)
        self._cost += pieces.cost
        if not more:
            agrees = agrees and pieces.length in (None, end)
            pieces.length = end
        if not agrees or (pieces.length is not None and pieces.ends[-1] > pieces.length):
            # Kept without its bytes until it times out, so that later fragments do not start it anew.
            self._malformed["contradicting fragments"] += 1
            self._cost -= pieces.cost
            dead = self._packets[key] = _Pieces(pieces.first_ns)
            dead.given_up = True
            self._cost += dead.cost
            return None
        if start == 0:
            pieces.first_header = header
        if pieces.held == pieces.length:
            del self._packets[key]
            self._cost -= pieces.cost
            return pieces.joined(), pieces.held, pieces.first_header
        return None

    def close(self) -> None:
        """Give up all that is still incomplete."""
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
        pieces = self._packets.pop(next(iter(self._packets)))
        self._cost -= pieces.cost
        if not pieces.given_up:
            self._malformed["incomplete fragments"] += 1
