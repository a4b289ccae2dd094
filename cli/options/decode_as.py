"""`-d udp.port==9000,maexchen`: which protocol a server's port is said to speak, in tshark's notation."""

from __future__ import annotations

import click

from kiebitz.cli.completion.network import beginning, own_ports
from kiebitz.cli.terminal.console import Candidate
from kiebitz.dissectors.registry import installed
from kiebitz.services.decode_as import NO_GAME, TRANSPORTS, DecodeAsError, parse_decode_as


def _completed(context: click.Context, parameter: click.Parameter, text: str) -> list[Candidate]:
    """`udp.port==`, behind it the protocols' own ports, and behind a port the protocols."""
    form, equals, rest = text.partition("==")
    transport = TRANSPORTS.get(form.removesuffix(".port"))
    if transport is None or not equals:
        return beginning(text, ((f"{name}.port==", None) for name in TRANSPORTS))
    port, comma, _ = rest.partition(",")
    if not comma:
        own = ((f"{form}=={number},{name}", title) for number, name, title in own_ports(transport))
        return beginning(text, own)
    protocols = [
        (dissector.protocol, dissector.grammar.title)
        for dissector in installed().dissectors.values()
        if dissector.transport == transport
    ]
    named = [*protocols, (NO_GAME, "no game")]
    return beginning(text, ((f"{form}=={port},{name}", title) for name, title in named))


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
    help="Take a server's port for a protocol's, as in udp.port==4711,maexchen, or for no game's: none in its"
    " place. Else it is recognised.",
)
