"""UDP flows: assignment of datagrams to streams, with client, server and byte offsets.

UDP has no connections (RFC 768), so a stream here is all traffic between two `ip:port` pairs until both have
been silent for a long time. The content is only passed to `detect_direction`, which may find out which side
is the server.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nsmallest

from kiebitz.dissectors.model import Chunk, Direction, End, Fault, Item, Stream
from kiebitz.proxy.capture.duplicate_packets import DuplicateDetector
from kiebitz.proxy.capture.packets import Datagram, endpoints
from kiebitz.proxy.flows.packet_clock import DISORDER_NS
from kiebitz.proxy.flows.server_detection import DirectionDetector, ServerRegistry, reverse

DEFAULT_IDLE_NS = 600_000_000_000
JUMP_NS = 1_800_000_000_000
"""Longest forward step between two datagrams of a flow; with a longer one the clock was set.

Neither side was silent then: a client that restarts after a long silence uses another port.
"""

# Each takes less than 1 kB.
DEFAULT_MAX_STREAMS = 16_384


class _Pair:
    """Two endpoints and their current stream, if it has not ended."""

    __slots__ = ("client_flow", "has_duplicates", "last_ns", "server_flow", "stream")

    def __init__(self, client_flow: bytes, server_flow: bytes) -> None:
        # The flows of the datagrams from the client and from the server.
        self.client_flow = client_flow
        self.server_flow = server_flow
        self.last_ns = 0
        self.stream: Stream | None = None
        self.has_duplicates = False


class _Side:
    """One direction of a stream, looked up by its flow."""

    __slots__ = ("direction", "offset", "pair", "stream")

    def __init__(self, pair: _Pair, stream: Stream, direction: Direction) -> None:
        self.pair = pair
        self.stream = stream
        self.direction = direction
        self.offset = 0


class UdpFlows:
    """An assignment of datagrams to streams as they arrive.

    The server is, in this order: the side whose port is in `server_ports`, if exactly one is; an endpoint
    that was detected as a server before; the side that `detect_direction` identifies now; the server of the
    pair's last stream; the receiver of the first datagram. The roles of a stream never change.

    A stream ends when neither side has sent for `idle_ns`; the next datagram opens a new one. Jumps of a
    clock that was set do not count. Beyond `max_streams`, those that have been silent longest are evicted.
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
        # Sides of open streams by flow; all pairs, including those whose stream has ended, by both flows.
        self._sides: dict[bytes, _Side] = {}
        self._pairs: dict[bytes, _Pair] = {}
        self._duplicates = DuplicateDetector()
        # The time for measuring silence: the packets' time plus a shift for clock adjustments.
        self._now_ns = 0
        self._shift_ns = 0
        self._next_sweep_ns = 0

    def feed(self, datagram: Datagram, ts_ns: int, items: list[Item]) -> None:
        """Append the Chunk of a datagram to `items`, after an End for each stream that is idle by now."""
        flow, payload, missing, identification = datagram
        side = self._sides.get(flow)
        now_ns = ts_ns + self._shift_ns
        if not -DISORDER_NS <= now_ns - self._now_ns <= JUMP_NS:
            if self._now_ns and (side is not None or now_ns < self._now_ns):
                self._shift_ns += self._now_ns - now_ns
            now_ns = ts_ns + self._shift_ns
        self._now_ns = now_ns
        if now_ns >= self._next_sweep_ns:
            self.expire(ts_ns, items)
            side = self._sides.get(flow)
        if self._duplicates.is_duplicate(datagram, ts_ns) and side is not None:
            self._report_duplicate(side, ts_ns, identification, items)
            return
        if side is None or now_ns - side.pair.last_ns > self._idle_ns:
            side = self._open(flow, payload, ts_ns, items)
        side.pair.last_ns = now_ns
        offset = side.offset
        side.offset = offset + len(payload) + missing
        items.append(Chunk(side.stream, side.direction, ts_ns, offset, payload, missing))

    def expect_copies(self, skew_ns: int) -> None:
        """Treat a datagram that is repeated after about `skew_ns` as a copy from another capture."""
        self._duplicates.expect_copies(skew_ns)

    def _report_duplicate(self, side: _Side, ts_ns: int, identification: int, items: list[Item]) -> None:
        """Report the first duplicate datagram of a stream."""
        if side.pair.has_duplicates:
            return
        side.pair.has_duplicates = True
        how = (
            "captured twice" if identification else "captured twice, or sent twice without an identification"
        )
        text = f"a datagram was {how}: it counts once, as do further duplicates in this stream"
        items.append(
            Fault(side.stream, side.direction, ts_ns, side.offset, "captured-twice", text, severity="note")
        )

    def expire(self, ts_ns: int, items: list[Item]) -> None:
        """Append an End for each stream that is idle at `ts_ns`; live sources must call this regularly."""
        now_ns = ts_ns + self._shift_ns
        self._next_sweep_ns = now_ns + self._idle_ns // 8
        for pair in self._open_pairs():
            if now_ns - pair.last_ns > self._idle_ns:
                self._end_idle(pair, items)

    def close(self, ts_ns: int, items: list[Item]) -> None:
        """Append an End for each open stream, as the source ends at `ts_ns`."""
        for pair in self._open_pairs():
            self._end(pair, ts_ns, "end", items)

    def _open_pairs(self) -> list[_Pair]:
        return [side.pair for side in self._sides.values() if side.direction == "c2s"]

    def _open(self, flow: bytes, payload: bytes, ts_ns: int, items: list[Item]) -> _Side:
        """Open a stream with its first datagram; return the side that sent it."""
        pair = self._pairs.get(flow)
        if pair is not None and pair.stream is not None:
            self._end_idle(pair, items)
        if pair is None and len(self._pairs) >= 2 * self._max_streams:
            self._make_room(ts_ns, items)
        source, destination = endpoints(flow)
        direction = self._servers.known_direction(flow) or self._servers.detect(
            flow, payload, source, destination
        )
        if direction is None:
            direction = "s2c" if pair is not None and flow == pair.server_flow else "c2s"
        if direction == "c2s":
            pair = _Pair(flow, reverse(flow))
            client, server = source, destination
        else:
            pair = _Pair(reverse(flow), flow)
            client, server = destination, source
        pair.stream = stream = Stream(next(self._stream_ids), "udp", client, server, ts_ns)
        self._pairs[pair.client_flow] = self._pairs[pair.server_flow] = pair
        # The client is assigned last, for a socket that sends to itself: its two flows are one.
        self._sides[pair.server_flow] = _Side(pair, stream, "s2c")
        self._sides[pair.client_flow] = _Side(pair, stream, "c2s")
        return self._sides[flow]

    def _make_room(self, ts_ns: int, items: list[Item]) -> None:
        """Evict the eighth of the pairs that has been silent longest, so that this is rarely needed."""
        pairs = {id(pair): pair for pair in self._pairs.values()}.values()
        for pair in nsmallest(self._max_streams // 8 + 1, pairs, key=lambda pair: pair.last_ns):
            if pair.stream is not None:
                self._end(pair, ts_ns, "evicted", items)
            self._pairs.pop(pair.client_flow, None)
            self._pairs.pop(pair.server_flow, None)

    def _end_idle(self, pair: _Pair, items: list[Item]) -> None:
        self._end(pair, pair.last_ns + self._idle_ns - self._shift_ns, "idle", items)

    def _end(self, pair: _Pair, ts_ns: int, reason: str, items: list[Item]) -> None:
        if pair.stream is not None:
            items.append(End(pair.stream, ts_ns, reason))
            pair.stream = None
            self._sides.pop(pair.client_flow, None)
            self._sides.pop(pair.server_flow, None)
