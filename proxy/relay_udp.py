"""One UDP mode: datagrams from any number of clients to one server and back, each forwarded, then journaled.

Every client address gets its own socket, connected to the server: the server sees one stable port per client,
only the server's datagrams come in there, and ICMP errors are reported on the association they belong to.

The sockets are watched by a selector of our own, which the event loop watches: libuv, and so uvloop, silently
stops watching a socket once an ICMP error is pending on it, and here that is everyday life.
"""

from __future__ import annotations

import asyncio
import errno
import selectors
import socket
import time
from collections import OrderedDict, deque

from dissectors.records import Direction
from proxy.endpoints import NETWORK_FAULTS, Address, Notice, endpoint_text, enlarge_buffers, meet
from proxy.journal import JournalWriter
from proxy.modes import Mode

_MAX_DATAGRAM = 65_535
_BURST = 32
"""At most this many datagrams are taken from one socket before the others have their turn."""
_BACKLOG_NS = 20_000
"""A datagram this soon after the one before means that more are probably waiting."""
_MAX_WAITING = 256
"""How many datagrams wait for a socket that takes no more."""
_MIN_SWEEP_SECONDS = 0.01
_FULL = (errno.EAGAIN, errno.EWOULDBLOCK, errno.ENOBUFS)
_FAULTS = {
    **NETWORK_FAULTS,
    errno.ECONNREFUSED: ("port-unreachable", "nobody listens on that port"),
    errno.EMSGSIZE: ("too-big", "the datagram is too big for the way there"),
}


class _Association:
    """One client address and its socket towards the server. `c2s` and `s2c` count the bytes that came."""

    __slots__ = ("active", "c2s", "client", "last_ns", "number", "s2c", "upstream", "waiting")

    def __init__(self, client: Address, upstream: socket.socket) -> None:
        self.client = client
        self.upstream = upstream
        self.number = 0
        self.c2s = 0
        self.s2c = 0
        self.active = 0.0
        self.last_ns = 0
        self.waiting: deque[tuple[_Association, bytes]] = deque()


