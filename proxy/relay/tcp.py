"""The TCP relay: each client connection is forwarded over a connection of the relay to its server.

Each piece of a byte stream is forwarded, then journaled. Ends are forwarded as they are: a FIN as a FIN,
while the other direction continues, and a reset as a reset. While one side accepts no more bytes, the other
one is not read: so a slow reader slows its peer, and at most one piece per direction is in memory.

Silent connections are never closed, as players may think for an hour. At the connection limit, however, a
connection on which not both sides have sent anything is evicted after a minimum time.

Sockets are read and written by asyncio's transports. A selector of our own, as in the UDP relay, added half
as much latency again when measured with one client. After dense messages the relay busy-waits for the next.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import struct
from contextlib import suppress
from typing import cast

import msgspec

from kiebitz.dissectors.model import Direction
from kiebitz.proxy.journal.writer import JournalWriter
from kiebitz.proxy.relay.alteration_pipeline import AlterationPipeline
from kiebitz.proxy.relay.busy_wait import BusyWait
from kiebitz.proxy.relay.endpoints import NETWORK_FAULTS, Address, Notice, endpoint_text
from kiebitz.proxy.relay.listeners import ClientRejected, ListenerInfo, OwnConnections, TcpListener
from kiebitz.proxy.relay.loop_detection import LoopDetector, LoopFound
from kiebitz.proxy.system.clock import now_ns

CONNECT_SECONDS = 10.0
"""Timeout for connecting to the server."""

UNVERIFIED_SECONDS = 10.0
"""Time both sides have to send something before the connection may be evicted."""

_BACKLOG = 4096
_BURST = 64
"""Maximum clients accepted before existing connections are served."""
_PAUSE_SECONDS = 0.5
"""Pause after a failed accept, which would fail again immediately."""
_RECV_SIZE = 64 << 10
_MAX_UNSENT = 4 << 20
"""With alteration active, stop reading from a peer with this many unsent bytes."""
_LOOP_THRESHOLD = 128
"""Consecutive connections without a server reply that suggest a forwarding loop."""
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""Linger option with a timeout of 0: closing the socket then sends a reset."""
CONNECT_FAULTS = {
    **NETWORK_FAULTS,
    errno.ECONNREFUSED: ("refused", "no program listens on that port"),
    errno.ECONNRESET: ("refused", "the server closed the connection immediately"),
    errno.ETIMEDOUT: ("timeout", "the server did not answer"),
    errno.EADDRNOTAVAIL: ("no-port", "this machine has no free port for a connection to it"),
}
"""Reasons for a failed connection to a server: error number to a short constant code and a description."""


class _Connection(msgspec.Struct, eq=False, weakref=True):
    """A client's connection and the relay's connection to the server at `destination`.

    `local` is the relay's address once it connects; `open_sides` counts the connected sides.
    """

    number: int
    name: str
    destination: Address
    client: _Side
    server: _Side
    local: Address | None = None
    open_sides: int = 0
    reset: bool = False

    def reset_both(self) -> None:
        """Reset the connection on both sides."""
        for side in (self.client, self.server):
            with suppress(OSError):
                side.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            side.transport.abort()

    def ignore_input(self) -> None:
        """Ignore what either side sends from now on: the journal accepts nothing after a stream's end."""
        self.client.ended = self.server.ended = True

    def break_cycle(self) -> None:
        """Break the reference cycle of the two sides, as the garbage collector runs only now and then."""
        del self.client.peer, self.server.peer
        del self.client, self.server


