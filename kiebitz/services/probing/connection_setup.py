"""The setup shared by test cases and baseline games: connections to the target, the route, and the recording.

We send data to the given address and nowhere else.

The targets of a test run that Kiebitz starts: one or more instances, each at a port of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial

import msgspec

from kiebitz.dissectors.conformance.expectations import INPUT_DIRECTION, TargetRole
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.inspection.inspector import DecodeAs
from kiebitz.dissectors.model import OPPOSITE, Item, Transport
from kiebitz.dissectors.probing.baseline import Baseline
from kiebitz.dissectors.probing.observer import Observer
from kiebitz.dissectors.probing.routes import Address, Route
from kiebitz.dissectors.replay.replay_peer import (
    AwaitPeer,
    CloseConnection,
    InputResult,
    PeerAction,
    SendBytes,
    WaitUntil,
)
from kiebitz.dissectors.replay.script import Script, StreamRole
from kiebitz.proxy.peers.connections import UNREACHABLE, PeerError, Peers
from kiebitz.proxy.peers.sockets import connect
from kiebitz.proxy.system.ports_in_use import is_in_use
from kiebitz.services.probing.program import FairClock, ProgramError, TargetProgram
from kiebitz.services.replay.peer_driver import DrivenPeer, PeerDriver
from kiebitz.storage.recording.recorder import COMMIT_EVERY_S, Recorder

_STEP_TIMEOUT_S = 5.0
"""Timeout in seconds for each step of a recorded route."""

_GREETING_PATIENCE = 3.0
"""Ratio of the time to wait for the answer to a new client, where one is usual, to the usual timeout."""

_CHECK_INTERVAL_S = 0.25


class ProbeSetup(msgspec.Struct, frozen=True):
    """The target and how it is probed.

    `target_role` is the target's role, `script` a recorded game to follow, which is tried first if it
    `is_like` the target's games; `wait_s` is the timeout for an answer in seconds. Observations of its usual
    behaviour are added to `baseline`. `program` is the target, if Kiebitz starts it; `clock` measures all
    timeouts of the target in seconds.
    """

    dissector: Dissector
    target_role: TargetRole
    address: Address
    script: Script | None
    is_like: bool
    wait_s: float
    baseline: Baseline
    program: TargetProgram | None = None
    clock: FairClock = msgspec.field(default_factory=FairClock)

    @property
    def decode_as(self) -> DecodeAs:
        """The protocol by port: the target's, or ours for a client."""
        return {(self.dissector.transport, self.address[1]): self.dissector}


