"""Restores the order in which TCP segments were sent, where a capture has another one.

Network cards with several queues, captures of several interfaces and merged captures swap packets that follow
closely. Sequence and acknowledgment numbers reveal this (RFC 9293, 3.4): a segment follows the bytes before
its own, and those that it acknowledges. A segment that lacks some of these waits for them, and so do all
segments behind it, so that nothing else changes its place. Without missing bytes, nothing waits.

A RST waits as well: only the segments after it show whether it was obeyed. A sender deletes its connection
when it resets it (RFC 9293, 3.10.7), so if it sends or acknowledges new bytes, the RST was forged or was
lost. A RST never moves ahead of bytes: a sender without the connection resets with an old number (RFC 9293,
3.10.7.1). Nor does a segment move ahead of what it acknowledges, as a retransmission would by its number.
"""

from __future__ import annotations

from copy import copy

from kiebitz.dissectors.model import Item
from kiebitz.proxy.capture.packets import ACK, FIN, RST, SYN, Segment
from kiebitz.proxy.flows.server_detection import reverse
from kiebitz.proxy.flows.tcp import TcpFlows

REORDER_TIMEOUT_NS = 100_000_000
"""Longest time to wait for what a segment lacks; no other segment waits longer because of it."""

MAX_WAITING = 256
"""Maximum number of segments that wait for a missing one, over all connections."""

RESET_TIMEOUT_NS = 10_000_000_000
"""Longest time that a RST from a file waits for bytes that refute it. A live RST waits `REORDER_TIMEOUT_NS`.
"""

MAX_BEHIND_RESET = 1024
"""Maximum number of segments that wait behind a RST, over all connections."""

_MAX_DISTANCE = 1 << 24
"""Distance in bytes beyond which numbers belong to different connections."""


def _is_after(number: int, other: int) -> bool:
    """Return True if a sequence number is after another one, modulo 2**32."""
    return 0 < (number - other) % (1 << 32) <= _MAX_DISTANCE