class UdpRelay:
    """Relays what `mode` says. The listening socket is bound at once; traffic flows between start and close.

    An association ends when it was silent for `idle_seconds`, or when there would be more than `max_clients`
    and it has been silent the longest. Raises RelayError if it cannot listen or does not find the server.
    """

    def __init__(
        self, mode: Mode, journal: JournalWriter, on_notice: Notice, idle_seconds: float, max_clients: int
    ) -> None:
        self.mode = mode
        self._listener, self._family, self._server = meet(mode)
        self.address = endpoint_text(self._listener.getsockname())
        self.server = endpoint_text(self._server)
        self._journal = journal
        self._on_notice = on_notice
        self._idle_seconds = idle_seconds
        self._max_clients = max_clients
        # The association that has been silent longest comes first.
        self._associations: OrderedDict[Address, _Association] = OrderedDict()
        self._waiting: deque[tuple[_Association, bytes]] = deque()
        self._last_ns = 0
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let traffic flow."""
        self._time = loop.time
        loop.add_reader(self._selector.fileno(), self._ready)
        self._sweep(loop)

    async def stop(self, loop: asyncio.AbstractEventLoop, ts_ns: int) -> None:
        """Let no more traffic flow, and end all streams at `ts_ns`."""
        self._sweeper.cancel()
        loop.remove_reader(self._selector.fileno())
        for association in list(self._associations.values()):
            self._end(association, ts_ns, "end")

    def close(self) -> None:
        """Give back the sockets."""
        self._selector.close()
        self._listener.close()

    def _ready(self) -> None:
        for key, events in self._selector.select(0):
            association: _Association | None = key.data
            if association is None:
                if events & selectors.EVENT_WRITE:
                    self._drain(self._listener, self._waiting, "s2c")
                if events & selectors.EVENT_READ:
                    self._from_clients()
            # An association that has ended since the selector looked has no socket any more.
            elif association.upstream.fileno() >= 0:
                if events & selectors.EVENT_WRITE:
                    self._drain(association.upstream, association.waiting, "c2s")
                if events & selectors.EVENT_READ:
                    self._from_server(association)

    def _from_clients(self) -> None:
        for _ in range(_BURST):
            try:
                data, client = self._listener.recvfrom(_MAX_DATAGRAM)
            except BlockingIOError:
                return
            except OSError as error:
                self._on_notice("receive", f"Receiving on udp {self.address} failed: {error.strerror}.")
                return
            now = time.time_ns()
            association = self._associations.get(client) or self._open(client, now)
            if association is None:
                return
            if association.waiting:
                self._wait(association, "c2s", now, data)
            else:
                try:
                    association.upstream.send(data)
                except OSError as error:
                    self._send_failed(association, "c2s", now, data, error)
            self._journal.chunk(association.number, "c2s", now, association.c2s, data)
            association.c2s += len(data)
            association.active = self._time()
            self._associations.move_to_end(client)
            backlog = now - self._last_ns < _BACKLOG_NS
            self._last_ns = now
            # Asking in vain costs more than coming back, and the other end may be waiting for this core.
            if not backlog:
                return

    def _from_server(self, association: _Association) -> None:
        for _ in range(_BURST):
            try:
                data = association.upstream.recv(_MAX_DATAGRAM)
            except BlockingIOError:
                return
            except OSError as error:
                # The network's answer to a datagram sent before; the next one may well come through.
                self._fault(association, "c2s", time.time_ns(), error)
                continue
            now = time.time_ns()
            if self._waiting:
                self._wait(association, "s2c", now, data)
            else:
                try:
                    self._listener.sendto(data, association.client)
                except OSError as error:
                    self._send_failed(association, "s2c", now, data, error)
            self._journal.chunk(association.number, "s2c", now, association.s2c, data)
            association.s2c += len(data)
            association.active = self._time()
            self._associations.move_to_end(association.client)
            backlog = now - association.last_ns < _BACKLOG_NS
            association.last_ns = now
            if not backlog:
                return

    def _open(self, client: Address, now: int) -> _Association | None:
        if len(self._associations) >= self._max_clients:
            self._end(next(iter(self._associations.values())), now, "evicted")
        text = endpoint_text(client)
        upstream = None
        try:
            upstream = socket.socket(self._family, socket.SOCK_DGRAM)
            upstream.setblocking(False)
            enlarge_buffers(upstream)
            upstream.connect(self._server)
            association = _Association(client, upstream)
            self._selector.register(upstream, selectors.EVENT_READ, association)
        except OSError as error:
            if upstream is not None:
                upstream.close()
            self._on_notice(
                "no-socket",
                f"No socket for the client {text} to udp {self.server}: {error.strerror}. "
                "What it sent was dropped.",
            )
            return None
        association.number = self._journal.open("udp", text, self.server, now)
        self._associations[client] = association
        return association

    def _end(self, association: _Association, now: int, reason: str) -> None:
        del self._associations[association.client]
        self._selector.unregister(association.upstream)
        association.upstream.close()
        self._journal.end(association.number, now, reason)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """End what has been silent for too long, and come back when the next may have been."""
        wait = self._idle_seconds
        now = self._time()
        while self._associations:
            longest_silent = next(iter(self._associations.values()))
            wait = longest_silent.active + self._idle_seconds - now
            if wait > 0:
                break
            self._end(longest_silent, time.time_ns(), "idle")
        self._sweeper = loop.call_later(max(wait, _MIN_SWEEP_SECONDS), self._sweep, loop)

    # What follows is for the rare cases: a socket that takes no more, an error.

    def _send(self, association: _Association, direction: Direction, data: bytes) -> None:
        if direction == "c2s":
            association.upstream.send(data)
        else:
            self._listener.sendto(data, association.client)

    def _send_failed(
        self, association: _Association, direction: Direction, now: int, data: bytes, error: OSError
    ) -> None:
        """Try once more, wait if the socket is full, else give this datagram up."""
        if error.errno not in _FULL:
            self._fault(association, direction, now, error)
            # The error may be that of a datagram sent before; this one was not sent in any case.
            try:
                self._send(association, direction, data)
            except OSError as again:
                if again.errno not in _FULL:
                    if again.errno != error.errno:
                        self._fault(association, direction, now, again)
                    return
            else:
                return
        self._wait(association, direction, now, data)

    def _wait(self, association: _Association, direction: Direction, now: int, data: bytes) -> None:
        """Queue a datagram for a full socket; the oldest gives way."""
        if direction == "c2s":
            sock, waiting, owner = association.upstream, association.waiting, association
        else:
            sock, waiting, owner = self._listener, self._waiting, None
        if not waiting:
            self._selector.modify(sock, selectors.EVENT_READ | selectors.EVENT_WRITE, owner)
        elif len(waiting) >= _MAX_WAITING:
            oldest, _ = waiting.popleft()
            if oldest.upstream.fileno() >= 0:
                self._report(
                    oldest, direction, now, "overflow", "a datagram was dropped, too many were waiting"
                )
        waiting.append((association, data))

    def _drain(
        self, sock: socket.socket, waiting: deque[tuple[_Association, bytes]], direction: Direction
    ) -> None:
        """Send what waits, as long as the socket takes it."""
        while waiting:
            association, data = waiting[0]
            if association.upstream.fileno() >= 0:
                try:
                    self._send(association, direction, data)
                except OSError as error:
                    if error.errno in _FULL:
                        return
                    self._fault(association, direction, time.time_ns(), error)
            waiting.popleft()
        self._selector.modify(sock, selectors.EVENT_READ, association if direction == "c2s" else None)

    def _fault(self, association: _Association, direction: Direction, now: int, error: OSError) -> None:
        code, text = _FAULTS.get(error.errno or 0, ("network", error.strerror or str(error)))
        self._report(association, direction, now, code, text)

    def _report(
        self, association: _Association, direction: Direction, now: int, code: str, text: str
    ) -> None:
        offset = association.c2s if direction == "c2s" else association.s2c
        self._journal.fault(association.number, direction, now, offset, code, text)
        client = endpoint_text(association.client)
        way = f"{client} to {self.server}" if direction == "c2s" else f"{self.server} to {client}"
        self._on_notice(code, f"udp {way}: {text}.")
