"""One direction of a TCP connection: from sequence numbers to bytes in order, with what is missing told.

Segments come late, twice, overlapping or never (RFC 9293, 3.4 and 3.10.7.4). Each byte is given once, in
order; a hole that will not be filled any more becomes a gap. When that is so, the caller decides.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from itertools import islice

from kiebitz.dissectors.model import Chunk, Direction, Fault, Gap, Item, Stream
from kiebitz.proxy.capture.interval_buffer import PIECE_COST, Contradiction, Pieces

MAX_AHEAD_BYTES = 4 << 20
MAX_AHEAD_PIECES = 4096
"""How much may wait behind a hole of one direction: more than nearly all receivers' windows."""

MAX_RECENT_BYTES = 8 << 20
"""How much of what was given is remembered for all directions together."""

# Beside a piece of a few bytes, an entry here may keep a whole direction that is over.
_RECENT_COST = 8 * PIECE_COST

_MODULUS = 1 << 32
_HALF = 1 << 31


def unwrap(number: int, near: int) -> int:
    """The position with this sequence number that is nearest to `near`: numbers are modulo 2**32."""
    return near + (number - near + _HALF) % _MODULUS - _HALF


class Recent:
    """The bytes that were given last, over all directions, for comparison with what is sent again."""

    def __init__(self) -> None:
        self._order: deque[deque[tuple[int, bytes]]] = deque()
        self._cost = 0

    def add(self, given: deque[tuple[int, bytes]], position: int, data: bytes) -> None:
        """Remember what a direction has given; `given` is where that direction finds it again."""
        given.append((position, data))
        self._order.append(given)
        self._cost += len(data) + _RECENT_COST
        while self._cost > MAX_RECENT_BYTES:
            _, oldest = self._order.popleft().popleft()
            self._cost -= len(oldest) + _RECENT_COST


