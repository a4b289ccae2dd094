"""UDP conversations: which datagrams belong together, who is the client, and where each byte stands.

UDP has no connections (RFC 768), so a stream here is all that goes between two `ip:port` pairs until both
have been silent for long. What the datagrams say is not looked at; who can tell from that which side is the
server is asked through `orient`.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nsmallest

from kiebitz.dissectors.model import Chunk, Direction, End, Fault, Item, Stream
from kiebitz.proxy.capture.duplicate_packets import Repeats
from kiebitz.proxy.capture.packets import Datagram, endpoints
from kiebitz.proxy.flows.packet_clock import DISORDER_NS
from kiebitz.proxy.flows.server_detection import Orient, Servers, reverse

DEFAULT_IDLE_NS = 600_000_000_000
JUMP_NS = 1_800_000_000_000
"""A clock that jumps ahead by more from one datagram to the next of the same flow was set.

Neither side was silent then: a client that begins anew after a long silence does so from another port.
"""

# Under 1 kB each.
DEFAULT_MAX_STREAMS = 16_384


class _Pair:
    """Two endpoints and their current stream, if they have one that has not ended."""

    __slots__ = ("client_flow", "has_repeats", "last_ns", "server_flow", "stream")

    def __init__(self, client_flow: bytes, server_flow: bytes) -> None:
        # The flow of the datagrams that the client sends, and of those that the server sends.
        self.client_flow = client_flow
        self.server_flow = server_flow
        self.last_ns = 0
        self.stream: Stream | None = None
        self.has_repeats = False


class _Side:
    """One direction of a stream, found by its flow."""

    __slots__ = ("direction", "offset", "pair", "stream")

    def __init__(self, pair: _Pair, stream: Stream, direction: Direction) -> None:
        self.pair = pair
        self.stream = stream
        self.direction = direction
        self.offset = 0


class UdpConversations:
    """Sorts datagrams into streams, as they come.

    The server is, in this order: the side whose port is in `server_ports`, if exactly one is; an endpoint
    that `orient` has recognised as a server before; the side that `orient` names now; the side that was it
    in the last stream of this pair; the receiver of the first datagram. What a stream has begun with stays.

    A stream ends when neither side has sent for `idle_ns`; the next datagram begins a new one. The jumps of a
    clock that was set do not count. There are at
    most `max_streams` at once, else those that have been silent longest end.
    """

    def __init__(
        self,
        stream_ids: Iterator[int],
        orient: Orient,
        server_ports: frozenset[int],
        idle_ns: int = DEFAULT_IDLE_NS,
        max_streams: int = DEFAULT_MAX_STREAMS,
    ) -> None:
        self._stream_ids = stream_ids
        self._servers = Servers(server_ports, orient)
        self._idle_ns = idle_ns
        self._max_streams = max_streams
        # Sides of open streams by their flow; all pairs, also those whose stream has ended, by both flows.
        self._sides: dict[bytes, _Side] = {}
        self._pairs: dict[bytes, _Pair] = {}
        self._repeats = Repeats()
        # The time by which silence is measured: that of the packets and a shift, as their clock was set.
        self._now_ns = 0
        self._shift_ns = 0
        self._next_sweep_ns = 0

    def feed(self, datagram: Datagram, ts_ns: int, items: list[Item]) -> None:
        """Append the Chunk of a datagram to `items`, after the End of streams that are idle by now."""
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
        if self._repeats.is_repeated(datagram, ts_ns) and side is not None:
            self._tell_repeated(side, ts_ns, identification, items)
            return
        if side is None or now_ns - side.pair.last_ns > self._idle_ns:
            side = self._open(flow, payload, ts_ns, items)
        side.pair.last_ns = now_ns
        offset = side.offset
        side.offset = offset + len(payload) + missing
        items.append(Chunk(side.stream, side.direction, ts_ns, offset, payload, missing))

    def expect_copies(self, skew_ns: int) -> None:
        """Take a datagram that comes again after `skew_ns`, about, for a copy of another capture."""
        self._repeats.expect_copies(skew_ns)

    def _tell_repeated(self, side: _Side, ts_ns: int, identification: int, items: list[Item]) -> None:
        """Tell of the first datagram of a stream that came again."""
        if side.pair.has_repeats:
            return
        side.pair.has_repeats = True
        how = (
            "captured twice" if identification else "captured twice, or sent twice without an identification"
        )
        text = f"a datagram was {how}: it counts once, as does whatever else of this stream comes again so"
        items.append(
            Fault(side.stream, side.direction, ts_ns, side.offset, "captured-twice", text, severity="note")
        )

    def expire(self, ts_ns: int, items: list[Item]) -> None:
        """Append an End for each stream that is idle at `ts_ns`; a live source calls this now and then."""
        now_ns = ts_ns + self._shift_ns
        self._next_sweep_ns = now_ns + self._idle_ns // 8
        for pair in self._open_pairs():
            if now_ns - pair.last_ns > self._idle_ns:
                self._end_idle(pair, items)

    def close(self, ts_ns: int, items: list[Item]) -> None:
        """Append an End for each stream that is still open: the source is at its end at `ts_ns`."""
        for pair in self._open_pairs():
            self._end(pair, ts_ns, "end", items)

    def _open_pairs(self) -> list[_Pair]:
        return [side.pair for side in self._sides.values() if side.direction == "c2s"]

    def _open(self, flow: bytes, payload: bytes, ts_ns: int, items: list[Item]) -> _Side:
        """Begin a stream with a datagram; give the side that sent it."""
        pair = self._pairs.get(flow)
        if pair is not None and pair.stream is not None:
            self._end_idle(pair, items)
        if pair is None and len(self._pairs) >= 2 * self._max_streams:
            self._make_room(ts_ns, items)
        source, destination = endpoints(flow)
        direction = self._servers.known(flow) or self._servers.recognise(flow, payload, source, destination)
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
        # The client's last, for the socket that sends to itself: its two flows are one.
        self._sides[pair.server_flow] = _Side(pair, stream, "s2c")
        self._sides[pair.client_flow] = _Side(pair, stream, "c2s")
        return self._sides[flow]

    def _make_room(self, ts_ns: int, items: list[Item]) -> None:
        """Forget the eighth of the pairs that has been silent longest, so that this is seldom to do."""
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