class SegmentReorderer:
    """A queue that passes each segment to `connections` once, in the order of sending.

    A RST is passed on after `reset_timeout_ns` without a refutation.
    """

    def __init__(self, connections: TcpFlows, reset_timeout_ns: int = REORDER_TIMEOUT_NS) -> None:
        self._connections = connections
        self._reset_timeout_ns = reset_timeout_ns
        # Times of capture and segments, in the order of their delivery; the last segment of each flow.
        self._queue: list[tuple[int, Segment]] = []
        self._last: dict[bytes, Segment] = {}
        # Flows with a queued RST: the time of the first one, and what its sender had acknowledged.
        self._resets: dict[bytes, tuple[int, int]] = {}

    def feed(self, segment: Segment, ts_ns: int, items: list[Item]) -> None:
        """Append the items that result from a segment, and from the time of its arrival, to `items`."""
        if self._queue:
            self._insert(segment, ts_ns)
            # After inserting: it may be what an earlier packet waits for, however late it arrives.
            self._pass_ready(ts_ns, items)
        elif self._connections.must_wait(segment):
            self._insert(segment, ts_ns)
        else:
            self._connections.feed(segment, ts_ns, items)

    def expire(self, ts_ns: int, items: list[Item]) -> None:
        """Append the items that time out by `ts_ns`; live sources must call this regularly."""
        self._pass_ready(ts_ns, items)
        self._connections.expire(min(ts_ns, self._queue[0][0]) if self._queue else ts_ns, items)

    def close(self, ts_ns: int, items: list[Item]) -> None:
        """Append all remaining items, and an End for each connection, as the source ends at `ts_ns`."""
        for captured_ns, segment in self._queue:
            self._connections.feed(segment, captured_ns, items)
        self._clear()
        self._connections.close(ts_ns, items)

    def _pass_ready(self, ts_ns: int, items: list[Item]) -> None:
        """Pass on the segments that lack nothing or have timed out."""
        queue = self._queue
        count = 0
        for captured_ns, segment in queue:
            if self._connections.must_wait(segment):
                # At a jump of times in either direction they are meaningless: then only the next packet is
                # awaited.
                timeout_ns, max_count = REORDER_TIMEOUT_NS, MAX_WAITING
                if segment.flags & RST:
                    timeout_ns, max_count = self._reset_timeout_ns, MAX_BEHIND_RESET
                if abs(ts_ns - captured_ns) < timeout_ns and len(queue) - count <= max_count:
                    break
                self._connections.waive(segment)
            self._connections.feed(segment, captured_ns, items)
            count += 1
            if self._last[segment.flow] is segment:
                del self._last[segment.flow]
        del queue[:count]
        if not queue:
            self._clear()

    def _clear(self) -> None:
        self._queue.clear()
        self._last.clear()
        self._resets.clear()

    def _insert(self, segment: Segment, ts_ns: int) -> None:
        """Insert a segment into the queue: last, or before segments that must have been sent after it."""
        queue, flow = self._queue, segment.flow
        peer = reverse(flow)
        if segment.flags & RST:
            if not any(waiting.flags & RST and waiting.flow == flow for _, waiting in queue):
                self._resets[flow] = ts_ns, self._connections.acknowledged(flow)
        elif not segment.flags & SYN and (flow in self._resets or peer in self._resets):
            self._reconsider_resets(segment, peer, ts_ns)
        place, following = len(queue), None
        if not self._is_last(segment, peer):
            place, following = self._position(segment, peer, ts_ns)
        again = None
        if following is not None and not segment.flags & SYN:
            segment, again = _split(segment, following.seq)
        if place == len(queue):
            queue.append((ts_ns, segment))
            self._last[flow] = segment
        else:
            # It was sent no later than the segment behind it, so it gets that time.
            queue.insert(place, (queue[place][0], segment))
            self._last[flow] = next(waiting for _, waiting in reversed(queue) if waiting.flow == flow)
        if again is not None:
            self._insert(again, ts_ns)

    def _is_last(self, segment: Segment, peer: bytes) -> bool:
        """Return True if a segment certainly follows all others: the usual case behind a RST that waits."""
        own, other = self._last.get(segment.flow), self._last.get(peer)
        return (
            not segment.flags & RST
            and (own is None or not (own.flags & SYN or _is_before(segment, own)))
            and (
                other is None
                or _acknowledges(segment, other)
                or not (other.flags & SYN or _is_before_peers(segment, other))
            )
        )

    def _position(self, segment: Segment, peer: bytes, ts_ns: int) -> tuple[int, Segment | None]:
        """Return the place of a segment in the queue, and the next segment of its own direction, if any."""
        place = len(self._queue)
        following: Segment | None = None
        # Numbers grow along the queue, so segments before an earlier one were also sent earlier.
        undecided = {segment.flow, peer} & self._last.keys()
        for behind in reversed(range(place)):
            if not undecided:
                break
            captured_ns, waiting = self._queue[behind]
            if abs(ts_ns - captured_ns) >= REORDER_TIMEOUT_NS and self._resets:
                # The other one waits only behind a RST: a segment that is this late is a retransmission.
                break
            if segment.flags & RST and not waiting.flags & SYN:
                # A RST may have the number of an old acknowledgment, which does not show what preceded it.
                continue
            if waiting.flow == segment.flow:
                if _begins_later_connection(segment, waiting):
                    break
                is_before = _is_before(segment, waiting)
                if is_before:
                    following = waiting
            elif waiting.flow == peer:
                if _acknowledges(segment, waiting):
                    # It was sent later; with an old number it is a retransmission.
                    break
                is_before = _is_before_peers(segment, waiting)
            else:
                continue
            if is_before:
                place = behind
            elif not waiting.flags & SYN:
                # A SYN may begin another connection between the same ports.
                undecided.discard(waiting.flow)
        return place, following

    def _reconsider_resets(self, segment: Segment, peer: bytes, ts_ns: int) -> None:
        """Withdraw the RSTs that a segment refutes, and postpone those that its sender has not received."""
        queue = self._queue
        for place in reversed(range(len(queue))):
            captured_ns, waiting = queue[place]
            if waiting.flow == segment.flow and waiting.flags & SYN:
                # A RST before this SYN belongs to an earlier connection between the same ports.
                return
            if not waiting.flags & RST:
                continue
            if waiting.flow == segment.flow and self._refutes(segment, ts_ns, waiting, place):
                # Its acknowledgment may be as false as the RST.
                withdrawn = copy(waiting)
                withdrawn.flags &= ~(RST | ACK)
                queue[place] = captured_ns, withdrawn
                if self._last[segment.flow] is waiting:
                    self._last[segment.flow] = withdrawn
            elif waiting.flow == peer and abs(ts_ns - captured_ns) >= REORDER_TIMEOUT_NS:
                # The segment was not sent before the RST: too late for a packet swapped by the capture.
                del queue[place]
                queue.append((ts_ns, waiting))
                self._last[peer] = waiting

    def _refutes(self, segment: Segment, ts_ns: int, reset: Segment, place: int) -> bool:
        """Return True if `segment` was sent after its sender's RST at `place` in the queue."""
        reset_ns, acknowledged = self._resets[segment.flow]
        if (
            segment.flags & ACK
            and abs(ts_ns - reset_ns) >= REORDER_TIMEOUT_NS
            and _is_after(segment.ack, acknowledged)
        ):
            return True
        end = _end_of(segment)
        if not _is_after(end, reset.seq) or not self._connections.is_news(segment):
            return False
        return all(
            waiting.flow != segment.flow or _is_after(end, _end_of(waiting))
            for _, waiting in self._queue[:place]
        )


