"""TCP connections of any number of clients, each passed on by one of our own to its server.

Every piece of a byte stream is passed on, then journaled. An end is passed on as what it is: a FIN as a FIN,
while the other direction goes on, and a reset as a reset. Where one side takes no more, nothing is read from
the other: so a slow reader slows its peer, and no more than one piece of each direction waits in memory.

A connection is never ended for being silent: players may think for an hour. But where there is room for no
more, one on which not both sides have spoken makes room, once it has had its time for that.

The sockets are read and written by asyncio's transports, which add about as much latency as socat. A selector
of our own, which the UDP relay needs, was measured with one client to add half as much again.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import struct
from contextlib import suppress
from typing import cast

from kiebitz.dissectors.model import Direction
from kiebitz.proxy.journal.writer import JournalWriter
from kiebitz.proxy.relay.alteration_pipeline import Detour
from kiebitz.proxy.relay.endpoints import NETWORK_FAULTS, Address, Notice, endpoint_text
from kiebitz.proxy.relay.listeners import Listening, OwnConnections, Refused, TcpGate
from kiebitz.proxy.relay.loop_detection import LoopFound, LoopWatch
from kiebitz.proxy.system.clock import now_ns

CONNECT_SECONDS = 10.0
"""How long the server may take to accept a connection."""

STRANGER_SECONDS = 10.0
"""So long a connection has for both sides to speak before it may have to make room for another."""

_BACKLOG = 4096
_BURST = 64
"""At most this many clients are let in before those that are in have their turn."""
_PAUSE_SECONDS = 0.5
"""How long nobody is let in after that has failed: it would fail at once again."""
_PIECE = 64 << 10
_MOST_UNREAD = 4 << 20
"""One who does not take so many bytes is not listened to either, on a detour."""
_SUSPICIOUS = 128
"""So many connections in a row whose servers say nothing may be our own, on its way round."""
_RESETS = struct.pack("ii", 1, 0)
"""Linger, for no time at all: closing the socket then sends a reset."""
CONNECT_FAULTS = {
    **NETWORK_FAULTS,
    errno.ECONNREFUSED: ("refused", "nobody listens on that port"),
    errno.ECONNRESET: ("refused", "the server hung up at once"),
    errno.ETIMEDOUT: ("timeout", "no answer came"),
    errno.EADDRNOTAVAIL: ("no-port", "this machine has no port left for a connection there"),
}
"""Why there is no connection to a server: error number to a short constant code and words for people."""


class _Connection:
    """A client's connection and ours, from `local` once it is tried, to the server at `destination`.

    `standing` counts the sides that are up.
    """

    __slots__ = (
        "__weakref__",
        "client",
        "destination",
        "local",
        "name",
        "number",
        "reset",
        "server",
        "standing",
    )

    def __init__(
        self,
        relay: TcpRelay,
        number: int,
        name: str,
        destination: Address,
        client: socket.socket,
        server: socket.socket,
    ) -> None:
        self.number = number
        self.name = name
        self.destination = destination
        self.local: Address | None = None
        self.standing = 0
        self.reset = False
        side = _Side if relay.detour is None else _DetouredSide
        self.client = side(relay, self, client, "c2s")
        self.server = side(relay, self, server, "s2c")
        self.client.peer = self.server
        self.server.peer = self.client

    def reset_both(self) -> None:
        """Reset it to both sides."""
        for side in (self.client, self.server):
            with suppress(OSError):
                side.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESETS)
            side.transport.abort()

    def dissolve(self) -> None:
        """Both sides are gone, and must not hold each other: such cycles are only looked for now and then."""
        del self.client.peer, self.server.peer
        del self.client, self.server


class _Side(asyncio.Protocol):
    """One of a connection's two sockets; `direction` is the way of what comes from it, `came` its bytes."""

    __slots__ = ("came", "connection", "direction", "ended", "journal", "peer", "relay", "sock", "transport")

    peer: _Side
    transport: asyncio.Transport

    def __init__(
        self, relay: TcpRelay, connection: _Connection, sock: socket.socket, direction: Direction
    ) -> None:
        self.relay = relay
        self.journal = relay.journal
        self.connection = connection
        self.sock = sock
        self.direction = direction
        self.came = 0
        self.ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        # pause_writing as soon as the system takes no more, resume_writing when it has taken all.
        self.transport.set_write_buffer_limits(high=0)
        self.connection.standing += 1

    def data_received(self, data: bytes) -> None:
        now = now_ns()
        if not self.came and self.peer.came:
            self.relay.both_spoke(self.connection)
        self.peer.transport.write(data)
        self.journal.chunk(self.connection.number, self.direction, now, self.came, data)
        self.came += len(data)

    def pause_writing(self) -> None:
        self.peer.transport.pause_reading()

    def resume_writing(self) -> None:
        if not self.peer.ended:
            self.peer.transport.resume_reading()

    def eof_received(self) -> bool:
        # libuv before 1.52 calls it an end, too, when a reset comes together with the last bytes.
        number = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if number:
            self._reset(OSError(number, os.strerror(number)))
        else:
            self._end()
        return True

    def _end(self) -> None:
        """This side says no more."""
        self.ended = True
        if self.peer.ended:
            self.transport.close()
            self.peer.transport.close()
        else:
            # It fails if the peer has reset the connection, which is noticed elsewhere.
            with suppress(OSError):
                self.peer.transport.write_eof()

    def connection_lost(self, error: Exception | None) -> None:
        if error is not None:
            self._reset(error)
        self.connection.standing -= 1
        if not self.connection.standing:
            self.relay.ended(self.connection, "reset" if self.connection.reset else "closed")
            del self.transport, self.peer.transport
            self.connection.dissolve()

    def _reset(self, error: Exception) -> None:
        """This side is gone: pass on what it sent before, and then its reset."""
        if self.connection.reset:
            return
        self.connection.reset = True
        # Where a write has failed, there may be something yet to read.
        with suppress(OSError):
            while data := self.sock.recv(_PIECE):
                self.data_received(data)
        if isinstance(error, OSError) and error.errno not in (errno.ECONNRESET, errno.EPIPE):
            self.relay.fault(self.connection, self.direction, self.came, error)
        self.connection.reset_both()


