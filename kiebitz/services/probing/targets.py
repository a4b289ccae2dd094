"""The targets of a test run that Kiebitz starts: one or more instances, each at a port of its own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import msgspec

from kiebitz.dissectors.model import Transport
from kiebitz.proxy.system.ports_in_use import is_in_use
from kiebitz.services.probing.connection_setup import ProbeSetup
from kiebitz.services.probing.fair_clock import FairClock
from kiebitz.services.probing.program import ProgramError, TargetProgram

PORT = "{port}"
"""Placeholder for the port in the command that starts a target."""

NEXT_PORT = "{port+1}"
"""Placeholder for the port after it, where the protocol has a second one."""

_PORTS_EACH = 10
"""Distance between the ports of two targets: some protocols use the next ports as well."""

_MAX_PORT = 65535


def targets(setup: ProbeSetup, command: str, count: int, folder: str | None = None) -> list[ProbeSetup]:
    """Return the setups of `count` targets that a command starts, the first at the address of `setup`.

    They share a baseline, and `folder` is their working folder. Raises ProgramError if there are not enough
    free ports.
    """
    found = []
    ports = _free_ports(setup.dissector.transport, setup.address[1])
    for _ in range(count):
        port = next(ports, None)
        if port is None:
            raise ProgramError(
                f"--jobs {count}: not enough free ports above {setup.address[1]}: use fewer jobs"
            )
        program = TargetProgram(
            command.replace(PORT, str(port)).replace(NEXT_PORT, str(port + 1)),
            setup.dissector.transport,
            port if setup.target_role == "server" else None,
            folder=folder,
        )
        clock = FairClock(partial(getattr, program, "number"))
        address = (setup.address[0], port)
        found.append(msgspec.structs.replace(setup, address=address, program=program, clock=clock))
    return found


def _free_ports(transport: Transport, first: int) -> Iterator[int]:
    """Yield the first port, which is in use perhaps, and then ports that are free with those after them."""
    yield first
    for port in range(first + _PORTS_EACH, _MAX_PORT - _PORTS_EACH, _PORTS_EACH):
        if not any(is_in_use(transport, each) for each in range(port, port + _PORTS_EACH)):
            yield port
