"""The UDP relay: each client's datagrams are forwarded to its server and back, then journaled.

Each client gets its own socket, connected to the server: the server sees one stable port per client, only the
server's datagrams arrive there, and ICMP errors are reported on the association they belong to.

A new client is unverified, as UDP source addresses can be spoofed. It becomes a player once it has sent again
after an answer. At the client limit, unverified clients are evicted before players.

The sockets are watched by a selector of our own, which the event loop watches: libuv, and so uvloop, silently
stops watching a socket once an ICMP error is pending on it, which is common here. While datagrams arrive
densely, that selector is polled repeatedly before the event loop continues.
"""

from __future__ import annotations

import asyncio
import errno
import selectors
import socket
from collections import OrderedDict, deque
from collections.abc import Hashable

import msgspec

from kiebitz.dissectors.model import Direction
from kiebitz.proxy.journal.writer import JournalWriter
from kiebitz.proxy.relay.alteration_pipeline import AlterationPipeline
from kiebitz.proxy.relay.busy_wait import BUSY_WAIT_NS, DENSE_NS
from kiebitz.proxy.relay.endpoints import NETWORK_FAULTS, Address, Notice, endpoint_text
from kiebitz.proxy.relay.listeners import (
    MAX_DATAGRAM,
    ClientRejected,
    ListenerInfo,
    OwnConnections,
    UdpListener,
)
from kiebitz.proxy.relay.loop_detection import LoopDetector, LoopFound
from kiebitz.proxy.system.clock import now_ns

_BURST = 32
"""Maximum datagrams received from one socket before the others are served."""
_BACKLOG_NS = 20_000
"""An interval between datagrams shorter than this suggests that more are queued."""
_MAX_WAITING = 256
"""Maximum datagrams queued for a socket that accepts no more."""
_MAX_TURN_NS = 1_000_000
"""Longest time to forward datagrams before yielding to the event loop."""
_MIN_SWEEP_SECONDS = 0.01
_LOOP_THRESHOLD = 32
"""Consecutive unverified clients with equal first datagrams and no answer that suggest a forwarding loop."""
_MAX_HELD = 256
"""Maximum datagrams held until it is clear whether they are looping."""
_FULL = (errno.EAGAIN, errno.EWOULDBLOCK, errno.ENOBUFS)
_FAULTS = {
    **NETWORK_FAULTS,
    errno.ECONNREFUSED: ("port-unreachable", "no program listens on that port"),
    errno.EMSGSIZE: ("too-big", "the datagram is too big for the route"),
}


class _OutputSocket(msgspec.Struct, eq=False):
    """A non-blocking socket with its queue of unsent datagrams.

    It is watched for `idle_events` while the queue is empty. `association` is None if it sends to clients,
    else the association to whose server it sends.
    """

    sock: socket.socket
    idle_events: int
    association: _Association | None = None
    waiting: deque[tuple[_Association, bytes]] = msgspec.field(default_factory=deque)


class _Association(msgspec.Struct, eq=False, weakref=True):
    """A UDP association between one client and its server; `c2s` and `s2c` count the bytes of each direction.

    `queue` holds all associations of its kind, players or unverified; `last_ns` is the time of the server's
    latest datagram, 0 if there was none.
    """

    key: Hashable
    queue: _Queue
    client: Address
    server: Address
    upstream: socket.socket
    to_server: _OutputSocket
    to_client: _OutputSocket
    number: int
    c2s: int = 0
    s2c: int = 0
    active: float = 0.0
    last_ns: int = 0


class _PipelineOutput(msgspec.Struct):
    """The output of the alteration pipeline for one association."""

    relay: UdpRelay
    association: _Association

    def deliver(self, direction: Direction, data: bytes) -> None:
        self.relay.deliver(self.association, direction, data)

    def end(self, direction: Direction) -> None:
        """Do nothing: UDP has no end of a direction."""

    def reset(self) -> None:
        """Do nothing: UDP has no reset."""

    def set_paused(self, direction: Direction, is_paused: bool) -> None:
        """Do nothing: UDP has no flow control, and datagrams without room are dropped."""


_Queue = OrderedDict[Hashable, _Association]
"""Associations, the one that has been silent longest first."""


