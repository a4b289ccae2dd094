"""The driver of a replay to live peers: carries out actions, reports the peers' input, and records both."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from typing import Any, Protocol

from kiebitz.dissectors.replay.replay_peer import (
    AwaitPeer,
    CloseConnection,
    Divergence,
    InputResult,
    OpenConnection,
    PeerAction,
    SendBytes,
    WaitUntil,
)
from kiebitz.dissectors.replay.script import StreamRole
from kiebitz.proxy.peers.connections import Connected, DataReceived, PeerEvent, Peers
from kiebitz.proxy.peers.sockets import connect, listen
from kiebitz.services.server_addresses import Address

STREAM_DELAY_S = 0.003
"""Seconds between messages on different streams, so that they arrive in the order in which they are sent.

A receiver that reads both streams in one turn of its event loop, as a relay does, would see no order."""


class DrivenPeer(Protocol):
    """The interface of a replay or route to its driver; see `ReplayPeer`."""

    def actions(self) -> Iterator[PeerAction]:
        """Yield the next actions."""

    def client_accepted(self, connection: int, server: StreamRole) -> None:
        """Report a client's connection."""

    def connected(self, connection: int, role: StreamRole) -> None:
        """Report that our connection for a role is established."""

    def data_received(self, connection: int, data: bytes) -> InputResult:
        """Process bytes from the peer."""

    def connection_ended(self, connection: int, how: str) -> InputResult:
        """Report that the peer sends nothing more."""

    def timed_out(self, listened: AwaitPeer) -> InputResult:
        """Report that an awaited line or client did not arrive in time."""


class PeerDriver:
    """A driver of `peer` at the recorded pace times `speed`, or, if that is 0, as fast as the peer.

    `addresses` has the address of each server, by the first role that it has. `timeout_s` is the peer's
    timeout in seconds. `on_divergence` is called for each difference from the record. `clock` is a monotonic
    clock in seconds, never ahead of the system's.
    """

    def __init__(
        self,
        peer: DrivenPeer,
        peers: Peers,
        addresses: Mapping[StreamRole, Address],
        speed: float,
        timeout_s: float,
        on_divergence: Callable[[Divergence], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._peer = peer
        self._peers = peers
        self._addresses = addresses
        self._speed = speed
        self._timeout_s = timeout_s
        self._on_divergence = on_divergence
        self._has_peer = peers.sent_direction == "c2s"
        """True once there is a peer; a server waits for its first client without a timeout."""
        self._clock = clock
        self._last = clock()
        self._listened: AwaitPeer | None = None
        self._deadline: float | None = None
        """The time at which the awaited input is overdue."""
        self._is_last_look = False
        """True if all input has been processed after that time."""

    async def listen(self) -> list[tuple[StreamRole, str]]:
        """Open the servers; return each with its address. Raises RelayError."""
        opened = []
        for role, (host, port) in self._addresses.items():
            opened.append((role, await listen(self._peers, role.transport, host, port, role.server_key)))
        return opened

    async def play(self) -> None:
        """Carry out the actions to the end, or to where they stop. Raises PeerError and RelayError."""
        for action in self._peer.actions():
            if isinstance(action, AwaitPeer):
                await self._listen(action)
            elif isinstance(action, WaitUntil):
                with suppress(TimeoutError):
                    async with asyncio.timeout(action.until - self._clock()):
                        await self._receive(await self._peers.events.get())
            else:
                wait_s = action.since_ns / 1e9 / self._speed if self._speed else 0.0
                await self.receive_until(self._last + max(wait_s, STREAM_DELAY_S if action.apart else 0.0))
                await self._act(action)
            await self._receive_all()
            self._last = self._clock()

    async def receive_until(self, due: float, is_enough: Callable[[], bool] = lambda: False) -> None:
        """Process input until a time of the clock, or until `is_enough` returns True."""
        while not is_enough() and (left := due - self._clock()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._receive(await self._peers.events.get())
        if not is_enough():
            # The last input may have arrived together with the end of the wait.
            await self._receive_all()

    async def _act(self, action: SendBytes | OpenConnection | CloseConnection) -> None:
        if isinstance(action, SendBytes):
            await self._send(action)
        elif isinstance(action, OpenConnection):
            role = action.role
            host, port = self._addresses[self._server(role.server_key)]
            self._peer.connected(await connect(self._peers, role.transport, host, port), role)
        else:
            await self._meanwhile(self._peers.hang_up(action.connection))

    async def _send(self, action: SendBytes) -> None:
        if not self._peers.send(action.connection, action.to_send):
            await self._meanwhile(self._peers.drain(action.connection, self._timeout_s))

    async def _meanwhile(self, doing: Coroutine[Any, Any, None]) -> None:
        """Process input while a coroutine runs: otherwise the input would pile up."""
        task = asyncio.create_task(doing)
        while not task.done():
            happening = asyncio.create_task(self._peers.events.get())
            await asyncio.wait({task, happening}, return_when=asyncio.FIRST_COMPLETED)
            if happening.done():
                await self._receive(happening.result())
            else:
                happening.cancel()
        await task

    def _server(self, key: str) -> StreamRole:
        """Return the first role of a server; a replay may learn of further ones as it goes."""
        return next(role for role in self._addresses if role.server_key == key)

    async def _listen(self, listened: AwaitPeer) -> None:
        """Wait for input from the peer, at most until the awaited input is overdue."""
        if listened != self._listened:
            self._listened = listened
            self._deadline = self._clock() + self._timeout_s
            self._is_last_look = False
        left = self._deadline - self._clock() if self._has_peer and self._deadline is not None else None
        if left is not None and left <= 0 and not self._is_last_look:
            # Other input that keeps coming must not postpone the timeout.
            self._is_last_look = True
            await self._receive_all()
            return
        try:
            if left is not None and left <= 0:
                raise TimeoutError
            async with asyncio.timeout(left):
                happening = await self._peers.events.get()
        except TimeoutError:
            # The clock may be slower than the event loop's.
            if self._deadline is None or self._clock() >= self._deadline:
                self._deadline = None
                await self._react(self._peer.timed_out(listened))
        else:
            await self._receive(happening)

    async def _receive_all(self) -> None:
        while not self._peers.events.empty():
            await self._receive(self._peers.events.get_nowait())

    async def _receive(self, happening: PeerEvent) -> None:
        if isinstance(happening, Connected):
            if not self._has_peer:
                self._has_peer = True
                self._listened = None
            self._peer.client_accepted(happening.connection, self._server(happening.server))
        elif isinstance(happening, DataReceived):
            await self._react(self._peer.data_received(happening.connection, happening.data))
        else:
            await self._react(self._peer.connection_ended(happening.connection, happening.reason))

    async def _react(self, reaction: InputResult) -> None:
        for divergence in reaction.divergences:
            self._on_divergence(divergence)
        for reply in reaction.replies:
            await self._send(reply)
