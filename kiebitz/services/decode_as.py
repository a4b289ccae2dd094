"""`-d` rules of the form `udp.port==9000,maexchen`: the protocol of a server's port."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.inspection.inspector import DecodeAs
from kiebitz.dissectors.model import Transport
from kiebitz.dissectors.registry import dissector_of, installed, not_installed
from kiebitz.dissectors.suggestions import did_you_mean

_FORM = re.compile(r"(udp|tcp)\.port\s*==\s*(\d{1,5})\s*,\s*(\w+)")


TRANSPORTS: dict[str, Transport] = {"udp": "udp", "tcp": "tcp"}
"""Transports by their name in a rule."""


NO_GAME = "none"
"""Name in a rule for a port that no game uses."""


class DecodeAsError(KiebitzError):
    """A `-d` rule that cannot be applied."""

    is_usage = True


def parse_decode_as(specs: Sequence[str]) -> dict[tuple[str, int], Dissector | None]:
    """Return the protocol for each (transport, port); None marks a port that no game uses.

    Raises:
        DecodeAsError: A rule is malformed, or names an unknown protocol or the wrong transport.
    """
    forced: dict[tuple[str, int], Dissector | None] = {}
    for spec in specs:
        form = _FORM.fullmatch(spec.strip())
        if form is None or int(form[2]) > 65_535:
            raise DecodeAsError(f"'{spec}' is not of the form udp.port==9000,maexchen")
        transport, port, protocol = TRANSPORTS[form[1]], int(form[2]), form[3]
        if protocol == NO_GAME:
            forced[transport, port] = None
            continue
        dissector = dissector_of(protocol)
        if dissector is None:
            raise DecodeAsError(f"{unknown_protocol(protocol)}; {NO_GAME} marks a port without a game")
        if dissector.transport != transport:
            raise DecodeAsError(f"{protocol} uses {dissector.transport}")
        forced[transport, port] = dissector
    return forced


def unknown_protocol(name: str) -> str:
    """Return a sentence about a protocol name that is not installed."""
    known = installed().dissectors
    near = get_close_matches(name, known, n=1)
    if near:
        return f"there is no protocol {name}; {did_you_mean(*near)}"
    return f"{not_installed(name)}; there are: {', '.join(known)}"


def server_ports(forced: DecodeAs, transport: Transport) -> frozenset[int]:
    """Return a transport's server ports: those with a rule and each protocol's defaults."""
    return frozenset(port for through, port in forced if through == transport).union(
        *(
            dissector.default_ports
            for dissector in installed().dissectors.values()
            if dissector.transport == transport
        )
    )
