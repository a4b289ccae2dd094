"""Reassembly of one direction of a TCP connection: from sequence numbers to ordered bytes and gaps.

Segments arrive late, twice, overlapping or never (RFC 9293, 3.4 and 3.10.7.4). Each byte is delivered once,
in order. A hole that will not be filled any more becomes a gap; the caller decides when.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from itertools import islice

from kiebitz.dissectors.model import Chunk, Direction, Fault, Gap, Item, Stream
from kiebitz.proxy.capture.interval_buffer import PIECE_COST, IntervalBuffer, OverlapConflict

MAX_AHEAD_BYTES = 4 << 20
MAX_AHEAD_PIECES = 4096
"""Maximum number of pieces behind a hole of one direction; this exceeds nearly all receive windows."""

MAX_RECENT_BYTES = 8 << 20
"""Maximum number of delivered bytes that are remembered, over all directions."""

# With a piece of a few bytes, an entry here may keep all data of a finished direction alive.
_RECENT_COST = 8 * PIECE_COST

_MODULUS = 1 << 32
_HALF = 1 << 31


def unwrap(number: int, near: int) -> int:
    """Return the position with this sequence number (modulo 2**32) that is nearest to `near`."""
    return near + (number - near + _HALF) % _MODULUS - _HALF


class RecentBytes:
    """The bytes delivered last, over all directions, for comparison with retransmissions."""

    def __init__(self) -> None:
        self._order: deque[deque[tuple[int, bytes]]] = deque()
        self._cost = 0

    def add(self, delivered: deque[tuple[int, bytes]], position: int, data: bytes) -> None:
        """Remember bytes delivered in a direction; `delivered` is that direction's own list."""
        delivered.append((position, data))
        self._order.append(delivered)
        self._cost += len(data) + _RECENT_COST
        while self._cost > MAX_RECENT_BYTES:
            _, oldest = self._order.popleft().popleft()
            self._cost -= len(oldest) + _RECENT_COST