class _DetouredSide(_Side):
    """A side whose bytes are altered before they are passed on; `came` are those that were passed on.

    It is read from as long as neither its peer nor the detour has too much, nor it itself: what it says may
    bring it messages that are put in.
    """

    __slots__ = ("has_ended", "has_spoken", "held_back")

    peer: _DetouredSide

    def __init__(
        self, relay: TcpRelay, connection: _Connection, sock: socket.socket, direction: Direction
    ) -> None:
        super().__init__(relay, connection, sock, direction)
        self.has_spoken = False
        self.has_ended = False
        self.held_back: set[str] = set()

    def data_received(self, data: bytes) -> None:
        if not self.has_spoken and self.peer.has_spoken:
            self.relay.both_spoke(self.connection)
        self.has_spoken = True
        assert self.relay.detour is not None
        self.relay.detour.came(self.connection.number, self.direction, now_ns(), data)

    def pass_on(self, data: bytes) -> None:
        """Pass on bytes of this side that were on a detour."""
        self.peer.transport.write(data)
        self.came += len(data)
        if self.peer.transport.get_write_buffer_size() > _MOST_UNREAD:
            self.peer.hold_back("it takes no more", True)

    def pause_writing(self) -> None:
        self.peer.hold_back("its peer takes no more", True)

    def resume_writing(self) -> None:
        self.peer.hold_back("its peer takes no more", False)
        self.hold_back("it takes no more", False)

    def hold_back(self, reason: str, is_held: bool) -> None:
        """Read no more from this side for a reason, or no more for that reason."""
        (self.held_back.add if is_held else self.held_back.discard)(reason)
        if self.has_ended:
            return
        if self.held_back:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def _end(self) -> None:
        self.has_ended = True
        assert self.relay.detour is not None
        self.relay.detour.ended(self.connection.number, self.direction, now_ns())

    def pass_end_on(self) -> None:
        """Behind all that this side has said, tell its peer that it says no more."""
        super()._end()


