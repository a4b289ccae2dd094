"""The sockets of other processes, from the tables of the kernel in /proc."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress

from kiebitz.dissectors.model import Transport

_LOCAL_ADDRESS, _INODE = 1, 9
"""Columns of /proc/net/tcp and /proc/net/udp."""


def local_ports(transport: Transport, processes: Iterable[int]) -> set[int]:
    """Return the local ports of the sockets of processes, as far as the system tells."""
    ports: dict[str, int] = {}
    for family in ("", "6"):
        # The table may be missing: without IPv6, or on systems other than Linux.
        with suppress(OSError), open(f"/proc/net/{transport}{family}") as table:
            next(table)
            for line in table:
                columns = line.split()
                ports[f"socket:[{columns[_INODE]}]"] = int(columns[_LOCAL_ADDRESS].rpartition(":")[2], 16)
    found = set()
    for process in processes:
        # A process may end at any time, or belong to another user.
        with suppress(OSError):
            for name in os.listdir(f"/proc/{process}/fd"):
                with suppress(OSError):
                    target = os.readlink(f"/proc/{process}/fd/{name}")
                    if target in ports:
                        found.add(ports[target])
    return found
