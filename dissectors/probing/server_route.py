"""A route to an injection point at a client: a simulated server runs the game, bots take the other seats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from kiebitz.dissectors.conformance import bots as play
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.probing.baseline import Habits
from kiebitz.dissectors.probing.routes import Address, Place
from kiebitz.dissectors.probing.simulated_route import Goal, Line, PlayedWay
from kiebitz.dissectors.probing.simulated_table import Company
from kiebitz.dissectors.replay.replay_peer import Action, Hang, Reaction
from kiebitz.dissectors.replay.script import Role


class HostWay(PlayedWay):
    """A route played by a simulated server and bots.

    The server listens at the given address and the ports that follow.
    """

    def __init__(
        self,
        dissector: Dissector,
        company: Company,
        address: Address,
        goal: Goal,
        habits: Habits,
        clock: Callable[[], float],
    ) -> None:
        super().__init__(dissector, "s2c", goal, habits, clock)
        self._company = company
        host, port = address
        self._doors = [self._role(number, (host, port + number)) for number in range(company.host.doors)]
        self.servers = {role: (host, port + number) for number, role in enumerate(self._doors)}
        self._door_of: dict[int, Role] = {}

    @property
    def door(self) -> Role:
        return self._doors[0]

    def opening(self) -> tuple[bytes, ...]:
        return ()

    # Actions.

    def _moves(self) -> Iterator[Action | Place]:
        aim = None if self._has_acted or self._begun is None else self._goal.aim
        while isinstance(step := self._company.next(self._clock(), aim), play.Hang | play.Say):
            self._company.did(step)
            if isinstance(step, play.Hang):
                self._leave(step.to)
                yield Hang(step.to, 0, True)
                return
            sent = self._said(step, step.to) if step.to in self._lines else None
            if self._is_skipped(step) or sent is None or self._is_mute(step.to):
                # It is not sent, and the step after it is due.
                continue
            if self._is_met(step):
                upcoming = self._company.host.upcoming(self._clock(), step.to)
                yield self._place(sent, upcoming, self._door_of[step.to])
            else:
                yield sent
            return

    def _until(self) -> float:
        step = self._company.next(self._clock())
        until = step.until if isinstance(step, play.Wait) else None
        return self._clock() + 1 if until is None else until

    @property
    def has_played(self) -> bool:
        return self._company.host.games > 0

    def _have_enough(self) -> bool:
        return self._company.host.had_enough

    # Input from the client.

    def moved(self, server: Role, address: str) -> None:
        if server is self._doors[-1]:
            self._company.host.url = address

    def accepted(self, connection: int, server: Role) -> None:
        if self._begun is None:
            self._begun = self._clock()
        index = next(number for number, role in enumerate(self._doors) if role.server_key == server.server_key)
        self._lines[connection] = Line(self._dissector, "c2s")
        self._door_of[connection] = self._doors[index]
        self._company.came(connection, self._clock(), index)

    def connected(self, connection: int, role: Role) -> None:
        """Ignore the call: a server opens no connections."""

    def ended(self, connection: int, how: str) -> Reaction:
        self._leave(connection)
        if not self._lines and not self._has_acted and self._goal.aim is not None and not self._is_moving():
            self.lost = f"the client {how}"
        return Reaction()

    def _is_moving(self) -> bool:
        """Return True if the client is moving from one listening address to the next."""
        return len(self._doors) > 1 and len(self._door_of) < len(self._doors)

    def _leave(self, connection: int) -> None:
        if self._lines.pop(connection, None) is not None:
            self._company.gone(connection, self._clock())

    def _hear(self, connection: int, name: str, fields: dict[str, Any]) -> None:
        self._company.hear(connection, name, fields, self._clock())
