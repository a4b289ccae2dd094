"""TCP segments in the order in which they were sent, where a capture has them in another.

Cards with several queues, captures of several interfaces and merged captures swap packets that follow each
other closely. Sequence and acknowledgment numbers tell it (RFC 9293, 3.4): a segment follows the bytes before
its own, and those that it acknowledges. One that lacks some of these waits for them, and all segments behind
it wait, too, so that nothing else changes places. Where nothing is lacking, nothing waits.
"""

from __future__ import annotations

from collections import Counter
from copy import copy

from kiebitz.dissectors.records import Item
from kiebitz.proxy.packets import ACK, FIN, RST, SYN, Segment
from kiebitz.proxy.servers import reverse
from kiebitz.proxy.tcp_conversations import TcpConversations

PATIENCE_NS = 100_000_000
"""So long a segment waits for what it lacks; no other one waits longer because of it."""

MOST_WAITING = 256
"""So many segments wait at the most, of all connections together."""

_FARTHEST = 1 << 24
"""Numbers farther apart than this many bytes, on their way at once, are of two connections."""


def _is_after(number: int, other: int) -> bool:
    """Whether a sequence number is behind another one: they are modulo 2**32."""
    return 0 < (number - other) % (1 << 32) <= _FARTHEST


class TcpOrder:
    """Hands segments to `conversations`, each once."""

    def __init__(self, conversations: TcpConversations) -> None:
        self._conversations = conversations
        # When each was captured, in the order in which they are handed on. Of each flow how many there are.
        self._line: list[tuple[int, Segment]] = []
        self._flows: Counter[bytes] = Counter()

    def feed(self, segment: Segment, ts_ns: int, items: list[Item]) -> None:
        """Append what a segment brings to `items`, and what has become certain by the time it came."""
        if self._line:
            self._enter(segment, ts_ns)
            # Only now: however late it comes, what the packet before it has waited for is found.
            self._hand_on(ts_ns, items)
        elif self._conversations.lacks(segment):
            self._enter(segment, ts_ns)
        else:
            self._conversations.feed(segment, ts_ns, items)

    def expire(self, ts_ns: int, items: list[Item]) -> None:
        """Append what has become certain by `ts_ns`. A live source calls this now and then."""
        self._hand_on(ts_ns, items)
        self._conversations.expire(min(ts_ns, self._line[0][0]) if self._line else ts_ns, items)

    def close(self, ts_ns: int, items: list[Item]) -> None:
        """Append what is left, and an End for each connection: the source is at its end at `ts_ns`."""
        for captured_ns, segment in self._line:
            self._conversations.feed(segment, captured_ns, items)
        self._line.clear()
        self._flows.clear()
        self._conversations.close(ts_ns, items)

    def _hand_on(self, ts_ns: int, items: list[Item]) -> None:
        """Hand on what lacks nothing, or has waited long enough."""
        line = self._line
        count = 0
        for captured_ns, segment in line:
            if self._conversations.lacks(segment):
                # Where times jump, back or ahead, they tell nothing: then the next packet was waited for.
                if abs(ts_ns - captured_ns) < PATIENCE_NS and len(line) - count <= MOST_WAITING:
                    break
                self._conversations.excuse(segment)
            self._conversations.feed(segment, captured_ns, items)
            count += 1
            self._flows[segment.flow] -= 1
        del line[:count]
        if not line:
            self._flows.clear()

    def _enter(self, segment: Segment, ts_ns: int) -> None:
        """Put a segment into the line: last, or before whatever must have been sent after it."""
        line, flow = self._line, segment.flow
        place = behind = len(line)
        peer = reverse(flow)
        following: Segment | None = None
        ours_looked_at, theirs_looked_at = not self._flows[flow], not self._flows[peer]
        # Numbers grow along the line, so whoever waits before one that was sent earlier was, too. A SYN may
        # begin another connection between the same ports.
        while behind and not (ours_looked_at and theirs_looked_at):
            behind -= 1
            waiting = line[behind][1]
            if waiting.flow == flow:
                is_older = waiting.seq == segment.seq and _is_after(waiting.ack, segment.ack)
                if _is_after(waiting.seq, segment.seq) or (is_older and not segment.payload):
                    place, following = behind, waiting
                elif not waiting.flags & SYN:
                    ours_looked_at = True
            elif waiting.flow == peer:
                if waiting.flags & RST and not segment.flags & (SYN | RST):
                    # Who has been reset sends nothing more.
                    place = behind
                elif waiting.flags & ACK and _is_after(waiting.ack, segment.seq):
                    place = behind
                elif not waiting.flags & SYN:
                    theirs_looked_at = True
        again = None
        if following is not None and not segment.flags & SYN:
            segment, again = _parted(segment, following.seq)
        # It was sent no later than what waits behind it, so that is its time.
        line.insert(place, (line[place][0] if place < len(line) else ts_ns, segment))
        self._flows[flow] += 1
        if again is not None:
            self._enter(again, ts_ns)


def _parted(segment: Segment, number: int) -> tuple[Segment, Segment | None]:
    """A segment up to a sequence number, and the rest of its bytes: these were captured before."""
    size = (number - segment.seq) % (1 << 32)
    if size >= len(segment.payload):
        return segment, None
    first, rest = copy(segment), copy(segment)
    first.payload, first.missing, first.flags = segment.payload[:size], 0, segment.flags & ~FIN
    rest.seq, rest.payload = number, segment.payload[size:]
    return first, rest
