"""A detour for bytes that are altered as they pass: they go in, and deliveries come out.

Only where it is asked for. A relay without it passes bytes on by the way it always does. The relays know no
protocol: which message is altered, and how, is decided by an `Altering` that somebody gives them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from kiebitz.dissectors.records import Action, Direction, Transport
from kiebitz.proxy.clock import now_ns
from kiebitz.proxy.journal import JournalWriter


class Mark(msgspec.Struct, frozen=True, gc=False):
    """That what is delivered is not what was sent: `action`, and by which `rule`, as it was written.

    `original` are the bytes that were sent, at `sent_ns`; None if nothing was. `name` and `fields_json` are
    what they said, None where that could not be read.
    """

    action: Action
    rule: str
    sent_ns: int | None
    original: bytes | None
    name: str | None
    fields_json: str | None


class Delivery(msgspec.Struct, gc=False):
    """What is to be done now on a stream, in a direction.

    `data` is to be passed on to its receiver, and recorded with its `mark`, if it has one; if it is None,
    nothing is passed on, and only the mark is recorded. With `ends` the sender of this direction has ended
    it, with `resets` the whole connection is to be reset; then there are no bytes.
    """

    number: int
    direction: Direction
    data: bytes | None
    mark: Mark | None = None
    ends: bool = False
    resets: bool = False


class Altering(Protocol):
    """Alters messages. It has no clock and no socket: times are nanoseconds since 1970 UTC, in order.

    Each call may give deliveries of any stream, to be carried out in order, at once.
    """

    on_ready: Callable[[], None]
    """Called, in the loop's thread, when `due` has something to give without the clock."""

    @property
    def next_due_ns(self) -> int | None:
        """When `due` has something to give, 0 for at once; None if it is nothing by the clock alone."""

    def opened(self, number: int, transport: Transport, client: str, server: str, now_ns: int) -> None:
        """A stream begins."""

    def came(self, number: int, direction: Direction, now_ns: int, data: bytes) -> Sequence[Delivery]:
        """A datagram, or a piece of a byte stream, has come."""

    def ended(self, number: int, direction: Direction, now_ns: int) -> Sequence[Delivery]:
        """The sender of a byte stream's direction has ended it; the other direction goes on."""

    def closed(self, number: int, now_ns: int) -> Sequence[Delivery]:
        """A stream is over, and nothing more can be passed on on it: the marks of what waited."""

    def due(self, now_ns: int) -> Sequence[Delivery]:
        """What was to wait until now."""

    def finish(self, now_ns: int) -> Sequence[Delivery]:
        """The relay ends: let go what waits, or drop it."""

    def is_full(self, number: int, direction: Direction) -> bool:
        """Whether so much waits in this direction that nothing more should be read from its sender."""


class Outlet(Protocol):
    """Where a stream's bytes are passed on; all of it works, or reports its own trouble."""

    def pass_on(self, direction: Direction, data: bytes) -> None:
        """Give these bytes to the receiver of this direction."""

    def end(self, direction: Direction) -> None:
        """Tell the receiver that its peer says no more."""

    def reset(self) -> None:
        """Reset the connection, to both sides."""

    def hold_back(self, direction: Direction, is_held: bool) -> None:
        """Read no more from the sender of this direction for now, or read on."""


class _Bend(msgspec.Struct, eq=False):
    """A stream on its detour: where it goes on, how many bytes were passed on, and who is held back."""

    outlet: Outlet
    passed: dict[Direction, int] = msgspec.field(default_factory=lambda: {"c2s": 0, "s2c": 0})
    held_back: set[Direction] = msgspec.field(default_factory=set)


class Detour:
    """The way of all streams of a forwarder whose messages are altered: to `altering`, then on, journaled.

    What a receiver gets is journaled, as without a detour, and beside it what had been sent.
    """

    def __init__(self, altering: Altering, journal: JournalWriter) -> None:
        self._altering = altering
        self._journal = journal
        self._bends: dict[int, _Bend] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._due_ns: int | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let the clock run."""
        self._loop = loop

        def look_soon() -> None:
            loop.call_soon(self._tick)

        self._altering.on_ready = look_soon

    def finish(self) -> None:
        """Pass on what waits, as the relays are about to end."""
        self._altering.on_ready = lambda: None
        if self._timer is not None:
            self._timer.cancel()
        self._carry_out(self._altering.finish(now_ns()))

    def opened(
        self, number: int, transport: Transport, client: str, server: str, now: int, outlet: Outlet
    ) -> None:
        """A stream begins, which goes on by `outlet`."""
        self._bends[number] = _Bend(outlet)
        self._altering.opened(number, transport, client, server, now)

    def came(self, number: int, direction: Direction, now: int, data: bytes) -> None:
        """Bytes have come."""
        self._carry_out(self._altering.came(number, direction, now, data))
        self._mind(number, direction)

    def ended(self, number: int, direction: Direction, now: int) -> None:
        """The sender of a byte stream's direction has ended it."""
        self._carry_out(self._altering.ended(number, direction, now))

    def closed(self, number: int, now: int) -> None:
        """A stream is over: its end may be journaled behind this."""
        self._carry_out(self._altering.closed(number, now))
        self._bends.pop(number, None)

    def passed(self, number: int, direction: Direction) -> int:
        """How many bytes have been passed on."""
        bend = self._bends.get(number)
        return bend.passed[direction] if bend is not None else 0

    def _tick(self) -> None:
        self._due_ns = None
        self._carry_out(self._altering.due(now_ns()))
        for number, bend in [*self._bends.items()]:
            for direction in [*bend.held_back]:
                self._mind(number, direction)

    def _mind(self, number: int, direction: Direction) -> None:
        """Hold a sender back where too much waits, and let it go on where there is room again."""
        bend = self._bends.get(number)
        if bend is None:
            return
        is_full = self._altering.is_full(number, direction)
        if is_full != (direction in bend.held_back):
            (bend.held_back.add if is_full else bend.held_back.discard)(direction)
            bend.outlet.hold_back(direction, is_full)

    def _carry_out(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            bend = self._bends.get(delivery.number)
            if bend is None:
                continue
            direction, data, mark = delivery.direction, delivery.data, delivery.mark
            offset, now = bend.passed[direction], now_ns()
            if data is not None:
                bend.outlet.pass_on(direction, data)
                bend.passed[direction] += len(data)
            if mark is not None:
                self._journal.altered(delivery.number, direction, now, offset, len(data or b""), mark)
            if data is not None:
                self._journal.chunk(delivery.number, direction, now, offset, data)
            if delivery.ends:
                bend.outlet.end(direction)
            elif delivery.resets:
                bend.outlet.reset()
        self._plan()

    def _plan(self) -> None:
        """Come back when the next thing is due."""
        due_ns = self._altering.next_due_ns
        if due_ns is None or due_ns == 0 or (self._due_ns is not None and self._due_ns <= due_ns):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due_ns = due_ns
        # libuv's clock has milliseconds, and a timer may come a little early.
        self._timer = self._loop.call_later(max(0.001, (due_ns - now_ns()) / 1e9), self._tick)
