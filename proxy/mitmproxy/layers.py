"""Layers of the relay's mitmproxy: detection of protocols, and connections whose bytes are altered.

mitmproxy itself looks for HTTP, DNS and QUIC, and intercepts all TLS, which only works for clients that trust
its certificates. Here a client's TLS is forwarded unchanged, unless the user asks to intercept that server's
with mitmproxy's own option: `tcp_hosts` (for DTLS `udp_hosts`), patterns for the server's address or for the
name that the client asks for. `ignore_hosts` and `allow_hosts` work as in mitmproxy: excluded connections are
forwarded and not recorded.

In the mode `reverse:tls` there is always TLS to the server, and to the client if it starts TLS. The name
server that a WireGuard peer finds inside the tunnel is left to mitmproxy; queries to it are not recorded.

The bytes are journaled by mitmproxy's layers, and not by an addon, as flows. For each piece of a flow
mitmproxy starts a task for the addons, and meanwhile reads on: of 512 MiB sent at once, up to 470 were
measured in memory. Without a flow it forwards a piece immediately, and stops reading while the receiver
accepts nothing.

mitmproxy layers for connections whose bytes are altered.

Received bytes are fed to the alteration pipeline. Output that it returns immediately is sent immediately;
later output enters the layer as events of its own, so that an enclosing TLS layer stays in order.
"""

from __future__ import annotations

import asyncio
import re
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial

from mitmproxy import ctx
from mitmproxy.connection import Connection, ConnectionState
from mitmproxy.exceptions import OptionsError
from mitmproxy.net.tls import starts_like_dtls_record, starts_like_tls_record
from mitmproxy.proxy.commands import CloseConnection, SendData
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.events import ConnectionClosed, DataReceived, Event
from mitmproxy.proxy.layer import CommandGenerator, Layer, NextLayer
from mitmproxy.proxy.layers import ClientTLSLayer, DNSLayer, ServerTLSLayer, TCPLayer, UDPLayer
from mitmproxy.proxy.layers.tls import dtls_parse_client_hello, parse_client_hello
from mitmproxy.proxy.mode_specs import ReverseMode, WireGuardMode
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


_HOSTS = ("tcp_hosts", "udp_hosts", "ignore_hosts", "allow_hosts")
"""mitmproxy's options that are patterns for servers."""

_TUNNEL_NAME_SERVER = ("10.0.0.53", 53)
"""Address in the configuration that mitmproxy creates for WireGuard peers."""

_MAX_HELLO = 16 << 10
"""Maximum bytes of a client's greeting to wait for, as it contains the name of the wanted server."""


class PlainLayers:
    """The addon that chooses layers; traffic is journaled in `streams`.

    `connections` are mitmproxy's connection handlers, which only alteration needs.
    """

    name = "nextlayer"
    """mitmproxy looks up this addon by name, and warns if there is none."""

    def __init__(self, streams: StreamJournal, connections: Connections) -> None:
        self._streams = streams
        self._connections = connections
        self._patterns: dict[str, list[re.Pattern[str]]] = {}

    def configure(self, updated: set[str]) -> None:
        """Compile the patterns of changed options (mitmproxy hook). Raises OptionsError if invalid."""
        for option in _HOSTS:
            try:
                self._patterns[option] = [
                    re.compile(text, re.IGNORECASE) for text in getattr(ctx.options, option)
                ]
            except re.error as error:
                raise OptionsError(f"{option} is not a regular expression: {error}") from error

    def next_layer(self, next_layer: NextLayer) -> None:
        """Set `next_layer.layer` (mitmproxy hook); while it is None, the hook is called with more bytes."""
        context = next_layer.context
        mode = context.client.proxy_mode
        data = next_layer.data_client()
        if isinstance(mode, WireGuardMode) and context.server.address == _TUNNEL_NAME_SERVER:
            next_layer.layer = DNSLayer(context)
        # Nothing is sent to a server whose TLS has failed.
        elif self._is_ignored(context) or context.server.error:
            tcp = context.client.transport_protocol == "tcp"
            next_layer.layer = TCPLayer(context, ignore=True) if tcp else UDPLayer(context, ignore=True)
        elif context.server.tls:
            next_layer.layer = self._plain(context)
        elif isinstance(mode, ReverseMode):
            next_layer.layer = _tls_layer(context, client_too=starts_like_tls_record(data))
        else:
            intercepts = self._intercepts_tls(context, data)
            if intercepts:
                next_layer.layer = _tls_layer(context, client_too=True)
            elif intercepts is not None:
                next_layer.layer = self._plain(context)

    def _plain(self, context: Context) -> Layer:
        if self._streams.pipeline is not None:
            return altered_layer(context, self._streams, self._connections)
        if context.client.transport_protocol == "tcp":
            return _JournaledTcp(context, self._streams)
        return _JournaledUdp(context, self._streams)

    def _intercepts_tls(self, context: Context, data: bytes) -> bool | None:
        """Return True if a client starts TLS that is to be intercepted; None if more bytes are needed."""
        if context.client.transport_protocol == "tcp":
            option, starts, parse = "tcp_hosts", starts_like_tls_record, parse_client_hello
        else:
            option, starts, parse = "udp_hosts", starts_like_dtls_record, dtls_parse_client_hello
        if not self._patterns[option] or not starts(data):
            return False
        if context.server.address is not None and self._matches(option, context.server.address[0]):
            return True
        try:
            hello = parse(data)
        except ValueError:
            return False
        if hello is None and len(data) < _MAX_HELLO:
            return None
        return hello is not None and hello.sni is not None and self._matches(option, hello.sni)

    def _is_ignored(self, context: Context) -> bool:
        servers = [
            f"{address[0]}:{address[1]}"
            for address in (context.server.address, context.server.peername)
            if address is not None
        ]
        if self._patterns["allow_hosts"] and not any(
            self._matches("allow_hosts", server) for server in servers
        ):
            return True
        return any(self._matches("ignore_hosts", server) for server in servers)

    def _matches(self, option: str, text: str) -> bool:
        return any(pattern.search(text) for pattern in self._patterns[option])


class _JournaledTcp(TCPLayer):
    """A layer that forwards the pieces of a byte stream, then journals them."""

    def __init__(self, context: Context, streams: StreamJournal) -> None:
        super().__init__(context, ignore=True)
        self._streams = streams

    def relay_messages(self, event: Event) -> CommandGenerator[None]:
        yield from super().relay_messages(event)
        _journal(self._streams, self.context, event)


class _JournaledUdp(UDPLayer):
    """A layer that forwards datagrams, then journals them."""

    def __init__(self, context: Context, streams: StreamJournal) -> None:
        super().__init__(context, ignore=True)
        self._streams = streams

    def relay_messages(self, event: Event) -> CommandGenerator[None]:
        yield from super().relay_messages(event)
        _journal(self._streams, self.context, event)


def _journal(streams: StreamJournal, context: Context, event: Event) -> None:
    if isinstance(event, DataReceived):
        client, server = context.client, context.server
        direction: Direction = "c2s" if event.connection == client else "s2c"
        streams.journal_data(client.id, client.transport_protocol, client, server, direction, event.data)


def _tls_layer(context: Context, *, client_too: bool) -> Layer:
    """Return a layer for TLS to the server, and to the client with `client_too`, of any content."""
    layer = ServerTLSLayer(context)
    if client_too:
        layer.child_layer = ClientTLSLayer(context)
    return layer
