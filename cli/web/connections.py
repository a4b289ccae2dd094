"""HTTP connections of the page's server: accepted, given deadlines, and evicted when there are too many."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from kiebitz.cli.web.admission import Limits, address_group
from kiebitz.services.standard_streams import warn

REQUEST_S = 10
"""Time limit for a request's head, in seconds since the connection began or its last answer was sent."""

STALL_S = 10.0
"""Time limit for a client to read about 48 KiB of an answer that waits to be sent, in seconds."""

_RETRY_S = 0.1
"""Pause after a connection could not be accepted and none could be evicted, in seconds."""

_SET_UP_AT_ONCE = 50
"""Maximum number of accepted connections that the event loop is setting up."""

_WARN_EVERY_S = 60.0
"""Shortest time between two warnings that no connection can be accepted, in seconds."""

_RESET = struct.pack("ii", 1, 0)
"""Value of SO_LINGER: on for 0 s, so that closing sends a reset."""

_TIMEOUT_BODY = f"the request was not complete after {REQUEST_S} s\n".encode()
_TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (
    len(_TIMEOUT_BODY),
    _TIMEOUT_BODY,
)


class _Waiting:
    """Connections without a request in progress, by address, the oldest first.

    A new connection is never refused. The oldest one of the address with the most connections is closed
    instead, so a flood from one address evicts itself.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0
        self._by_address: dict[str, dict[HttpConnection, None]] = {}

    def add(self, connection: HttpConnection) -> None:
        self._by_address.setdefault(connection.address, {})[connection] = None
        self._count += 1
        if self._count > self._limit:
            self.evict()

    def remove(self, connection: HttpConnection) -> None:
        connections = self._by_address[connection.address]
        del connections[connection]
        self._count -= 1
        if not connections:
            del self._by_address[connection.address]

    def evict(self) -> bool:
        """Close the oldest connection of the address that has the most. Return False if there is none."""
        if not self._by_address:
            return False
        fullest = max(self._by_address, key=lambda address: len(self._by_address[address]))
        next(iter(self._by_address[fullest])).abort()
        return True


class Connections:
    """All connections without a request in progress, and the task that accepts new ones."""

    def __init__(self, limits: Limits) -> None:
        self.pending = _Waiting(limits.pending)
        """New connections: clients that have not shown a key yet."""
        self.idle = _Waiting(limits.idle)
        """Connections kept open after an answer."""

    async def accept(self, listener: socket.socket, make: Callable[[], HttpConnection]) -> None:
        """Accept connections from a non-blocking listener until the task is cancelled.

        Setting up a connection takes turns of the event loop, which are long if many clients have requests.
        So many are set up at once, and a new client does not wait for all that came before it.
        """
        loop = asyncio.get_running_loop()
        room = asyncio.Semaphore(_SET_UP_AT_ONCE)
        warned_s = -_WARN_EVERY_S

        async def set_up(accepted: socket.socket) -> None:
            try:
                await loop.connect_accepted_socket(make, accepted)
            except OSError:
                # The client has reset the connection already.
                accepted.close()
            finally:
                room.release()

        async with asyncio.TaskGroup() as tasks:
            while True:
                await room.acquire()
                try:
                    accepted, _ = listener.accept()
                    tasks.create_task(set_up(accepted))
                except BlockingIOError:
                    room.release()
                    await _readable(listener)
                except OSError as error:
                    room.release()
                    if isinstance(error, ConnectionAbortedError):
                        continue
                    if loop.time() - warned_s >= _WARN_EVERY_S:
                        warned_s = loop.time()
                        warn(
                            f"no new connection can be accepted: {error.strerror}; connections without a"
                            " request are closed until it works again"
                        )
                    # The file of an evicted connection is free in the event loop's next turn.
                    await asyncio.sleep(0 if self.pending.evict() or self.idle.evict() else _RETRY_S)


async def _readable(listener: socket.socket) -> None:
    """Wait until a listener has a connection. Python 3.11's `sock_accept` may fail if it is cancelled."""
    loop = asyncio.get_running_loop()
    arrived = asyncio.Event()
    loop.add_reader(listener, arrived.set)
    try:
        await arrived.wait()
    finally:
        loop.remove_reader(listener)


class HttpConnection(H11Protocol):
    """An HTTP connection that is closed if its client is idle, sends an incomplete request, or does not read.

    uvicorn's own limit for idle connections restarts with each byte that a client sends.
    """

    def __init__(self, connections: Connections, **uvicorn: Any) -> None:
        super().__init__(**uvicorn)
        self._connections = connections
        self._waiting: _Waiting | None = None
        """List that contains this connection while it has no request in progress."""
        self._timer: asyncio.TimerHandle | None = None
        self.address = ""
        """Address group of the client."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's
        super().connection_made(transport)
        self.address = address_group(self.client[0]) if self.client else ""
        self._wait(self._connections.pending)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._waiting is not None and self._is_answering:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            self._expire_after(STALL_S)
        elif not self._is_answering:
            self._wait(self._connections.idle)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expire_after(STALL_S)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._is_answering:
            self._cancel_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_waiting()

    def abort(self) -> None:
        """Close the connection, and discard what its client has not read."""
        self._stop_waiting()
        if self.transport.get_write_buffer_size():
            # Otherwise the kernel would keep its own buffer until the client reads it.
            sock = self.transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.transport.abort()

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait(self, waiting: _Waiting) -> None:
        self._stop_waiting()
        self._waiting = waiting
        self._expire_after(REQUEST_S)
        waiting.add(self)

    def _stop_waiting(self) -> None:
        self._cancel_timer()
        if self._waiting is not None:
            self._waiting.remove(self)
            self._waiting = None

    def _expire_after(self, limit_s: float) -> None:
        self._cancel_timer()
        self._timer = self.loop.call_later(limit_s, self._expire)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self) -> None:
        has_part = bool(self.conn.trailing_data[0])
        if not self._is_answering and has_part and not self.transport.get_write_buffer_size():
            self.transport.write(_TIMEOUT)
        self.abort()
