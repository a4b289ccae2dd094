"""The interception engine: takes the bytes of all streams and returns what to forward instead.

It has no socket and no clock. Bytes are split into messages, the rules are applied to each, and the resulting
copies are queued in the order of their direction until they are due. Bytes of a server whose protocol is not
known yet are forwarded unchanged; rules without a filter, such as `--impair`, apply to them too.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

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
from kiebitz.proxy.alterer import Delivery
from kiebitz.proxy.relay.endpoints import Notice
from kiebitz.services.alteration.applying import Applying, read
from kiebitz.services.alteration.delivery_queue import Copy, Passage, Slot, Way
from kiebitz.services.alteration.pending_decisions import Asking, Hook
from kiebitz.services.alteration.reading import Reading
from kiebitz.services.alteration.rules import Insert, Rule

_BEHIND_NS = 1_000_000_000
"""Longest time that a reordered message waits for a later one."""

MOST_BYTES = 1 << 20
"""Maximum number of queued bytes in one direction; the total is limited to 64 times as many."""

_MOST_ALTOGETHER = 64 * MOST_BYTES
_MOST_SLOTS = 4096
_SLOT_BYTES = 256
"""Memory of a queued message in addition to its own bytes."""

_LATEST_BYTES = 64 << 10
"""Maximum size of a message kept as a template for forced inserts."""

_AT_ONCE = 16 << 10
"""Size (bytes) up to which data forwarded at once is joined; beyond it copying costs too much."""

_LOOK_EVERY = 256
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
        hooks: Mapping[str, Hook] | None = None,
        drops_held: bool = False,
    ) -> None:
        self.streams_before = 0
        """Number of streams in the database before the relay's first."""
        self.on_ready: Callable[[], None] = lambda: None
        """Called when a decision makes messages due."""
        self._rules = rules
        self._on_notice = on_notice
        self._names: dict[int, str] = {}
        self.asking = Asking(hooks or {}, self._wake, drops_held=drops_held)
        self._applying = Applying(rules, started_ns, self._names, self._state, self.asking.ask, on_notice)
        self.asking.applying = self._applying
        self._reading = Reading(self._put, self._schedule, decode_as or {})
        self._passages: dict[int, Passage] = {}
        self._clock: list[tuple[int, int, Direction]] = []
        """Times at which a direction of a stream has something due, a heap."""
        self._ready: set[tuple[int, Direction]] = set()
        """Directions in which a pending decision was made."""
        self._out: list[Delivery] = []
        self._bytes = 0
        self._now_ns = started_ns
        self._inspector: Inspector | None = None
        self._inspected = 0
        self._keeps_latest = any(isinstance(rule, Insert) and rule.is_forced for rule in rules)
        if self._applying.asks_for_state:
            self._inspector = Inspector(installed().dissectors.values(), Ids(), decode_as)

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
        ways = {direction: Way(stream, direction, f"{number} {direction}") for direction in DIRECTIONS}
        self._passages[number] = Passage(stream, self._reading.meet(stream), ways)
        self.asking.opened(stream)

    def data_received(
        self, number: int, direction: Direction, now_ns: int, data: bytes
    ) -> Sequence[Delivery]:
        """Process a datagram or a chunk of a byte stream."""
        self._now_ns = now_ns
        passage = self._passages[number]
        way = passage.ways[direction]
        if self._is_used_up(way, data):
            # Over TCP, `is_full` stops reading before that.
            text = f"too much is queued: over {MOST_BYTES >> 20} MiB or {_MOST_SLOTS} messages"
            self._on_notice("too-much", f"udp {' to '.join(_ends(way))}: {text}. Further data is dropped.")
            self._put(passage, way, data, way.framing is not None, lost=text)
        elif self._applying.reads:
            self._reading.read(passage, way, now_ns, data)
        else:
            self._put(passage, way, data, is_message=False)
        return self._given(passage)

    def eof_received(self, number: int, direction: Direction, now_ns: int) -> Sequence[Delivery]:
        """Process the end of one direction of a byte stream."""
        self._now_ns = now_ns
        passage = self._passages[number]
        way = passage.ways[direction]
        self._reading.give_up(passage, way)
        way.slots.append(Slot(now_ns, b"", None, ends=True))
        self._count(way, b"", 1)
        return self._given(passage)

    def stream_closed(self, number: int, now_ns: int) -> Sequence[Delivery]:
        """Remove a stream; its queued messages are dropped."""
        passage = self._passages.pop(number, None)
        if passage is None:
            return ()
        for way in passage.ways.values():
            self._reading.give_up(passage, way)
            waiting = [(slot, copy) for slot in way.slots for copy in slot.copies]
            for slot, copy in (*way.loose, *waiting):
                if copy.is_original:
                    if not copy.is_dropped:
                        copy.deeds.append(("drop", "the connection has ended"))
                    self._out.append(Delivery(number, copy.direction, None, slot.mark(copy)))
            self._bytes -= way.bytes
        self.asking.closed(passage)
        self._reading.leave(passage.stream)
        self._names.pop(passage.stream.id, None)
        if self._inspector is not None:
            self._inspector.feed(End(passage.stream, now_ns, "closed"))
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
            passage = self._passages.get(number)
            if passage is not None:
                self._look(passage, passage.ways[direction])
        return self._drained()

    def finish(self, now_ns: int) -> Sequence[Delivery]:
        """Flush the queues on shutdown; held messages are dropped if `drops_held`."""
        self._now_ns = now_ns
        return self._let_out(self._passages.values())

    def is_full(self, number: int, direction: Direction) -> bool:
        """Return True if the sender should not be read from."""
        passage = self._passages.get(number)
        if passage is None:
            return False
        return passage.ways[direction].bytes > MOST_BYTES // 4 or self._bytes > _MOST_ALTOGETHER // 2

    # Called for manual decisions.

    def name_of(self, stream: Stream) -> str | None:
        """Return the name that a stream's client has given."""
        return self._names.get(stream.id)

    def put_in(self, passage: Passage, direction: Direction, data: bytes, rule: str) -> None:
        """Insert a message before everything queued in its direction."""
        way = passage.ways[direction]
        message = read(passage, direction, data, self._now_ns)
        copy = Copy(direction, data, message, 0, len(self._rules), deeds=[("insert", rule)])
        # The queue may be waiting for a decision, and this message is part of it.
        way.slots.appendleft(Slot(self._now_ns, b"", None, [copy]))
        self._count(way, b"", 1)
        self._wake(passage, direction)

    def _wake(self, passage: Passage, direction: Direction) -> None:
        self._ready.add((self._number(passage), direction))
        self.on_ready()

    # Queueing.

    def _put(
        self, passage: Passage, way: Way, data: bytes, is_message: bool, lost: str | None = None
    ) -> None:
        """Queue data and apply the rules to it, or drop it if it is `lost`."""
        message = read(passage, way.direction, data, self._now_ns) if is_message else None
        if message is not None:
            self._learn(passage, way, message, data)
        slot = Slot(self._now_ns, data, message)
        slot.is_cut = not is_message and way.framing is not None and way.framing.is_inside
        copy = Copy(way.direction, data, message, self._now_ns, is_original=True)
        if lost is not None:
            copy.deeds.append(("drop", lost))
            self._out.append(Delivery(self._number(passage), way.direction, None, slot.mark(copy)))
            return
        way.slots.append(slot)
        self._count(way, data, 1)
        self._applying.begin(passage, slot, copy)

    def _learn(self, passage: Passage, way: Way, message: Message, data: bytes) -> None:
        """Remember the client's name, and messages as templates for forced inserts."""
        dissector = passage.server.dissector
        assert dissector is not None
        if way.direction == "c2s" and message.name in dissector.identity.login_messages:
            name = dissector.identity.introduced(message.name, "c2s", message.fields)
            if name is not None:
                self._names[passage.stream.id] = name
        if self._keeps_latest and len(data) <= _LATEST_BYTES:
            passage.server.latest[way.direction, message.name] = data

    def _is_used_up(self, way: Way, data: bytes) -> bool:
        return way.stream.transport == "udp" and (
            way.bytes + len(data) > MOST_BYTES
            or len(way.slots) + len(way.loose) >= _MOST_SLOTS
            or self._bytes + len(data) > _MOST_ALTOGETHER
        )

    # Forwarding.

    def _given(self, passage: Passage) -> Sequence[Delivery]:
        if self.asking.is_over:
            return self._let_out([passage])
        for way in passage.ways.values():
            if way.slots:
                self._release(passage, way)
        return self._drained()

    def _let_out(self, passages: Collection[Passage]) -> Sequence[Delivery]:
        """Forward or drop everything queued on these streams."""
        ways = [(passage, way) for passage in passages for way in passage.ways.values()]
        for passage, way in ways:
            self._reading.give_up(passage, way)
            for slot in way.slots:
                for copy in slot.copies:
                    copy.due_ns, copy.takes_ns = 0, 0
            way.free_ns = 0
        self.asking.finish()
        for passage, way in ways:
            self._look(passage, way, is_last=True)
        return self._drained()

    def _drained(self) -> Sequence[Delivery]:
        out, self._out = self._out, []
        return out

    def _look(self, passage: Passage, way: Way, *, is_last: bool = False) -> None:
        """Forward what has become due in a direction, or was decided about."""
        self._reading.look(passage, way, self._now_ns)
        self._release(passage, way)
        self._release_loose(passage, way, lambda copy: is_last or copy.due_ns <= self._now_ns)
        other = passage.ways[OPPOSITE[way.direction]]
        if other.slots:
            self._release(passage, other)

    def _release(self, passage: Passage, way: Way) -> None:
        """Forward what is due, in order."""
        while way.slots and not way.slots[0].waits:
            slot = way.slots[0]
            while slot.copies:
                if passage.is_reset:
                    return
                copy = slot.copies[0]
                if copy.may_be_passed and not copy.is_dropped:
                    copy.due_ns += _BEHIND_NS if copy.comes_behind else 0
                    self._schedule(passage, way, copy.due_ns)
                    way.loose.append((slot, slot.copies.pop(0)))
                    self._count(way, copy.data, 1)
                    continue
                if copy.takes_ns:
                    copy.due_ns = way.free_ns = max(copy.due_ns, way.free_ns) + copy.takes_ns
                    copy.takes_ns = 0
                if copy.due_ns > self._now_ns:
                    self._schedule(passage, way, copy.due_ns)
                    return
                del slot.copies[0]
                if copy.direction == way.direction:
                    self._pass_on(passage, slot, copy)
                else:
                    self._turn_round(passage, copy)
            way.slots.popleft()
            self._count(way, slot.original, -1)
            if slot.original:
                was_inside, way.is_inside = way.is_inside, slot.is_cut
                if was_inside and way.loose:
                    self._release_loose(passage, way, lambda copy: copy.due_ns <= self._now_ns)
            if slot.ends:
                self._release_loose(passage, way, lambda _: True)
                way.has_ended = True
                self._out.append(Delivery(self._number(passage), way.direction, None, ends=True))

    def _release_loose(self, passage: Passage, way: Way, is_due: Callable[[Copy], bool]) -> None:
        due = [(slot, copy) for slot, copy in way.loose if is_due(copy)]
        # Never inserted inside a message: forwarded after its end.
        if due and not way.is_inside:
            way.loose = [(slot, copy) for slot, copy in way.loose if not is_due(copy)]
            for slot, copy in due:
                self._count(way, copy.data, -1)
                self._pass_on(passage, slot, copy)

    def _turn_round(self, passage: Passage, copy: Copy) -> None:
        """Queue an inserted message in the other direction."""
        way = passage.ways[copy.direction]
        way.slots.append(Slot(self._now_ns, b"", None, [copy]))
        self._count(way, b"", 1)
        self._wake(passage, copy.direction)

    def _pass_on(self, passage: Passage, slot: Slot, copy: Copy) -> None:
        """Forward a copy, or record that it was dropped."""
        number, way, mark = self._number(passage), passage.ways[copy.direction], slot.mark(copy)
        if copy.is_dropped or copy.resets:
            self._out.append(Delivery(number, copy.direction, None, mark, resets=copy.resets))
            # The rest of the queue is not forwarded; its marks are emitted when the stream is closed.
            passage.is_reset |= copy.resets
            return
        if not copy.is_original and way.has_ended:
            self._on_notice(
                "ended", f"No message can be inserted from {' to '.join(_ends(way))}: it has ended."
            )
            return
        # A piece of a cut message may follow its beginning.
        if not copy.is_original and way.is_inside and copy.message is not None:
            self._on_notice(
                "inside", "a message was not inserted: another one had only been forwarded in part"
            )
            return
        is_stream = passage.stream.transport == "tcp"
        last = self._out[-1] if self._out else None
        if (
            is_stream
            and mark is None
            and last is not None
            and last.data is not None
            and last.mark is None
            and len(last.data) < _AT_ONCE
            and (last.number, last.direction) == (number, copy.direction)
        ):
            # Join unaltered data that is forwarded at once.
            last.data += copy.data
        else:
            self._out.append(Delivery(number, copy.direction, copy.data, mark))
        self.asking.passed_on(passage, copy, self._now_ns)
        if self._inspector is not None:
            self._inspect(passage, way, copy.data)
        way.passed += len(copy.data)
        if way.loose and not copy.comes_behind:
            self._release_loose(passage, way, lambda waiting: waiting.comes_behind)

    def _inspect(self, passage: Passage, way: Way, data: bytes) -> None:
        """Update the table with forwarded data."""
        assert self._inspector is not None
        self._inspector.feed(Chunk(passage.stream, way.direction, self._now_ns, way.passed, data))
        self._inspected += 1
        if self._inspected % _LOOK_EVERY == 0:
            self._inspector.drain()

    def _state(self, passage: Passage) -> Mapping[str, Any] | None:
        """Return the state of a stream's table after all forwarded data, None if there is none."""
        context = self._inspector.context_of(passage.stream) if self._inspector is not None else None
        return context.state if context is not None else None

    def _schedule(self, passage: Passage, way: Way, at_ns: int) -> None:
        heapq.heappush(self._clock, (at_ns, self._number(passage), way.direction))

    def _count(self, way: Way, data: bytes, sign: Literal[1, -1]) -> None:
        """Count queued bytes (sign 1), or bytes that left the queue (-1)."""
        size = sign * (len(data) + _SLOT_BYTES)
        way.bytes += size
        self._bytes += size

    def _number(self, passage: Passage) -> int:
        return passage.stream.id - self.streams_before


def _ends(way: Way) -> tuple[str, str]:
    """Return the sender and the receiver of a direction."""
    ends = way.stream.client, way.stream.server
    return ends if way.direction == "c2s" else ends[::-1]