class _Side(asyncio.Protocol):
    """One of a connection's two sockets; `direction` is that of its `received` bytes."""

    __slots__ = (
        "connection",
        "direction",
        "ended",
        "journal",
        "peer",
        "received",
        "relay",
        "sock",
        "transport",
    )

    connection: _Connection
    peer: _Side
    transport: asyncio.Transport

    def __init__(self, relay: TcpRelay, sock: socket.socket, direction: Direction) -> None:
        self.relay = relay
        self.journal = relay.journal
        self.sock = sock
        self.direction = direction
        self.received = 0
        self.ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        # Call pause_writing once the system accepts no more, resume_writing when all is sent.
        self.transport.set_write_buffer_limits(high=0)
        self.connection.open_sides += 1

    def data_received(self, data: bytes) -> None:
        if self.ended:
            # The relay has ended the connection; uvloop delivers what it had already read.
            return
        now = now_ns()
        if not self.received and self.peer.received:
            self.relay.mark_verified(self.connection)
        self.peer.transport.write(data)
        self.journal.chunk(self.connection.number, self.direction, now, self.received, data)
        self.received += len(data)
        self.relay.busy_wait.message_forwarded(now)

    def pause_writing(self) -> None:
        self.peer.transport.pause_reading()

    def resume_writing(self) -> None:
        if not self.peer.ended:
            self.peer.transport.resume_reading()

    def eof_received(self) -> bool:
        # libuv before 1.52 also reports EOF when a reset arrives together with the last bytes.
        number = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if number:
            self._reset(OSError(number, os.strerror(number)))
        else:
            self._end()
        return True

    def _end(self) -> None:
        self.ended = True
        if self.peer.ended:
            self.transport.close()
            self.peer.transport.close()
        else:
            # This fails if the peer has reset the connection, which is detected elsewhere.
            with suppress(OSError):
                self.peer.transport.write_eof()

    def connection_lost(self, error: Exception | None) -> None:
        if error is not None:
            self._reset(error)
        self.connection.open_sides -= 1
        if not self.connection.open_sides:
            self.relay.connection_ended(self.connection, "reset" if self.connection.reset else "closed")
            del self.transport, self.peer.transport
            self.connection.break_cycle()

    def _reset(self, error: Exception) -> None:
        """Forward the bytes this side sent before it was reset, then the reset."""
        if self.connection.reset:
            return
        self.connection.reset = True
        # After a failed write there may still be bytes to read.
        with suppress(OSError):
            while data := self.sock.recv(_RECV_SIZE):
                self.data_received(data)
        if isinstance(error, OSError) and error.errno not in (errno.ECONNRESET, errno.EPIPE):
            self.relay.fault(self.connection, self.direction, self.received, error)
        self.connection.reset_both()


class _AlteredSide(_Side):
    """A side whose bytes are altered before they are forwarded; `received` counts the forwarded bytes.

    Reading pauses while any of three buffers is full: its peer's, the alterer's, or its own, as bytes it
    sends may cause messages to be inserted for it.
    """

    __slots__ = ("has_ended", "has_sent", "pause_reasons")

    peer: _AlteredSide

    def __init__(self, relay: TcpRelay, sock: socket.socket, direction: Direction) -> None:
        super().__init__(relay, sock, direction)
        self.has_sent = False
        self.has_ended = False
        self.pause_reasons: set[str] = set()

    def data_received(self, data: bytes) -> None:
        if self.ended:
            return
        if not self.has_sent and self.peer.has_sent:
            self.relay.mark_verified(self.connection)
        self.has_sent = True
        assert self.relay.pipeline is not None
        self.relay.pipeline.data_received(self.connection.number, self.direction, now_ns(), data)

    def deliver(self, data: bytes) -> None:
        """Forward bytes of this side that the alterer has released."""
        self.peer.transport.write(data)
        self.received += len(data)
        if self.peer.transport.get_write_buffer_size() > _MAX_UNSENT:
            self.peer.set_paused("its buffer is full", True)

    def pause_writing(self) -> None:
        self.peer.set_paused("its peer's buffer is full", True)

    def resume_writing(self) -> None:
        self.peer.set_paused("its peer's buffer is full", False)
        self.set_paused("its buffer is full", False)

    def set_paused(self, reason: str, is_paused: bool) -> None:
        """Add or remove a reason for not reading from this side."""
        (self.pause_reasons.add if is_paused else self.pause_reasons.discard)(reason)
        if self.has_ended:
            return
        if self.pause_reasons:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def _end(self) -> None:
        self.has_ended = True
        assert self.relay.pipeline is not None
        self.relay.pipeline.eof_received(self.connection.number, self.direction, now_ns())

    def deliver_end(self) -> None:
        """Forward the end of this side's bytes after all of them."""
        super()._end()


class _PipelineOutput(msgspec.Struct):
    """The output of the alteration pipeline for one connection."""

    connection: _Connection

    def _side(self, direction: Direction) -> _AlteredSide:
        side = self.connection.client if direction == "c2s" else self.connection.server
        assert isinstance(side, _AlteredSide)
        return side

    def deliver(self, direction: Direction, data: bytes) -> None:
        self._side(direction).deliver(data)

    def end(self, direction: Direction) -> None:
        self._side(direction).deliver_end()

    def reset(self) -> None:
        self.connection.reset = True
        self.connection.reset_both()

    def set_paused(self, direction: Direction, is_paused: bool) -> None:
        self._side(direction).set_paused("the alterer is full", is_paused)


