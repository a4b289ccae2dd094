"""mitmproxy layers for connections whose bytes are altered.

Received bytes are fed to the alteration pipeline. Output that it returns immediately is sent immediately;
later output enters the layer as events of its own, so that an enclosing TLS layer stays in order.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial

from mitmproxy.connection import Connection, ConnectionState
from mitmproxy.proxy.commands import CloseConnection, SendData
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.events import ConnectionClosed, DataReceived, Event
from mitmproxy.proxy.layer import CommandGenerator, Layer
from mitmproxy.proxy.layers import TCPLayer, UDPLayer
from mitmproxy.proxy.server import ConnectionHandler

from kiebitz.dissectors.model import DIRECTIONS, Direction
from kiebitz.proxy.mitmproxy.streams import StreamJournal

Connections = Mapping[str | tuple[object, ...], ConnectionHandler]
"""mitmproxy's connection handlers by the id of their client."""


@dataclass
class _DataReleased(Event):
    """Bytes released by the pipeline."""

    direction: Direction
    data: bytes


@dataclass
class _DirectionEnded(Event):
    """The end of a direction, after all its released bytes."""

    direction: Direction


class _ConnectionReset(Event):
    """A reset of the connection by the pipeline."""


class _AlteredLayer(Layer):
    """Base class for both transports: a mitmproxy layer that is also the pipeline's output."""

    context: Context

    def attach(self, streams: StreamJournal, connections: Connections) -> None:
        """Connect a new layer to its streams and handlers; must be called first."""
        self._streams = streams
        self._connections = connections
        self._is_inside = False
        self._is_hooked = False
        self._paused_senders: dict[Direction, asyncio.Event] = {}
        """Directions whose sender is paused; the event is set when that ends."""
        self._events: list[Event] = []
        """Output that the pipeline returned immediately."""
        self._tasks: set[asyncio.Task[None]] = set()
        """Pending deliveries of later output; the event loop itself keeps weak references only."""

    def deliver(self, direction: Direction, data: bytes) -> None:
        self._enqueue(_DataReleased(direction, data))

    def end(self, direction: Direction) -> None:
        self._enqueue(_DirectionEnded(direction))

    def reset(self) -> None:
        """Close both sides: mitmproxy forwards a reset as an end, too."""
        self._enqueue(_ConnectionReset())

    def set_paused(self, direction: Direction, is_paused: bool) -> None:
        handler = self._connections.get(self.context.client.id)
        if handler is None or self.context.client.transport_protocol != "tcp":
            return
        if not self._is_hooked:
            self._is_hooked = True
            # A connection's task passes here between two pieces, and nowhere else.
            handler.drain_writers = partial(  # type: ignore[method-assign]  # there is no hook
                self._wait, handler, handler.drain_writers
            )
        if is_paused:
            self._paused_senders[direction] = asyncio.Event()
        elif direction in self._paused_senders:
            self._paused_senders.pop(direction).set()

    async def _wait(self, handler: ConnectionHandler, drain: Callable[[], Awaitable[None]]) -> None:
        """Block the task of a connection while its sender is paused."""
        await drain()
        for direction in DIRECTIONS:
            io = handler.transports.get(self._from(direction))
            if io is not None and io.handler is asyncio.current_task():
                while direction in self._paused_senders:
                    await self._paused_senders[direction].wait()

    def _enqueue(self, event: Event) -> None:
        if self._is_inside:
            self._events.append(event)
            return
        handler = self._connections.get(self.context.client.id)
        if handler is not None:
            task = asyncio.ensure_future(handler.server_event(event))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _from(self, direction: Direction) -> Connection:
        return self.context.client if direction == "c2s" else self.context.server

    def _to(self, direction: Direction) -> Connection:
        return self.context.server if direction == "c2s" else self.context.client

    def _feed_pipeline(self, event: Event) -> bool:
        """Feed received bytes or an end to the pipeline; return False for anything else."""
        client, server = self.context.client, self.context.server
        if not isinstance(event, DataReceived | ConnectionClosed):
            return False
        direction: Direction = "c2s" if event.connection == client else "s2c"
        self._is_inside = True
        try:
            if isinstance(event, ConnectionClosed):
                return client.transport_protocol == "tcp" and self._streams.eof_received(client.id, direction)
            transport = client.transport_protocol
            return self._streams.data_received(
                client.id, transport, client, server, direction, event.data, self
            )
        finally:
            self._is_inside = False

    def _process(self, event: Event) -> CommandGenerator[bool]:
        """Feed an event to the pipeline and carry out its output; return False if it must pass unaltered."""
        if isinstance(event, _DataReleased | _DirectionEnded | _ConnectionReset):
            self._events.append(event)
        elif not self._feed_pipeline(event):
            return False
        events, self._events = self._events, []
        for released in events:
            if isinstance(released, _DataReleased):
                if self._to(released.direction).state & ConnectionState.CAN_WRITE:
                    yield SendData(self._to(released.direction), released.data)
            elif isinstance(released, _DirectionEnded):
                yield from self._relay_unaltered(ConnectionClosed(self._from(released.direction)))
            else:
                for connection in (self.context.client, self.context.server):
                    if connection.state is not ConnectionState.CLOSED:
                        yield CloseConnection(connection)
        return True

    def relay_messages(self, event: Event) -> CommandGenerator[None]:
        """Relay an event; mitmproxy's hook for everything received."""
        if not (yield from self._process(event)):
            yield from self._relay_unaltered(event)

    def done(self, event: Event) -> CommandGenerator[None]:
        """Drop events, including later output of the pipeline, as the connection has ended."""
        yield from ()

    @abstractmethod
    def _relay_unaltered(self, event: Event) -> CommandGenerator[None]:
        """Relay an event without alteration."""


class _AlteredTcpLayer(_AlteredLayer, TCPLayer):
    """A TCP layer with alteration."""

    def _relay_unaltered(self, event: Event) -> CommandGenerator[None]:
        yield from TCPLayer.relay_messages(self, event)


class _AlteredUdpLayer(_AlteredLayer, UDPLayer):
    """A UDP layer with alteration."""

    def _relay_unaltered(self, event: Event) -> CommandGenerator[None]:
        yield from UDPLayer.relay_messages(self, event)


def altered_layer(context: Context, streams: StreamJournal, connections: Connections) -> Layer:
    """Return the layer of a connection whose bytes are altered."""
    kind = _AlteredTcpLayer if context.client.transport_protocol == "tcp" else _AlteredUdpLayer
    layer = kind(context, ignore=True)
    layer.attach(streams, connections)
    return layer
