"""A test for listening ports on this machine that sends no traffic; the sockets of other processes."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterable
from contextlib import suppress

from kiebitz.dissectors.model import Transport

_LISTENING_STATES = {"tcp": "0A", "udp": "07"}
"""Socket states in the kernel's tables: TCP listening, UDP unconnected."""

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_REQUEST_DUMP = 0x301
_NLMSG_DONE = 3
_TCP_LISTEN = 10
_HEADER = struct.Struct("=IHHII")
_TCP_REQUEST = struct.Struct("=BBBxIHH32xI8x")
"""A `struct inet_diag_req_v2`, see sock_diag(7): family, protocol, states and the local port."""


def is_in_use(transport: Transport, port: int) -> bool | None:
    """Return True if a socket listens at a port, on any address; None if the system does not tell."""
    if transport == "tcp":
        with suppress(OSError, AttributeError, struct.error):
            return any(_has_listener(family, port) for family in (socket.AF_INET, socket.AF_INET6))
    return _is_in_table(transport, port)


def _has_listener(family: int, port: int) -> bool:
    """Ask Linux for the sockets that listen at a TCP port.

    The table in /proc has all connections, too: to read it takes a hundred times as long. Raises OSError and
    AttributeError where there is no such query.
    """
    body = _TCP_REQUEST.pack(family, socket.IPPROTO_TCP, 0, 1 << _TCP_LISTEN, socket.htons(port), 0, 0)
    head = _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as query:
        query.send(head + body)
        kind: int = _HEADER.unpack_from(query.recv(1 << 16))[1]
    if kind not in (_SOCK_DIAG_BY_FAMILY, _NLMSG_DONE):
        raise OSError("no answer")
    return kind == _SOCK_DIAG_BY_FAMILY


def _is_in_table(transport: Transport, port: int) -> bool | None:
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