class TargetSession:
    """The common base of a trial and a baseline game.

    Everything is recorded by `recorder`.
    """

    def __init__(self, route: Route, setup: ProbeSetup, recorder: Recorder) -> None:
        plays = INPUT_DIRECTION[setup.target_role]
        clock = setup.clock.time
        self._route = route
        self._clock = clock
        self._setup = setup
        self._recorder = recorder
        self._program = setup.program
        self._has_hung_up = False
        """True if the connection at whose injection point the case is tried has been closed for sending."""
        self._observer = Observer(setup.dissector, OPPOSITE[plays])
        self._peers = Peers(plays, recorder.stream_ids, self._on_item)
        self._monitor = RouteMonitor(route, self._awaits_client, self._why_no_client, clock)
        self._is_unreachable = False
        """True if the server's address has no listener any more."""
        # The route keeps its divergences itself.
        self._driver = PeerDriver(
            self._monitor, self._peers, route.servers, 0.0, _STEP_TIMEOUT_S, lambda divergence: None, clock
        )

    def _wait_s(self) -> float:
        """Return the timeout for an answer in seconds."""
        return self._setup.wait_s

    @property
    def is_responsive(self) -> bool:
        """True if the target has sent anything at all."""
        return self._observer.is_responsive

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

    @asynccontextmanager
    async def _timeout(self, seconds: float) -> AsyncIterator[asyncio.Timeout]:
        """Raise TimeoutError after a number of seconds of the clock; rescheduling it ends that."""
        async with asyncio.timeout(None) as timeout:
            watching = asyncio.create_task(self._expire(timeout, self._clock() + seconds))
            try:
                yield timeout
            finally:
                watching.cancel()

    async def _expire(self, timeout: asyncio.Timeout, due: float) -> None:
        while (left := due - self._clock()) > 0:
            await asyncio.sleep(left)
        if timeout.when() is None:
            timeout.reschedule(0)

    def _on_item(self, item: Item) -> None:
        self._recorder.record((item,))
        self._observer.feed(item)

    def _gather(self) -> None:
        self._observer.take_findings(self._recorder.gather())

    async def _write(self) -> None:
        while True:
            await asyncio.sleep(COMMIT_EVERY_S / 2)
            self._gather()
            self._recorder.write()

    async def _open(self) -> None:
        """For a client: listen as its server, then start the client if Kiebitz is to start it."""
        if self._setup.target_role == "server":
            return
        if self._program is not None:
            # It would reconnect before it is restarted.
            self._program.stop()
        for role, address in await self._driver.listen():
            self._route.server_moved(role, address)
        if self._program is not None:
            self._program.start()

    def _awaits_client(self) -> bool:
        """Return True if no client has connected yet."""
        return self._setup.target_role == "client" and not self._peers.streams

    def _why_no_client(self) -> str | None:
        """Return the reason why no client can be expected any more; None if one can, or is connected."""
        if not self._awaits_client() or self._program is None:
            return None
        died = self._program.died()
        return None if died is None else f"it has ended ({died}) and has not connected"

    def _died(self) -> str | None:
        """Return how the program ended, if it should not have."""
        program = self._program
        if program is None:
            return "its address has no listener any more" if self._is_unreachable else None
        if self._setup.target_role == "server":
            return program.died()
        # A client may exit: after its game, when it refuses, or when its server disconnects.
        has_hung_up = self._has_hung_up or self._monitor.has_hung_up
        is_crash = program.was_killed if has_hung_up else program.has_crashed
        return program.died() if is_crash else None

    async def _connect_to(self, role: StreamRole) -> int:
        """Open a connection to a role's server that belongs to no player, and return its number."""
        servers = self._route.servers.items()
        host, port = next(place for known, place in servers if known.server_key == role.server_key)
        return await connect(self._peers, role.transport, host, port)

    async def _is_greeting(self) -> bool | None:
        """Return True if the server sends a new client its usual messages.

        None if it does not accept the client, or disconnects without a message.
        """
        baseline = self._setup.baseline
        connection = await self._connect_newcomer()
        if connection is None:
            return None
        if baseline.greeting_messages:
            await self._await_message(connection, frozenset())
        is_to_answer = self._send_opening(connection) and baseline.answers_newcomers
        if await self._await_message(connection, baseline.greeting_messages if is_to_answer else frozenset()):
            return True
        return None if connection in self._monitor.ends and not self._names_received(connection) else False

    async def _learn_greeting(self) -> None:
        """Learn what the server sends to a new client, before and after the client's first message."""
        baseline = self._setup.baseline
        connection = await self._connect_newcomer()
        if connection is None:
            return
        await self._await_message(connection, frozenset())
        baseline.greeting_messages = self._names_received(connection)
        opening_messages = self._send_opening(connection)
        is_answered = await self._await_message(connection, baseline.greeting_messages)
        baseline.greets = bool(self._names_received(connection))
        # A message that does not answer it may be a coincidence.
        decoded = [self._setup.dissector.codec.decode(data, "c2s") for data in opening_messages[:1]]
        rows = [each.row for each in decoded if each.row is not None]
        baseline.answers_newcomers = is_answered and any(map(baseline.is_answered, rows))

    def _send_opening(self, connection: int) -> tuple[bytes, ...]:
        """Send and return a new client's first messages; a record may have none."""
        opening_messages = self._route.opening_messages()
        for data in opening_messages:
            self._peers.send(connection, data)
        return opening_messages

    async def _connect_newcomer(self) -> int | None:
        try:
            return await self._connect_to(self._route.newcomer_role)
        except PeerError as error:
            self._is_unreachable = isinstance(error.__cause__, ConnectionRefusedError)
            return None

    async def _await_message(self, connection: int, but: frozenset[str]) -> bool:
        """Wait for a message on a connection that is not named in `but`; return True if one arrived."""
        heard = self._names_received

        def is_over() -> bool:
            return not heard(connection) <= but or connection in self._monitor.ends

        baseline = self._setup.baseline
        # A busy server is not taken for one that has stopped: nothing confirms that without a restart.
        is_expected = bool(baseline.greeting_messages) or baseline.answers_newcomers
        wait_s = _GREETING_PATIENCE * self._setup.wait_s if is_expected else self._wait_s()
        await self._driver.receive_until(self._clock() + wait_s, is_over)
        how = self._monitor.ends.get(connection)
        self._is_unreachable = how is not None and how.startswith(UNREACHABLE)
        return not heard(connection) <= but

    def _names_received(self, connection: int) -> frozenset[str]:
        return frozenset(said.message for said in self._observer.received(connection))


