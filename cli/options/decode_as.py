"""The option `-d udp.port==9000,maexchen`: the protocol of a server port, as in tshark."""

from __future__ import annotations

import click

from kiebitz.cli.completion.network import default_ports
from kiebitz.cli.terminal.console import Candidate, with_prefix
from kiebitz.dissectors.registry import installed
from kiebitz.services.decode_as import NO_GAME, TRANSPORTS, DecodeAsError, parse_decode_as


def _completed(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    """Complete `udp.port==`, then default ports, then protocols."""
    form, equals, rest = text.partition("==")
    transport = TRANSPORTS.get(form.removesuffix(".port"))
    if transport is None or not equals:
        return with_prefix(text, ((f"{name}.port==", None) for name in TRANSPORTS))
    port, comma, _ = rest.partition(",")
    if not comma:
        own = ((f"{form}=={number},{name}", title) for number, name, title in default_ports(transport))
        return with_prefix(text, own)
    protocols = [
        (dissector.protocol, dissector.grammar.title)
        for dissector in installed().dissectors.values()
        if dissector.transport == transport
    ]
    named = [*protocols, (NO_GAME, "no game")]
    return with_prefix(text, ((f"{form}=={port},{name}", title) for name, title in named))


def _checked(context: click.Context, parameter: click.Parameter, specs: tuple[str, ...]) -> tuple[str, ...]:
    try:
        parse_decode_as(specs)
    except DecodeAsError as error:
        raise click.BadParameter(str(error), context, parameter, "-d") from error
    return specs


decode_as_option = click.option(
    "-d",
    "decode_as",
    multiple=True,
    callback=_checked,
    metavar="PORT==N,PROTOCOL",
    shell_complete=_completed,
    help="Decode a server port as a protocol, as in udp.port==4711,maexchen, or as none. Without "
    "this option, the protocol is recognised.",
)
