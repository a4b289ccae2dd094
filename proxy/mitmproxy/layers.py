"""Protocol detection for the relay's mitmproxy: all connections are byte streams, whatever they look like.

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
"""

from __future__ import annotations

import re

from mitmproxy import ctx
from mitmproxy.exceptions import OptionsError
from mitmproxy.net.tls import starts_like_dtls_record, starts_like_tls_record
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.events import DataReceived, Event
from mitmproxy.proxy.layer import CommandGenerator, Layer, NextLayer
from mitmproxy.proxy.layers import ClientTLSLayer, DNSLayer, ServerTLSLayer, TCPLayer, UDPLayer
from mitmproxy.proxy.layers.tls import dtls_parse_client_hello, parse_client_hello
from mitmproxy.proxy.mode_specs import ReverseMode, WireGuardMode

from kiebitz.dissectors.model import Direction
from kiebitz.proxy.mitmproxy.alteration import Connections, altered_layer
from kiebitz.proxy.mitmproxy.streams import StreamJournal

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
