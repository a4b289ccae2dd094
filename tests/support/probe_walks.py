"""A simulated path to a case's injection point, at a server of `peers/` in memory, without delays."""

from __future__ import annotations

from functools import cache

from games_in_memory import server_of
from make_samples import SEATS, sample_path
from peers.bench import FIRST_PORT, Bench, Seat

from kiebitz.dissectors.model import port_of
from kiebitz.dissectors.probing.routes import InjectionPoint, Route
from kiebitz.dissectors.replay.replay_peer import (
    AwaitPeer,
    CloseConnection,
    OpenConnection,
    SendBytes,
    WaitUntil,
)
from kiebitz.dissectors.replay.script import Script
from kiebitz.services.probing.route_selection import script_in

STEP_S = 0.05
MOST_STEPS = 100
"""Maximum number of waits for a server."""


@cache
def sample(protocol: str) -> Script:
    """Return the game of a protocol that comes with Kiebitz."""
    return script_in(str(sample_path(protocol)))


def bench_of(protocol: str, seed: int = 1, fault: str = "") -> Bench:
    """Return a server of the kind that has played the sample; of another seed it plays another game."""
    return Bench(server_of(protocol, fault, seed=seed, players=SEATS[protocol]))


class Walk:
    """A way, gone at a bench."""

    def __init__(self, route: Route, bench: Bench) -> None:
        self.route = route
        self._bench = bench
        self._seats: dict[int, Seat] = {}
        self._told: dict[int, int] = {}
        """Number of received messages that the path knows, by connection."""

    def go(self, seconds: float = 150) -> InjectionPoint | None:
        """Go to the next injection point or, after the acts, to their end, within this simulated time."""
        steps = 0
        end = self._bench.now + seconds
        for action in self.route.actions():
            if isinstance(action, OpenConnection):
                seat = self._bench.connect(door=port_of(action.role.server) - FIRST_PORT)
                number = len(self._seats) + 1
                self._seats[number], self._told[number] = seat, 0
                self.route.connected(number, action.role)
            elif isinstance(action, SendBytes):
                self.say(action.connection, action.data)
            elif isinstance(action, CloseConnection):
                self._bench.half_close(self._seats[action.connection])
            elif isinstance(action, WaitUntil):
                self._bench.run(min(max(action.until - self._bench.now, 0.001), STEP_S))
                if self._bench.now > end:
                    return self.route.point
            elif not self._notify() and isinstance(action, AwaitPeer):
                steps += 1
                self._bench.run(STEP_S)
                if steps > MOST_STEPS:
                    self.route.timed_out(action)
                    if self.route.continued_normally or self.route.point is not None:
                        return self.route.point
            self._notify()
        return self.route.point

    def say(self, connection: int, data: bytes) -> None:
        """Send on a connection."""
        self._bench.say(self._seats[connection], data)
        self._notify()

    def _notify(self) -> bool:
        was_any = False
        for number, seat in self._seats.items():
            while self._told[number] < len(seat.heard):
                data = seat.heard[self._told[number]]
                self._told[number] += 1
                was_any = True
                for reply in self.route.data_received(number, data).replies:
                    self._bench.say(self._seats[reply.connection], reply.data)
        return was_any
