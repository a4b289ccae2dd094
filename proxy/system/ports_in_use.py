"""A test for listening ports on this machine that sends no traffic."""

from __future__ import annotations

from contextlib import suppress

from kiebitz.dissectors.model import Transport

_LISTENING_STATES = {"tcp": "0A", "udp": "07"}
"""Socket states in the kernel's tables: TCP listening, UDP unconnected."""


def is_in_use(transport: Transport, port: int) -> bool | None:
    """Return True if a socket listens at a port, on any address; None if the system does not tell."""
    known = False
    for family in ("", "6"):
        # The table may be missing: without IPv6, or on systems other than Linux.
        with suppress(OSError), open(f"/proc/net/{transport}{family}") as table:
            known = True
            next(table)
            for row in table:
                _, local, _, state, *_ = row.split()
                if state == _LISTENING_STATES[transport] and int(local.rpartition(":")[2], 16) == port:
                    return True
    return False if known else None