class Reassembler:
    """The reassembly of one direction of `stream`; results are appended to a list of items.

    Positions are sequence numbers that do not wrap around.

    Attributes:
        has_begun: True if `start` is known.
        start: Position of the first byte, which has offset 0.
        next: First position that has not been delivered yet.
        acked: Position up to which the receiver has acknowledged, None before its first acknowledgment.
        fin: Position at which the sender has ended, None before its FIN.
        waived: Missing bytes before this position are no longer waited for.
    """

    __slots__ = (
        "_delivered",
        "_in_order",
        "_pieces",
        "_recent",
        "acked",
        "direction",
        "fin",
        "has_begun",
        "next",
        "start",
        "stream",
        "waived",
    )

    def __init__(self, stream: Stream, direction: Direction, recent: RecentBytes) -> None:
        self.stream = stream
        self.direction = direction
        self.has_begun = False
        self.start = 0
        self.next = 0
        self.acked: int | None = None
        self.fin: int | None = None
        self.waived = -1
        # True if nothing waits and nothing has ended: the next bytes can be delivered immediately.
        self._in_order = False
        self._pieces: IntervalBuffer | None = None
        self._delivered: deque[tuple[int, bytes]] | None = None
        self._recent = recent

    def begin(self, seq: int) -> None:
        """Set the sequence number that the first byte of the direction has, or would have."""
        self.start = self.next = seq if self.acked is None else unwrap(seq, self.acked)
        self.has_begun = True
        # Waiting pieces were numbered for another beginning.
        self._pieces = None
        self._in_order = self.fin is None

    def take_next(self, seq: int, data: bytes, ts_ns: int, items: list[Item]) -> bool:
        """Deliver the bytes immediately if they are the next ones; otherwise return False, for `add`."""
        position = self.next
        if not self._in_order or seq != position & 0xFFFFFFFF:
            return False
        items.append(Chunk(self.stream, self.direction, ts_ns, position - self.start, data))
        self.next = position + len(data)
        if self._delivered is None:
            self._delivered = deque()
        self._recent.add(self._delivered, position, data)
        return True

    def add(self, seq: int, data: bytes, missing: int, ts_ns: int, items: list[Item]) -> None:
        """Process any segment with bytes, of which the capture has cut off the last `missing` ones.

        If the beginning of the direction is unknown, it begins here, with a gap of unknown length.
        """
        length = len(data) + missing
        if not self.has_begun:
            if length == 1 and self.acked is not None and (seq + 1 - self.acked) % _MODULUS == 0:
                return
            self.begin(seq)
            items.append(Gap(self.stream, self.direction, ts_ns, 0, None))
        position = unwrap(seq, self.next)
        end = position + length
        if self.fin is not None and end > self.fin:
            end = self.fin
            data = data[: max(end - position, 0)]
        if length == 1 and self._is_keep_alive(position):
            return
        if position < self.next:
            self._compare(position, data, ts_ns, items)
            data = data[self.next - position :]
            position = self.next
        if end <= position:
            return
        if self._pieces is None:
            self._pieces = IntervalBuffer()
        self._report_conflicts(self._pieces.add(position, end, data), ts_ns, items)
        self._deliver(ts_ns, items)

    def is_missing_before(self, number: int) -> bool:
        """Return True if bytes before this sequence number were not seen and are still waited for.

        The direction must have begun.
        """
        return unwrap(number, self.next) > max(self._seen_end, self.waived)

    def is_unseen(self, number: int) -> bool:
        """Return True if bytes before this sequence number were not seen. The direction must have begun."""
        return unwrap(number, self.next) > self._seen_end

    @property
    def _seen_end(self) -> int:
        # A FIN counts as one byte (RFC 9293, 3.4).
        return self.sent_end + (self.fin is not None)

    def waive(self, number: int) -> None:
        """Stop waiting for missing bytes before this sequence number."""
        self.waived = max(self.waived, unwrap(number, self.next) if self.has_begun else 0)

    def acknowledge(self, ack: int) -> bool:
        """Process an acknowledgment up to `ack`. Return True if it covers the first hole."""
        acked = self.acked
        if acked is None:
            self.acked = unwrap(ack, self.next) if self.has_begun else ack
        else:
            advance = (ack - acked) % _MODULUS
            if advance == 0 or advance >= _HALF:
                return False
            self.acked = acked + advance
        return not self._in_order and self.hole_is_acked

    def end_at(self, seq: int) -> None:
        """Process a FIN: no bytes follow from this sequence number on; of several FINs the first counts."""
        if not self.has_begun:
            self.begin(seq)
        position = max(unwrap(seq, self.next), self.next)
        self.fin = position if self.fin is None else min(position, self.fin)
        self._in_order = False

    @property
    def is_done(self) -> bool:
        """True if everything up to the sender's FIN was delivered."""
        return self.fin is not None and self.next >= self.fin

    @property
    def hole_end(self) -> int | None:
        """The position at which the first hole ends, None without a hole."""
        if self._pieces is not None and self._pieces.starts:
            return self._pieces.starts[0]
        if self.fin is not None and self.next < self.fin:
            return self.fin
        return None

    @property
    def lacks_acked(self) -> bool:
        """True if the receiver has acknowledged bytes that were not seen."""
        return self.acked is not None and self.acked > self.next

    @property
    def hole_is_acked(self) -> bool:
        """True if the receiver has acknowledged the first hole, so the capture has lost these bytes."""
        end = self.hole_end
        return end is not None and self.acked is not None and self.acked >= end

    @property
    def sent_end(self) -> int:
        """The position after all bytes seen."""
        pieces_end = self._pieces.ends[-1] if self._pieces is not None and self._pieces.ends else self.next
        return max(pieces_end, self.next, self.fin or 0)

    @property
    def cost(self) -> int:
        """Approximate memory of the bytes behind holes, in bytes."""
        return self._pieces.cost if self._pieces is not None else 0

    @property
    def is_overfull(self) -> bool:
        """True if too many bytes wait behind a hole."""
        return self._pieces is not None and (
            self._pieces.cost > MAX_AHEAD_BYTES or len(self._pieces.starts) > MAX_AHEAD_PIECES
        )

    def give_up(self, ts_ns: int, items: list[Item]) -> None:
        """Deliver the first hole, which must exist, as a gap, and then the bytes behind it."""
        end = self.hole_end
        assert end is not None
        items.append(Gap(self.stream, self.direction, ts_ns, self.next - self.start, end - self.next))
        self.next = end
        self._deliver(ts_ns, items)

    def finish(self, ts_ns: int, items: list[Item]) -> None:
        """Deliver all holes, and bytes acknowledged but never seen, as gaps: nothing more arrives."""
        self.give_up_all(ts_ns, items)
        self._give_up_tail(ts_ns, items)

    def give_up_all(self, ts_ns: int, items: list[Item]) -> None:
        """Deliver all holes as gaps."""
        while self.hole_end is not None:
            self.give_up(ts_ns, items)

    def give_up_acked(self, ts_ns: int, items: list[Item]) -> None:
        """Deliver all bytes that were acknowledged but not seen as gaps."""
        if self.acked is not None:
            self.give_up_to(self.acked, ts_ns, items)
        if self.hole_end is None:
            self._give_up_tail(ts_ns, items)

    def give_up_to(self, position: int, ts_ns: int, items: list[Item]) -> None:
        """Deliver the holes that end at or before a position as gaps."""
        while (end := self.hole_end) is not None and end <= position:
            self.give_up(ts_ns, items)

    def _give_up_tail(self, ts_ns: int, items: list[Item]) -> None:
        """Append a gap for bytes acknowledged but never seen, after all bytes seen."""
        if self.has_begun and self.fin is None and self.acked is not None:
            lost = self.acked - self.next
            # A FIN counts as one byte (RFC 9293, 3.4): a single byte is more likely that.
            if lost > 1:
                items.append(Gap(self.stream, self.direction, ts_ns, self.next - self.start, lost))
                self.next = self.acked

    def _is_keep_alive(self, position: int) -> bool:
        """Return True for a keep-alive: one byte right before the sender's next (RFC 9293, 3.8.4).

        If that byte itself is missing, its acknowledgment distinguishes it from data.
        """
        after = position + 1
        return after == self.next or (position > self.next and after == self.acked)

    def _deliver(self, ts_ns: int, items: list[Item]) -> None:
        """Deliver the pieces that are next."""
        pieces = self._pieces
        if pieces is not None:
            count = 0
            for start, end, data in zip(pieces.starts, pieces.ends, pieces.data, strict=True):
                if start != self.next:
                    break
                count += 1
                offset = start - self.start
                if data:
                    items.append(Chunk(self.stream, self.direction, ts_ns, offset, data))
                    if self._delivered is None:
                        self._delivered = deque()
                    self._recent.add(self._delivered, start, data)
                lost = end - start - len(data)
                if lost:
                    items.append(Gap(self.stream, self.direction, ts_ns, offset + len(data), lost))
                self.next = end
            pieces.drop(count)
            if not pieces.starts:
                self._pieces = None
        self._in_order = self._pieces is None and self.fin is None

    def _compare(self, position: int, data: bytes, ts_ns: int, items: list[Item]) -> None:
        """Compare retransmitted bytes with the delivered ones, as far as these are remembered."""
        delivered = self._delivered
        if not delivered:
            return
        conflicts = []
        first = max(bisect_right(delivered, position, key=lambda entry: entry[0]) - 1, 0)
        for start, old in islice(delivered, first, None):
            if start >= position + len(data):
                break
            low, high = max(start, position), min(start + len(old), position + len(data))
            if low < high:
                before, now = old[low - start : high - start], data[low - position : high - position]
                if before != now:
                    conflicts.append((low, before, now))
        self._report_conflicts(conflicts, ts_ns, items)

    def _report_conflicts(self, conflicts: Iterable[OverlapConflict], ts_ns: int, items: list[Item]) -> None:
        count = first = last = 0
        for position, before, now in conflicts:
            # Zero where the two agree.
            marks = (int.from_bytes(before, "big") ^ int.from_bytes(now, "big")).to_bytes(len(now), "big")
            if count == 0:
                first = position + len(marks) - len(marks.lstrip(b"\0"))
            count += len(marks) - marks.count(0)
            last = position + len(marks.rstrip(b"\0"))
        if count:
            number = "1 byte" if count == 1 else f"{count} bytes"
            offset = first - self.start
            text = (
                f"{number} from offset {offset} retransmitted with other content; the first version is kept"
            )
            length = last - first
            items.append(
                Fault(self.stream, self.direction, ts_ns, offset, "retransmission-differs", text, length)
            )
