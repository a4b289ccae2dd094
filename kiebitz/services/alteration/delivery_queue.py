"""Queues of messages and other bytes, and the reader that splits a direction of a stream into them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, get_args

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.framing import FRAME_LIMIT, Frame, Framer
from kiebitz.dissectors.inspection.memo import FrameCache
from kiebitz.dissectors.model import Action, Direction, Message, Stream

# Most protocols are not carried in WebSocket.
if TYPE_CHECKING:
    from kiebitz.dissectors.websocket.encapsulation import WebSocketEncapsulation
from kiebitz.dissectors.dissector import ServerAddress, address_of, identify
from kiebitz.dissectors.inspection.inspector import DecodeAs, configured
from kiebitz.dissectors.inspection.recognition import MAX_UNDECIDED_HEAD, MAX_UNDECIDED_ITEMS
from kiebitz.dissectors.model import OPPOSITE
from kiebitz.dissectors.registry import installed
from kiebitz.proxy.alterer import Mark


class Piece(NamedTuple):
    """Consecutive bytes; if they are exactly one message, with its frame, else None."""

    data: bytes
    frame: bytes | None


class Framing:
    """Splits bytes as `framer` does and holds incomplete messages; no byte is returned twice.

    Once the framer has raised, bytes are neither split nor held.
    `passed` are the bytes of this direction forwarded before its protocol was known.
    """

    def __init__(self, framer: Framer, passed: bytes) -> None:
        self._framer = framer
        self._has_failed = False
        self._held = bytearray()
        self._upto = self._start = len(passed)
        """Number of bytes received; offset of the held bytes."""
        if passed:
            deque(self._frames(lambda framer: framer.feed(0, passed)), 0)
        self._given_up = self._start
        """Messages that begin before this offset have been forwarded, at least in part."""
        self.is_mid_message = self._is_unfinished
        """True if only the beginning of a message has been forwarded."""

    @property
    def unfinished(self) -> int | None:
        """Offset at which the held incomplete message begins, None if there is none."""
        return self._start if self._held else None

    @property
    def waiting(self) -> int:
        """Number of held bytes."""
        return len(self._held)

    def feed(self, data: bytes) -> Iterator[Piece]:
        """Yield complete messages, and bytes that need not or cannot be held."""
        offset = self._upto
        self._upto += len(data)
        self._held += data
        yield from self._pieces(self._frames(lambda framer: framer.feed(offset, data)))
        if len(self._held) > FRAME_LIMIT or (self.is_mid_message and self._held):
            yield Piece(self.give_up(), None)

    def settle(self) -> Iterator[Piece]:
        """Yield messages that only lack an optional end, after no more bytes have arrived for a while."""
        yield from self._pieces(self._frames(lambda framer: framer.settle()))

    def give_up(self) -> bytes:
        """Return the held bytes, to be forwarded unchanged; so will be the rest of their message."""
        data = bytes(self._held)
        self._held.clear()
        self._start = self._given_up = self._upto
        self.is_mid_message = self._is_unfinished
        return data

    def _frames(self, read: Callable[[Framer], Iterable[Frame]]) -> Iterator[Frame]:
        if not self._has_failed:
            try:
                yield from read(self._framer)
            except Exception:
                # The recorder, which reads the same bytes, reports it.
                self._has_failed = self.is_mid_message = True

    @property
    def _is_unfinished(self) -> bool:
        return self._has_failed or self._framer.is_unfinished

    def _pieces(self, frames: Iterable[Frame]) -> Iterator[Piece]:
        for frame in frames:
            end = frame.offset + frame.size
            size = max(0, end - self._start)
            data = bytes(self._held[:size])
            del self._held[:size]
            is_whole = frame.cut is None and frame.offset >= self._given_up
            self._start = max(self._start, end)
            self.is_mid_message &= end < self._given_up
            if data or is_whole:
                yield Piece(data, frame.data if is_whole else None)


_BY_SEVERITY: tuple[Action, ...] = get_args(Action)


class Copy(msgspec.Struct, eq=False):
    """A message, or bytes that cannot be decoded, as they will be forwarded at `due_ns`.

    `message` is its decoded form, None if unknown; `rule` is the index of the next rule to apply. Sending
    takes `takes_ns` (limited rate). At most one copy of received data `is_original`. `alterations` are the
    alterations, each with its rule.
    """

    direction: Direction
    data: bytes
    message: Message | None
    due_ns: int
    rule: int = 0
    takes_ns: int = 0
    received: tuple[bytes, bytes] | None = None
    """The frame that was received, and the bytes that carried it."""
    is_wire: bool = False
    """True if `data` is sent as it is, False if it is a frame, which something may have to carry."""
    is_original: bool = False
    is_dropped: bool = False
    resets: bool = False
    may_be_overtaken: bool = False
    """True if later messages may be forwarded before it."""
    is_reordered: bool = False
    """True if it is forwarded right after the next later message."""
    alterations: list[tuple[Action, str]] = msgspec.field(default_factory=list)


class Slot(msgspec.Struct, eq=False):
    """Data received at once, its position in the order, and the copies that are forwarded instead.

    All of it is queued while `waits` (the number of pending decisions) is not 0. With `ends` it is the end of
    the direction instead of data.
    """

    sent_ns: int
    original: bytes
    message: Message | None
    copies: list[Copy] = msgspec.field(default_factory=list)
    waits: int = 0
    ends: bool = False
    is_cut: bool = False
    """True if its last message continues in the data after it."""
    unpacked: int = 0
    """Number of bytes by which its message is longer than the data, which compress it."""

    def mark(self, copy: Copy) -> Mark | None:
        """Return the record of how a copy was altered, None if it was not."""
        if not copy.alterations:
            return None
        action = min((action for action, _ in copy.alterations), key=_BY_SEVERITY.index)
        rule = "; ".join(dict.fromkeys(rule for _, rule in copy.alterations))
        if not copy.is_original:
            return Mark(action, rule, None, None, None, None)
        said = self.message
        return Mark(
            action,
            rule,
            self.sent_ns,
            self.original,
            said.name if said is not None else None,
            said.fields_json if said is not None else None,
        )


class DirectionQueue(msgspec.Struct, eq=False):
    """A direction of a stream: its queue, in order, and the queue's size in bytes.

    Nothing is forwarded before `free_ns`. `head` are the first bytes, until the protocol is known. `loose`
    are copies that later ones may overtake. `counts` are the numbers of messages that have matched each rule.
    """

    stream: Stream
    direction: Direction
    place: str
    """Name of the direction, the same in each run."""
    framing: Framing | None = None
    head: bytearray = msgspec.field(default_factory=bytearray)
    slots: deque[Slot] = msgspec.field(default_factory=deque)
    loose: list[tuple[Slot, Copy]] = msgspec.field(default_factory=list)
    bytes: int = 0
    free_ns: int = 0
    is_mid_message: bool = False
    """True if only the beginning of a message has been forwarded."""
    has_ended: bool = False
    """True if the end of the direction has been forwarded."""
    unfinished: tuple[int, int] | None = None
    """Offset at which an incomplete message begins, and the time since when it is incomplete."""
    unfinished_bytes: int = 0
    passed: int = 0
    """Number of bytes forwarded."""
    is_rewritten: bool = False
    """True if the receiver lacks a message to which later ones may refer."""
    counts: dict[int, int] = msgspec.field(default_factory=dict)


class Server(msgspec.Struct, eq=False):
    """A server and its protocol once known.

    `latest` has the last message of each name, `memo` recently decoded frames. `tried` counts failed
    attempts to recognise the protocol; `streams` are the open ones.
    """

    dissector: Dissector | None = None
    is_no_game: bool = False
    tried: int = 0
    memo: dict[Direction, FrameCache] = msgspec.field(
        default_factory=lambda: {"c2s": FrameCache(), "s2c": FrameCache()}
    )
    streams: list[Stream] = msgspec.field(default_factory=list)
    latest: dict[tuple[Direction, str], bytes] = msgspec.field(default_factory=dict)


class RelayedStream(msgspec.Struct, eq=False):
    """A relayed stream, its server, and its two directions."""

    stream: Stream
    server: Server
    queues: dict[Direction, DirectionQueue]
    is_reset: bool = False
    """True if a rule has reset the connection."""

    @property
    def _encapsulation(self) -> WebSocketEncapsulation | None:
        return None if self.server.dissector is None else self.server.dissector.encapsulation

    def to_send(self, copy: Copy) -> bytes:
        """Return the bytes to send for a copy: those received if it is unaltered and can still be read."""
        carried = self._encapsulation
        if copy.is_wire or carried is None:
            return copy.data
        queue = self.queues[copy.direction]
        if copy.received is not None:
            frame, data = copy.received
            refers = carried.needs_history(data)
            if frame == copy.data and not (refers and queue.is_rewritten) and not copy.may_be_overtaken:
                return data
            queue.is_rewritten |= refers
        return carried.wrap(copy.data, copy.direction)

    def not_sent(self, copy: Copy) -> None:
        """Note that a copy is dropped."""
        carried = self._encapsulation
        if carried is not None and copy.received is not None:
            self.queues[copy.direction].is_rewritten |= carried.needs_history(copy.received[1])


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
