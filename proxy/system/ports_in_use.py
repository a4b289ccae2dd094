"""Whether somebody on this machine listens at a port, without sending anything there."""

from __future__ import annotations

from contextlib import suppress

from kiebitz.dissectors.model import Transport

_LISTENS = {"tcp": "0A", "udp": "07"}
"""The kernel's numbers for a TCP socket that listens, and for a UDP socket that is not connected."""


def is_in_use(transport: Transport, port: int) -> bool | None:
    """Whether a socket listens at a port, on whatever address; None where the system does not tell."""
    known = False
    for family in ("", "6"):
        # There may be no IPv6, and no such table at all where the system is not Linux.
        with suppress(OSError), open(f"/proc/net/{transport}{family}") as table:
            known = True
            next(table)
            for row in table:
                _, local, _, state, *_ = row.split()
                if state == _LISTENS[transport] and int(local.rpartition(":")[2], 16) == port:
                    return True
    return False if known else None
