"""The options of `kiebitz probe` as records, and the checks of its target before anything is sent to it."""

from __future__ import annotations

import shlex
import socket
import time
from collections.abc import Iterable, Sequence

import click
import msgspec

from kiebitz.cli.terminal.console import confirmed, has_keyboard
from kiebitz.dissectors.conformance.expectations import TargetRole
from kiebitz.dissectors.dissector import Dissector, recognise
from kiebitz.dissectors.registry import installed
from kiebitz.dissectors.replay.script import Script
from kiebitz.proxy.relay.endpoints import is_local, resolve
from kiebitz.proxy.relay.modes import endpoint
from kiebitz.services.server_addresses import Address

DEFAULT_TIMEOUT_S = 1.0


class Target(msgspec.Struct, frozen=True):
    """The system under test, its protocol, and the recorded game that leads to the states of cases."""

    role: TargetRole
    place: Address
    dissector: Dissector
    script: Script | None
    protocol_files: Sequence[str]

    @property
    def address(self) -> str:
        """Address as text."""
        return endpoint(*self.place)


class RunOptions(msgspec.Struct, frozen=True):
    """The options for running and recording the cases."""

    via_session: str | None
    restart: str | None
    jobs: int
    database: str | None
    keep: str | None
    timeout_s: float
    rate: float
    max_cases: int
    max_time_s: float

    def command(self, target: Target) -> str:
        """Return the shell command that repeats a case, without `--only`."""
        words = ["kiebitz", "probe", target.role, target.address, "-d", target.dissector.protocol]
        for path in target.protocol_files:
            words += ["-P", path]
        for option, value in (("--via-session", self.via_session), ("--restart", self.restart)):
            words += [option, value] if value is not None else []
        if self.timeout_s != DEFAULT_TIMEOUT_S:
            words += ["--timeout", f"{self.timeout_s:g}"]
        return shlex.join(words)


class Outputs(msgspec.Struct, frozen=True):
    """The requested outputs: files, formats, and the baseline file."""

    as_json: bool
    junit: str | None
    github: bool
    baseline: str | None
    update_baseline: bool
    report: str | None


_LISTEN_TIMEOUT_S = 2.0
"""Timeout in seconds for a server's unsolicited messages."""

_MAX_BYTES = 1 << 16


def recognise_protocol(endpoint: Address) -> Dissector:
    """Return the protocol of a server that sends something to every client; nothing is sent to it.

    Raises click.UsageError if none is recognised, RelayError for a name that is not found.
    """
    host, port = endpoint
    received = b""
    family, address = resolve(host, port, "tcp")
    end = time.monotonic() + _LISTEN_TIMEOUT_S
    try:
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            sock.settimeout(_LISTEN_TIMEOUT_S)
            sock.connect(address)
            while (left := end - time.monotonic()) > 0 and len(received) < _MAX_BYTES:
                sock.settimeout(left)
                data = sock.recv(4096)
                if not data:
                    break
                received += data
                found = _certain(recognise(installed().dissectors.values(), "tcp", received))
                if found is not None:
                    return found
    except OSError:
        # No listener there over TCP, or no data from it.
        pass
    known = ", ".join(installed().dissectors)
    raise click.UsageError(
        f"the protocol of {host}:{port} is not known, and nothing is sent before it is: name it with"
        f" -d PROTOCOL, one of {known}"
    )


def _certain(found: Iterable[tuple[Dissector, str, str]]) -> Dissector | None:
    certain = [dissector for dissector, direction, how in found if (direction, how) == ("s2c", "certain")]
    return certain[0] if len(certain) == 1 else None


def confirm_target(endpoint: Address, dissector: Dissector, is_agreed: bool) -> None:
    """Ask for permission to probe a server on another machine.

    Raises click.UsageError if there is no keyboard to answer with, and click.Abort if the answer is no.
    """
    host, port = endpoint
    family, address = resolve(host, port, dissector.transport)
    if is_agreed or is_local(family, address):
        return
    if not has_keyboard():
        raise click.UsageError(
            f"{host} is another machine: probe only servers that are yours or that you may probe, and"
            " confirm that with --yes"
        )
    if not confirmed(f"{host} is another machine. Is it yours, or may you send it invalid messages?"):
        raise click.Abort