class Assembly:
    """The bytes of one direction of `stream`; what comes of them is appended to a list of items.

    Positions are sequence numbers that do not wrap around. `begun` tells whether the `start` is known, which
    is offset 0; `next` is the first position that has not been given yet. `acked` is up to where the receiver
    has acknowledged, None while it has not been heard; `fin` is where the sender has said that it ends.
    Nobody waits any more for what is missing up to `excused`.
    """

    __slots__ = (
        "_given",
        "_in_order",
        "_pieces",
        "_recent",
        "acked",
        "begun",
        "direction",
        "excused",
        "fin",
        "next",
        "start",
        "stream",
    )

    def __init__(self, stream: Stream, direction: Direction, recent: Recent) -> None:
        self.stream = stream
        self.direction = direction
        self.begun = False
        self.start = 0
        self.next = 0
        self.acked: int | None = None
        self.fin: int | None = None
        self.excused = -1
        # Whether nothing waits and nothing has ended: then the next bytes can be given at once.
        self._in_order = False
        self._pieces: Pieces | None = None
        self._given: deque[tuple[int, bytes]] | None = None
        self._recent = recent

    def begin(self, seq: int) -> None:
        """The first byte of the direction has, or would have, this sequence number."""
        self.start = self.next = seq if self.acked is None else unwrap(seq, self.acked)
        self.begun = True
        # What waited was numbered for a beginning that is not this one.
        self._pieces = None
        self._in_order = self.fin is None

    def take(self, seq: int, data: bytes, ts_ns: int, items: list[Item]) -> bool:
        """Give the bytes at once if they are the next ones; False if `add` has to look at them."""
        position = self.next
        if not self._in_order or seq != position & 0xFFFFFFFF:
            return False
        items.append(Chunk(self.stream, self.direction, ts_ns, position - self.start, data))
        self.next = position + len(data)
        if self._given is None:
            self._given = deque()
        self._recent.add(self._given, position, data)
        return True

    def add(self, seq: int, data: bytes, missing: int, ts_ns: int, items: list[Item]) -> None:
        """Take any segment with bytes, behind which the capture has cut off `missing` more.

        A direction that has not begun begins here, with a gap of unknown length.
        """
        length = len(data) + missing
        if not self.begun:
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
            self._pieces = Pieces()
        self._tell_differences(self._pieces.add(position, end, data), ts_ns, items)
        self._give(ts_ns, items)

    def lacks(self, number: int) -> bool:
        """Whether something was sent before this sequence number that was not seen, nor waited for.

        The direction must have begun.
        """
        return unwrap(number, self.next) > max(self._seen_end, self.excused)

    def is_unseen(self, number: int) -> bool:
        """Return True if the bytes before this sequence number are not all seen; the direction has begun."""
        return unwrap(number, self.next) > self._seen_end

    @property
    def _seen_end(self) -> int:
        # A FIN counts like a byte (RFC 9293, 3.4).
        return self.sent_end + (self.fin is not None)

    def excuse(self, number: int) -> None:
        """Nobody waits any more for what is missing before this sequence number."""
        self.excused = max(self.excused, unwrap(number, self.next) if self.begun else 0)

    def acknowledge(self, ack: int) -> bool:
        """The receiver has everything up to `ack`. True if that is behind the first hole."""
        acked = self.acked
        if acked is None:
            self.acked = unwrap(ack, self.next) if self.begun else ack
        else:
            advance = (ack - acked) % _MODULUS
            if advance == 0 or advance >= _HALF:
                return False
            self.acked = acked + advance
        return not self._in_order and self.hole_is_acked

    def end_at(self, seq: int) -> None:
        """The sender has no more bytes from this sequence number on (FIN); of several the first counts."""
        if not self.begun:
            self.begin(seq)
        position = max(unwrap(seq, self.next), self.next)
        self.fin = position if self.fin is None else min(position, self.fin)
        self._in_order = False

    @property
    def is_done(self) -> bool:
        """Whether all was given up to the sender's FIN."""
        return self.fin is not None and self.next >= self.fin

    @property
    def hole_end(self) -> int | None:
        """The position where the first hole ends, None if there is none."""
        if self._pieces is not None and self._pieces.starts:
            return self._pieces.starts[0]
        if self.fin is not None and self.next < self.fin:
            return self.fin
        return None

    @property
    def lacks_acked(self) -> bool:
        """Whether the receiver has something that was not seen."""
        return self.acked is not None and self.acked > self.next

    @property
    def hole_is_acked(self) -> bool:
        """Whether the receiver has what is missing in the first hole: the capture has lost it."""
        end = self.hole_end
        return end is not None and self.acked is not None and self.acked >= end

    @property
    def sent_end(self) -> int:
        """The position behind all that was seen."""
        pieces_end = self._pieces.ends[-1] if self._pieces is not None and self._pieces.ends else self.next
        return max(pieces_end, self.next, self.fin or 0)

    @property
    def cost(self) -> int:
        """What waits behind holes, in bytes of memory, about."""
        return self._pieces.cost if self._pieces is not None else 0

    @property
    def is_overfull(self) -> bool:
        """Whether too much waits behind a hole."""
        return self._pieces is not None and (
            self._pieces.cost > MAX_AHEAD_BYTES or len(self._pieces.starts) > MAX_AHEAD_PIECES
        )

    def give_up(self, ts_ns: int, items: list[Item]) -> None:
        """Give the first hole as a gap, and what waited behind it; there must be one."""
        end = self.hole_end
        assert end is not None
        items.append(Gap(self.stream, self.direction, ts_ns, self.next - self.start, end - self.next))
        self.next = end
        self._give(ts_ns, items)

    def finish(self, ts_ns: int, items: list[Item]) -> None:
        """Nothing more comes: give up all holes, and what was acknowledged and never seen."""
        self.give_up_all(ts_ns, items)
        self._give_up_tail(ts_ns, items)

    def give_up_all(self, ts_ns: int, items: list[Item]) -> None:
        """Give up all holes."""
        while self.hole_end is not None:
            self.give_up(ts_ns, items)

    def give_up_acked(self, ts_ns: int, items: list[Item]) -> None:
        """Give up all that the receiver has and that was not seen."""
        if self.acked is not None:
            self.give_up_to(self.acked, ts_ns, items)
        if self.hole_end is None:
            self._give_up_tail(ts_ns, items)

    def give_up_to(self, position: int, ts_ns: int, items: list[Item]) -> None:
        """Give up the holes that end there or before."""
        while (end := self.hole_end) is not None and end <= position:
            self.give_up(ts_ns, items)

    def _give_up_tail(self, ts_ns: int, items: list[Item]) -> None:
        """Give a gap for what was acknowledged and never seen, behind all that was."""
        if self.begun and self.fin is None and self.acked is not None:
            lost = self.acked - self.next
            # A FIN counts like a byte (RFC 9293, 3.4): one alone is rather that.
            if lost > 1:
                items.append(Gap(self.stream, self.direction, ts_ns, self.next - self.start, lost))
                self.next = self.acked

    def _is_keep_alive(self, position: int) -> bool:
        """Whether one byte there is the one before the sender's next: then it says nothing (RFC 9293, 3.8.4).

        If that byte itself is missing, the receiver's having it tells it from data.
        """
        after = position + 1
        return after == self.next or (position > self.next and after == self.acked)

    def _give(self, ts_ns: int, items: list[Item]) -> None:
        """Give the pieces that are next."""
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
                    if self._given is None:
                        self._given = deque()
                    self._recent.add(self._given, start, data)
                lost = end - start - len(data)
                if lost:
                    items.append(Gap(self.stream, self.direction, ts_ns, offset + len(data), lost))
                self.next = end
            pieces.drop(count)
            if not pieces.starts:
                self._pieces = None
        self._in_order = self._pieces is None and self.fin is None

    def _compare(self, position: int, data: bytes, ts_ns: int, items: list[Item]) -> None:
        """Compare bytes that come again with those that were given, as far as these are remembered."""
        given = self._given
        if not given:
            return
        contradictions = []
        first = max(bisect_right(given, position, key=lambda entry: entry[0]) - 1, 0)
        for start, old in islice(given, first, None):
            if start >= position + len(data):
                break
            low, high = max(start, position), min(start + len(old), position + len(data))
            if low < high:
                before, now = old[low - start : high - start], data[low - position : high - position]
                if before != now:
                    contradictions.append((low, before, now))
        self._tell_differences(contradictions, ts_ns, items)

    def _tell_differences(
        self, contradictions: Iterable[Contradiction], ts_ns: int, items: list[Item]
    ) -> None:
        count = first = last = 0
        for position, before, now in contradictions:
            # Zero where the two agree.
            marks = (int.from_bytes(before, "big") ^ int.from_bytes(now, "big")).to_bytes(len(now), "big")
            if count == 0:
                first = position + len(marks) - len(marks.lstrip(b"\0"))
            count += len(marks) - marks.count(0)
            last = position + len(marks.rstrip(b"\0"))
        if count:
            number = "1 byte" if count == 1 else f"{count} bytes"
            offset = first - self.start
            text = f"{number} from offset {offset} on came again with other content; what came first is kept"
            length = last - first
            items.append(
                Fault(self.stream, self.direction, ts_ns, offset, "retransmission-differs", text, length)
            )
