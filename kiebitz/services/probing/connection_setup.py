"""The setup shared by test cases and baseline games: connections to the target, the route, and the recording.

We send data to the given address and nowhere else.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress

import msgspec

from kiebitz.dissectors.conformance.expectations import HEARS
from kiebitz.dissectors.conformance.expectations import Role as Side
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.inspection.inspector import DecodeAs
from kiebitz.dissectors.model import OPPOSITE, Item
from kiebitz.dissectors.probing.baseline import Habits
from kiebitz.dissectors.probing.observer import Witness
from kiebitz.dissectors.probing.routes import Address, Way
from kiebitz.dissectors.replay.replay_peer import Action, Divergence, Hang, Listen, Reaction, Rest
from kiebitz.dissectors.replay.script import Role, Script
from kiebitz.proxy.peers import tcp as peers_tcp
from kiebitz.proxy.peers import udp as peers_udp
from kiebitz.proxy.peers.connections import NOBODY_LISTENS, PeerError, Peers
from kiebitz.services.probing.program import Program
from kiebitz.services.replay.peer_driver import Actor, Playable
from kiebitz.storage.recording.recorder import COMMIT_EVERY_S, Recorder

_REACH_S = 5.0
"""Timeout in seconds for each step of a recorded route."""

_LOOK_S = 0.25

_PEERS = {"tcp": peers_tcp, "udp": peers_udp}


class Conditions(msgspec.Struct, frozen=True):
    """The target and how it is probed.

    `side` is the target's role, `script` a recorded game to follow, which is tried first if it `is_like` the
    target's games; `wait_s` is the timeout for an answer in seconds. Observations of its usual behaviour are
    added to `habits`.
    """

    dissector: Dissector
    side: Side
    address: Address
    script: Script | None
    is_like: bool
    wait_s: float
    habits: Habits

    @property
    def decode_as(self) -> DecodeAs:
        """The protocol by port: the target's, or ours for a client."""
        return {(self.dissector.transport, self.address[1]): self.dissector}


