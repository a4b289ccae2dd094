"""A simulated server together with bots, which take the seats besides that of the client under test.

Their own conversation uses no connection: only messages to the client under test leave it.
"""

from __future__ import annotations

from collections.abc import Sequence

from kiebitz.dissectors.conformance.bots import (
    Aim,
    Call,
    Done,
    Fields,
    Hang,
    Host,
    Player,
    Say,
    Step,
    Wait,
)

_MOST_STEPS = 100_000
"""Maximum number of messages per step; beyond it the simulation is assumed to loop."""


class Company:
    """A simulated server with its bots.

    The bots have connections with negative numbers; clients from outside have zero or positive ones.
    """

    def __init__(self, host: Host, players: Sequence[Player]) -> None:
        self.host = host
        self._players = [*players]
        self._at: dict[int, Player] = {}
        self._last = 0

    def came(self, connection: int, now: float, door: int = 0) -> None:
        """Register a client's connection."""
        if not self._at:
            for player in self._players:
                self._connect(player, now, 0)
        self.host.came(connection, now, door)

    def hear(self, connection: int, name: str, fields: Fields, now: float) -> None:
        """Process a client's message."""
        self.host.hear(connection, name, fields, now)

    def gone(self, connection: int, now: float) -> None:
        """Process the end of a client's connection."""
        self.host.gone(connection, now)

    def next(self, now: float, aim: Aim | None = None) -> Step:
        """Return the next step for clients from outside; see `Side.next`."""
        for _ in range(_MOST_STEPS):
            step = self.host.next(now, aim)
            if isinstance(step, Say | Hang):
                if step.to >= 0:
                    return step
                self._deliver(step, now)
            else:
                spoke = [self._speak(connection, now, aim) for connection in [*self._at]]
                if True not in spoke:
                    return self._idle(step, now)
        return Done()

    def did(self, step: Say | Hang) -> None:
        """Confirm that a step returned by `next` was carried out."""
        self.host.did(step)

    def _connect(self, player: Player, now: float, door: int) -> None:
        self._last -= 1
        self._at[self._last] = player
        self.host.came(self._last, now, door)
        player.connected(now)

    def _deliver(self, step: Say | Hang, now: float) -> None:
        """Deliver a step of the server to one of the bots."""
        self.host.did(step)
        player = self._at.get(step.to)
        if player is None:
            return
        if isinstance(step, Say):
            player.hear(step.name, step.fields, now)
        else:
            del self._at[step.to]
            self.host.gone(step.to, now)

    def _speak(self, connection: int, now: float, aim: Aim | None) -> bool:
        """Deliver one step of a bot to the server; return True if there was one."""
        player = self._at.get(connection)
        step = player.next(now, aim) if player is not None else None
        if player is None or step is None or isinstance(step, Wait | Done):
            return False
        player.did(step)
        if isinstance(step, Say):
            self.host.hear(connection, step.name, step.fields, now)
            return True
        del self._at[connection]
        self.host.gone(connection, now)
        if isinstance(step, Call):
            self._connect(player, now, 1)
        return True

    def _idle(self, step: Step, now: float) -> Step:
        """Return the shortest of all waits."""
        steps = [step, *(player.next(now) for player in self._at.values())]
        times = [each.until for each in steps if isinstance(each, Wait) and each.until is not None]
        if times:
            return Wait(min(times))
        return step
