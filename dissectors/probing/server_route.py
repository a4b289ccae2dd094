"""A route to an injection point at a client: a simulated server runs the game, bots take the other seats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kiebitz.dissectors.conformance import bots as play
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.probing.baseline import Baseline
from kiebitz.dissectors.probing.routes import Address, InjectionPoint
from kiebitz.dissectors.probing.simulated_route import RouteGoal, SimulatedConnection, SimulatedRoute
from kiebitz.dissectors.probing.simulated_table import SimulatedTable
from kiebitz.dissectors.replay.replay_peer import CloseConnection, InputResult, PeerAction
from kiebitz.dissectors.replay.script import StreamRole


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
