"""What a connection through the relay's mitmproxy is taken for: bytes, whatever they look like.

mitmproxy itself looks for HTTP, DNS and QUIC in them, and takes TLS off wherever it meets it, which only
works for clients that trust its certificates. Here a client's TLS passes as it is, unless the user says that
this server's is to be taken off, with mitmproxy's own option: `tcp_hosts` (for DTLS `udp_hosts`), patterns
for the server's address or the name that the client asks for. `ignore_hosts` and `allow_hosts` mean what they
mean in mitmproxy: what they leave out is passed on and not recorded.

Two decisions are left to mitmproxy: those of the reverse modes, which say themselves what is inside, and the
name server that a WireGuard peer finds inside the tunnel. What he asks there is not recorded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mitmproxy import ctx
from mitmproxy.net.tls import starts_like_dtls_record, starts_like_tls_record
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layer import NextLayer
from mitmproxy.proxy.layers import ClientTLSLayer, ServerTLSLayer, TCPLayer, UDPLayer
from mitmproxy.proxy.layers.tls import dtls_parse_client_hello, parse_client_hello
from mitmproxy.proxy.mode_specs import ReverseMode, WireGuardMode

_TUNNEL_NAME_SERVER = ("10.0.0.53", 53)
"""As it stands in the configuration that mitmproxy makes for WireGuard peers."""

_MAX_HELLO = 16 << 10
"""So many bytes of a client's greeting are waited for, to read in it whom he wants to speak to."""


class PlainLayers:
    """The addon that decides; to be added before mitmproxy's own, which leaves alone what is decided."""

    def next_layer(self, next_layer: NextLayer) -> None:
        """mitmproxy's hook: set `next_layer.layer`; if it stays None, it comes again with more bytes."""
        context = next_layer.context
        mode = context.client.proxy_mode
        if isinstance(mode, ReverseMode):
            return
        if isinstance(mode, WireGuardMode) and context.server.address == _TUNNEL_NAME_SERVER:
            return
        plain = TCPLayer if context.client.transport_protocol == "tcp" else UDPLayer
        if _is_ignored(context):
            next_layer.layer = plain(context, ignore=True)
        elif context.client.tls:
            next_layer.layer = plain(context)
        else:
            takes_off = _takes_tls_off(context, next_layer.data_client())
            if takes_off:
                tls = ServerTLSLayer(context)
                tls.child_layer = ClientTLSLayer(context)
                next_layer.layer = tls
            elif takes_off is not None:
                next_layer.layer = plain(context)


def _takes_tls_off(context: Context, data: bytes) -> bool | None:
    """Whether a client begins with TLS that is to be taken off; None if more of his greeting must come."""
    if context.client.transport_protocol == "tcp":
        patterns, starts, parse = ctx.options.tcp_hosts, starts_like_tls_record, parse_client_hello
    else:
        patterns, starts, parse = ctx.options.udp_hosts, starts_like_dtls_record, dtls_parse_client_hello
    if not patterns or not starts(data):
        return False
    if context.server.address is not None and _matches(patterns, context.server.address[0]):
        return True
    try:
        hello = parse(data)
    except ValueError:
        return False
    if hello is None and len(data) < _MAX_HELLO:
        return None
    return hello is not None and hello.sni is not None and _matches(patterns, hello.sni)


def _is_ignored(context: Context) -> bool:
    ignored, allowed = ctx.options.ignore_hosts, ctx.options.allow_hosts
    servers = [
        f"{address[0]}:{address[1]}"
        for address in (context.server.address, context.server.peername)
        if address is not None
    ]
    if allowed and not any(_matches(allowed, server) for server in servers):
        return True
    return any(_matches(ignored, server) for server in servers)


def _matches(patterns: Sequence[str], text: str) -> bool:
    return any(re.search(pattern, text, re.IGNORECASE) for pattern in patterns)
