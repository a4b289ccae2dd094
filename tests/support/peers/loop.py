"""Real sockets on the loopback for servers and players: one thread, bounded in time and in what is kept."""

from __future__ import annotations

import selectors
import socket
import time
from contextlib import suppress
from typing import NamedTuple

from peers.program import BREATH_S, Link, Player, Server

READ = 65_536
MOST_UNSENT = 4_194_304
"""Bytes for a client who does not read; then it is given up."""

FAREWELL_S = 2.0
"""Seconds for which a connection that was closed here still receives data."""

SILENCE_S = 60.0
"""Seconds after which a player gives up a silent server."""


class Door(NamedTuple):
    """A listening socket, and which of the server's it is."""

    socket: socket.socket
    number: int


class _Connection:
    def __init__(self, sock: socket.socket, link: Link) -> None:
        self.socket = sock
        self.link = link
        self.unsent = b""
        self.closes_at: float | None = None
        """Time of the forced close; None while the connection is open."""
        self.is_heard = True


def listen(host: str, port: int, doors: int, transport: str) -> list[Door]:
    """Sockets at this port and the next ones, or at any if it is 0."""
    kind = socket.SOCK_STREAM if transport == "tcp" else socket.SOCK_DGRAM
    found = []
    for number in range(doors):
        sock = socket.socket(socket.AF_INET, kind)
        if transport == "tcp":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port + number if port else 0))
        if transport == "tcp":
            sock.listen(64)
        sock.setblocking(False)
        found.append(Door(sock, number))
    return found


class Carrier:
    """Serves until the server has had enough, or the time is up."""

    def __init__(self, server: Server, doors: list[Door]) -> None:
        self._server = server
        self._selector = selectors.DefaultSelector()
        self._connections: dict[Link, _Connection] = {}
        self._addresses: dict[tuple[str, int], Link] = {}
        self._by_link: dict[Link, tuple[str, int]] = {}
        self._doors = doors
        self._count = 0
        for door in doors:
            self._selector.register(door.socket, selectors.EVENT_READ, door)

    def run(self, seconds: float) -> None:
        """Raises what a planted fault raises."""
        start = time.monotonic()
        try:
            while not self._is_done() and time.monotonic() - start < seconds:
                now = time.monotonic() - start
                self._server.run_until(now)
                self._send(now)
                due = self._server.due
                wait = 0.2 if due is None else min(max(due - now, 0), 0.2)
                for key, events in self._selector.select(wait):
                    self._server.now = time.monotonic() - start
                    self._happened(key.data, events)
                    self._send(self._server.now)
                self._forget(time.monotonic() - start)
        finally:
            for connection in self._connections.values():
                connection.socket.close()
            for door in self._doors:
                door.socket.close()
            self._selector.close()

    def _is_done(self) -> bool:
        return self._server.over and not self._connections and not self._server.outbox

    def _happened(self, what: Door | _Connection, events: int) -> None:
        if isinstance(what, _Connection):
            if events & selectors.EVENT_READ:
                self._read(what)
            if events & selectors.EVENT_WRITE:
                self._write(what)
        elif self._server.transport == "udp":
            self._datagram(what.socket)
        else:
            with suppress(OSError):
                sock, address = what.socket.accept()
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._count += 1
                link = Link(self._count, address[0], self._server.outbox, what.number)
                self._connections[link] = _Connection(sock, link)
                self._selector.register(sock, selectors.EVENT_READ, self._connections[link])
                self._server.greet(link)

    def _datagram(self, sock: socket.socket) -> None:
        # An ICMP error about a closed peer.
        with suppress(OSError):
            data, sender = sock.recvfrom(READ)
            address = (sender[0], sender[1])
            if address not in self._addresses:
                if len(self._addresses) >= 4096:
                    return
                self._count += 1
                link = Link(self._count, address[0], self._server.outbox)
                self._addresses[address], self._by_link[link] = link, address
            self._server.hear(self._addresses[address], data)

    def _read(self, connection: _Connection) -> None:
        try:
            data = connection.socket.recv(READ)
        except BlockingIOError:
            return
        except OSError:
            self._server.lose(connection.link)
            connection.link.is_open = False
            self._drop(connection)
            return
        if data:
            if connection.closes_at is None:
                self._server.hear(connection.link, data)
            return
        connection.is_heard = False
        self._watch(connection)
        if connection.closes_at is None:
            self._server.end(connection.link)
        else:
            self._drop(connection)

    def _send(self, now: float) -> None:
        while self._server.outbox:
            link, data = self._server.outbox.pop(0)
            if link is None:
                time.sleep(BREATH_S)
            elif self._server.transport == "udp":
                with suppress(OSError):
                    self._doors[0].socket.sendto(data or b"", self._by_link[link])
            elif link in self._connections:
                connection = self._connections[link]
                if data is None:
                    connection.closes_at = now + FAREWELL_S
                else:
                    connection.unsent += data
                self._write(connection)

    def _write(self, connection: _Connection) -> None:
        try:
            if connection.unsent:
                sent = connection.socket.send(connection.unsent)
                connection.unsent = connection.unsent[sent:]
            if connection.closes_at is not None and not connection.unsent:
                connection.socket.shutdown(socket.SHUT_WR)
                if not connection.is_heard:
                    self._drop(connection)
                    return
        except BlockingIOError:
            pass
        except OSError:
            self._server.lose(connection.link)
            self._drop(connection)
            return
        if len(connection.unsent) > MOST_UNSENT:
            self._server.lose(connection.link)
            self._drop(connection)
            return
        self._watch(connection)

    def _watch(self, connection: _Connection) -> None:
        events = selectors.EVENT_READ * connection.is_heard | selectors.EVENT_WRITE * bool(connection.unsent)
        with suppress(KeyError):
            self._selector.unregister(connection.socket)
        if events:
            self._selector.register(connection.socket, events, connection)

    def _forget(self, now: float) -> None:
        for connection in [*self._connections.values()]:
            if connection.closes_at is not None and connection.closes_at < now:
                self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        if self._connections.pop(connection.link, None) is not None:
            with suppress(KeyError):
                self._selector.unregister(connection.socket)
            connection.socket.close()


def play(player: Player, host: str, port: int, seconds: float) -> bool:
    """Play until one of both has had enough; whether a game was played to its end."""
    start = time.monotonic()
    sock = _call(player, host, port)
    silent_since = start
    try:
        while time.monotonic() - start < seconds and time.monotonic() - silent_since < SILENCE_S:
            player.run_until(time.monotonic() - start)
            while player.says:
                sock.sendall(player.says.pop(0))
            if player.over:
                break
            if player.calls:
                player.calls = False
                sock.close()
                there, _, at = player.url.rpartition(":")
                if not (at.isascii() and at.isdigit() and int(at) < 1 << 16):
                    # Nothing listens there.
                    break
                sock = _call(player, there, int(at))
                continue
            try:
                data = sock.recv(READ)
            except TimeoutError:
                continue
            if not data and player.transport == "tcp":
                break
            silent_since = time.monotonic()
            player.hear(data)
    except ConnectionError:
        return player.games > 0
    finally:
        sock.close()
    return player.games > 0


def _call(player: Player, host: str, port: int) -> socket.socket:
    kind = socket.SOCK_STREAM if player.transport == "tcp" else socket.SOCK_DGRAM
    sock = socket.socket(socket.AF_INET, kind)
    sock.settimeout(5)
    sock.connect((host, port))
    sock.settimeout(0.02)
    player.connected()
    return sock
