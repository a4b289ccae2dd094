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

    def deliver(self, direction: Direction, data: bytes) -> None:
        """Send bytes to the receiver of this direction."""

    def end(self, direction: Direction) -> None:
        """Signal the end of this direction to its receiver."""

    def reset(self) -> None:
        """Reset the connection on both sides."""

    def set_paused(self, direction: Direction, is_paused: bool) -> None:
        """Pause or resume reading from the sender of this direction."""


class _AlteredStream(msgspec.Struct, eq=False):
    """A stream in the pipeline: its outlet, and the number of bytes forwarded in each direction."""

    outlet: StreamOutput
    forwarded: dict[Direction, int] = msgspec.field(default_factory=lambda: {"c2s": 0, "s2c": 0})


class AlterationPipeline:
    """The link between relays and an alterer: feeds received bytes to it, and carries out deliveries.

    The journal records the bytes that each receiver got, as without alteration, and with them the bytes that
    were originally sent.
    """

    def __init__(self, alterer: Alterer, journal: JournalWriter) -> None:
        self._alterer = alterer
        self._journal = journal
        self._streams: dict[int, _AlteredStream] = {}
        self._paused: set[tuple[int, Direction]] = set()
        """Senders whose reading is paused."""
        self._timer: asyncio.TimerHandle | None = None
        self._due_ns: int | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the alterer's timers on this loop."""
        self._loop = loop

        def tick_soon() -> None:
            loop.call_soon(self._tick)

        self._alterer.on_ready = tick_soon

    def finish(self) -> None:
        """Flush the alterer's queues before the relays stop."""
        self._alterer.on_ready = lambda: None
        if self._timer is not None:
            self._timer.cancel()
        self._carry_out(self._alterer.finish(now_ns()))

    def stream_opened(
        self, number: int, transport: Transport, client: str, server: str, now: int, outlet: StreamOutput
    ) -> None:
        """Register a new stream whose output goes to `outlet`."""
        self._streams[number] = _AlteredStream(outlet)
        self._alterer.stream_opened(number, transport, client, server, now)

    def data_received(self, number: int, direction: Direction, now: int, data: bytes) -> None:
        """Process bytes received in one direction of a stream."""
        self._carry_out(self._alterer.data_received(number, direction, now, data))
        self._update_pause(number, direction)

    def eof_received(self, number: int, direction: Direction, now: int) -> None:
        """Process the end of one direction of a byte stream."""
        self._carry_out(self._alterer.eof_received(number, direction, now))

    def stream_closed(self, number: int, now: int) -> None:
        """Remove a closed stream; its end may be journaled after this call."""
        self._carry_out(self._alterer.stream_closed(number, now))
        self._streams.pop(number, None)
        self._paused -= {(number, direction) for direction in DIRECTIONS}
        self._update_all_pauses()

    def _tick(self) -> None:
        self._due_ns = None
        self._carry_out(self._alterer.due(now_ns()))
        self._update_all_pauses()

    def _update_all_pauses(self) -> None:
        """Check all paused senders again: the alterer's limit also depends on other streams' queues."""
        for number, direction in [*self._paused]:
            self._update_pause(number, direction)

    def _update_pause(self, number: int, direction: Direction) -> None:
        """Pause the sender if its queue is full, and resume it once there is room."""
        stream = self._streams.get(number)
        if stream is None:
            return
        is_full = self._alterer.is_full(number, direction)
        sender = number, direction
        if is_full != (sender in self._paused):
            (self._paused.add if is_full else self._paused.discard)(sender)
            stream.outlet.set_paused(direction, is_full)

    def _carry_out(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            stream = self._streams.get(delivery.number)
            if stream is None:
                continue
            direction, data, mark = delivery.direction, delivery.data, delivery.mark
            offset, now = stream.forwarded[direction], now_ns()
            if data is not None:
                stream.outlet.deliver(direction, data)
                stream.forwarded[direction] += len(data)
            if mark is not None:
                self._journal.altered(delivery.number, direction, now, offset, len(data or b""), mark)
            if data is not None:
                for start in range(0, len(data) or 1, MAX_PAYLOAD):
                    piece = data[start : start + MAX_PAYLOAD]
                    self._journal.chunk(delivery.number, direction, now, offset + start, piece)
            if delivery.ends:
                stream.outlet.end(direction)
            elif delivery.resets:
                stream.outlet.reset()
        self._schedule_tick()

    def _schedule_tick(self) -> None:
        """Schedule the next tick for the alterer's next due time."""
        due_ns = self._alterer.next_due_ns
        if due_ns is None or due_ns == 0 or (self._due_ns is not None and self._due_ns <= due_ns):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due_ns = due_ns
        # libuv's clock has millisecond resolution, and a timer may fire slightly early.
        self._timer = self._loop.call_later(max(0.001, (due_ns - now_ns()) / 1e9), self._tick)