def _begins_later_connection(segment: Segment, waiting: Segment) -> bool:
    """Return True if `waiting` is a SYN, and all before it belongs to an earlier connection."""
    return bool(waiting.flags & SYN and not segment.flags & SYN and _is_after(segment.seq, waiting.seq))


def _is_before(segment: Segment, waiting: Segment) -> bool:
    """Return True if a segment was sent before one of the same direction."""
    is_older = waiting.seq == segment.seq and _is_after(waiting.ack, segment.ack)
    return _is_after(waiting.seq, segment.seq) or (is_older and not segment.payload)


def _is_before_peers(segment: Segment, waiting: Segment) -> bool:
    """Return True if a segment was sent before one of its peer."""
    if waiting.flags & RST and not segment.flags & (SYN | RST):
        # A side that has been reset sends nothing more.
        return True
    return bool(waiting.flags & ACK and _is_after(waiting.ack, segment.seq))


def _acknowledges(segment: Segment, other: Segment) -> bool:
    """Return True if a segment acknowledges bytes or a FIN of `other`."""
    return bool(
        segment.flags & ACK
        and (other.payload or other.missing or other.flags & FIN)
        and _is_after(segment.ack, other.seq)
    )


def _end_of(segment: Segment) -> int:
    """Return the sequence number after a segment; its FIN counts as one byte (RFC 9293, 3.4)."""
    size = len(segment.payload) + segment.missing + bool(segment.flags & FIN)
    return (segment.seq + size) % (1 << 32)


def _split(segment: Segment, number: int) -> tuple[Segment, Segment | None]:
    """Split a segment at a sequence number; the second part, if any, was captured before."""
    size = (number - segment.seq) % (1 << 32)
    if size >= len(segment.payload):
        return segment, None
    first, rest = copy(segment), copy(segment)
    first.payload, first.missing, first.flags = segment.payload[:size], 0, segment.flags & ~FIN
    rest.seq, rest.payload = number, segment.payload[size:]
    return first, rest