class UdpRelay:
    """A relay for the clients of `listener`, whose socket is bound; forwards between `start` and `stop`.

    An association ends after `idle_seconds` of silence. At `max_clients`, the unverified client that has been
    silent longest is evicted, or, if there are only players, the player silent longest. Sockets to servers
    are registered in `own` while they last. With a `pipeline`, the datagrams it returns are forwarded instead
    of those received.
    """

    def __init__(
        self,
        listener: UdpListener,
        journal: JournalWriter,
        on_notice: Notice,
        idle_seconds: float,
        max_clients: int,
        own: OwnConnections,
        pipeline: AlterationPipeline | None = None,
    ) -> None:
        self.listeners = (ListenerInfo(listener.description),)
        self.address = listener.address
        self._pipeline = pipeline
        self._listener = listener
        self._receive = listener.receive
        self._journal = journal
        self._on_notice = on_notice
        self._idle_seconds = idle_seconds
        self._max_clients = max_clients
        self._own = own
        self._associations: dict[Hashable, _Association] = {}
        self._unverified: _Queue = OrderedDict()
        self._players: _Queue = OrderedDict()
        self._loops = LoopDetector[_Association](_LOOP_THRESHOLD, self._is_settled)
        self._held: dict[Hashable, list[bytes]] = {}
        """Datagrams of new clients that are held by loop detection."""
        self._last_ns = 0
        self._ready_ns = 0
        self._selector = selectors.DefaultSelector()
        self._listen_output = _OutputSocket(listener.sock, selectors.EVENT_READ)
        self._selector.register(listener.sock, selectors.EVENT_READ, self._listen_output)

    async def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start forwarding."""
        self._time = loop.time
        self._loop = loop
        loop.add_reader(self._selector.fileno(), self._on_ready)
        self._sweep(loop)

    async def stop(self, loop: asyncio.AbstractEventLoop, ts_ns: int) -> None:
        """Stop forwarding, and end all streams at `ts_ns`."""
        self._sweeper.cancel()
        loop.remove_reader(self._selector.fileno())
        self._held.clear()
        for association in list(self._associations.values()):
            self._end(association, ts_ns, "end")

    def close(self) -> None:
        """Close the sockets."""
        self._selector.close()
        self._listen_output.sock.close()

    def _on_ready(self) -> None:
        """Forward datagrams until none arrive or the time is up; at dense traffic, busy-wait for more."""
        now = now_ns()
        turn_ends = now + _MAX_TURN_NS
        awake = BUSY_WAIT_NS if now - self._ready_ns < DENSE_NS else 0
        while now < turn_ends:
            if ready := self._selector.select(0):
                self._handle_ready(ready)
                now = self._ready_ns = now_ns()
            else:
                now = now_ns()
                if now - self._ready_ns >= awake:
                    return

    def _handle_ready(self, ready: list[tuple[selectors.SelectorKey, int]]) -> None:
        for key, events in ready:
            outlet: _OutputSocket = key.data
            association = outlet.association
            # An association that ended since the select call has no socket any more.
            if outlet.sock.fileno() < 0:
                continue
            if events & selectors.EVENT_WRITE:
                self._drain(outlet)
            if events & selectors.EVENT_READ:
                if association is None:
                    self._receive_from_clients()
                else:
                    self._receive_from_server(association)

    def _receive_from_clients(self) -> None:
        for _ in range(_BURST):
            try:
                data, key = self._receive()
            except BlockingIOError:
                return
            except OSError as error:
                self._on_notice("receive", f"Receiving on udp {self.address} failed: {error.strerror}.")
                return
            now = now_ns()
            association = self._associations.get(key) or self._admit(key, now, data)
            if association is None:
                return
            if self._pipeline is not None:
                self._pipeline.data_received(association.number, "c2s", now, data)
            else:
                if association.to_server.waiting:
                    self._enqueue(association, "c2s", now, data)
                else:
                    try:
                        association.upstream.send(data)
                    except OSError as error:
                        self._send_failed(association, "c2s", now, data, error)
                self._journal.chunk(association.number, "c2s", now, association.c2s, data)
                association.c2s += len(data)
            association.active = self._time()
            if association.last_ns and association.queue is self._unverified:
                del self._unverified[key]
                self._players[key] = association
                association.queue = self._players
            else:
                association.queue.move_to_end(key)
            backlog = now - self._last_ns < _BACKLOG_NS
            self._last_ns = now
            # A failed recv costs more than another select, and the other end may be waiting for this core.
            if not backlog:
                return

    def _receive_from_server(self, association: _Association) -> None:
        for _ in range(_BURST):
            try:
                data = association.upstream.recv(MAX_DATAGRAM)
            except BlockingIOError:
                return
            except OSError as error:
                # An ICMP answer to an earlier datagram; the next one may well get through.
                self._fault(association, "c2s", now_ns(), error)
                continue
            now = now_ns()
            if self._pipeline is not None:
                self._pipeline.data_received(association.number, "s2c", now, data)
            else:
                back = association.to_client
                if back.waiting:
                    self._enqueue(association, "s2c", now, data)
                else:
                    try:
                        back.sock.sendto(data, association.client)
                    except OSError as error:
                        self._send_failed(association, "s2c", now, data, error)
                self._journal.chunk(association.number, "s2c", now, association.s2c, data)
                association.s2c += len(data)
            association.active = self._time()
            association.queue.move_to_end(association.key)
            backlog = now - association.last_ns < _BACKLOG_NS
            association.last_ns = now
            if not backlog:
                return

    def _admit(self, key: Hashable, now: int, data: bytes) -> _Association | None:
        """Open an association for a new client; return None if loop detection holds or rejects it."""
        held = self._held.get(key)
        if held is not None:
            if len(held) < _MAX_HELD:
                held.append(data)
            return None
        content = hash(data)
        try:
            seconds = self._loops.check(content, self._time())
        except LoopFound as loop:
            self._end_loop(loop, now)
            return None
        if seconds and len(self._held) < _MAX_HELD:
            self._held[key] = [data]
            self._loop.call_later(seconds, self._release_held, key, content)
            return None
        association = self._open(key, now)
        if association is not None:
            self._loops.forwarded(content, association, self._time())
        return association

    def _release_held(self, key: Hashable, content: Hashable) -> None:
        """Forward a client's held datagrams."""
        now = now_ns()
        held = self._held.pop(key, None)
        association = self._open(key, now) if held else None
        if held is None or association is None:
            return
        self._loops.forwarded(content, association, self._time(), was_held=True)
        for data in held:
            if self._pipeline is not None:
                self._pipeline.data_received(association.number, "c2s", now, data)
                continue
            self._forward(association, "c2s", now, data)
            self._journal.chunk(association.number, "c2s", now, association.c2s, data)
            association.c2s += len(data)
        association.active = self._time()

    def _is_settled(self, association: _Association) -> bool:
        """Return True if a new client was answered, or its association has ended."""
        return association.last_ns > 0 or self._associations.get(association.key) is not association

    def _end_loop(self, loop: LoopFound, now: int) -> None:
        """End the associations that form a forwarding loop, and report it."""
        server = ""
        for newcomer in loop.newcomers:
            assert isinstance(newcomer, _Association)
            server = f" to {endpoint_text(newcomer.server)}"
            if not self._is_settled(newcomer):
                self._end(newcomer, now, "loop")
        self._on_notice(
            "loop",
            f"Traffic that udp {self.address} forwards{server} repeatedly returns to it: it was stopped. "
            "Check whether that server, or a relay in front of it, forwards to this relay.",
        )

    def _open(self, key: Hashable, now: int) -> _Association | None:
        if len(self._associations) >= self._max_clients:
            longest_silent = next(iter((self._unverified or self._players).values()))
            self._on_notice(
                "max-clients",
                f"udp {self.address} has {self._max_clients} clients: "
                f"{endpoint_text(longest_silent.client)} was evicted to admit another one.",
            )
            self._end(longest_silent, now, "evicted")
        try:
            sockets = self._listener.open(key)
        except ClientRejected as refusal:
            self._on_notice(refusal.code, str(refusal))
            return None
        except OSError as error:
            self._on_notice(
                "no-socket",
                f"udp {self.address} has no socket for a new client: {error.strerror}. "
                "Its datagram was dropped.",
            )
            return None
        shared = sockets.downstream is self._listen_output.sock
        back = self._listen_output if shared else _OutputSocket(sockets.downstream, 0)
        there = _OutputSocket(sockets.upstream, selectors.EVENT_READ)
        self._selector.register(sockets.upstream, selectors.EVENT_READ, there)
        self._own.add("udp", sockets.upstream.getsockname(), sockets.server)
        names = endpoint_text(sockets.client), endpoint_text(sockets.server)
        number = self._journal.open("udp", *names, now)
        there.association = association = _Association(
            key, self._unverified, sockets.client, sockets.server, sockets.upstream, there, back, number
        )
        if self._pipeline is not None:
            self._pipeline.stream_opened(number, "udp", *names, now, _PipelineOutput(self, association))
        self._associations[key] = self._unverified[key] = association
        return association

    def deliver(self, association: _Association, direction: Direction, data: bytes) -> None:
        """Send a datagram that the alteration pipeline has released."""
        self._forward(association, direction, now_ns(), data)
        if direction == "c2s":
            association.c2s += len(data)
        else:
            association.s2c += len(data)

    def _end(self, association: _Association, now: int, reason: str) -> None:
        if self._pipeline is not None:
            self._pipeline.stream_closed(association.number, now)
        del self._associations[association.key]
        del association.queue[association.key]
        self._own.discard("udp", association.upstream.getsockname(), association.server)
        self._selector.unregister(association.upstream)
        association.upstream.close()
        # Break the reference cycle, as the garbage collector runs only now and then.
        association.to_server.association = None
        back = association.to_client
        if back is not self._listen_output:
            if back.waiting:
                self._selector.unregister(back.sock)
            back.sock.close()
        self._journal.end(association.number, now, reason)

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        """End idle associations, and schedule the next sweep."""
        wait = self._idle_seconds
        now = self._time()
        for queue in (self._unverified, self._players):
            while queue:
                longest_silent = next(iter(queue.values()))
                left = longest_silent.active + self._idle_seconds - now
                if left > 0:
                    wait = min(wait, left)
                    break
                self._end(longest_silent, now_ns(), "idle")
        self._sweeper = loop.call_later(max(wait, _MIN_SWEEP_SECONDS), self._sweep, loop)

    # Rare cases from here on: alteration, full sockets, errors.

    def _forward(self, association: _Association, direction: Direction, now: int, data: bytes) -> None:
        """Send a datagram, or queue it behind those that a full socket did not accept."""
        outlet = association.to_server if direction == "c2s" else association.to_client
        if outlet.waiting:
            self._enqueue(association, direction, now, data)
            return
        try:
            self._send(association, direction, data)
        except OSError as error:
            self._send_failed(association, direction, now, data, error)

    def _send(self, association: _Association, direction: Direction, data: bytes) -> None:
        if direction == "c2s":
            association.upstream.send(data)
        else:
            association.to_client.sock.sendto(data, association.client)

    def _send_failed(
        self, association: _Association, direction: Direction, now: int, data: bytes, error: OSError
    ) -> None:
        """Retry once, queue the datagram if the socket is full, otherwise drop it."""
        if error.errno not in _FULL:
            self._fault(association, direction, now, error)
            # The error may belong to an earlier datagram; this one was not sent in any case.
            try:
                self._send(association, direction, data)
            except OSError as second:
                if second.errno not in _FULL:
                    if second.errno != error.errno:
                        self._fault(association, direction, now, second)
                    return
            else:
                return
        self._enqueue(association, direction, now, data)

    def _enqueue(self, association: _Association, direction: Direction, now: int, data: bytes) -> None:
        """Queue a datagram for a full socket, dropping the oldest at the limit."""
        outlet = association.to_server if direction == "c2s" else association.to_client
        if not outlet.waiting:
            self._set_events(outlet, outlet.idle_events | selectors.EVENT_WRITE)
        elif len(outlet.waiting) >= _MAX_WAITING:
            oldest, _ = outlet.waiting.popleft()
            if oldest.upstream.fileno() >= 0:
                self._report(
                    oldest, direction, now, "overflow", "a datagram was dropped, as too many were queued"
                )
        outlet.waiting.append((association, data))

    def _drain(self, outlet: _OutputSocket) -> None:
        """Send queued datagrams while the socket accepts them."""
        direction: Direction = "s2c" if outlet.association is None else "c2s"
        while outlet.waiting:
            association, data = outlet.waiting[0]
            if association.upstream.fileno() >= 0:
                try:
                    self._send(association, direction, data)
                except OSError as error:
                    if error.errno in _FULL:
                        return
                    self._fault(association, direction, now_ns(), error)
            outlet.waiting.popleft()
        self._set_events(outlet, outlet.idle_events)

    def _set_events(self, outlet: _OutputSocket, events: int) -> None:
        if not events:
            self._selector.unregister(outlet.sock)
        elif outlet.sock in self._selector.get_map():
            self._selector.modify(outlet.sock, events, outlet)
        else:
            self._selector.register(outlet.sock, events, outlet)

    def _fault(self, association: _Association, direction: Direction, now: int, error: OSError) -> None:
        code, text = _FAULTS.get(error.errno or 0, ("network", error.strerror or str(error)))
        self._report(association, direction, now, code, text)

    def _report(
        self, association: _Association, direction: Direction, now: int, code: str, text: str
    ) -> None:
        offset = association.c2s if direction == "c2s" else association.s2c
        self._journal.fault(association.number, direction, now, offset, code, text)
        client, server = endpoint_text(association.client), endpoint_text(association.server)
        route = f"{client} to {server}" if direction == "c2s" else f"{server} to {client}"
        self._on_notice(code, f"udp {route}: {text}.")
