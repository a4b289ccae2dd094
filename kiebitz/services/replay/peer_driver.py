"""Plays a part to live peers: does what it says, tells it what they do, and records both."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from typing import Any, Protocol

from kiebitz.dissectors.replay.replay_peer import Action, Call, Divergence, Hang, Listen, Reaction, Rest, Say
from kiebitz.dissectors.replay.script import Role
from kiebitz.proxy.peers import tcp as peers_tcp
from kiebitz.proxy.peers import udp as peers_udp
from kiebitz.proxy.peers.connections import Connected, DataReceived, PeerEvent, Peers
from kiebitz.services.server_addresses import Place

APART_SECONDS = 0.003
"""Between messages on different streams, so that they arrive in the order in which they are sent: whoever
reads them together, as a relay does, would see no order in what came within one turn of his loop."""

_PEERS = {"tcp": peers_tcp, "udp": peers_udp}


class Playable(Protocol):
    """What an actor needs of a part, or of what else says what is to be done; see `Part`."""

    def actions(self) -> Iterator[Action]:
        """What is to be done next."""

    def accepted(self, connection: int, server: Role) -> None:
        """A client has come."""

    def connected(self, connection: int, role: Role) -> None:
        """A call has been taken."""

    def heard(self, connection: int, data: bytes) -> Reaction:
        """The peer has sent bytes."""

    def ended(self, connection: int, how: str) -> Reaction:
        """The peer says nothing more."""

    def overdue(self, listened: Listen) -> Reaction:
        """What was listened for has not come in time."""


class Actor:
    """Plays `part` by the pace of the record times `speed`, or, if that is 0, as fast as the peer.

    Each server, by the first role that it has, is at its place of `places`. `patience_s` is how long the peer
    may take. `on_divergence` is told what it does that is not in the record.
    """

    def __init__(
        self,
        part: Playable,
        peers: Peers,
        places: Mapping[Role, Place],
        speed: float,
        patience_s: float,
        on_divergence: Callable[[Divergence], None],
    ) -> None:
        self._part = part
        self._peers = peers
        self._places = places
        self._speed = speed
        self._patience_s = patience_s
        self._on_divergence = on_divergence
        self._anybody = peers.sent_direction == "c2s"
        """Whether there is a peer yet; a server waits for its first client as long as it takes."""
        self._last = time.monotonic()
        self._listened: Listen | None = None
        self._deadline: float | None = None
        """When what is listened for is overdue."""

    async def listen(self) -> list[tuple[Role, str]]:
        """Open the servers; gives each with its address. Raises RelayError."""
        opened = []
        for role, (host, port) in self._places.items():
            listen = _PEERS[role.transport].listen
            opened.append((role, await listen(self._peers, host, port, role.server_key)))
        return opened

    async def play(self) -> None:
        """Go through the part, to its end or to where it stops. Raises PeerError and RelayError."""
        for action in self._part.actions():
            if isinstance(action, Listen):
                await self._listen(action)
            elif isinstance(action, Rest):
                await self._rest(action.until)
            else:
                await self._pace(action.since_ns, action.apart)
                await self._act(action)
            await self._hear_all()
            self._last = time.monotonic()

    async def _pace(self, since_ns: int, apart: bool) -> None:
        """Wait until an action is due, and hear meanwhile."""
        wait_s = since_ns / 1e9 / self._speed if self._speed else 0.0
        await self.hear_until(self._last + max(wait_s, APART_SECONDS if apart else 0.0))

    async def hear_until(self, due: float, is_enough: Callable[[], bool] = lambda: False) -> None:
        """Hear what the peers do until a moment of the monotonic clock, or until it is enough."""
        while not is_enough() and (left := due - time.monotonic()) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._hear(await self._peers.events.get())

    async def _act(self, action: Say | Call | Hang) -> None:
        if isinstance(action, Say):
            await self._say(action)
        elif isinstance(action, Call):
            await self._call(action.role)
        else:
            await self._meanwhile(self._peers.hang_up(action.connection))

    async def _say(self, said: Say) -> None:
        if not self._peers.send(said.connection, said.data):
            await self._meanwhile(self._peers.drain(said.connection, self._patience_s))

    async def _meanwhile(self, doing: Coroutine[Any, Any, None]) -> None:
        """Hear what the peers do until something is done: else it would pile up."""
        task = asyncio.create_task(doing)
        while not task.done():
            happening = asyncio.create_task(self._peers.events.get())
            await asyncio.wait({task, happening}, return_when=asyncio.FIRST_COMPLETED)
            if happening.done():
                await self._hear(happening.result())
            else:
                happening.cancel()
        await task

    async def _call(self, role: Role) -> None:
        host, port = self._places[self._server(role.server_key)]
        self._part.connected(await _PEERS[role.transport].connect(self._peers, host, port), role)

    def _server(self, key: str) -> Role:
        """The first role of a server; a part may get to know more of them as it goes."""
        return next(role for role in self._places if role.server_key == key)

    async def _listen(self, listened: Listen) -> None:
        """Wait for the peer to do something, as long as it may take to do what is listened for."""
        if listened != self._listened:
            self._listened = listened
            self._deadline = time.monotonic() + self._patience_s
        left = self._deadline - time.monotonic() if self._anybody and self._deadline is not None else None
        try:
            async with asyncio.timeout(left):
                happening = await self._peers.events.get()
        except TimeoutError:
            self._deadline = None
            await self._react(self._part.overdue(listened))
        else:
            await self._hear(happening)

    async def _rest(self, until: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(until - time.monotonic()):
                await self._hear(await self._peers.events.get())

    async def _hear_all(self) -> None:
        while not self._peers.events.empty():
            await self._hear(self._peers.events.get_nowait())

    async def _hear(self, happening: PeerEvent) -> None:
        if isinstance(happening, Connected):
            if not self._anybody:
                self._anybody = True
                self._listened = None
            self._part.accepted(happening.connection, self._server(happening.server))
        elif isinstance(happening, DataReceived):
            await self._react(self._part.heard(happening.connection, happening.data))
        else:
            await self._react(self._part.ended(happening.connection, happening.reason))

    async def _react(self, reaction: Reaction) -> None:
        for divergence in reaction.divergences:
            self._on_divergence(divergence)
        for reply in reaction.replies:
            await self._say(reply)
