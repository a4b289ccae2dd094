"""A simulated server together with bots, which take all seats but that of the client under test.

Their own conversation uses no connection: only messages to the client under test leave it.
"""

from __future__ import annotations

from collections.abc import Sequence

from kiebitz.dissectors.conformance.bots import (
    Bot,
    BotStep,
    Disconnect,
    Done,
    Fields,
    Reconnect,
    SendMessage,
    SimulatedServer,
    TargetMessage,
    Wait,
)

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
