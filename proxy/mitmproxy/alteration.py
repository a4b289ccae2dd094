"""What a connection through the relay's mitmproxy is taken for where its bytes are altered.

What comes is sent on the detour; what comes back at once is passed on at once, and later ones come into the
layer as events of their own, so that TLS around it stays in order.
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
from kiebitz.proxy.mitmproxy.streams import Streams

Connections = Mapping[str | tuple[object, ...], ConnectionHandler]
"""mitmproxy's handlers, by the id of their client."""


@dataclass
class _PassedOn(Event):
    """Bytes come back from the detour."""

    direction: Direction
    data: bytes


@dataclass
class _Ended(Event):
    """A direction ends behind all that came back of it."""

    direction: Direction


class _Reset(Event):
    """The connection is to be reset."""


class _Detoured(Layer):
    """What both transports share: it is a layer, and where the detour passes bytes on."""

    context: Context

    def begin(self, streams: Streams, connections: Connections) -> None:
        """To be called once the layer is made."""
        self._streams = streams
        self._connections = connections
        self._is_inside = False
        self._waits = False
        self._held_back: dict[Direction, asyncio.Event] = {}
        """From which side nothing more is read; set when that is over."""
        self._events: list[Event] = []
        """What the detour gave back while it was asked."""

    def pass_on(self, direction: Direction, data: bytes) -> None:
        """Give bytes to the receiver."""
        self._take(_PassedOn(direction, data))

    def end(self, direction: Direction) -> None:
        """Pass on an end."""
        self._take(_Ended(direction))

    def reset(self) -> None:
        """mitmproxy passes a reset on as an end; so does this."""
        self._take(_Reset())

    def hold_back(self, direction: Direction, is_held: bool) -> None:
        """Read no more from the sender, or read on."""
        handler = self._connections.get(self.context.client.id)
        if handler is None or self.context.client.transport_protocol != "tcp":
            return
        if not self._waits:
            self._waits = True
            # Between two pieces of a connection its task waits here, and nowhere else.
            handler.drain_writers = partial(  # type: ignore[method-assign] # There is no hook for it.
                self._wait, handler, handler.drain_writers
            )
        if is_held:
            self._held_back[direction] = asyncio.Event()
        elif direction in self._held_back:
            self._held_back.pop(direction).set()

    async def _wait(self, handler: ConnectionHandler, drain: Callable[[], Awaitable[None]]) -> None:
        """Wait in the task of a connection as long as nothing more is to be read from it."""
        await drain()
        for direction in DIRECTIONS:
            io = handler.transports.get(self._from(direction))
            if io is not None and io.handler is asyncio.current_task():
                while direction in self._held_back:
                    await self._held_back[direction].wait()

    def _take(self, event: Event) -> None:
        if self._is_inside:
            self._events.append(event)
            return
        handler = self._connections.get(self.context.client.id)
        if handler is not None:
            task = asyncio.ensure_future(handler.server_event(event))
            handler.hook_tasks.add(task)
            task.add_done_callback(handler.hook_tasks.discard)

    def _from(self, direction: Direction) -> Connection:
        return self.context.client if direction == "c2s" else self.context.server

    def _to(self, direction: Direction) -> Connection:
        return self.context.server if direction == "c2s" else self.context.client

    def _detour(self, event: Event) -> bool:
        """Send what has come on its detour; False if it is no such thing."""
        client, server = self.context.client, self.context.server
        if not isinstance(event, DataReceived | ConnectionClosed):
            return False
        direction: Direction = "c2s" if event.connection == client else "s2c"
        self._is_inside = True
        try:
            if isinstance(event, ConnectionClosed):
                return client.transport_protocol == "tcp" and self._streams.ended(client.id, direction)
            transport = client.transport_protocol
            return self._streams.came(client.id, transport, client, server, direction, event.data, self)
        finally:
            self._is_inside = False

    def _altered(self, event: Event) -> CommandGenerator[bool]:
        """Do what the detour gave back; whether the event was all its affair."""
        if isinstance(event, _PassedOn | _Ended | _Reset):
            self._events.append(event)
        elif not self._detour(event):
            return False
        events, self._events = self._events, []
        for given in events:
            if isinstance(given, _PassedOn):
                if self._to(given.direction).state & ConnectionState.CAN_WRITE:
                    yield SendData(self._to(given.direction), given.data)
            elif isinstance(given, _Ended):
                yield from self._as_ever(ConnectionClosed(self._from(given.direction)))
            else:
                for connection in (self.context.client, self.context.server):
                    if connection.state is not ConnectionState.CLOSED:
                        yield CloseConnection(connection)
        return True

    def relay_messages(self, event: Event) -> CommandGenerator[None]:
        """Where mitmproxy has what comes in passed on."""
        if not (yield from self._altered(event)):
            yield from self._as_ever(event)

    def done(self, event: Event) -> CommandGenerator[None]:
        """Nothing more is passed on, though the detour may give something back."""
        yield from ()

    @abstractmethod
    def _as_ever(self, event: Event) -> CommandGenerator[None]:
        """What is done without a detour."""


class _DetouredTcp(_Detoured, TCPLayer):
    """A byte stream on its detour."""

    def _as_ever(self, event: Event) -> CommandGenerator[None]:
        yield from TCPLayer.relay_messages(self, event)


class _DetouredUdp(_Detoured, UDPLayer):
    """Datagrams on their detour."""

    def _as_ever(self, event: Event) -> CommandGenerator[None]:
        yield from UDPLayer.relay_messages(self, event)


def altered_layer(context: Context, streams: Streams, connections: Connections) -> Layer:
    """The layer of a connection whose bytes are altered."""
    kind = _DetouredTcp if context.client.transport_protocol == "tcp" else _DetouredUdp
    layer = kind(context, ignore=True)
    layer.begin(streams, connections)
    return layer
