"""The detour of bytes that are altered as they pass: to an `Altering`, then on, and into the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

import msgspec

from kiebitz.dissectors.model import DIRECTIONS, Direction, Transport
from kiebitz.proxy.alterer import Altering, Delivery
from kiebitz.proxy.journal.writer import MAX_PAYLOAD, JournalWriter
from kiebitz.proxy.system.clock import now_ns


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
    """A stream on its detour: where it goes on, and how many bytes were passed on."""

    outlet: Outlet
    passed: dict[Direction, int] = msgspec.field(default_factory=lambda: {"c2s": 0, "s2c": 0})


class Detour:
    """The way of all streams of a forwarder whose messages are altered: to `altering`, then on, journaled.

    What a receiver gets is journaled, as without a detour, and beside it what had been sent.
    """

    def __init__(self, altering: Altering, journal: JournalWriter) -> None:
        self._altering = altering
        self._journal = journal
        self._bends: dict[int, _Bend] = {}
        self._held_back: set[tuple[int, Direction]] = set()
        """From which senders nothing is read for now."""
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
        self._held_back -= {(number, direction) for direction in DIRECTIONS}
        self._mind_all()

    def _tick(self) -> None:
        self._due_ns = None
        self._carry_out(self._altering.due(now_ns()))
        self._mind_all()

    def _mind_all(self) -> None:
        """See who may go on: what others have waiting counts, too."""
        for number, direction in [*self._held_back]:
            self._mind(number, direction)

    def _mind(self, number: int, direction: Direction) -> None:
        """Hold a sender back where too much waits, and let it go on where there is room again."""
        bend = self._bends.get(number)
        if bend is None:
            return
        is_full = self._altering.is_full(number, direction)
        sender = number, direction
        if is_full != (sender in self._held_back):
            (self._held_back.add if is_full else self._held_back.discard)(sender)
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
                for start in range(0, len(data) or 1, MAX_PAYLOAD):
                    piece = data[start : start + MAX_PAYLOAD]
                    self._journal.chunk(delivery.number, direction, now, offset + start, piece)
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
