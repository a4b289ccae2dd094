"""Connections to live peers: TCP, accepted or made, and datagrams, where each client address is one."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from contextlib import suppress
from typing import cast

from kiebitz.dissectors.model import Stream, Transport
from kiebitz.proxy.peers.connections import (
    RESET,
    UNREACHABLE,
    Connection,
    PeerError,
    Peers,
    bind_when_free,
)
from kiebitz.proxy.relay.endpoints import Address, endpoint_text, enlarge_buffers, resolve

CONNECT_SECONDS = 10.0
"""Timeout for connecting to a server."""

_BACKLOG = 128


async def listen(peers: Peers, transport: Transport, host: str, port: int, server: str) -> str:
    """Act as the named server for clients of host:port; return the bound address.

    Raises RelayError.
    """
    loop = asyncio.get_running_loop()
    family, address = resolve(host, port, transport)
    sock = await bind_when_free(family, address, transport)
    here = endpoint_text(sock.getsockname())
    if transport == "udp":
        endpoint, _ = await loop.create_datagram_endpoint(lambda: _UdpServer(peers, here, server), sock=sock)
        peers.on_close.append(endpoint.close)
    else:
        listener = await loop.create_server(
            lambda: _TcpConnection(peers, here, server), sock=sock, backlog=_BACKLOG
        )
        peers.on_close.append(listener.close)
    return here


async def connect(peers: Peers, transport: Transport, host: str, port: int) -> int:
    """Connect to a server and return the connection's number.

    Raises:
        PeerError: The server cannot be reached, over TCP.
        RelayError: Its name cannot be resolved.
    """
    loop = asyncio.get_running_loop()
    family, address = resolve(host, port, transport)
    there = endpoint_text(address)
    sock = socket.socket(family, socket.SOCK_DGRAM if transport == "udp" else socket.SOCK_STREAM)
    sock.setblocking(False)
    if transport == "udp":
        enlarge_buffers(sock)
        sock.connect(address)
        stream = peers.stream("udp", endpoint_text(sock.getsockname()), there)
        _, client = await loop.create_datagram_endpoint(lambda: _UdpClient(peers, stream), sock=sock)
        return client.stream.id
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            await loop.sock_connect(sock, address)
    except OSError as error:
        sock.close()
        reason = os.strerror(error.errno) if error.errno else "the server did not answer"
        raise PeerError(
            f"Cannot connect to tcp {there}: {reason}. Start the server first, or name another address."
        ) from error
    _, connection = await loop.create_connection(lambda: _TcpConnection(peers, there), sock=sock)
    return connection.stream.id


class _TcpConnection(Connection, asyncio.Protocol):
    """A connection to the server at `address`, which this side is if it has its `name`."""

    def __init__(self, peers: Peers, address: str, name: str | None = None) -> None:
        super().__init__(peers)
        self._address = address
        self._name = name

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if self._name is not None and len(self._peers.streams) >= self._peers.max_clients:
            self.disconnected.set()
            self._transport.close()
            return
        # asyncio sets it only if the socket names its protocol. Without it, a second message would wait up to
        # 40 ms for an acknowledgement, and arrive after later ones on other connections.
        with suppress(OSError):
            transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client = transport.get_extra_info("sockname" if self._name is None else "peername")
        self.stream = self._peers.stream("tcp", endpoint_text(client), self._address)
        self._peers.add(self, self._name)

    def pause_writing(self) -> None:
        self.writable.clear()

    def resume_writing(self) -> None:
        self.writable.set()

    def eof_received(self) -> bool:
        self.peer_disconnected()
        # Keep the other direction open.
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        if isinstance(exc, ConnectionResetError):
            self.peer_disconnected(RESET)
        self.peer_disconnected()
        self.writable.set()

    def write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)

    def send_eof(self) -> None:
        # The peer may have just reset it, which is reported in a moment.
        with suppress(OSError):
            if not self._transport.is_closing():
                self._transport.write_eof()

    def reset(self) -> None:
        sock = self._transport.get_extra_info("socket")
        with suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def close(self) -> None:
        self._transport.close()


class _UdpConnection(Connection):
    """Traffic between two addresses; without `to` the socket is connected to the peer's."""

    def __init__(self, peers: Peers, stream: Stream, to: Address | None = None) -> None:
        super().__init__(peers)
        self.stream = stream
        self._to = to

    transport: asyncio.DatagramTransport

    def write(self, data: bytes) -> None:
        if data:
            self.transport.sendto(data, self._to)
            return
        # Python 3.11's transports send no empty datagram.
        number = os.dup(self.transport.get_extra_info("socket").fileno())
        with socket.socket(fileno=number) as sock, suppress(OSError):
            if self._to is None:
                sock.send(data)
            else:
                sock.sendto(data, self._to)

    def send_eof(self) -> None:
        # UDP has no end of a direction.
        self.disconnected.set()

    def reset(self) -> None:
        """Do nothing: UDP has no reset."""

    def close(self) -> None:
        """Do nothing: the socket may be shared by several clients."""


class _UdpClient(_UdpConnection, asyncio.DatagramProtocol):
    """A client's socket."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)
        self._peers.on_close.append(transport.close)
        self._peers.add(self)

    def datagram_received(self, data: bytes, addr: Address) -> None:
        self.data_received(data)

    def error_received(self, exc: Exception) -> None:
        self.peer_disconnected(f"{UNREACHABLE} ({getattr(exc, 'strerror', exc)})")


class _UdpServer(asyncio.DatagramProtocol):
    """The socket of a server at the address `here`."""

    def __init__(self, peers: Peers, here: str, name: str) -> None:
        self._peers = peers
        self._here = here
        self._name = name
        self._clients: dict[Address, _UdpConnection] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: Address) -> None:
        connection = self._clients.get(addr)
        if connection is None:
            if len(self._clients) >= self._peers.max_clients:
                # Addresses can be spoofed.
                return
            stream = self._peers.stream("udp", endpoint_text(addr), self._here)
            connection = self._clients[addr] = _UdpConnection(self._peers, stream, addr)
            connection.transport = self._transport
            self._peers.add(connection, self._name)
        connection.data_received(data)
