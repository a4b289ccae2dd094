"""Alteration pipeline: received bytes go to an `Alterer`, its output to receivers and the journal."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

import msgspec

from kiebitz.dissectors.model import DIRECTIONS, Direction, Transport
from kiebitz.proxy.alterer import Alterer, Delivery
from kiebitz.proxy.journal.writer import MAX_PAYLOAD, JournalWriter
from kiebitz.proxy.system.clock import now_ns


class StreamOutput(Protocol):
    """The sending end of a stream; its methods report their own errors instead of raising them."""

    def pass_on(self, direction: Direction, data: bytes) -> None:
        """Send bytes to the receiver of this direction."""

    def end(self, direction: Direction) -> None:
        """Signal the end of this direction to its receiver."""

    def reset(self) -> None:
        """Reset the connection on both sides."""

    def hold_back(self, direction: Direction, is_held: bool) -> None:
        """Pause or resume reading from the sender of this direction."""


class _AlteredStream(msgspec.Struct, eq=False):
    """A stream in the pipeline: its outlet, and the number of bytes forwarded in each direction."""

    outlet: StreamOutput
    passed: dict[Direction, int] = msgspec.field(default_factory=lambda: {"c2s": 0, "s2c": 0})


class AlterationPipeline:
    """The link between relays and an alterer: feeds received bytes to it, and carries out deliveries.

    The journal records the bytes that each receiver got, as without alteration, and with them the bytes that
    were originally sent.
    """

    def __init__(self, altering: Alterer, journal: JournalWriter) -> None:
        self._altering = altering
        self._journal = journal
        self._bends: dict[int, _AlteredStream] = {}
        self._held_back: set[tuple[int, Direction]] = set()
        """Senders whose reading is paused."""
        self._timer: asyncio.TimerHandle | None = None
        self._due_ns: int | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the alterer's timers on this loop."""
        self._loop = loop

        def look_soon() -> None:
            loop.call_soon(self._tick)

        self._altering.on_ready = look_soon

    def finish(self) -> None:
        """Flush the alterer's queues before the relays stop."""
        self._altering.on_ready = lambda: None
        if self._timer is not None:
            self._timer.cancel()
        self._carry_out(self._altering.finish(now_ns()))

    def opened(
        self, number: int, transport: Transport, client: str, server: str, now: int, outlet: StreamOutput
    ) -> None:
        """Register a new stream whose output goes to `outlet`."""
        self._bends[number] = _AlteredStream(outlet)
        self._altering.opened(number, transport, client, server, now)

    def came(self, number: int, direction: Direction, now: int, data: bytes) -> None:
        """Process bytes received in one direction of a stream."""
        self._carry_out(self._altering.came(number, direction, now, data))
        self._mind(number, direction)

    def ended(self, number: int, direction: Direction, now: int) -> None:
        """Process the end of one direction of a byte stream."""
        self._carry_out(self._altering.ended(number, direction, now))

    def closed(self, number: int, now: int) -> None:
        """Remove a closed stream; its end may be journaled after this call."""
        self._carry_out(self._altering.closed(number, now))
        self._bends.pop(number, None)
        self._held_back -= {(number, direction) for direction in DIRECTIONS}
        self._mind_all()

    def _tick(self) -> None:
        self._due_ns = None
        self._carry_out(self._altering.due(now_ns()))
        self._mind_all()

    def _mind_all(self) -> None:
        """Check all paused senders again: the alterer's limit also depends on other streams' queues."""
        for number, direction in [*self._held_back]:
            self._mind(number, direction)

    def _mind(self, number: int, direction: Direction) -> None:
        """Pause the sender if its queue is full, and resume it once there is room."""
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
        """Schedule the next tick for the alterer's next due time."""
        due_ns = self._altering.next_due_ns
        if due_ns is None or due_ns == 0 or (self._due_ns is not None and self._due_ns <= due_ns):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due_ns = due_ns
        # libuv's clock has millisecond resolution, and a timer may fire slightly early.
        self._timer = self._loop.call_later(max(0.001, (due_ns - now_ns()) / 1e9), self._tick)
