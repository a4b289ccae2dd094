"""What is clear before anything is sent: which protocol the peer speaks, and that it may be probed."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable

import click

from kiebitz.cli.terminal.console import confirmed
from kiebitz.cli.terminal.keyboard import has_keyboard
from kiebitz.dissectors.dissector import Dissector, recognise
from kiebitz.dissectors.registry import installed
from kiebitz.proxy.relay.endpoints import is_local, resolve
from kiebitz.services.server_addresses import Place

_LISTEN_S = 2.0
"""So long a server may take to say something unasked."""

_MOST = 1 << 16


def recognised(place: Place) -> Dissector:
    """The protocol of a server that says something to whoever connects; nothing is said to it.

    Raises click.UsageError where none is recognised, RelayError for a name that is not found.
    """
    host, port = place
    said = b""
    family, address = resolve(host, port, "tcp")
    end = time.monotonic() + _LISTEN_S
    try:
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            sock.settimeout(_LISTEN_S)
            sock.connect(address)
            while (left := end - time.monotonic()) > 0 and len(said) < _MOST:
                sock.settimeout(left)
                data = sock.recv(4096)
                if not data:
                    break
                said += data
                found = _certain(recognise(installed().dissectors.values(), "tcp", said))
                if found is not None:
                    return found
    except OSError:
        # Nobody listens there over TCP, or says nothing.
        pass
    known = ", ".join(installed().dissectors)
    raise click.UsageError(
        f"it is not known what {host}:{port} speaks, and nothing is sent before that is clear: say"
        f" -d PROTOCOL, one of {known}"
    )


def _certain(found: Iterable[tuple[Dissector, str, str]]) -> Dissector | None:
    certain = [dissector for dissector, direction, how in found if (direction, how) == ("s2c", "certain")]
    return certain[0] if len(certain) == 1 else None


def ask_first(place: Place, dissector: Dissector, is_agreed: bool) -> None:
    """Ask whether a server of another machine may be probed. Raises click.UsageError where nobody is there to
    be asked, and click.Abort if it may not."""
    host, port = place
    family, address = resolve(host, port, dissector.transport)
    if is_agreed or is_local(family, address):
        return
    if not has_keyboard():
        raise click.UsageError(
            f"{host} is another machine: probe only what is yours or what you may probe, and say so: --yes"
        )
    if not confirmed(f"{host} is another machine. Is it yours, or may you send it what is wrong on purpose?"):
        raise click.Abort
