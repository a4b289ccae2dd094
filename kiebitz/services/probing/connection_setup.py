"""Where a program is met: our connections to it, the way that is gone, and the recording of both.

What we say goes to the address that was given, and nowhere else.
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
from kiebitz.proxy.peers.connections import UNREACHABLE, PeerError, Peers
from kiebitz.services.probing.program import Program
from kiebitz.services.replay.peer_driver import Actor
from kiebitz.storage.recording.recorder import COMMIT_EVERY_S, Recorder

_REACH_S = 5.0
"""So long a peer may take for each thing on a recorded way."""

_LOOK_S = 0.25

_PEERS = {"tcp": peers_tcp, "udp": peers_udp}


class Conditions(msgspec.Struct, frozen=True):
    """Where and how a program is probed: `side` is which it is, `script` a recorded game to go by, which
    comes first if it `is_like` the program; an answer is waited for `wait_s` seconds. What is seen of the
    program goes into `habits`."""

    dissector: Dissector
    side: Side
    address: Address
    script: Script | None
    is_like: bool
    wait_s: float
    habits: Habits

    @property
    def decode_as(self) -> DecodeAs:
        """The protocol of the program's ports, or of ours."""
        return {(self.dissector.transport, self.address[1]): self.dissector}


class Stage:
    """What a case and a game have in common. What happens is recorded by `recorder`; `program` is the peer,
    if it is ours to start."""

    def __init__(self, way: Way, conditions: Conditions, recorder: Recorder, program: Program | None) -> None:
        plays = HEARS[conditions.side]
        self._way = way
        self._conditions = conditions
        self._recorder = recorder
        self._program = program
        self._has_hung_up = False
        """Whether the one at whose place a case is tried says nothing any more."""
        self._witness = Witness(conditions.dissector, OPPOSITE[plays])
        self._peers = Peers(plays, recorder.stream_ids, self._on_item)
        self._listening = Listening(way, self._awaits_anybody, self._why_nobody_comes)
        self._is_deserted = False
        """Whether nobody listens any more where the server is to be."""
        self._actor = Actor(self._listening, self._peers, way.servers, 0.0, _REACH_S, self._on_divergence)

    @property
    def is_heard(self) -> bool:
        """Whether the peer has said anything at all."""
        return self._witness.is_heard

    @asynccontextmanager
    async def _recorded(self) -> AsyncIterator[None]:
        """Write what happens from time to time; in the end all connections are over."""
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
        """The way itself takes note of it."""

    def _gather(self) -> None:
        self._witness.take(self._recorder.gather())

    async def _write(self) -> None:
        while True:
            await asyncio.sleep(COMMIT_EVERY_S / 2)
            self._gather()
            self._recorder.write()

    async def _open(self) -> None:
        """Be the server for a client, which is started then if it is ours to start."""
        if self._conditions.side == "server":
            return
        if self._program is not None:
            # It would come back before it is started anew.
            self._program.stop()
        for role, address in await self._actor.listen():
            self._way.moved(role, address)
        if self._program is not None:
            self._program.start()

    def _awaits_anybody(self) -> bool:
        """Whether no client has come yet."""
        return self._conditions.side == "client" and not self._peers.streams

    def _why_nobody_comes(self) -> str | None:
        """Why it is of no use to wait for the client any longer; None if it is, or if it is there."""
        if not self._awaits_anybody() or self._program is None:
            return None
        died = self._program.died()
        return None if died is None else f"it has ended ({died}) and has not called"

    def _died(self) -> str | None:
        """How the program has ended, if it was not to end."""
        program = self._program
        if program is None:
            return "nobody listens at its address any more" if self._is_deserted else None
        if self._conditions.side == "server":
            return program.died()
        # A client may well end: after its game, where it refuses, or where its server hangs up.
        has_hung_up = self._has_hung_up or self._listening.has_hung_up
        is_crash = program.was_killed if has_hung_up else program.has_crashed
        return program.died() if is_crash else None

    async def _call(self, role: Role) -> int:
        """A new connection to a role's server, which is nobody's."""
        servers = self._way.servers.items()
        host, port = next(place for known, place in servers if known.server_key == role.server_key)
        number: int = await _PEERS[role.transport].connect(self._peers, host, port)
        return number

    async def _is_greeted(self) -> bool | None:
        """Whether the server says to a new client what it has always said; None if it lets it not in, or
        hangs up without a word."""
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
        """See what the server says to a new client, before and after that says something."""
        habits = self._conditions.habits
        connection = await self._newcomer_called()
        if connection is None:
            return
        await self._hear(connection, frozenset())
        habits.welcomes = self._names_said(connection)
        opening = self._say_opening(connection)
        is_answered = await self._hear(connection, habits.welcomes)
        habits.greets = bool(self._names_said(connection))
        # What is no answer to it may come by chance.
        decoded = [self._conditions.dissector.codec.decode(data, "c2s") for data in opening[:1]]
        rows = [each.row for each in decoded if each.row is not None]
        habits.answers_newcomers = is_answered and any(map(habits.is_answered, rows))

    def _say_opening(self, connection: int) -> tuple[bytes, ...]:
        """Say what a new client says first, and give it; a record may have nothing that can be said."""
        opening = self._way.opening()
        for data in opening:
            self._peers.send(connection, data)
        return opening

    async def _newcomer_called(self) -> int | None:
        try:
            return await self._call(self._way.door)
        except PeerError as error:
            self._is_deserted = isinstance(error.__cause__, ConnectionRefusedError)
            return None

    async def _hear(self, connection: int, but: frozenset[str]) -> bool:
        """Wait until the peer says something on a connection `but` for messages of these names; whether it
        did."""
        heard = self._names_said

        def is_over() -> bool:
            return not heard(connection) <= but or connection in self._listening.ends

        await self._actor.hear_until(time.monotonic() + self._conditions.wait_s, is_over)
        how = self._listening.ends.get(connection)
        self._is_deserted = how is not None and how.startswith(UNREACHABLE)
        return not heard(connection) <= but

    def _names_said(self, connection: int) -> frozenset[str]:
        return frozenset(said.message for said in self._witness.said(connection))


class Listening:
    """A way, of which it is kept how connections have ended; it is over as soon as it `is_enough`."""

    def __init__(
        self, way: Way, awaits_anybody: Callable[[], bool], why_over: Callable[[], str | None]
    ) -> None:
        self.ends: dict[int, str] = {}
        self.has_hung_up = False
        """Whether it was the way to hang up on somebody."""
        self.is_enough: Callable[[], bool] = lambda: False
        self.has_come = False
        """Whether a client has come."""
        self.on_first: Callable[[], None] = lambda: None
        """What is to be done when the first one comes."""
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
                # Meanwhile it is looked whether somebody still may come.
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
