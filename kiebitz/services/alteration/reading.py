"""Conversion of received bytes into messages for rules, and bytes to forward unchanged."""

from __future__ import annotations

from collections.abc import Callable

from kiebitz.dissectors.dissector import recognise
from kiebitz.dissectors.inspection.inspector import MAX_UNDECIDED_HEAD, MAX_UNDECIDED_ITEMS, DecodeAs
from kiebitz.dissectors.model import OPPOSITE, Stream, Transport, port_of
from kiebitz.dissectors.registry import installed
from kiebitz.services.alteration.delivery_queue import Passage, Server, Way
from kiebitz.services.alteration.framing import Framing

SETTLE_NS = 20_000_000
"""Time after which a message that only lacks an optional end counts as complete."""

PATIENCE_NS = 1_000_000_000
"""Longest time to hold an incomplete message before it is forwarded unchanged."""

MOST_UNFINISHED = 16 << 20
"""Maximum number of bytes held as incomplete messages, of all streams."""

Put = Callable[[Passage, Way, bytes, bool], None]
"""Accepts bytes of a direction, in order; the flag is True for a complete message."""

Schedule = Callable[[Passage, Way, int], None]
"""Schedules a call of `look` for a direction."""


class Reading:
    """Splits the bytes of all streams into messages, and passes them to `put`.

    A server's protocol is recognised by the first message that only fits one protocol, unless `decode_as` has
    it. Earlier bytes are forwarded unchanged.
    """

    def __init__(self, put: Put, schedule: Schedule, decode_as: DecodeAs) -> None:
        self._put = put
        self._schedule = schedule
        self._decode_as = decode_as
        self._servers: dict[tuple[Transport, str], Server] = {}
        self._unfinished = 0

    def meet(self, stream: Stream) -> Server:
        """Return the server of a new stream."""
        key = stream.transport, stream.server
        server = self._servers.get(key)
        if server is None:
            port = stream.transport, port_of(stream.server)
            forced = self._decode_as.get(port)
            server = self._servers[key] = Server(forced, is_no_game=port in self._decode_as and not forced)
        if server.dissector is not None:
            stream.protocol = server.dissector.protocol
        server.streams.append(stream)
        return server

    def leave(self, stream: Stream) -> None:
        """Remove a closed stream; a server's protocol is forgotten with its last stream."""
        server = self._servers[stream.transport, stream.server]
        server.streams.remove(stream)
        if not server.streams:
            del self._servers[stream.transport, stream.server]

    def read(self, passage: Passage, way: Way, now_ns: int, data: bytes) -> None:
        """Process received bytes."""
        server, is_stream = passage.server, passage.stream.transport == "tcp"
        if server.dissector is None:
            self._recognise(passage, way, data)
        if server.dissector is None or len(way.head) > MAX_UNDECIDED_HEAD:
            if is_stream and len(way.head) <= MAX_UNDECIDED_HEAD:
                way.head += data
            self._put(passage, way, data, False)
            return
        if way.framing is None:
            way.framing = Framing(server.dissector.framer(way.direction), bytes(way.head))
            way.head.clear()
        other = passage.ways[OPPOSITE[way.direction]]
        if is_stream:
            # A reply shows that the other side has received a complete message.
            self._settle(passage, other)
        for piece in way.framing.feed(data):
            self._put(passage, way, *piece)
        self._watch(passage, way, now_ns)

    def look(self, passage: Passage, way: Way, now_ns: int) -> None:
        """Handle the timeouts of an incomplete message."""
        if way.unfinished is None:
            return
        waited = now_ns - way.unfinished[1]
        if waited >= SETTLE_NS:
            self._settle(passage, way)
        if waited >= PATIENCE_NS:
            self.give_up(passage, way)

    def give_up(self, passage: Passage, way: Way) -> None:
        """Forward an incomplete message unchanged."""
        data = way.framing.give_up() if way.framing is not None else b""
        if data:
            self._put(passage, way, data, False)
        way.unfinished = None
        self._count(way, 0)

    def _settle(self, passage: Passage, way: Way) -> None:
        if way.framing is not None:
            for piece in way.framing.settle():
                self._put(passage, way, *piece)
            self._count(way, way.framing.waiting)

    def _watch(self, passage: Passage, way: Way, now_ns: int) -> None:
        """Schedule the timeouts of an incomplete message."""
        assert way.framing is not None
        start = way.framing.unfinished
        self._count(way, way.framing.waiting)
        if start is None:
            way.unfinished = None
        elif self._unfinished > MOST_UNFINISHED:
            self.give_up(passage, way)
        elif way.unfinished is None or way.unfinished[0] != start:
            way.unfinished = (start, now_ns)
            self._schedule(passage, way, now_ns + SETTLE_NS)
            self._schedule(passage, way, now_ns + PATIENCE_NS)

    def _count(self, way: Way, waiting: int) -> None:
        self._unfinished += waiting - way.unfinished_bytes
        way.unfinished_bytes = waiting

    def _recognise(self, passage: Passage, way: Way, data: bytes) -> None:
        """Try to recognise the server's protocol."""
        server, transport = passage.server, passage.stream.transport
        if server.is_no_game or server.tried >= MAX_UNDECIDED_ITEMS[transport]:
            return
        server.tried += 1
        beginning = bytes(way.head) + data
        for dissector, *seen in recognise(installed().dissectors.values(), transport, beginning):
            if seen == [way.direction, "certain"]:
                server.dissector = dissector
                for stream in server.streams:
                    stream.protocol = dissector.protocol
                return
