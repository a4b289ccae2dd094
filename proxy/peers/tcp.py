"""TCP connections to live peers, accepted from clients or made to a server."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from contextlib import suppress
from typing import cast

from kiebitz.proxy.peers.connections import RESET, Connection, PeerError, Peers, bind_when_free
from kiebitz.proxy.relay.endpoints import endpoint_text, resolve

CONNECT_SECONDS = 10.0
"""Timeout for connecting to a server."""

_BACKLOG = 128

_MAX_CLIENTS = 4096
"""Maximum number of clients in a session; further ones are closed immediately."""


class _PeerProtocol(asyncio.Protocol):
    """The asyncio protocol that feeds a connection."""

    def __init__(self, connection: _TcpConnection, server: str | None) -> None:
        self._connection = connection
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Registers the connection before any of its data arrives.
        self._connection.started(cast(asyncio.Transport, transport), self._server)

    def data_received(self, data: bytes) -> None:
        self._connection.data_received(data)

    def pause_writing(self) -> None:
        self._connection.writable.clear()

    def resume_writing(self) -> None:
        self._connection.writable.set()

    def eof_received(self) -> bool:
        self._connection.peer_disconnected()
        # Keep the other direction open.
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        if isinstance(exc, ConnectionResetError):
            self._connection.peer_disconnected(RESET)
        self._connection.peer_disconnected()
        self._connection.writable.set()


class _TcpConnection(Connection):
    async def attach(self, sock: socket.socket, server: str | None = None) -> None:
        """Start the connection on a socket; `server` is the name of the server if a client opened it."""
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().connect_accepted_socket(lambda: _PeerProtocol(self, server), sock)

    def started(self, transport: asyncio.Transport, server: str | None) -> None:
        """Register the connection with its transport."""
        self.transport = transport
        self._peers.add(self, server)

    def write(self, data: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(data)

    def send_eof(self) -> None:
        # The peer may have just reset it, which is reported in a moment.
        with suppress(OSError):
            if not self.transport.is_closing():
                self.transport.write_eof()

    def reset(self) -> None:
        sock = self.transport.get_extra_info("socket")
        with suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def close(self) -> None:
        self.transport.close()


async def listen(peers: Peers, host: str, port: int, server: str) -> str:
    """Act as the named server for clients that connect to host:port; return the bound address.

    Raises RelayError.
    """
    family, address = resolve(host, port, "tcp")
    listener = await bind_when_free(family, address, "tcp")
    listener.listen(_BACKLOG)
    here = endpoint_text(listener.getsockname())
    loop = asyncio.get_running_loop()

    async def accept_clients() -> None:
        while True:
            sock, client = await loop.sock_accept(listener)
            if len(peers.streams) >= _MAX_CLIENTS:
                sock.close()
                continue
            connection = _TcpConnection(peers, peers.stream("tcp", endpoint_text(client), here))
            await connection.attach(sock, server)

    task = loop.create_task(accept_clients())
    # The loop watches the listener until the task ends, which may be before it begins.
    task.add_done_callback(lambda _: listener.close())

    def close() -> None:
        task.cancel()

    peers.on_close(close)
    return here


async def connect(peers: Peers, host: str, port: int) -> int:
    """Connect to a server and return the connection's number.

    Raises:
        PeerError: the server cannot be reached.
        RelayError: its name cannot be resolved.
    """
    family, address = resolve(host, port, "tcp")
    there = endpoint_text(address)
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        async with asyncio.timeout(CONNECT_SECONDS):
            await asyncio.get_running_loop().sock_connect(sock, address)
    except OSError as error:
        sock.close()
        reason = os.strerror(error.errno) if error.errno else "the server did not answer"
        raise PeerError(
            f"Cannot connect to tcp {there}: {reason}. Start the server first, or name another address."
        ) from error
    connection = _TcpConnection(peers, peers.stream("tcp", endpoint_text(sock.getsockname()), there))
    await connection.attach(sock)
    return connection.stream.id