class RouteMonitor(DrivenPeer):
    """A wrapper of a route that keeps how connections ended, and stops the route once it `is_enough`."""

    def __init__(
        self,
        route: Route,
        awaits_anybody: Callable[[], bool],
        why_over: Callable[[], str | None],
        clock: Callable[[], float],
    ) -> None:
        self.ends: dict[int, str] = {}
        self.has_hung_up = False
        """True if the route has closed a connection."""
        self.is_enough: Callable[[], bool] = lambda: False
        self.has_client = False
        """True if a client has connected."""
        self.on_first: Callable[[], None] = lambda: None
        """Called when the first client connects."""
        self.unfinished: set[int] = set()
        """The connections on which a message was sent in part: an answer now would be taken for its rest."""
        self._held_replies: list[SendBytes] = []
        self._route = route
        self._awaits_client = awaits_anybody
        self._why_over = why_over
        self._clock = clock

    def actions(self) -> Iterator[PeerAction]:
        for action in self._route.actions():
            if self.is_enough():
                return
            lost = self._why_over()
            if lost is not None:
                self._route.lost = lost
                return
            if isinstance(action, AwaitPeer) and self._awaits_client():
                # Check regularly if a client can still be expected.
                action = WaitUntil(self._clock() + _CHECK_INTERVAL_S)
            self.has_hung_up = self.has_hung_up or isinstance(action, CloseConnection)
            yield action

    def client_accepted(self, connection: int, server: StreamRole) -> None:
        if not self.has_client:
            self.has_client = True
            self.on_first()
        self._route.client_accepted(connection, server)

    def connected(self, connection: int, role: StreamRole) -> None:
        self._route.connected(connection, role)

    def data_received(self, connection: int, data: bytes) -> InputResult:
        reaction = self._route.data_received(connection, data)
        held = [reply for reply in reaction.replies if reply.connection in self.unfinished]
        self._held_replies += held
        due = tuple(reply for reply in reaction.replies if reply not in held)
        return InputResult(reaction.divergences, due) if held else reaction

    def release_replies(self) -> list[SendBytes]:
        """Return the held replies, after the messages were sent to their ends."""
        self.unfinished.clear()
        held, self._held_replies = self._held_replies, []
        return held

    def connection_ended(self, connection: int, how: str) -> InputResult:
        self.ends.setdefault(connection, how)
        return self._route.connection_ended(connection, how)

    def timed_out(self, listened: AwaitPeer) -> InputResult:
        return self._route.timed_out(listened)


PORT = "{port}"
"""Placeholder for the port in the command that starts a target."""

NEXT_PORT = "{port+1}"
"""Placeholder for the port after it, where the protocol has a second one."""

_PORTS_EACH = 10
"""Distance between the ports of two targets: some protocols use the next ports as well."""

_MAX_PORT = 65535


def targets(setup: ProbeSetup, command: str, count: int, folder: str | None = None) -> list[ProbeSetup]:
    """Return the setups of `count` targets that a command starts, the first at the address of `setup`.

    They share a baseline, and `folder` is their working folder. Raises ProgramError if there are not enough
    free ports.
    """
    found = []
    ports = _free_ports(setup.dissector.transport, setup.address[1])
    for _ in range(count):
        port = next(ports, None)
        if port is None:
            raise ProgramError(
                f"--jobs {count}: not enough free ports above {setup.address[1]}: use fewer jobs"
            )
        program = TargetProgram(
            command.replace(PORT, str(port)).replace(NEXT_PORT, str(port + 1)),
            setup.dissector.transport,
            port if setup.target_role == "server" else None,
            folder=folder,
        )
        clock = FairClock(partial(getattr, program, "number"))
        address = (setup.address[0], port)
        found.append(msgspec.structs.replace(setup, address=address, program=program, clock=clock))
    return found


def _free_ports(transport: Transport, first: int) -> Iterator[int]:
    """Yield the first port, which is in use perhaps, and then ports that are free with those after them."""
    yield first
    for port in range(first + _PORTS_EACH, _MAX_PORT - _PORTS_EACH, _PORTS_EACH):
        if not any(is_in_use(transport, each) for each in range(port, port + _PORTS_EACH)):
            yield port
