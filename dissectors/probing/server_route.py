"""A route to an injection point at a client: a simulated server runs the game, bots take the other seats.

Their own conversation uses no connection: only messages to the client under test leave it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from kiebitz.dissectors.conformance import bots as play
from kiebitz.dissectors.conformance.bots import (
    Bot,
    BotStep,
    Disconnect,
    Done,
    Reconnect,
    SendMessage,
    SimulatedServer,
    TargetMessage,
    Wait,
)
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.probing.baseline import Baseline
from kiebitz.dissectors.probing.routes import Address, InjectionPoint
from kiebitz.dissectors.probing.simulated_route import RouteGoal, SimulatedConnection, SimulatedRoute
from kiebitz.dissectors.replay.replay_peer import CloseConnection, InputResult, PeerAction
from kiebitz.dissectors.replay.script import StreamRole

_MAX_STEPS = 100_000
"""Maximum number of messages per step; beyond it the simulation is assumed to loop."""


class SimulatedTable:
    """A simulated server with its bots.

    The bots have connections with negative numbers; clients from outside have zero or positive ones.
    """

    def __init__(self, host: SimulatedServer, players: Sequence[Bot]) -> None:
        self.host = host
        self._players = [*players]
        self._at: dict[int, Bot] = {}
        self._last = 0

    def client_connected(self, connection: int, now: float, address_index: int = 0) -> None:
        """Register a client's connection."""
        if not self._at:
            for player in self._players:
                self._connect(player, now, 0)
        self.host.client_connected(connection, now, address_index)

    def receive(self, connection: int, name: str, fields: Fields, now: float) -> None:
        """Process a client's message."""
        self.host.receive(connection, name, fields, now)

    def client_disconnected(self, connection: int, now: float) -> None:
        """Process the end of a client's connection."""
        self.host.client_disconnected(connection, now)

    def next(self, now: float, target_message: TargetMessage | None = None) -> BotStep:
        """Return the next step for clients from outside; see `SimulatedPeer.next`."""
        for _ in range(_MAX_STEPS):
            step = self.host.next(now, target_message)
            if isinstance(step, SendMessage | Disconnect):
                if step.to >= 0:
                    return step
                self._deliver(step, now)
            else:
                spoke = [self._step_bot(connection, now, target_message) for connection in [*self._at]]
                if True not in spoke:
                    return self._idle(step, now)
        return Done()

    def confirm(self, step: SendMessage | Disconnect) -> None:
        """Confirm that a step returned by `next` was carried out."""
        self.host.confirm(step)

    def _connect(self, player: Bot, now: float, address_index: int) -> None:
        self._last -= 1
        self._at[self._last] = player
        self.host.client_connected(self._last, now, address_index)
        player.connected(now)

    def _deliver(self, step: SendMessage | Disconnect, now: float) -> None:
        """Deliver a step of the server to one of the bots."""
        self.host.confirm(step)
        player = self._at.get(step.to)
        if player is None:
            return
        if isinstance(step, SendMessage):
            player.receive(step.name, step.fields, now)
        else:
            del self._at[step.to]
            self.host.client_disconnected(step.to, now)

    def _step_bot(self, connection: int, now: float, target_message: TargetMessage | None) -> bool:
        """Deliver one step of a bot to the server; return True if there was one."""
        player = self._at.get(connection)
        step = player.next(now, target_message) if player is not None else None
        if player is None or step is None or isinstance(step, Wait | Done):
            return False
        player.confirm(step)
        if isinstance(step, SendMessage):
            self.host.receive(connection, step.name, step.fields, now)
            return True
        del self._at[connection]
        self.host.client_disconnected(connection, now)
        if isinstance(step, Reconnect):
            self._connect(player, now, 1)
        return True

    def _idle(self, step: BotStep, now: float) -> BotStep:
        """Return the shortest of all waits."""
        steps = [step, *(player.next(now) for player in self._at.values())]
        times = [each.until for each in steps if isinstance(each, Wait) and each.until is not None]
        if times:
            return Wait(min(times))
        return step


class ServerRoute(SimulatedRoute):
    """A route played by a simulated server and bots.

    The server listens at the given address and the ports that follow.
    """

    def __init__(
        self,
        dissector: Dissector,
        table: SimulatedTable,
        address: Address,
        goal: RouteGoal,
        baseline: Baseline,
        clock: Callable[[], float],
    ) -> None:
        super().__init__(dissector, "s2c", goal, baseline, clock)
        self._table = table
        host, port = address
        self._server_roles = [
            self._role(number, (host, port + number)) for number in range(table.host.address_count)
        ]
        self.servers = {role: (host, port + number) for number, role in enumerate(self._server_roles)}
        self._server_role_of: dict[int, StreamRole] = {}

    @property
    def newcomer_role(self) -> StreamRole:
        return self._server_roles[0]

    def opening_messages(self) -> tuple[bytes, ...]:
        return ()

    # Actions.

    def _next_actions(self) -> Iterator[PeerAction | InjectionPoint]:
        target_message = None if self._has_acted or self._begun is None else self._goal.target_message
        while isinstance(
            step := self._table.next(self._clock(), target_message), play.Disconnect | play.SendMessage
        ):
            self._table.confirm(step)
            if isinstance(step, play.Disconnect):
                self._leave(step.to)
                yield CloseConnection(step.to, 0, True)
                return
            sent = self._to_send(step, step.to) if step.to in self._lines else None
            if self._is_skipped(step) or sent is None or self._is_mute(step.to):
                # It is not sent, and the step after it is due.
                continue
            upcoming = self._table.host.upcoming(self._clock(), step.to)
            self._learn_pace(step, step.to, upcoming)
            if self._is_target(step):
                yield self._point_at(sent, upcoming, self._server_role_of[step.to])
            else:
                yield sent
            return

    def _wait_until(self) -> float:
        step = self._table.next(self._clock())
        until = step.until if isinstance(step, play.Wait) else None
        return self._clock() + 1 if until is None else until

    @property
    def offered(self) -> frozenset[str]:
        return frozenset(self._table.host.offered)

    @property
    def has_finished_game(self) -> bool:
        return self._table.host.games > 0

    def _all_finished(self) -> bool:
        return self._table.host.is_finished

    # Input from the client.

    def server_moved(self, server: StreamRole, address: str) -> None:
        if server is self._server_roles[-1]:
            self._table.host.url = address

    def client_accepted(self, connection: int, server: StreamRole) -> None:
        if self._begun is None:
            self._begun = self._clock()
        index = next(
            number for number, role in enumerate(self._server_roles) if role.server_key == server.server_key
        )
        self._lines[connection] = SimulatedConnection(self._dissector, "c2s")
        self._server_role_of[connection] = self._server_roles[index]
        self._table.client_connected(connection, self._clock(), index)

    def connected(self, connection: int, role: StreamRole) -> None:
        """Ignore the call: a server opens no connections."""

    def connection_ended(self, connection: int, how: str) -> InputResult:
        self._leave(connection)
        if (
            not self._lines
            and not self._has_acted
            and self._goal.target_message is not None
            and not self._is_moving()
        ):
            self.lost = f"the client {how}"
        return InputResult()

    def _is_moving(self) -> bool:
        """Return True if the client is moving from one listening address to the next."""
        return len(self._server_roles) > 1 and len(self._server_role_of) < len(self._server_roles)

    def _leave(self, connection: int) -> None:
        if self._lines.pop(connection, None) is not None:
            self._table.client_disconnected(connection, self._clock())

    def _receive(self, connection: int, name: str, fields: dict[str, Any]) -> None:
        self._table.receive(connection, name, fields, self._clock())
