"""Datagrams to and from live peers: each client address is a connection of its own."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress

from kiebitz.dissectors.model import Stream
from kiebitz.proxy.peers.connections import UNREACHABLE, Connection, Peers, bind_when_free
from kiebitz.proxy.relay.endpoints import Address, endpoint_text, enlarge_buffers, resolve

_MAX_DATAGRAM = 65_535
_BURST = 64
"""Maximum datagrams received in one turn."""
_MAX_CLIENTS = 4096
"""Maximum clients; further ones are ignored, as addresses can be spoofed."""


class _UdpConnection(Connection):
    """Traffic between two addresses; `send_now` passes a datagram to the system."""

    def __init__(self, peers: Peers, stream: Stream, send_now: Callable[[bytes], int]) -> None:
        super().__init__(peers, stream)
        self._send_now = send_now

    def write(self, data: bytes) -> None:
        # An ICMP error of an earlier datagram may be pending; it is handled where datagrams are received.
        with suppress(OSError):
            self._send_now(data)

    def send_eof(self) -> None:
        # UDP has no end of a direction.
        self.disconnected.set()

    def reset(self) -> None:
        """Do nothing: UDP has no reset."""

    def close(self) -> None:
        """Do nothing: the socket may be shared by several clients."""


async def listen(peers: Peers, host: str, port: int, server: str) -> str:
    """Act as the named server for clients that send to host:port; return the bound address.

    Raises RelayError.
    """
    family, address = resolve(host, port, "udp")
    sock = await bind_when_free(family, address, "udp")
    here = endpoint_text(sock.getsockname())
    clients: dict[Address, _UdpConnection] = {}

    def receive() -> None:
        for _ in range(_BURST):
            try:
                data, client = sock.recvfrom(_MAX_DATAGRAM)
            except OSError:
                return
            connection = clients.get(client)
            if connection is None:
                if len(clients) >= _MAX_CLIENTS:
                    continue
                stream = peers.stream("udp", endpoint_text(client), here)
                connection = clients[client] = _UdpConnection(peers, stream, _to(sock, client))
                peers.add(connection, server)
            connection.data_received(data)

    _read(peers, sock, receive)
    return here


async def connect(peers: Peers, host: str, port: int) -> int:
    """Open a client's socket to a server and return the connection's number.

    Raises RelayError if the server's name cannot be resolved.
    """
    family, address = resolve(host, port, "udp")
    sock = socket.socket(family, socket.SOCK_DGRAM)
    sock.setblocking(False)
    enlarge_buffers(sock)
    sock.connect(address)
    stream = peers.stream("udp", endpoint_text(sock.getsockname()), endpoint_text(address))
    connection = _UdpConnection(peers, stream, sock.send)

    def receive() -> None:
        for _ in range(_BURST):
            try:
                data = sock.recv(_MAX_DATAGRAM)
            except BlockingIOError:
                return
            except OSError as error:
                connection.peer_disconnected(f"{UNREACHABLE} ({error.strerror})")
                return
            connection.data_received(data)

    peers.add(connection)
    _read(peers, sock, receive)
    return stream.id


def _to(sock: socket.socket, client: Address) -> Callable[[bytes], int]:
    return lambda data: sock.sendto(data, client)


def _read(peers: Peers, sock: socket.socket, receive: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    loop.add_reader(sock, receive)

    def close() -> None:
        loop.remove_reader(sock)
        with suppress(OSError):
            sock.close()

    peers.on_close(close)
