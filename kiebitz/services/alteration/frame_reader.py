"""Conversion of received bytes into messages for rules, and bytes to forward unchanged."""

from __future__ import annotations

from collections.abc import Callable

from kiebitz.dissectors.dissector import ServerAddress, address_of, identify
from kiebitz.dissectors.inspection.inspector import DecodeAs, configured
from kiebitz.dissectors.inspection.recognition import MAX_UNDECIDED_HEAD, MAX_UNDECIDED_ITEMS
from kiebitz.dissectors.model import OPPOSITE, Stream
from kiebitz.dissectors.registry import installed
from kiebitz.services.alteration.delivery_queue import DirectionQueue, Framing, RelayedStream, Server

SETTLE_NS = 20_000_000
"""Time after which a message that only lacks an optional end counts as complete."""

INCOMPLETE_TIMEOUT_NS = 1_000_000_000
"""Longest time to hold an incomplete message before it is forwarded unchanged."""

MAX_INCOMPLETE_BYTES = 16 << 20
"""Maximum number of bytes held as incomplete messages, of all streams."""

Put = Callable[[RelayedStream, DirectionQueue, bytes, bytes | None], None]
"""Accepts bytes of a direction, in order, and the frame in them if they are a complete message."""

Schedule = Callable[[RelayedStream, DirectionQueue, int], None]
"""Schedules a call of `look` for a direction."""


class FrameReader:
    """Splits the bytes of all streams into messages, and passes them to `put`.

    A server's protocol is recognised by the first message that only fits one protocol, unless `decode_as` has
    it. Earlier bytes are forwarded unchanged.
    """

    def __init__(self, put: Put, schedule: Schedule, decode_as: DecodeAs) -> None:
        self._put = put
        self._schedule = schedule
        self._decode_as = decode_as
        self._servers: dict[ServerAddress, Server] = {}
        self._unfinished = 0

    def meet(self, stream: Stream) -> Server:
        """Return the server of a new stream."""
        key = _address(stream)
        server = self._servers.get(key)
        if server is None:
            server = self._servers[key] = Server()
            for server.dissector in configured(self._decode_as, key):
                server.is_no_game = server.dissector is None
        if server.dissector is not None:
            stream.protocol = server.dissector.protocol
        server.streams.append(stream)
        return server

    def leave(self, stream: Stream) -> None:
        """Remove a closed stream; a server's protocol is forgotten with its last stream."""
        key = _address(stream)
        server = self._servers[key]
        server.streams.remove(stream)
        if not server.streams:
            del self._servers[key]

    def read(self, relayed: RelayedStream, queue: DirectionQueue, now_ns: int, data: bytes) -> None:
        """Process received bytes."""
        server, is_stream = relayed.server, relayed.stream.transport == "tcp"
        if server.dissector is None:
            self._recognise(relayed, queue, data)
        if server.dissector is None or len(queue.head) > MAX_UNDECIDED_HEAD:
            if is_stream and len(queue.head) <= MAX_UNDECIDED_HEAD:
                queue.head += data
            self._put(relayed, queue, data, None)
            return
        if queue.framing is None:
            queue.framing = Framing(server.dissector.framer(queue.direction), bytes(queue.head))
            queue.head.clear()
        other = relayed.queues[OPPOSITE[queue.direction]]
        if is_stream:
            # A reply shows that the other side has received a complete message.
            self._settle(relayed, other)
        for piece in queue.framing.feed(data):
            self._put(relayed, queue, *piece)
        self._watch(relayed, queue, now_ns)

    def look(self, relayed: RelayedStream, queue: DirectionQueue, now_ns: int) -> None:
        """Handle the timeouts of an incomplete message."""
        if queue.unfinished is None:
            return
        waited = now_ns - queue.unfinished[1]
        if waited >= SETTLE_NS:
            self._settle(relayed, queue)
        if waited >= INCOMPLETE_TIMEOUT_NS:
            self.give_up(relayed, queue)

    def give_up(self, relayed: RelayedStream, queue: DirectionQueue) -> None:
        """Forward an incomplete message unchanged."""
        data = queue.framing.give_up() if queue.framing is not None else b""
        if data:
            self._put(relayed, queue, data, None)
        queue.unfinished = None
        self._count(queue, 0)

    def _settle(self, relayed: RelayedStream, queue: DirectionQueue) -> None:
        if queue.framing is not None:
            for piece in queue.framing.settle():
                self._put(relayed, queue, *piece)
            self._count(queue, queue.framing.waiting)

    def _watch(self, relayed: RelayedStream, queue: DirectionQueue, now_ns: int) -> None:
        """Schedule the timeouts of an incomplete message."""
        assert queue.framing is not None
        start = queue.framing.unfinished
        self._count(queue, queue.framing.waiting)
        if start is None:
            queue.unfinished = None
        elif self._unfinished > MAX_INCOMPLETE_BYTES:
            self.give_up(relayed, queue)
        elif queue.unfinished is None or queue.unfinished[0] != start:
            queue.unfinished = (start, now_ns)
            self._schedule(relayed, queue, now_ns + SETTLE_NS)
            self._schedule(relayed, queue, now_ns + INCOMPLETE_TIMEOUT_NS)

    def _count(self, queue: DirectionQueue, waiting: int) -> None:
        self._unfinished += waiting - queue.unfinished_bytes
        queue.unfinished_bytes = waiting

    def _recognise(self, relayed: RelayedStream, queue: DirectionQueue, data: bytes) -> None:
        """Try to recognise the server's protocol."""
        server = relayed.server
        if server.is_no_game or server.tried >= MAX_UNDECIDED_ITEMS[relayed.stream.transport]:
            return
        server.tried += 1
        beginning = bytes(queue.head) + data
        for dissector in identify(
            installed().dissectors.values(), relayed.stream, queue.direction, beginning
        ):
            server.dissector = dissector
            for stream in server.streams:
                stream.protocol = dissector.protocol
            return


def _address(stream: Stream) -> ServerAddress:
    return address_of(stream.transport, stream.server, installed().dissectors.values())
