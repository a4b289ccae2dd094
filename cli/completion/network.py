"""Completion of interfaces, relay modes, protocols and ports."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import click

from kiebitz.cli.terminal.console import Candidate, with_prefix
from kiebitz.dissectors.registry import installed

_RELAYS = ("reverse:udp://", "reverse:tcp://")

_MODES = {
    **dict.fromkeys(_RELAYS, "to one server: HOST:PORT@[ADDR:]PORT"),
    "reverse:ws://": "to one server of WebSocket: HOST[:PORT]@[ADDR:]PORT",
    "reverse:wss://": "the same with TLS, using mitmproxy",
    "reverse:tls://": "to one server with TLS, using mitmproxy",
    "transparent@": "to the servers that the firewall redirects from, Linux",
    "socks5": "using mitmproxy",
    "wireguard": "for phones, using mitmproxy",
    "wireguard@0.0.0.0:51820": "the same, from other machines",
    "local": "programs on this machine, using mitmproxy",
}
"""Modes of `proxy.relay.modes` that are the same for every user."""


def complete_interface(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    """Complete network interfaces."""
    return with_prefix(text, ((name, None) for _, name in socket.if_nameindex()))


def complete_mode(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    """Complete the start of a mode, then the default ports of protocols on this machine."""
    begun = next((relay for relay in _RELAYS if text.startswith(relay)), None)
    if begun is None:
        return with_prefix(text, _MODES.items())
    transport = begun.removeprefix("reverse:").removesuffix("://")
    return with_prefix(
        text, ((f"{begun}127.0.0.1:{port}@{port + 1}", title) for port, _, title in default_ports(transport))
    )


def complete_protocol(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    """Complete protocol names."""
    return with_prefix(text, ((name, one.grammar.title) for name, one in installed().dissectors.items()))


def default_ports(transport: str) -> Iterator[tuple[int, str, str]]:
    """Yield the default ports of a transport with protocol and title."""
    for dissector in installed().dissectors.values():
        if dissector.transport == transport:
            for port in sorted(dissector.default_ports):
                yield port, dissector.protocol, dissector.grammar.title