class TcpRelay:
    """A relay for the clients of `listener`, whose socket is bound; forwards between `start` and `stop`.

    A client beyond `max_connections` is closed immediately, unless an unverified connection can be evicted:
    one on which not both sides have sent anything within `UNVERIFIED_SECONDS`. If the server cannot be
    reached, the client is closed after at most `CONNECT_SECONDS`; it is not read before. Connections to
    servers are registered in `own` while they last. With a `pipeline`, the bytes it returns are forwarded
    instead of those received.
    """

    def __init__(
        self,
        listener: TcpListener,
        journal: JournalWriter,
        on_notice: Notice,
        max_connections: int,
        own: OwnConnections,
        pipeline: AlterationPipeline | None = None,
    ) -> None:
        self.journal = journal
        self.pipeline = pipeline
        self.listeners = (ListenerInfo(listener.description),)
        self.address = listener.address
        self._listener = listener
        self._listen_socket = listener.sock
        self._listen_socket.listen(_BACKLOG)
        self._own = own
        self._on_notice = on_notice
        self._max_connections = max_connections
        self._connections: set[_Connection] = set()
        self._unverified: dict[_Connection, float] = {}
        """Start times of connections on which not both sides have sent anything, the oldest first."""
        self._loops = LoopDetector[_Connection](_LOOP_THRESHOLD, self._is_settled)
        self._connecting: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None

    async def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start accepting clients."""
        self._loop = loop
        self.busy_wait = BusyWait(loop)
        self._start_accepting()

    async def stop(self, loop: asyncio.AbstractEventLoop, ts_ns: int) -> None:
        """Stop forwarding, and end all streams at `ts_ns`."""
        loop.remove_reader(self._listen_socket)
        if self._pause is not None:
            self._pause.cancel()
        for connection in self._connections:
            if self.pipeline is not None:
                self.pipeline.stream_closed(connection.number, ts_ns)
            self.journal.end(connection.number, ts_ns, "end")
            connection.ignore_input()
            if connection.open_sides:
                connection.client.transport.abort()
                connection.server.transport.abort()
        self._connections.clear()
        self._unverified.clear()
        for task in self._connecting:
            task.cancel()
        await asyncio.gather(*self._connecting, return_exceptions=True)
        # Aborted transports are closed in the loop's next iteration.
        await asyncio.sleep(0)

    def close(self) -> None:
        """Close the listening socket."""
        self._listen_socket.close()

    def _start_accepting(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listen_socket, self._accept)

    def fault(self, connection: _Connection, direction: Direction, offset: int, error: OSError) -> None:
        """Journal and report a network error of a connection at a byte offset of that direction."""
        if connection not in self._connections:
            return
        code, text = CONNECT_FAULTS.get(error.errno or 0, ("network", error.strerror or str(error)))
        self.journal.fault(connection.number, direction, now_ns(), offset, code, text)
        server = endpoint_text(connection.destination)
        route = (connection.name, server) if direction == "c2s" else (server, connection.name)
        advice = self._listener.advice if code == "timeout" else ""
        self._on_notice(code, f"tcp {' to '.join(route)}: {text}. The connection was closed.{advice}")

    def mark_verified(self, connection: _Connection) -> None:
        """Exempt a connection from eviction, as both sides have sent something."""
        self._unverified.pop(connection, None)

    def connection_ended(self, connection: _Connection, reason: str) -> None:
        """Journal a connection's end, and remove it."""
        if connection in self._connections:
            self._connections.remove(connection)
            self._unverified.pop(connection, None)
            if connection.local is not None:
                self._own.discard("tcp", connection.local, connection.destination)
            if self.pipeline is not None:
                self.pipeline.stream_closed(connection.number, now_ns())
            self.journal.end(connection.number, now_ns(), reason)
            connection.ignore_input()

    def _accept(self) -> None:
        for _ in range(_BURST):
            try:
                client, address = self._listen_socket.accept()
            except BlockingIOError:
                return
            except ConnectionAbortedError:
                continue
            except OSError as error:
                self._on_notice(
                    "accept",
                    f"tcp {self.address} cannot accept clients: {error.strerror}. "
                    f"Retrying every {_PAUSE_SECONDS} s.",
                )
                self._loop.remove_reader(self._listen_socket)
                self._pause = self._loop.call_later(_PAUSE_SECONDS, self._start_accepting)
                return
            if len(self._connections) < self._max_connections or self._make_room():
                self._open(client, address)
            else:
                client.close()
                self._on_notice(
                    "max-connections",
                    f"tcp {self.address} rejected {endpoint_text(address)}: it has "
                    f"{self._max_connections} connections. Raise the limit with --max-connections.",
                )

    def _make_room(self) -> bool:
        """Evict the oldest connection on which not both sides have sent; return False if all are too new."""
        latest = self._loop.time() - UNVERIFIED_SECONDS
        for connection, since in self._unverified.items():
            if since > latest:
                break
            # A connection that still awaits its server times out by itself.
            if connection.open_sides == 2:
                self._on_notice(
                    "max-connections",
                    f"tcp {self.address} has {self._max_connections} connections: {connection.name}, on "
                    "which not both sides had sent anything, was closed to admit another client.",
                )
                self.connection_ended(connection, "evicted")
                connection.client.transport.abort()
                connection.server.transport.abort()
                return True
        return False

    def _is_settled(self, connection: _Connection) -> bool:
        """Return True if the server has sent something, or the connection is closed."""
        return connection not in self._connections or connection.server.received > 0

    def _end_loop(self, loop: LoopFound) -> None:
        """End the connections that form a forwarding loop."""
        server = ""
        for newcomer in loop.newcomers:
            assert isinstance(newcomer, _Connection)
            server = f" to {endpoint_text(newcomer.destination)}"
            if newcomer.open_sides == 2 and not self._is_settled(newcomer):
                self.connection_ended(newcomer, "loop")
                newcomer.client.transport.abort()
                newcomer.server.transport.abort()
        self._on_notice(
            "loop",
            f"Traffic that tcp {self.address} forwards{server} repeatedly returns to it: it was stopped. "
            "Check whether that server, or a relay in front of it, forwards to this relay.",
        )

    def _open(self, client: socket.socket, address: Address) -> None:
        name = endpoint_text(address)
        try:
            held_s = self._loops.check(None, self._loop.time())
        except LoopFound as loop:
            client.close()
            self._end_loop(loop)
            return
        try:
            destination = self._listener.destination(client, address)
            server = self._listener.upstream(address, destination)
        except ClientRejected as refusal:
            client.close()
            self._on_notice(refusal.code, str(refusal))
            return
        except OSError as error:
            client.close()
            self._on_notice("no-socket", f"tcp {name} was rejected, as no socket is free: {error.strerror}.")
            return
        for sock in (client, server):
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            # Detect peers whose machine has disappeared: they send nothing any more.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        now = now_ns()
        number = self.journal.open("tcp", name, endpoint_text(destination), now)
        kind = _Side if self.pipeline is None else _AlteredSide
        ends = kind(self, client, "c2s"), kind(self, server, "s2c")
        connection = _Connection(number, name, destination, *ends)
        for side, peer in (ends, ends[::-1]):
            side.connection, side.peer = connection, peer
        if self.pipeline is not None:
            self.pipeline.stream_opened(
                number, "tcp", name, endpoint_text(destination), now, _PipelineOutput(connection)
            )
        self._connections.add(connection)
        self._unverified[connection] = self._loop.time()
        if not held_s:
            self._loops.forwarded(None, connection, self._loop.time())
        task = self._loop.create_task(self._connect(connection, held_s))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self, connection: _Connection, held_s: float) -> None:
        """Connect to the server after a delay of `held_s`, then start forwarding."""
        client, server = connection.client, connection.server
        try:
            if held_s:
                await asyncio.sleep(held_s)
                self._loops.forwarded(None, connection, self._loop.time(), was_held=True)
            await self._connect_to_server(connection)
            # Both at once: each side must be able to write to the other before anything is read.
            await asyncio.gather(
                self._loop.connect_accepted_socket(lambda: client, client.sock),
                self._loop.connect_accepted_socket(lambda: server, server.sock),
            )
        except OSError as error:
            self.fault(connection, "c2s", 0, error)
            self.connection_ended(connection, "refused")
            connection.break_cycle()
        finally:
            if not connection.open_sides:
                client.sock.close()
                server.sock.close()

    async def _connect_to_server(self, connection: _Connection) -> None:
        """Connect to the server. Raises OSError with its error number."""
        sock = connection.server.sock
        number = sock.connect_ex(connection.destination)
        local = sock.getsockname()
        # Registered before the first await: if it is redirected to this relay, it is accepted next.
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
            # Self-connection: nothing listens there, but the system chose that very port for our end.
            number = errno.ECONNREFUSED
        if number:
            raise OSError(number, os.strerror(number))
