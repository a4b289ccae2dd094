"""TCP flows: assignment of segments to connections, with client, server and end.

A captured segment proves nothing by itself: it may be late, forged, or of an earlier connection between the
same ports, and any segment may be missing from the capture. Segments that RFC 9293 lets a receiver refuse are
ignored.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from heapq import nsmallest

from kiebitz.dissectors.model import Chunk, Fault, Item, close_reason
from kiebitz.proxy.capture.interval_buffer import PIECE_COST
from kiebitz.proxy.capture.packets import ACK, FIN, RST, SYN, Segment
from kiebitz.proxy.flows.packet_clock import PacketClock
from kiebitz.proxy.flows.server_detection import DirectionDetector, ServerRegistry, sender
from kiebitz.proxy.flows.tcp_connection import Connection, Side
from kiebitz.proxy.flows.tcp_reassembly import RecentBytes

DEFAULT_IDLE_NS = 7_200_000_000_000
DEFAULT_MAX_STREAMS = 16_384

ACKED_NS = 200_000_000
"""Time after an acknowledgment until missing bytes are no longer expected to be captured late.

If the receiver answers with bytes of its own, missing bytes are given up immediately: a request precedes its
answer (`tcp_order` has waited for it by then).
"""

SILENCE_NS = 5_000_000_000
"""Timeout for a silent side, and for deciding which side is the server."""

LINGER_NS = 60_000_000_000
"""Time in which late segments of an ended connection may arrive (RFC 9293, 3.4.3: the quiet time)."""

MAX_WAITING_BYTES = 32 << 20
"""Maximum memory of bytes behind holes and items held for unknown servers, in all connections together."""

MAX_ENDED = 4096
"""Maximum number of ended connections that are remembered, so that their late segments begin no new ones."""

_CHECK_NS = 50_000_000
_CONTROL = SYN | FIN | RST


class TcpFlows:
    """An assignment of segments to connections, and of their bytes to order, as they arrive.

    The server is, in this order: the side that answered the other side's SYN; the side whose port is in
    `server_ports`, if exactly one is; an endpoint that was a server before; the side that `detect_direction`
    identifies from the bytes; the side with the lower port. Until that is settled, the items of the
    connection are held.

    A connection ends by its FINs or a RST, by a SYN that begins another one, or after `idle_ns` of silence
    while other packets arrived. If it continues with the next numbers after a RST, that is another stream.
    Beyond `max_streams`, half-open connections are evicted first, and then those that have been silent
    longest. A connection that was never more than half open and carried no byte makes no stream.
    """

    def __init__(
        self,
        stream_ids: Iterator[int],
        detect_direction: DirectionDetector,
        server_ports: frozenset[int],
        idle_ns: int = DEFAULT_IDLE_NS,
        max_streams: int = DEFAULT_MAX_STREAMS,
    ) -> None:
        self._stream_ids = stream_ids
        self._servers = ServerRegistry(server_ports, detect_direction)
        self._idle_ns = idle_ns
        self._max_streams = max_streams
        self._recent = RecentBytes()
        # Both sides of all known connections, by flow.
        self._sides: dict[bytes, Side] = {}
        self._open: dict[Connection, None] = {}
        self._half_open: OrderedDict[Connection, None] = OrderedDict()
        # Waiting connections, and since when; acknowledged holes, since when, and up to where; ended
        # connections, and since when. The oldest come first.
        self._waiting: OrderedDict[Connection, int] = OrderedDict()
        self._acked: OrderedDict[Side, tuple[int, int]] = OrderedDict()
        self._ended: OrderedDict[Connection, int] = OrderedDict()
        self._waiting_bytes = 0
        # All times here, except those of items, are by this clock.
        self._clock = PacketClock()
        self._now_ns = 0
        self._next_check_ns = 0
        self._next_sweep_ns = 0

    def feed(self, segment: Segment, ts_ns: int, items: list[Item]) -> None:
        """Append the items that result from a segment, and from the time of its arrival, to `items`."""
        self._now_ns = now_ns = self._clock.read(ts_ns)
        if now_ns >= self._next_check_ns:
            self._expire(ts_ns, items)
        side = self._sides.get(segment.flow)
        if side is None or segment.flags & _CONTROL or not side.connection.has_id:
            self._process(side, segment, ts_ns, items)
            return
        connection = side.connection
        if connection.is_over:
            if not self._continues(side, segment):
                return
            self._process(self._resume(side, ts_ns, items), segment, ts_ns, items)
            return
        side.last_ns = now_ns
        side.window = segment.window
        unsettled = segment.flags & ACK and side.peer.assembly.acknowledge(segment.ack)
        payload = segment.payload
        if payload or segment.missing:
            if side.peer.assembly.lacks_acked:
                self._give_up_answered(side.peer, ts_ns, items)
                if connection.is_over:
                    return
            assembly = side.assembly
            if segment.missing or not assembly.take_next(segment.seq, payload, ts_ns, items):
                assembly.add(segment.seq, payload, segment.missing, ts_ns, items)
                unsettled = True
        if unsettled:
            self._settle(connection, ts_ns, items)

    def must_wait(self, segment: Segment) -> bool:
        """Return True if something sent before a segment was not seen: bytes, or the connection's SYN."""
        side = self._sides.get(segment.flow)
        flags = segment.flags
        has_content = bool(segment.payload or segment.missing or flags & FIN)
        if flags & SYN:
            return False
        if side is None:
            return has_content
        if side.connection.is_over:
            return False
        if flags & RST:
            # It may have overtaken anything, and does not show what the other side has sent.
            return side.connection.is_heard
        assembly, peer = side.assembly, side.peer.assembly
        # Nearly all segments are the next ones, and acknowledge delivered bytes.
        if has_content and (
            not assembly.has_begun
            or (segment.seq != assembly.next & 0xFFFFFFFF and assembly.is_missing_before(segment.seq))
        ):
            return True
        if not flags & ACK or segment.ack == peer.next & 0xFFFFFFFF:
            return False
        if side.peer.last_ns is None:
            # If the peer was already waited for without result, the capture has none of its segments.
            return peer.waived < 0
        return peer.has_begun and peer.is_missing_before(segment.ack)

    def is_news(self, segment: Segment) -> bool:
        """Return True if a segment has bytes, or a FIN, after all that its sender was seen to send."""
        side = self._sides.get(segment.flow)
        if side is None or side.connection.is_over or not side.assembly.has_begun:
            return False
        end = segment.seq + len(segment.payload) + segment.missing + bool(segment.flags & FIN)
        return side.assembly.is_unseen(end)

    def acknowledged(self, flow: bytes) -> int:
        """Return the highest acknowledgment number that the sender of a flow has sent; 0 if it is unknown."""
        side = self._sides.get(flow)
        return 0 if side is None else (side.peer.assembly.acked or 0) % (1 << 32)

    def waive(self, segment: Segment) -> None:
        """Let no other segment wait for what this one lacks, as the wait has timed out."""
        side = self._sides.get(segment.flow)
        if side is not None:
            side.assembly.waive(segment.seq)
            if segment.flags & ACK:
                side.peer.assembly.waive(segment.ack)

    def expire(self, ts_ns: int, items: list[Item]) -> None:
        """Append the items that time out by `ts_ns`, and an End for each idle connection.

        Live sources must call this regularly.
        """
        self._now_ns = self._clock.read(ts_ns)
        self._expire(ts_ns, items)

    def _expire(self, ts_ns: int, items: list[Item]) -> None:
        now_ns = self._now_ns
        self._next_check_ns = now_ns + _CHECK_NS
        while self._acked:
            side, (since_ns, acked) = next(iter(self._acked.items()))
            if now_ns - since_ns < ACKED_NS:
                break
            del self._acked[side]
            side.assembly.give_up_to(acked, ts_ns, side.connection.held)
            self._settle(side.connection, ts_ns, items)
        while self._waiting:
            connection, since_ns = next(iter(self._waiting.items()))
            if now_ns - since_ns < SILENCE_NS:
                break
            del self._waiting[connection]
            self._stop_waiting(connection, since_ns, ts_ns, items)
        while self._ended:
            connection, since_ns = next(iter(self._ended.items()))
            if now_ns - since_ns < LINGER_NS:
                break
            self._forget(connection)
        if now_ns >= self._next_sweep_ns:
            self._next_sweep_ns = now_ns + self._idle_ns // 64
            for connection in list(self._open):
                if now_ns - connection.last_ns > self._idle_ns:
                    self._end(connection, ts_ns, "idle", items)
                    self._forget(connection)

    def close(self, ts_ns: int, items: list[Item]) -> None:
        """Append all remaining items, and an End for each connection, as the source ends at `ts_ns`."""
        for connection in list(self._open):
            self._end(connection, ts_ns, "end", items)

    def _process(self, side: Side | None, segment: Segment, ts_ns: int, items: list[Item]) -> None:
        """Process any segment, including those that begin or end connections."""
        flags = segment.flags
        has_bytes = bool(segment.payload or segment.missing)
        seq = segment.seq
        if flags & SYN:
            if flags & (FIN | RST):
                return
            side = self._handle_syn(side, segment, ts_ns, items)
            # A SYN counts as one byte (RFC 9293, 3.4), before those it may carry.
            seq += 1
        elif side is None and (has_bytes or segment.reset_text):
            side = self._begin(segment.flow, ts_ns, items)
            side.connection.is_heard = bool(flags & RST)
        elif side is not None and side.connection.is_over and self._continues(side, segment):
            side = self._resume(side, ts_ns, items)
        if side is None or side.connection.is_over:
            return
        connection = side.connection
        if flags & RST:
            self._reset(side, segment, ts_ns, items)
            return
        if not flags & SYN and not connection.is_heard:
            if side.isn is None and side.peer.isn is not None and not side.acks_beginning(segment):
                # It answers an earlier connection (RFC 9293, 3.5.1, figure 10: a half-open one).
                return
            connection.is_heard = True
            self._half_open.pop(connection, None)
        side.last_ns = self._now_ns
        side.window = segment.window
        if flags & ACK:
            side.peer.assembly.acknowledge(segment.ack)
        if has_bytes:
            if side.peer.assembly.lacks_acked:
                self._give_up_answered(side.peer, ts_ns, items)
                if connection.is_over:
                    return
            side.assembly.add(seq, segment.payload, segment.missing, ts_ns, connection.held)
        if flags & FIN:
            side.assembly.end_at(seq + len(segment.payload) + segment.missing)
        self._settle(connection, ts_ns, items)

    def _handle_syn(self, side: Side | None, segment: Segment, ts_ns: int, items: list[Item]) -> Side | None:
        """Return the side that sent a SYN, of a new connection if it begins one; None if it has no effect."""
        answers = bool(segment.flags & ACK)
        if side is not None:
            connection, peer = side.connection, side.peer
            known = side.assembly.has_begun and side.assembly.start == (segment.seq + 1) % (1 << 32)
            if side.isn == segment.seq or (known and side.isn is None and connection.is_over):
                return side
            if not connection.is_over:
                fits = not peer.assembly.has_begun or (
                    side.acks_beginning(segment) if answers else peer.is_silent
                )
                if (known or (fits and side.is_silent)) and (side.isn is None or answers):
                    side.handle_syn(segment)
                    if answers:
                        self._servers.remember(sender(segment.flow))
                    return side
                if answers and not connection.is_heard:
                    # It answers another SYN than the one that was seen.
                    return None
                self._end(connection, ts_ns, "reused", items)
            self._forget(connection)
        side = self._begin(segment.flow, ts_ns, items)
        self._half_open[side.connection] = None
        side.handle_syn(segment)
        if answers:
            self._servers.remember(sender(segment.flow))
        return side

    def _begin(self, flow: bytes, ts_ns: int, items: list[Item]) -> Side:
        """Begin a connection; return its first side, the sender of this flow."""
        if len(self._open) >= self._max_streams:
            self._make_room(ts_ns, items)
        connection = Connection(flow, ts_ns, self._recent)
        self._open[connection] = None
        # The first side is assigned last, for a socket connected to itself: its two flows are one.
        for side in reversed(connection.sides):
            self._sides[side.flow] = side
        return connection.first

    def _reset(self, side: Side, segment: Segment, ts_ns: int, items: list[Item]) -> None:
        """End a connection by a RST that its receiver must accept (RFC 9293, 3.10.7.3 and 3.10.7.4)."""
        connection = side.connection
        if connection.is_heard:
            if side.may_reset(segment.seq):
                self._end(connection, ts_ns, close_reason("reset", segment.reset_text), items)
        elif side.isn is not None:
            # The sender of the SYN withdraws it.
            self._end(connection, ts_ns, close_reason("reset", segment.reset_text), items)
        elif segment.flags & ACK and side.acks_beginning(segment):
            client = side.peer.assembly
            text = "the server refused the connection"
            connection.held.append(Fault(connection.stream, client.direction, ts_ns, 0, "refused", text))
            self._end(connection, ts_ns, close_reason("refused", segment.reset_text), items)
        if connection.is_over:
            connection.reset_by = side

    def _continues(self, side: Side, segment: Segment) -> bool:
        """Return True if a side sends its next bytes although a RST has ended its connection.

        Bytes that were in transit to the sender of the RST do not count.
        """
        connection = side.connection
        if connection.reset_by is None or segment.flags & (SYN | RST) or not segment.payload:
            return False
        if connection.reset_by is not side and self._now_ns - self._ended[connection] < SILENCE_NS:
            return False
        return segment.seq == side.assembly.next % (1 << 32)

    def _resume(self, side: Side, ts_ns: int, items: list[Item]) -> Side:
        """Begin a connection that continues the ended one of `side`; return its side."""
        over = side.connection
        self._forget(over)
        resumed = self._begin(side.flow, ts_ns, items)
        for new, old in ((resumed, side), (resumed.peer, side.peer)):
            new.sent_syn, new.answered_syn = old.sent_syn, old.answered_syn
            if old.assembly.has_begun:
                new.assembly.begin(old.assembly.next % (1 << 32))
        return resumed

    def _settle(self, connection: Connection, ts_ns: int, items: list[Item]) -> None:
        """Release what can be released after an unusual segment, and update what has to wait."""
        for side in connection.sides:
            assembly = side.assembly
            while assembly.is_overfull:
                assembly.give_up(ts_ns, connection.held)
            if assembly.hole_is_acked and assembly.acked is not None:
                self._acked.setdefault(side, (self._now_ns, assembly.acked))
        if connection.held:
            connection.release(self._servers, self._stream_ids, items, force=False)
        if connection.is_closed:
            self._end(connection, ts_ns, "closed", items)
            return
        self._update_cost(connection)
        if not connection.is_waiting:
            self._waiting.pop(connection, None)
        else:
            self._waiting.setdefault(connection, self._now_ns)
            while self._waiting_bytes > MAX_WAITING_BYTES and self._waiting:
                self._decide_now(next(iter(self._waiting)), ts_ns, items)

    def _update_cost(self, connection: Connection) -> None:
        """Update the total memory of waiting bytes and items."""
        cost = sum(side.assembly.cost for side in connection.sides)
        cost += sum(len(item.data) + PIECE_COST for item in connection.held if isinstance(item, Chunk))
        self._waiting_bytes += cost - connection.cost
        connection.cost = cost

    def _give_up_answered(self, side: Side, ts_ns: int, items: list[Item]) -> None:
        """Give up bytes that the peer has received and now answers: the gap must precede the answer."""
        self._acked.pop(side, None)
        side.assembly.give_up_acked(ts_ns, side.connection.held)
        self._settle(side.connection, ts_ns, items)

    def _stop_waiting(self, connection: Connection, since_ns: int, ts_ns: int, items: list[Item]) -> None:
        """Decide what can be decided about a connection that has waited since `since_ns`."""
        if connection.is_closed_as_far_as_heard:
            self._end(connection, ts_ns, "closed", items)
            return
        for side in connection.sides:
            heard_ns = side.peer.last_ns
            if heard_ns is None or heard_ns < since_ns:
                side.assembly.give_up_all(ts_ns, connection.held)
        if connection.held:
            connection.release(self._servers, self._stream_ids, items, force=True)
        self._settle(connection, ts_ns, items)

    def _decide_now(self, connection: Connection, ts_ns: int, items: list[Item]) -> None:
        """Decide everything about a waiting connection now."""
        del self._waiting[connection]
        for side in connection.sides:
            side.assembly.give_up_all(ts_ns, connection.held)
        if connection.held:
            connection.release(self._servers, self._stream_ids, items, force=True)
        self._update_cost(connection)

    def _make_room(self, ts_ns: int, items: list[Item]) -> None:
        """Evict the oldest half-open connection, or the eighth that has been silent longest."""
        evicted = [next(iter(self._half_open))] if self._half_open else []
        for connection in evicted or nsmallest(
            self._max_streams // 8 + 1, self._open, key=lambda connection: connection.last_ns
        ):
            self._end(connection, ts_ns, "evicted", items)
            self._forget(connection)

    def _end(self, connection: Connection, ts_ns: int, reason: str, items: list[Item]) -> None:
        """End an open connection, which remains known for a while."""
        if reason in ("idle", "evicted", "end") and connection.is_closed_as_far_as_heard:
            reason = "closed"
        makes_stream = connection.is_heard or connection.held or connection.has_id
        connection.end(ts_ns, reason)
        if makes_stream:
            connection.release(self._servers, self._stream_ids, items, force=True)
        connection.held.clear()
        self._update_cost(connection)
        self._waiting.pop(connection, None)
        self._half_open.pop(connection, None)
        for side in connection.sides:
            self._acked.pop(side, None)
        del self._open[connection]
        self._ended[connection] = self._now_ns
        if len(self._ended) > MAX_ENDED:
            self._forget(next(iter(self._ended)))

    def _forget(self, connection: Connection) -> None:
        """Remove an ended connection."""
        del self._ended[connection]
        for side in connection.sides:
            self._sides.pop(side.flow, None)
