"""Datagrams to and from live peers: each client address is a connection of its own."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress

from kiebitz.dissectors.model import Stream
from kiebitz.proxy.peers.connections import NOBODY_LISTENS, Connection, Peers
from kiebitz.proxy.relay.endpoints import Address, bind, endpoint_text, enlarge_buffers, resolve

_LARGEST = 65_535
_BURST = 64
"""At most so many datagrams are taken at once."""
_MOST_CLIENTS = 4096
"""Whoever comes when so many are known is not listened to: their addresses may be made up."""


class _UdpConnection(Connection):
    """What goes between two addresses; `send_now` hands a datagram to the system."""

    def __init__(self, peers: Peers, stream: Stream, send_now: Callable[[bytes], int]) -> None:
        super().__init__(peers, stream)
        self._send_now = send_now

    def send(self, data: bytes) -> None:
        # The peer's machine may have said of an earlier one that nobody listens: that is noticed elsewhere.
        with suppress(OSError):
            self._send_now(data)

    def hang(self) -> None:
        # Datagrams have no end.
        self.over.set()

    def reset(self) -> None:
        """Nobody would be told."""

    def close(self) -> None:
        """The socket may be others', too."""


async def listen(peers: Peers, host: str, port: int, server: str) -> str:
    """Play the server of this name to clients that send to host:port; gives the address.

    Raises RelayError.
    """
    family, address = resolve(host, port, "udp")
    sock = bind(family, address, "udp")
    here = endpoint_text(sock.getsockname())
    clients: dict[Address, _UdpConnection] = {}

    def take() -> None:
        for _ in range(_BURST):
            try:
                data, client = sock.recvfrom(_LARGEST)
            except OSError:
                return
            connection = clients.get(client)
            if connection is None:
                if len(clients) >= _MOST_CLIENTS:
                    continue
                stream = peers.stream("udp", endpoint_text(client), here)
                connection = clients[client] = _UdpConnection(peers, stream, _to(sock, client))
                peers.add(connection, server)
            connection.came(data)

    _read(peers, sock, take)
    return here


async def call(peers: Peers, host: str, port: int) -> int:
    """A socket of its own for a client's conversation with a server; gives the connection's number.

    Raises RelayError for a name that is not found.
    """
    family, address = resolve(host, port, "udp")
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.setblocking(False)
    enlarge_buffers(sock)
    sock.connect(address)
    stream = peers.stream("udp", endpoint_text(sock.getsockname()), endpoint_text(address))
    connection = _UdpConnection(peers, stream, sock.send)

    def take() -> None:
        for _ in range(_BURST):
            try:
                data = sock.recv(_LARGEST)
            except BlockingIOError:
                return
            except OSError as error:
                connection.gone(f"{NOBODY_LISTENS} ({error.strerror})")
                return
            connection.came(data)

    peers.add(connection)
    _read(peers, sock, take)
    return stream.id


def _to(sock: socket.socket, client: Address) -> Callable[[bytes], int]:
    return lambda data: sock.sendto(data, client)


def _read(peers: Peers, sock: socket.socket, take: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    loop.add_reader(sock, take)

    def close() -> None:
        loop.remove_reader(sock)
        with suppress(OSError):
            sock.close()

    peers.at_end(close)