class Stage:
    """The common base of a trial and a baseline game.

    Everything is recorded by `recorder`; `program` is the target, if Kiebitz starts it.
    """

    def __init__(self, way: Way, conditions: Conditions, recorder: Recorder, program: Program | None) -> None:
        plays = HEARS[conditions.side]
        self._way = way
        self._conditions = conditions
        self._recorder = recorder
        self._program = program
        self._has_hung_up = False
        """True if the connection at whose injection point the case is tried has been closed for sending."""
        self._witness = Witness(conditions.dissector, OPPOSITE[plays])
        self._peers = Peers(plays, recorder.stream_ids, self._on_item)
        self._listening = Listening(way, self._awaits_anybody, self._why_nobody_comes)
        self._is_deserted = False
        """True if the server's address has no listener any more."""
        self._actor = Actor(self._listening, self._peers, way.servers, 0.0, _REACH_S, self._on_divergence)

    @property
    def is_heard(self) -> bool:
        """True if the target has sent anything at all."""
        return self._witness.is_heard

    @asynccontextmanager
    async def _recorded(self) -> AsyncIterator[None]:
        """Write the recording periodically; at the end close all connections."""
        writing = asyncio.create_task(self._write())
        try:
            yield
        finally:
            writing.cancel()
            with suppress(asyncio.CancelledError):
                await writing
            self._peers.close()

    def _on_item(self, item: Item) -> None:
        self._recorder.record((item,))
        self._witness.feed(item)

    def _on_divergence(self, divergence: Divergence) -> None:
        """Ignore a divergence: the route keeps it itself."""

    def _gather(self) -> None:
        self._witness.take(self._recorder.gather())

    async def _write(self) -> None:
        while True:
            await asyncio.sleep(COMMIT_EVERY_S / 2)
            self._gather()
            self._recorder.write()

    async def _open(self) -> None:
        """For a client: listen as its server, then start the client if Kiebitz is to start it."""
        if self._conditions.side == "server":
            return
        if self._program is not None:
            # It would reconnect before it is restarted.
            self._program.stop()
        for role, address in await self._actor.listen():
            self._way.moved(role, address)
        if self._program is not None:
            self._program.start()

    def _awaits_anybody(self) -> bool:
        """Return True if no client has connected yet."""
        return self._conditions.side == "client" and not self._peers.streams

    def _why_nobody_comes(self) -> str | None:
        """Return the reason why no client can be expected any more; None if one can, or is connected."""
        if not self._awaits_anybody() or self._program is None:
            return None
        died = self._program.died()
        return None if died is None else f"it has ended ({died}) and has not connected"

    def _died(self) -> str | None:
        """Return how the program ended, if it should not have."""
        program = self._program
        if program is None:
            return "its address has no listener any more" if self._is_deserted else None
        if self._conditions.side == "server":
            return program.died()
        # A client may exit: after its game, when it refuses, or when its server disconnects.
        has_hung_up = self._has_hung_up or self._listening.has_hung_up
        is_crash = program.was_killed if has_hung_up else program.has_crashed
        return program.died() if is_crash else None

    async def _call(self, role: Role) -> int:
        """Open a connection to a role's server that belongs to no player, and return its number."""
        servers = self._way.servers.items()
        host, port = next(place for known, place in servers if known.server_key == role.server_key)
        number: int = await _PEERS[role.transport].call(self._peers, host, port)
        return number

    async def _is_greeted(self) -> bool | None:
        """Return True if the server sends a new client its usual messages.

        None if it does not accept the client, or disconnects without a message.
        """
        habits = self._conditions.habits
        connection = await self._newcomer_called()
        if connection is None:
            return None
        if habits.welcomes:
            await self._hear(connection, frozenset())
        is_to_answer = self._say_opening(connection) and habits.answers_newcomers
        if await self._hear(connection, habits.welcomes if is_to_answer else frozenset()):
            return True
        return None if connection in self._listening.ends and not self._names_said(connection) else False

    async def _learn_greeting(self) -> None:
        """Learn what the server sends to a new client, before and after the client's first message."""
        habits = self._conditions.habits
        connection = await self._newcomer_called()
        if connection is None:
            return
        await self._hear(connection, frozenset())
        habits.welcomes = self._names_said(connection)
        opening = self._say_opening(connection)
        is_answered = await self._hear(connection, habits.welcomes)
        habits.greets = bool(self._names_said(connection))
        # A message that does not answer it may be a coincidence.
        decoded = [self._conditions.dissector.decode(data, "c2s") for data in opening[:1]]
        rows = [each.row for each in decoded if each.row is not None]
        habits.answers_newcomers = is_answered and any(map(habits.is_answered, rows))

    def _say_opening(self, connection: int) -> tuple[bytes, ...]:
        """Send and return a new client's first messages; a record may have none."""
        opening = self._way.opening()
        for data in opening:
            self._peers.say(connection, data)
        return opening

    async def _newcomer_called(self) -> int | None:
        try:
            return await self._call(self._way.door)
        except PeerError as error:
            self._is_deserted = isinstance(error.__cause__, ConnectionRefusedError)
            return None

    async def _hear(self, connection: int, but: frozenset[str]) -> bool:
        """Wait for a message on a connection that is not named in `but`; return True if one arrived."""
        heard = self._names_said

        def is_over() -> bool:
            return not heard(connection) <= but or connection in self._listening.ends

        await self._actor.hear_until(time.monotonic() + self._conditions.wait_s, is_over)
        how = self._listening.ends.get(connection)
        self._is_deserted = how is not None and how.startswith(NOBODY_LISTENS)
        return not heard(connection) <= but

    def _names_said(self, connection: int) -> frozenset[str]:
        return frozenset(said.message for said in self._witness.said(connection))


class Listening(Playable):
    """A wrapper of a route that keeps how connections ended, and stops the route once it `is_enough`."""

    def __init__(
        self, way: Way, awaits_anybody: Callable[[], bool], why_over: Callable[[], str | None]
    ) -> None:
        self.ends: dict[int, str] = {}
        self.has_hung_up = False
        """True if the route has closed a connection."""
        self.is_enough: Callable[[], bool] = lambda: False
        self.has_come = False
        """True if a client has connected."""
        self.on_first: Callable[[], None] = lambda: None
        """Called when the first client connects."""
        self._way = way
        self._awaits_anybody = awaits_anybody
        self._why_over = why_over

    def actions(self) -> Iterator[Action]:
        for action in self._way.actions():
            if self.is_enough():
                return
            lost = self._why_over()
            if lost is not None:
                self._way.lost = lost
                return
            if isinstance(action, Listen) and self._awaits_anybody():
                # Check regularly if a client can still be expected.
                action = Rest(time.monotonic() + _LOOK_S)
            self.has_hung_up = self.has_hung_up or isinstance(action, Hang)
            yield action

    def accepted(self, connection: int, server: Role) -> None:
        if not self.has_come:
            self.has_come = True
            self.on_first()
        self._way.accepted(connection, server)

    def connected(self, connection: int, role: Role) -> None:
        self._way.connected(connection, role)

    def heard(self, connection: int, data: bytes) -> Reaction:
        return self._way.heard(connection, data)

    def ended(self, connection: int, how: str) -> Reaction:
        self.ends.setdefault(connection, how)
        return self._way.ended(connection, how)

    def overdue(self, listened: Listen) -> Reaction:
        return self._way.overdue(listened)
