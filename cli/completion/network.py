"""What a shell completes of the network: interfaces, the relay's modes, protocols and the ports they use."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator

import click

from kiebitz.cli.terminal.console import Candidate, candidates
from kiebitz.dissectors.registry import installed

_RELAYS = ("reverse:udp://", "reverse:tcp://")

_MODES = {
    **dict.fromkeys(_RELAYS, "to one server: HOST:PORT@[ADDR:]PORT"),
    "reverse:tls://": "to one server that speaks TLS, by way of mitmproxy",
    "transparent@": "wherever the firewall redirects, Linux",
    "socks5": "by way of mitmproxy",
    "wireguard": "by way of mitmproxy, for phones",
    "wireguard@0.0.0.0:51820": "the same, from other machines",
    "local": "programs of this machine, by way of mitmproxy",
}
"""What `proxy.relay.modes` understands, as far as it is the same for everybody."""


def complete_interface(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    """The interfaces that are there."""
    return beginning(text, ((name, None) for _, name in socket.if_nameindex()))


def complete_mode(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    """How a mode begins; behind that, the protocols' own ports on this machine."""
    begun = next((relay for relay in _RELAYS if text.startswith(relay)), None)
    if begun is None:
        return beginning(text, _MODES.items())
    transport = begun.removeprefix("reverse:").removesuffix("://")
    return beginning(
        text, ((f"{begun}127.0.0.1:{port}@{port + 1}", title) for port, _, title in own_ports(transport))
    )


def complete_protocol(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    """The protocols by name."""
    return beginning(text, ((name, one.grammar.title) for name, one in installed().dissectors.items()))


def own_ports(transport: str) -> Iterator[tuple[int, str, str]]:
    """The ports of a transport that are a protocol's own, each with the protocol and its title."""
    for dissector in installed().dissectors.values():
        if dissector.transport == transport:
            for port in sorted(dissector.default_ports):
                yield port, dissector.protocol, dissector.grammar.title


def beginning(text: str, words: Iterable[tuple[str, str | None]]) -> list[Candidate]:
    """Those of the words, each with its note, that begin with what is typed."""
    return candidates((word, note) for word, note in words if word.startswith(text))
