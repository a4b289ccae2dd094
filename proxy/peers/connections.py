"""Live connections of somebody who plays one side of a session: sockets in, happenings out.

A server listens for clients, a client calls servers; either may do so at several addresses, over TCP and UDP.
Every byte that is said or heard is told as an item, in order, as a relay would have it.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

import msgspec

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import OPPOSITE, Chunk, Direction, End, Item, Stream, Transport
from kiebitz.proxy.system.clock import now_ns

HANG_SECONDS = 1.0
"""How long the other side may take to hang up, too, before a connection is closed."""


class PeerError(KiebitzError):
    """A live peer cannot be reached, or takes nothing any more; the text says what, where, what to do."""


class Came(msgspec.Struct, frozen=True):
    """A client has come to the server that is called `server`."""

    connection: int
    server: str


class Said(msgspec.Struct, frozen=True):
    """The peer has sent a datagram, or bytes of a stream."""

    connection: int
    data: bytes


class Gone(msgspec.Struct, frozen=True):
    """The peer says nothing more on a connection; `how` goes with it as in "the server has hung up"."""

    connection: int
    how: str


RESET = "has reset the connection"
"""How a peer goes that does not hang up."""

NOBODY_LISTENS = "cannot be reached"
"""How it begins where a datagram has found nobody; the system's reason stands behind it."""


Happening = Came | Said | Gone


class Connection(ABC):
    """One live connection; `stream` has its addresses, and its number."""

    def __init__(self, peers: Peers, stream: Stream) -> None:
        self.stream = stream
        self.over = asyncio.Event()
        """Set when the peer says nothing more."""
        self.writable = asyncio.Event()
        """Set unless the system takes no more."""
        self.writable.set()
        self._peers = peers
        self._offsets: dict[Direction, int] = {"c2s": 0, "s2c": 0}

    @abstractmethod
    def send(self, data: bytes) -> None:
        """Send bytes."""

    @abstractmethod
    def hang(self) -> None:
        """Say that nothing more is said."""

    @abstractmethod
    def reset(self) -> None:
        """End it as if this machine were gone, where its transport knows that."""

    @abstractmethod
    def close(self) -> None:
        """Give back the socket."""

    def say(self, data: bytes) -> None:
        """Send bytes, and tell of them."""
        self._tell(self._peers.plays, data)
        self.send(data)

    def came(self, data: bytes) -> None:
        """Bytes have come."""
        self._tell(OPPOSITE[self._peers.plays], data)
        self._peers.happen(Said(self.stream.id, data))

    def gone(self, how: str = "has hung up") -> None:
        """Nothing more comes."""
        if not self.over.is_set():
            self.over.set()
            self._peers.happen(Gone(self.stream.id, how))

    def _tell(self, direction: Direction, data: bytes) -> None:
        offset = self._offsets[direction]
        self._offsets[direction] += len(data)
        self._peers.on_item(Chunk(self.stream, direction, now_ns(), offset, data))


class Peers:
    """The connections of one side: `plays` is the direction of what it says.

    `happened` has what the peers do, in order. `on_item` is told what a recorder needs; `stream_ids` gives
    the connections their numbers.
    """

    def __init__(self, plays: Direction, stream_ids: Iterator[int], on_item: Callable[[Item], None]) -> None:
        self.plays: Direction = plays
        self.on_item = on_item
        self.happened: asyncio.Queue[Happening] = asyncio.Queue()
        self._stream_ids = stream_ids
        self.streams: dict[int, Stream] = {}
        """All connections that there have been, by their numbers."""
        self._connections: dict[int, Connection] = {}
        self._half_closed: set[int] = set()
        self._closing: list[Callable[[], None]] = []

    def stream(self, transport: Transport, client: str, server: str) -> Stream:
        """A new stream between two addresses, written `ip:port`."""
        return Stream(next(self._stream_ids), transport, client, server, now_ns())

    def add(self, connection: Connection, server: str | None = None) -> None:
        """A connection is there; a client's came to the server of this name."""
        self._connections[connection.stream.id] = connection
        self.streams[connection.stream.id] = connection.stream
        if server is not None:
            self.happen(Came(connection.stream.id, server))

    def at_end(self, close: Callable[[], None]) -> None:
        """What is to be closed when all is over."""
        self._closing.append(close)

    def happen(self, happening: Happening) -> None:
        """A peer has done something."""
        self.happened.put_nowait(happening)

    def say(self, number: int, data: bytes) -> bool:
        """Send bytes on a connection, but not after a half-close; tells whether the system could get rid of
        them."""
        connection = self._connections.get(number)
        if connection is None or number in self._half_closed:
            return True
        connection.say(data)
        return connection.writable.is_set()

    async def flushed(self, number: int, patience_s: float) -> None:
        """Wait until the system has got rid of what was said. Raises PeerError if it cannot for so long."""
        connection = self._connections[number]
        try:
            async with asyncio.timeout(patience_s):
                await connection.writable.wait()
        except TimeoutError:
            stream = connection.stream
            peer = stream.client if self.plays == "s2c" else stream.server
            raise PeerError(
                f"{stream.transport} {peer} has read nothing for {patience_s:g} s: what is said does not get "
                "through. See whether that program hangs."
            ) from None

    async def hang(self, number: int) -> None:
        """End a connection: say so, wait a moment for the other side to do the same, and close it."""
        connection = self._connections.pop(number, None)
        if connection is None:
            return
        connection.hang()
        try:
            async with asyncio.timeout(HANG_SECONDS):
                await connection.over.wait()
        except TimeoutError:
            pass
        self._end(connection, "closed")

    def half_close(self, number: int) -> None:
        """Say nothing more on a connection, and go on hearing what comes."""
        if number in self._connections:
            self._half_closed.add(number)
            self._connections[number].hang()

    def reset(self, number: int) -> None:
        """End a connection as if this machine were gone."""
        connection = self._connections.pop(number, None)
        if connection is not None:
            connection.reset()
            self._end(connection, "reset")

    def close(self) -> None:
        """Close everything; what is still open ends with the session."""
        for close in self._closing:
            close()
        for connection in self._connections.values():
            self._end(connection, "end")
        self._connections.clear()

    def _end(self, connection: Connection, reason: str) -> None:
        connection.close()
        self.on_item(End(connection.stream, now_ns(), reason))