class _Altered:
    """Where the bytes of a connection go on behind a detour."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    def _side(self, direction: Direction) -> _DetouredSide:
        connection = self._connection
        side = connection.client if direction == "c2s" else connection.server
        assert isinstance(side, _DetouredSide)
        return side

    def pass_on(self, direction: Direction, data: bytes) -> None:
        """Write bytes to the receiver."""
        self._side(direction).pass_on(data)

    def end(self, direction: Direction) -> None:
        """Pass on a FIN."""
        self._side(direction).pass_end_on()

    def reset(self) -> None:
        """Reset the connection to both sides."""
        self._connection.reset = True
        self._connection.reset_both()

    def hold_back(self, direction: Direction, is_held: bool) -> None:
        """Read no more from the sender, or read on."""
        self._side(direction).hold_back("too much waits", is_held)


class TcpRelay:
    """Relays whoever comes in by `gate`, whose socket is bound; traffic flows between start and stop.

    A client beyond `max_connections` is closed at once, unless a stranger can make room: a connection on
    which not both sides have spoken within `STRANGER_SECONDS`. One for whom the server cannot be reached is
    closed when that is clear, at the latest after `CONNECT_SECONDS`; until then nothing is read from it.
    Connections to servers are noted in `own` while they last. With a `detour` bytes are passed on as that
    leaves them.
    """

    def __init__(
        self,
        gate: TcpGate,
        journal: JournalWriter,
        on_notice: Notice,
        max_connections: int,
        own: OwnConnections,
        detour: Detour | None = None,
    ) -> None:
        self.journal = journal
        self.detour = detour
        self.says = (Listening(gate.says),)
        self.address = gate.address
        self._gate = gate
        self._listener = gate.listener
        self._listener.listen(_BACKLOG)
        self._own = own
        self._on_notice = on_notice
        self._max_connections = max_connections
        self._connections: set[_Connection] = set()
        self._strangers: dict[_Connection, float] = {}
        """Since when those are let in on which not both sides have spoken, the oldest first."""
        self._loops = LoopWatch[_Connection](_SUSPICIOUS, self._is_over)
        self._connecting: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None

    async def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let clients in, and traffic flow."""
        self._loop = loop
        self._open_gate()

    async def stop(self, loop: asyncio.AbstractEventLoop, ts_ns: int) -> None:
        """Let no more traffic flow, and end all streams at `ts_ns`."""
        loop.remove_reader(self._listener)
        if self._pause is not None:
            self._pause.cancel()
        for connection in self._connections:
            if self.detour is not None:
                self.detour.closed(connection.number, ts_ns)
            self.journal.end(connection.number, ts_ns, "end")
            if connection.standing:
                connection.client.transport.abort()
                connection.server.transport.abort()
        self._connections.clear()
        self._strangers.clear()
        for task in self._connecting:
            task.cancel()
        await asyncio.gather(*self._connecting, return_exceptions=True)
        # What was aborted is closed in the loop's next turn.
        await asyncio.sleep(0)

    def close(self) -> None:
        """Give back the listening socket."""
        self._listener.close()

    def _open_gate(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listener, self._let_in)

    def fault(self, connection: _Connection, direction: Direction, offset: int, error: OSError) -> None:
        """Journal and tell what the network did to a connection, at a byte of that direction."""
        code, text = CONNECT_FAULTS.get(error.errno or 0, ("network", error.strerror or str(error)))
        self.journal.fault(connection.number, direction, now_ns(), offset, code, text)
        server = endpoint_text(connection.destination)
        way = (connection.name, server) if direction == "c2s" else (server, connection.name)
        advice = self._gate.advice if code == "timeout" else ""
        self._on_notice(code, f"tcp {' to '.join(way)}: {text}. The connection was closed.{advice}")

    def both_spoke(self, connection: _Connection) -> None:
        """From here on a connection is kept for as long as its sides want it."""
        self._strangers.pop(connection, None)

    def ended(self, connection: _Connection, reason: str) -> None:
        """Journal a connection's end, and forget it."""
        if connection in self._connections:
            self._connections.remove(connection)
            self._strangers.pop(connection, None)
            if connection.local is not None:
                self._own.discard("tcp", connection.local, connection.destination)
            if self.detour is not None:
                self.detour.closed(connection.number, now_ns())
            self.journal.end(connection.number, now_ns(), reason)

    def _let_in(self) -> None:
        for _ in range(_BURST):
            try:
                client, address = self._listener.accept()
            except BlockingIOError:
                return
            except ConnectionAbortedError:
                continue
            except OSError as error:
                self._on_notice(
                    "accept",
                    f"On tcp {self.address} nobody can be let in: {error.strerror}. "
                    f"It is tried again every {_PAUSE_SECONDS} s.",
                )
                self._loop.remove_reader(self._listener)
                self._pause = self._loop.call_later(_PAUSE_SECONDS, self._open_gate)
                return
            if len(self._connections) < self._max_connections or self._make_room():
                self._open(client, address)
            else:
                client.close()
                self._on_notice(
                    "max-connections",
                    f"On tcp {self.address} {endpoint_text(address)} was turned away: it has "
                    f"{self._max_connections} connections. Allow more with --max-connections.",
                )

    def _make_room(self) -> bool:
        """End the connection on which not both sides have spoken for longest, if that is long enough."""
        latest = self._loop.time() - STRANGER_SECONDS
        for connection, since in self._strangers.items():
            if since > latest:
                break
            # One whose server is still being reached comes to its own end.
            if connection.standing == 2:
                self._on_notice(
                    "max-connections",
                    f"On tcp {self.address} there are {self._max_connections} connections: "
                    f"{connection.name}, where not both sides had spoken, made room for another.",
                )
                self.ended(connection, "evicted")
                connection.client.transport.abort()
                connection.server.transport.abort()
                return True
        return False

    def _is_over(self, connection: _Connection) -> bool:
        """Whether the server has spoken, or the connection is gone."""
        return connection not in self._connections or connection.server.came > 0

    def _cut(self, loop: LoopFound) -> None:
        """End the connections that are one and the same, on its way round."""
        server = ""
        for newcomer in loop.newcomers:
            assert isinstance(newcomer, _Connection)
            server = f" to {endpoint_text(newcomer.destination)}"
            if newcomer.standing == 2 and not self._is_over(newcomer):
                self.ended(newcomer, "loop")
                newcomer.client.transport.abort()
                newcomer.server.transport.abort()
        self._on_notice(
            "loop",
            f"What tcp {self.address} passes on{server} comes back to it, again and again: it was stopped. "
            "Look whether that server, or a relay before it, is told to pass on to here.",
        )

    def _open(self, client: socket.socket, address: Address) -> None:
        name = endpoint_text(address)
        try:
            held_s = self._loops.came(None, self._loop.time())
        except LoopFound as loop:
            client.close()
            self._cut(loop)
            return
        try:
            destination = self._gate.destination(client, address)
            server = self._gate.upstream(address, destination)
        except Refused as refusal:
            client.close()
            self._on_notice(refusal.code, str(refusal))
            return
        except OSError as error:
            client.close()
            self._on_notice("no-socket", f"tcp {name} was turned away, no socket for it: {error.strerror}.")
            return
        for sock in (client, server):
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # A peer whose machine is gone says nothing any more.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        now = now_ns()
        number = self.journal.open("tcp", name, endpoint_text(destination), now)
        connection = _Connection(self, number, name, destination, client, server)
        if self.detour is not None:
            self.detour.opened(number, "tcp", name, endpoint_text(destination), now, _Altered(connection))
        self._connections.add(connection)
        self._strangers[connection] = self._loop.time()
        if not held_s:
            self._loops.passed_on(None, connection, self._loop.time())
        task = self._loop.create_task(self._connect(connection, held_s))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self, connection: _Connection, held_s: float) -> None:
        """Reach the server, having waited for `held_s`, then let the bytes flow."""
        client, server = connection.client, connection.server
        try:
            if held_s:
                await asyncio.sleep(held_s)
                self._loops.passed_on(None, connection, self._loop.time(), was_held=True)
            await self._reach(connection)
            # Both at once: each can write to the other before anything is read.
            await asyncio.gather(
                self._loop.connect_accepted_socket(lambda: client, client.sock),
                self._loop.connect_accepted_socket(lambda: server, server.sock),
            )
        except OSError as error:
            self.fault(connection, "c2s", 0, error)
            self.ended(connection, "refused")
            connection.dissolve()
        finally:
            if not connection.standing:
                client.sock.close()
                server.sock.close()

    async def _reach(self, connection: _Connection) -> None:
        """Connect to the server. Raises OSError with its number if that fails."""
        sock = connection.server.sock
        number = sock.connect_ex(connection.destination)
        local = sock.getsockname()
        # Before anything is awaited: were it led back to this relay, it would come in next.
        connection.local = local
        self._own.add("tcp", local, connection.destination)
        if number == errno.EINPROGRESS:
            writable = asyncio.Event()
            self._loop.add_writer(sock, writable.set)
            try:
                async with asyncio.timeout(CONNECT_SECONDS):
                    await writable.wait()
                number = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            except TimeoutError:
                number = errno.ETIMEDOUT
            finally:
                self._loop.remove_writer(sock)
        if not number and local[:2] == connection.destination[:2]:
            # Nobody listens there, but the system has chosen that very port for our end.
            number = errno.ECONNREFUSED
        if number:
            raise OSError(number, os.strerror(number))
