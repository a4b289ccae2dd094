"""The interception engine: takes the bytes of all streams and returns what to forward instead.

It has no socket and no clock. Bytes are split into messages, the rules are applied to each, and the resulting
copies are queued in the order of their direction until they are due. Bytes of a server whose protocol is not
known yet are forwarded unchanged; rules without a filter, such as `--impair`, apply to them too.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

import msgspec

from kiebitz.dissectors.inspection.inspector import DecodeAs, Inspector
from kiebitz.dissectors.model import (
    DIRECTIONS,
    OPPOSITE,
    Chunk,
    Direction,
    End,
    Ids,
    Message,
    Stream,
    Transport,
)
from kiebitz.dissectors.registry import installed
from kiebitz.proxy.alterer import Delivery, Mark
from kiebitz.proxy.relay.endpoints import Notice
from kiebitz.services.alteration.delivery_queue import Copy, DirectionQueue, FrameReader, RelayedStream, Slot
from kiebitz.services.alteration.hook_process import HookProcess
from kiebitz.services.alteration.pending_decisions import DecisionBroker
from kiebitz.services.alteration.rule_applier import RuleApplier, decode_message
from kiebitz.services.alteration.rules import Insert, Rule

_REORDER_WAIT_NS = 1_000_000_000
"""Longest time that a reordered message waits for a later one."""

MAX_QUEUED_BYTES = 1 << 20
"""Maximum number of queued bytes in one direction; the total is limited to 64 times as many."""

_MAX_TOTAL_BYTES = 64 * MAX_QUEUED_BYTES
_MAX_UNPACKED_BYTES = 8 * MAX_QUEUED_BYTES
"""Maximum number of queued bytes in one direction if messages in it are compressed."""

_MAX_SLOTS = 4096
_SLOT_BYTES = 256
"""Memory of a queued message in addition to its own bytes."""

_MAX_TEMPLATE_BYTES = 64 << 10
"""Maximum size of a message kept as a template for forced inserts."""

_MAX_JOINED_BYTES = 16 << 10
"""Size (bytes) up to which data forwarded at once is joined; beyond it copying costs too much."""

_DRAIN_INTERVAL = 256
"""Number of chunks inspected before the results are discarded."""


class Engine:
    """Applies `rules` to all streams, as a `kiebitz.proxy.alterer.Alterer`.

    `decode_as` are protocols known beforehand; `on_notice` gets problems; times in filters count from
    `started_ns`. `hooks` are the hooks of scripts by path. With `drops_held` messages held at the end are
    dropped.
    """

    def __init__(
        self,
        rules: Sequence[Rule],
        *,
        started_ns: int,
        on_notice: Notice,
        decode_as: DecodeAs | None = None,
        hooks: Mapping[str, HookProcess] | None = None,
        drops_held: bool = False,
    ) -> None:
        self.streams_before = 0
        """Number of streams in the database before the relay's first."""
        self.on_ready: Callable[[], None] = lambda: None
        """Called when a decision makes messages due."""
        self._rules = rules
        self._on_notice = on_notice
        self.broker = DecisionBroker(hooks or {}, self._wake, drops_held=drops_held)
        self._applier = RuleApplier(rules, started_ns, self._state, self.broker.ask, on_notice)
        self.broker.applier = self._applier
        self._reading = FrameReader(self._put, self._schedule, decode_as or {})
        self._streams: dict[int, RelayedStream] = {}
        self._clock: list[tuple[int, int, Direction]] = []
        """Times at which a direction of a stream has something due, a heap."""
        self._ready: set[tuple[int, Direction]] = set()
        """Directions in which a pending decision was made."""
        self._out: list[Delivery] = []
        self._bytes = 0
        self._marked_bytes = 0
        """Size of the fields of original messages in `_out`."""
        self._now_ns = started_ns
        self._inspector: Inspector | None = None
        self._inspected = 0
        self._keeps_latest = any(isinstance(rule, Insert) and rule.is_forced for rule in rules)
        if self._applier.asks_for_state:
            self._inspector = Inspector(installed().dissectors.values(), Ids(), decode_as)
            self._inspector.on_full = self._inspector.drain

    # Called by relays.

    @property
    def next_due_ns(self) -> int | None:
        """Next time at which `due` returns something; 0 for at once, None for never."""
        if self._ready:
            return 0
        return self._clock[0][0] if self._clock else None

    def stream_opened(self, number: int, transport: Transport, client: str, server: str, now_ns: int) -> None:
        """Register a new stream."""
        stream = Stream(self.streams_before + number, transport, client, server, now_ns)
        queues = {
            direction: DirectionQueue(stream, direction, f"{number} {direction}") for direction in DIRECTIONS
        }
        self._streams[number] = RelayedStream(stream, self._reading.meet(stream), queues)
        self.broker.opened(stream)

    def data_received(
        self, number: int, direction: Direction, now_ns: int, data: bytes
    ) -> Sequence[Delivery]:
        """Process a datagram or a chunk of a byte stream."""
        self._now_ns = now_ns
        relayed = self._streams[number]
        queue = relayed.queues[direction]
        if self._is_used_up(queue, data):
            # Over TCP, `is_full` stops reading before that.
            text = f"too much is queued: over {MAX_QUEUED_BYTES >> 20} MiB or {_MAX_SLOTS} messages"
            self._on_notice("too-much", f"udp {_way(queue)}: {text}. Further data is dropped.")
            self._put(relayed, queue, data, data if queue.framing is not None else None, lost=text)
        elif self._applier.reads:
            self._reading.read(relayed, queue, now_ns, data)
        else:
            self._put(relayed, queue, data, None)
        return self._given(relayed)

    def eof_received(self, number: int, direction: Direction, now_ns: int) -> Sequence[Delivery]:
        """Process the end of one direction of a byte stream."""
        self._now_ns = now_ns
        relayed = self._streams[number]
        queue = relayed.queues[direction]
        self._reading.give_up(relayed, queue)
        queue.slots.append(Slot(now_ns, b"", None, ends=True))
        self._count(queue, 0, 1)
        return self._given(relayed)

    def stream_closed(self, number: int, now_ns: int) -> Sequence[Delivery]:
        """Remove a stream; its queued messages are dropped."""
        relayed = self._streams.pop(number, None)
        if relayed is None:
            return ()
        for queue in relayed.queues.values():
            self._reading.give_up(relayed, queue)
            waiting = [(slot, copy) for slot in queue.slots for copy in slot.copies]
            for slot, copy in (*queue.loose, *waiting):
                if copy.is_original:
                    if not copy.is_dropped:
                        copy.alterations.append(("drop", "the connection has ended"))
                    self._out.append(Delivery(number, copy.direction, None, slot.mark(copy)))
            self._bytes -= queue.bytes
        self.broker.closed(relayed)
        self._reading.leave(relayed.stream)
        if self._inspector is not None:
            self._inspector.feed(End(relayed.stream, now_ns, "closed"))
        return self._drained()

    def due(self, now_ns: int) -> Sequence[Delivery]:
        """Return what is due by now."""
        self._now_ns = now_ns
        looked_at = [*self._ready]
        self._ready.clear()
        while self._clock and self._clock[0][0] <= now_ns:
            _, number, direction = heapq.heappop(self._clock)
            looked_at.append((number, direction))
        for number, direction in dict.fromkeys(looked_at):
            relayed = self._streams.get(number)
            if relayed is not None:
                self._look(relayed, relayed.queues[direction])
        return self._drained()

    def finish(self, now_ns: int) -> Sequence[Delivery]:
        """Flush the queues on shutdown; held messages are dropped if `drops_held`."""
        self._now_ns = now_ns
        return self._flush(self._streams.values())

    def is_full(self, number: int, direction: Direction) -> bool:
        """Return True if the sender should not be read from."""
        relayed = self._streams.get(number)
        if relayed is None:
            return False
        return relayed.queues[direction].bytes > MAX_QUEUED_BYTES // 4 or self._bytes > _MAX_TOTAL_BYTES // 2

    # Called for manual decisions.

    def insert(self, relayed: RelayedStream, direction: Direction, data: bytes, rule: str) -> None:
        """Insert a message before everything queued in its direction."""
        queue = relayed.queues[direction]
        message = decode_message(relayed, direction, data, self._now_ns)
        copy = Copy(direction, data, message, 0, len(self._rules), alterations=[("insert", rule)])
        # The queue may be waiting for a decision, and this message is part of it.
        queue.slots.appendleft(Slot(self._now_ns, b"", None, [copy]))
        self._count(queue, 0, 1)
        self._wake(relayed, direction)

    def _wake(self, relayed: RelayedStream, direction: Direction) -> None:
        self._ready.add((self._number(relayed), direction))
        self.on_ready()

    # Queueing.

    def _put(
        self,
        relayed: RelayedStream,
        queue: DirectionQueue,
        data: bytes,
        frame: bytes | None,
        lost: str | None = None,
    ) -> None:
        """Queue data, a message if it has a frame, and apply the rules to it; drop it if it is `lost`."""
        message = None
        unpacked = max(0, len(frame or b"") - len(data))
        if unpacked and not self._has_room(relayed, queue, unpacked):
            text = f"over {_MAX_UNPACKED_BYTES >> 20} MiB of decompressed messages are queued"
            self._on_notice("too-much", f"{_way(queue)}: {text}. Further ones are forwarded unread.")
            frame, unpacked = None, 0
        if frame is not None:
            message = decode_message(relayed, queue.direction, frame, self._now_ns)
            if message is not None:
                self._learn(relayed, queue, message, frame)
        slot = Slot(self._now_ns, data, message, unpacked=unpacked)
        slot.is_cut = frame is None and queue.framing is not None and queue.framing.is_mid_message
        copy = Copy(
            queue.direction,
            data if frame is None else frame,
            message,
            self._now_ns,
            received=None if frame is None else (frame, data),
            is_wire=frame is None,
            is_original=True,
        )
        if lost is not None:
            copy.alterations.append(("drop", lost))
            self._out.append(Delivery(self._number(relayed), queue.direction, None, slot.mark(copy)))
            return
        queue.slots.append(slot)
        self._count(queue, len(data) + unpacked, 1)
        self._applier.begin(relayed, slot, copy)

    def _has_room(self, relayed: RelayedStream, queue: DirectionQueue, unpacked: int) -> bool:
        """Return True if a decompressed message may be queued, after what is due has been forwarded."""
        if queue.bytes + unpacked > _MAX_UNPACKED_BYTES or self._bytes + unpacked > _MAX_TOTAL_BYTES:
            self._release(relayed, queue)
        return queue.bytes + unpacked <= _MAX_UNPACKED_BYTES and self._bytes + unpacked <= _MAX_TOTAL_BYTES

    def _learn(self, relayed: RelayedStream, queue: DirectionQueue, message: Message, data: bytes) -> None:
        """Remember the client's name, and messages as templates for forced inserts."""
        dissector = relayed.server.dissector
        assert dissector is not None
        if queue.direction == "c2s" and message.name in dissector.identity.login_messages:
            name = dissector.identity.introduced(message.name, "c2s", message.fields)
            if name is not None:
                relayed.stream.player = name
        if self._keeps_latest and len(data) <= _MAX_TEMPLATE_BYTES:
            relayed.server.latest[queue.direction, message.name] = data

    def _is_used_up(self, queue: DirectionQueue, data: bytes) -> bool:
        return queue.stream.transport == "udp" and (
            queue.bytes + len(data) > MAX_QUEUED_BYTES
            or len(queue.slots) + len(queue.loose) >= _MAX_SLOTS
            or self._bytes + len(data) > _MAX_TOTAL_BYTES
        )

    # Forwarding.

    def _given(self, relayed: RelayedStream) -> Sequence[Delivery]:
        if self.broker.is_over:
            return self._flush([relayed])
        for queue in relayed.queues.values():
            if queue.slots:
                self._release(relayed, queue)
        return self._drained()

    def _flush(self, passages: Collection[RelayedStream]) -> Sequence[Delivery]:
        """Forward or drop everything queued on these streams."""
        queues = [(relayed, queue) for relayed in passages for queue in relayed.queues.values()]
        for relayed, queue in queues:
            self._reading.give_up(relayed, queue)
            for slot in queue.slots:
                for copy in slot.copies:
                    copy.due_ns, copy.takes_ns = 0, 0
            queue.free_ns = 0
        self.broker.finish()
        for relayed, queue in queues:
            self._look(relayed, queue, is_last=True)
        return self._drained()

    def _drained(self) -> Sequence[Delivery]:
        out, self._out = self._out, []
        self._marked_bytes = 0
        return out

    def _look(self, relayed: RelayedStream, queue: DirectionQueue, *, is_last: bool = False) -> None:
        """Forward what has become due in a direction, or was decided about."""
        self._reading.look(relayed, queue, self._now_ns)
        self._release(relayed, queue)
        self._release_loose(relayed, queue, lambda copy: is_last or copy.due_ns <= self._now_ns)
        other = relayed.queues[OPPOSITE[queue.direction]]
        if other.slots:
            self._release(relayed, other)

    def _release(self, relayed: RelayedStream, queue: DirectionQueue) -> None:
        """Forward what is due, in order."""
        while queue.slots and not queue.slots[0].waits:
            slot = queue.slots[0]
            while slot.copies:
                if relayed.is_reset:
                    return
                copy = slot.copies[0]
                if copy.may_be_overtaken and not copy.is_dropped:
                    copy.due_ns += _REORDER_WAIT_NS if copy.is_reordered else 0
                    self._schedule(relayed, queue, copy.due_ns)
                    queue.loose.append((slot, slot.copies.pop(0)))
                    self._count(queue, len(copy.data), 1)
                    continue
                if copy.takes_ns:
                    copy.due_ns = queue.free_ns = max(copy.due_ns, queue.free_ns) + copy.takes_ns
                    copy.takes_ns = 0
                if copy.due_ns > self._now_ns:
                    self._schedule(relayed, queue, copy.due_ns)
                    return
                del slot.copies[0]
                if copy.direction == queue.direction:
                    self._pass_on(relayed, slot, copy)
                else:
                    # A message that is inserted in the other direction.
                    other = relayed.queues[copy.direction]
                    other.slots.append(Slot(self._now_ns, b"", None, [copy]))
                    self._count(other, 0, 1)
                    self._wake(relayed, copy.direction)
            queue.slots.popleft()
            self._count(queue, len(slot.original) + slot.unpacked, -1)
            if slot.original:
                was_inside, queue.is_mid_message = queue.is_mid_message, slot.is_cut
                if was_inside and queue.loose:
                    self._release_loose(relayed, queue, lambda copy: copy.due_ns <= self._now_ns)
            if slot.ends:
                self._release_loose(relayed, queue, lambda _: True)
                queue.has_ended = True
                self._out.append(Delivery(self._number(relayed), queue.direction, None, ends=True))

    def _release_loose(
        self, relayed: RelayedStream, queue: DirectionQueue, is_due: Callable[[Copy], bool]
    ) -> None:
        due = [(slot, copy) for slot, copy in queue.loose if is_due(copy)]
        # Never inserted inside a message: forwarded after its end.
        if due and not queue.is_mid_message:
            queue.loose = [(slot, copy) for slot, copy in queue.loose if not is_due(copy)]
            for slot, copy in due:
                self._count(queue, len(copy.data), -1)
                self._pass_on(relayed, slot, copy)

    def _pass_on(self, relayed: RelayedStream, slot: Slot, copy: Copy) -> None:
        """Forward a copy, or record that it was dropped."""
        number, queue = self._number(relayed), relayed.queues[copy.direction]
        mark = self._mark(slot, copy)
        if copy.is_dropped or copy.resets:
            relayed.not_sent(copy)
            self._out.append(Delivery(number, copy.direction, None, mark, resets=copy.resets))
            # The rest of the queue is not forwarded; its marks are emitted when the stream is closed.
            relayed.is_reset |= copy.resets
            return
        if not copy.is_original and queue.has_ended:
            self._on_notice("ended", f"No message can be inserted from {_way(queue)}: it has ended.")
            return
        # A piece of a cut message may follow its beginning.
        if not copy.is_original and queue.is_mid_message and copy.message is not None:
            self._on_notice(
                "inside", "a message was not inserted: another one had only been forwarded in part"
            )
            return
        copy.data, copy.is_wire = relayed.to_send(copy), True
        is_stream = relayed.stream.transport == "tcp"
        last = self._out[-1] if self._out else None
        if (
            is_stream
            and mark is None
            and last is not None
            and last.data is not None
            and last.mark is None
            and len(last.data) < _MAX_JOINED_BYTES
            and (last.number, last.direction) == (number, copy.direction)
        ):
            # Join unaltered data that is forwarded at once.
            last.data += copy.data
        else:
            self._out.append(Delivery(number, copy.direction, copy.data, mark))
        self.broker.passed_on(relayed, copy, self._now_ns)
        if self._inspector is not None:
            self._inspect(relayed, queue, copy.data)
        queue.passed += len(copy.data)
        if queue.loose and not copy.is_reordered:
            self._release_loose(relayed, queue, lambda waiting: waiting.is_reordered)

    def _mark(self, slot: Slot, copy: Copy) -> Mark | None:
        """Return the record of an alteration, without fields if those of this batch take too much memory."""
        mark = slot.mark(copy)
        if mark is None or mark.fields_json is None:
            return mark
        self._marked_bytes += len(mark.fields_json)
        if self._marked_bytes <= _MAX_UNPACKED_BYTES:
            return mark
        return msgspec.structs.replace(mark, fields_json=None)

    def _inspect(self, relayed: RelayedStream, queue: DirectionQueue, data: bytes) -> None:
        """Update the table with forwarded data."""
        assert self._inspector is not None
        self._inspector.feed(Chunk(relayed.stream, queue.direction, self._now_ns, queue.passed, data))
        self._inspected += 1
        if self._inspected % _DRAIN_INTERVAL == 0:
            self._inspector.drain()

    def _state(self, relayed: RelayedStream) -> Mapping[str, Any] | None:
        """Return the state of a stream's table after all forwarded data, None if there is none."""
        context = self._inspector.context_of(relayed.stream) if self._inspector is not None else None
        return context.state if context is not None else None

    def _schedule(self, relayed: RelayedStream, queue: DirectionQueue, at_ns: int) -> None:
        heapq.heappush(self._clock, (at_ns, self._number(relayed), queue.direction))

    def _count(self, queue: DirectionQueue, length: int, sign: Literal[1, -1]) -> None:
        """Count queued bytes (sign 1), or bytes that left the queue (-1)."""
        size = sign * (length + _SLOT_BYTES)
        queue.bytes += size
        self._bytes += size

    def _number(self, relayed: RelayedStream) -> int:
        return relayed.stream.id - self.streams_before


def _way(queue: DirectionQueue) -> str:
    """Return the sender and the receiver of a direction, as `SENDER to RECEIVER`."""
    ends = queue.stream.client, queue.stream.server
    return " to ".join(ends if queue.direction == "c2s" else ends[::-1])
