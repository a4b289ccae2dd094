"""One UDP mode: datagrams from any number of clients to one server and back, each forwarded, then journaled.

Every client address gets its own socket, connected to the server: the server sees one stable port per client,
only the server's datagrams come in there, and ICMP errors are reported on the association they belong to.

Sockets are watched by a selector of our own inside the event loop's: libuv, and so uvloop, silently stops
watching a socket on which an ICMP error is pending, and to us that is everyday life.
"""

from __future__ import annotations

import asyncio
import errno
import selectors
import socket
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

from dissectors.records import Direction
from proxy.endpoints import endpoint_text, resolve
from proxy.journal import JournalWriter
from proxy.modes import Mode

Address = tuple[Any, ...]
"""A socket address as the socket module has it: host, port and, with IPv6, flow and scope."""

Notice = Callable[[str, str], None]
"""Told of trouble that stops nothing: a short constant code, and a sentence for people."""

_MAX_DATAGRAM = 65_535
_BURST = 32
"""At most this many datagrams are taken from one socket before the others have their turn."""
_BACKLOG_NS = 20_000
"""A datagram this soon after the one before means that more are probably waiting."""
_MAX_WAITING = 256
"""How many datagrams wait in one direction for a socket that takes no more."""
_BUFFER_BYTES = 4 << 20
_FULL = (errno.EAGAIN, errno.EWOULDBLOCK, errno.ENOBUFS)
_FAULTS = {
    errno.ECONNREFUSED: ("port-unreachable", "nobody listens on that port"),
    errno.EHOSTUNREACH: ("host-unreachable", "the host cannot be reached"),
    errno.ENETUNREACH: ("network-unreachable", "there is no way to that network"),
    errno.EMSGSIZE: ("too-big", "the datagram is too big for the way there"),
    errno.EPERM: ("prohibited", "a firewall here does not let it out"),
    errno.EACCES: ("prohibited", "a firewall on the way does not let it through"),
}


class _Association:
    """One client address and its socket towards the server. `c2s` and `s2c` count the bytes that came."""

    __slots__ = ("active", "c2s", "client", "last_ns", "number", "s2c", "text", "upstream", "waiting")

    def __init__(self, client: Address, text: str, upstream: socket.socket, number: int) -> None:
        self.client = client
        self.text = text
        self.upstream = upstream
        self.number = number
        self.c2s = 0
        self.s2c = 0
        self.active = 0.0
        self.last_ns = 0
        self.waiting: deque[bytes] = deque()


class UdpRelay:
    """Relays what `mode` says. The listening socket is bound at once; traffic flows between start and close.

    An association ends when it was silent for `idle_seconds`, or when there would be more than `max_clients`
    and it has been silent the longest. Raises RelayError if it cannot listen or does not find the server.
    """

    def __init__(
        self, mode: Mode, journal: JournalWriter, on_notice: Notice, idle_seconds: float, max_clients: int
    ) -> None:
        listening_family, listening = resolve(mode.listen_host, mode.listen_port, "udp")
        self._family, self._server = resolve(mode.host, mode.port, "udp", prefer=listening_family)
        self._listener = bind(listening_family, listening, self._server)
        self.address = endpoint_text(self._listener.getsockname())
        self.server = endpoint_text(self._server)
        self._journal = journal
        self._on_notice = on_notice
        self._idle_seconds = idle_seconds
        self._max_clients = max_clients
        self._associations: OrderedDict[Address, _Association] = OrderedDict()
        """By client address, the one that has been silent longest first."""
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._waiting: deque[tuple[bytes, _Association]] = deque()
        self._last_ns = 0
        self._sweeper: asyncio.TimerHandle | None = None
