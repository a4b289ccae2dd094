"""Live connections of a simulated client or server: sockets in, events out.

A server listens for clients, a client connects to servers; either may use several addresses, over TCP and
UDP. All bytes sent and received are emitted as items, in order, as a relay would record them.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress

import msgspec

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import OPPOSITE, Chunk, Direction, End, Item, Stream, Transport
from kiebitz.proxy.relay.endpoints import Address, RelayError, bind
from kiebitz.proxy.system.clock import now_ns

CLOSE_SECONDS = 1.0
"""Time the other side has to close a connection as well before it is closed anyway."""

_IN_USE_S = 1.0
_RETRY_S = 0.02


class PeerError(KiebitzError):
    """A live peer is unreachable or accepts no more bytes; the text says what, where, and what to do."""


class Connected(msgspec.Struct, frozen=True):
    """A client has connected to the server named `server`."""

    connection: int
    server: str


class DataReceived(msgspec.Struct, frozen=True):
    """The peer has sent a datagram, or bytes of a stream."""

    connection: int
    data: bytes


class Disconnected(msgspec.Struct, frozen=True):
    """The peer has ended its side; `reason` is a predicate, as in "the server has hung up"."""

    connection: int
    reason: str


RESET = "has reset the connection"
"""Disconnect reason of a peer that does not close its connection normally."""

UNREACHABLE = "cannot be reached"
"""First words of the disconnect reason if a datagram could not be delivered; the system's error follows."""


PeerEvent = Connected | DataReceived | Disconnected


class Connection(ABC):
    """A live connection; `stream` has its addresses and its number."""

    stream: Stream

    def __init__(self, peers: Peers) -> None:
        self.disconnected = asyncio.Event()
        """Set once the peer sends no more."""
        self.writable = asyncio.Event()
        """Set unless the system's send buffer is full."""
        self.writable.set()
        self._peers = peers
        self._offsets: dict[Direction, int] = {"c2s": 0, "s2c": 0}

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Write bytes to the socket."""

    @abstractmethod
    def send_eof(self) -> None:
        """Signal the end of sent bytes."""

    @abstractmethod
    def reset(self) -> None:
        """End the connection as if this machine had disappeared, if the transport supports it."""

    @abstractmethod
    def close(self) -> None:
        """Close the socket."""

    def send(self, data: bytes) -> None:
        """Send and record bytes."""
        self._record(self._peers.sent_direction, data)
        self.write(data)

    def data_received(self, data: bytes) -> None:
        """Record received bytes, and emit an event."""
        self._record(OPPOSITE[self._peers.sent_direction], data)
        self._peers.events.put_nowait(DataReceived(self.stream.id, data))

    def peer_disconnected(self, reason: str = "has hung up") -> None:
        """Emit the peer's disconnection, once."""
        if not self.disconnected.is_set():
            self.disconnected.set()
            self._peers.events.put_nowait(Disconnected(self.stream.id, reason))

    def _record(self, direction: Direction, data: bytes) -> None:
        offset = self._offsets[direction]
        self._offsets[direction] += len(data)
        self._peers.on_item(Chunk(self.stream, direction, now_ns(), offset, data))


class Peers:
    """All connections of one simulated side.

    Attributes:
        sent_direction: Direction of the bytes that this side sends.
        on_item: Callback for items to record.
        events: The peers' actions, in order.
        streams: All streams so far, by number.
        max_clients: Maximum number of clients; further ones are closed immediately, or ignored over UDP.
        on_close: Callbacks for `close`.
    """

    def __init__(
        self,
        sent_direction: Direction,
        stream_ids: Iterator[int],
        on_item: Callable[[Item], None],
        max_clients: int = 4096,
    ) -> None:
        self.sent_direction: Direction = sent_direction
        self.max_clients = max_clients
        self.on_item = on_item
        self.events: asyncio.Queue[PeerEvent] = asyncio.Queue()
        self._stream_ids = stream_ids
        self.streams: dict[int, Stream] = {}
        self._connections: dict[int, Connection] = {}
        self._half_closed: set[int] = set()
        self.on_close: list[Callable[[], None]] = []

    def stream(self, transport: Transport, client: str, server: str) -> Stream:
        """Return a new stream between two addresses, each written `ip:port`."""
        return Stream(next(self._stream_ids), transport, client, server, now_ns())

    def add(self, connection: Connection, server: str | None = None) -> None:
        """Add a connection; `server` is the name of the server if a client opened it."""
        self._connections[connection.stream.id] = connection
        self.streams[connection.stream.id] = connection.stream
        if server is not None:
            self.events.put_nowait(Connected(connection.stream.id, server))

    def send(self, number: int, data: bytes) -> bool:
        """Send bytes on a connection, unless it is half-closed; return False if the send buffer is full."""
        connection = self._connections.get(number)
        if connection is None or number in self._half_closed:
            return True
        connection.send(data)
        return connection.writable.is_set()

    async def drain(self, number: int, timeout_s: float) -> None:
        """Wait until the send buffer has room. Raises PeerError after `timeout_s`."""
        connection = self._connections[number]
        try:
            async with asyncio.timeout(timeout_s):
                await connection.writable.wait()
        except TimeoutError:
            stream = connection.stream
            peer = stream.client if self.sent_direction == "s2c" else stream.server
            raise PeerError(
                f"{stream.transport} {peer} has read nothing for {timeout_s:g} s, so sent bytes are not "
                "delivered. Check whether that program hangs."
            ) from None

    async def hang_up(self, number: int) -> None:
        """Close a connection after giving the other side a moment to close it as well."""
        connection = self._connections.pop(number, None)
        if connection is None:
            return
        connection.send_eof()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await connection.disconnected.wait()
        self._end(connection, "closed")

    def half_close(self, number: int) -> None:
        """End the sending direction of a connection, and continue to receive."""
        if number in self._connections:
            self._half_closed.add(number)
            self._connections[number].send_eof()

    def reset(self, number: int) -> None:
        """End a connection as if this machine had disappeared."""
        connection = self._connections.pop(number, None)
        if connection is not None:
            connection.reset()
            self._end(connection, "reset")

    def close(self) -> None:
        """Close all connections; those still open end with the session."""
        for close in self.on_close:
            close()
        for connection in self._connections.values():
            self._end(connection, "end")
        self._connections.clear()

    def _end(self, connection: Connection, reason: str) -> None:
        connection.close()
        self.on_item(End(connection.stream, now_ns(), reason))


async def bind_when_free(
    family: socket.AddressFamily, address: Address, transport: Transport
) -> socket.socket:
    """Return a socket bound to an address, which may be in use for up to a second.

    A program that another thread starts at this moment holds each port of this process until it runs, also of
    sockets that were closed.

    Raises:
        RelayError: The socket cannot be bound.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + _IN_USE_S
    while True:
        try:
            return bind(family, address, transport)
        except RelayError as error:
            cause = error.__cause__
            is_in_use = isinstance(cause, OSError) and cause.errno == errno.EADDRINUSE
            if not is_in_use or loop.time() > end:
                raise
        await asyncio.sleep(_RETRY_S)
