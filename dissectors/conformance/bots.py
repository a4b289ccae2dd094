"""Bots and simulated servers: one side of a game, message by message, for the route to an injection point.

They work on decoded messages and have no socket and no clock: a driver reports received messages with the
time in seconds, and asks for the next step. They play by the rules as the table knows them, and need not play
well. The same seed plays the same game, as far as the peer does.
"""

from __future__ import annotations

import heapq
import random
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

import msgspec

Fields = Mapping[str, Any]

MOST_TURNS = 1000
"""Maximum number of pending messages; further questions of a peer are left unanswered."""

# Raised by a peer's message that makes no sense in its context.
_NONSENSE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, StopIteration)


class Say(msgspec.Struct, frozen=True):
    """Send a message; a server sends it on the connection of this number."""

    name: str
    fields: dict[str, Any]
    to: int = 0


class Call(msgspec.Struct, frozen=True):
    """Disconnect, and connect to the server at this address, in the form received (`127.0.0.1:7002`)."""

    url: str


class Hang(msgspec.Struct, frozen=True):
    """Disconnect; a server closes the connection of this number."""

    to: int = 0


class Wait(msgspec.Struct, frozen=True):
    """Wait for the peer, or until this time in seconds if there is one."""

    until: float | None = None


class Done(msgspec.Struct, frozen=True):
    """Stop: all games have been played."""


Act = Say | Call | Hang
Step = Act | Wait | Done


class Aim(msgspec.Struct, frozen=True):
    """The message to lead to: one of this name, any if it is None, with fields that fit.

    Every simulated peer gets the same target and leads to it as well as it can.
    """

    name: str | None
    fits: Callable[[Fields], bool] = lambda fields: True

    def is_met(self, act: Act) -> bool:
        """Return True if an action sends such a message."""
        return isinstance(act, Say) and self.name in (None, act.name) and self.fits(act.fields)


class _Turn(msgspec.Struct, frozen=True):
    """A pending action with its alternatives; an `optional` one is done only as a target."""

    ways: tuple[Act, ...]
    optional: bool


class Side:
    """One side of a conversation: it receives messages and chooses the next action.

    `next` has no effect yet. `did` confirms that the action, or a replacement, was carried out. So a driver
    can stop just before a message and inject a case there.
    """

    def __init__(self, seed: int = 1, games: int = 0) -> None:
        """Create a side that plays a number of games, or for ever if that is 0."""
        self.random = random.Random(seed)
        self.now = 0.0
        self.games = 0
        """Number of finished games."""
        self._most_games = games
        self._turns: deque[_Turn] = deque()
        self._planned: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    @property
    def had_enough(self) -> bool:
        """True if it has played all its games."""
        return 0 < self._most_games <= self.games

    def ways(self, now: float) -> tuple[Act, ...]:
        """Return all actions that the rules allow now; the one it would choose by itself comes first."""
        self.now = max(self.now, now)
        while not self._turns and self._planned and self._planned[0][0] <= self.now:
            _, _, plan = heapq.heappop(self._planned)
            with suppress(*_NONSENSE):
                plan()
        return self._turns[0].ways if self._turns else ()

    def next(self, now: float, aim: Aim | None = None) -> Step:
        """Return the next step: the target if the rules allow it now, else what leads to it."""
        while ways := self.ways(now):
            found = self._towards(aim, ways) if aim is not None else None
            if found is not None:
                return found
            if not self._turns[0].optional:
                return ways[0]
            self._turns.popleft()
        if self._planned:
            return Wait(self._planned[0][0])
        return Done() if self.had_enough else Wait()

    def _towards(self, aim: Aim, ways: Sequence[Act]) -> Act | None:
        met = next(filter(aim.is_met, ways), None)
        if met is not None:
            return met
        return next((way for way in ways if isinstance(way, Say) and self._leads(aim, way)), None)

    def upcoming(self, now: float, to: int = 0) -> Act | None:
        """Return the next action on a connection that need not wait for the peer, or None."""
        self.ways(now)
        for turn in self._turns:
            if not turn.optional and (isinstance(turn.ways[0], Call) or turn.ways[0].to == to):
                return turn.ways[0]
        return None

    def did(self, act: Act) -> None:
        """Confirm that an action was carried out."""
        if self._turns:
            self._turns.popleft()
        if isinstance(act, Say):
            with suppress(*_NONSENSE):
                self._said(act)

    def _may(self, *ways: Act, optional: bool = False) -> None:
        """Queue one action, given with its alternatives."""
        if ways and len(self._turns) < MOST_TURNS:
            self._turns.append(_Turn(ways, optional))

    def _plan(self, seconds: float, plan: Callable[[], None]) -> None:
        """Schedule a call after a number of seconds."""
        if len(self._planned) < MOST_TURNS:
            heapq.heappush(self._planned, (self.now + seconds, next(self._numbers), plan))

    def _said(self, said: Say) -> None:
        """Update the state after sending a message."""

    def _leads(self, aim: Aim, way: Say) -> bool:
        """Return True if this message leads to the target sooner than the default one."""
        return False


class Player(Side, ABC):
    """A simulated client, with one connection at a time."""

    def __init__(self, name: str, seed: int = 1, games: int = 0) -> None:
        super().__init__(seed, games)
        self.name = name

    def connected(self, now: float) -> None:
        """Begin a conversation on an established connection."""
        self.now = max(self.now, now)
        self._turns.clear()
        self._planned.clear()
        self._begin()

    def hear(self, name: str, fields: Fields, now: float) -> None:
        """Process a message of the server.

        A message that makes no sense here is ignored: finding the peer's violations is not a bot's task.
        """
        self.now = max(self.now, now)
        with suppress(*_NONSENSE):
            self._hear(name, fields)

    @abstractmethod
    def _begin(self) -> None:
        """Queue the first messages of a connection."""

    @abstractmethod
    def _hear(self, name: str, fields: Fields) -> None:
        """Process a message of the server."""

    def _say(self, name: str, /, **fields: Any) -> None:
        """Queue a message."""
        self._may(Say(name, fields))

    def _choose(self, ways: Sequence[Say]) -> None:
        """Queue one of these messages in random order of preference."""
        self._may(*self.random.sample(ways, len(ways)))


class Host(Side, ABC):
    """A simulated server for a fixed number of players; its driver numbers the connections."""

    doors = 1
    """Number of addresses at which it accepts clients."""

    url = ""
    """The last of these addresses, to which the others redirect their clients."""

    def __init__(self, players: int, seed: int = 1, games: int = 0) -> None:
        """Create a server that begins once this number of players is connected."""
        super().__init__(seed, games)
        self.players = players

    def came(self, connection: int, now: float, door: int = 0) -> None:
        """Register a client's connection to this one of the server's addresses."""
        self.now = max(self.now, now)
        self._came(connection, door)

    def hear(self, connection: int, name: str, fields: Fields, now: float) -> None:
        """Process a client's message; one that makes no sense here is ignored."""
        self.now = max(self.now, now)
        with suppress(*_NONSENSE):
            self._hear(connection, name, fields)

    def gone(self, connection: int, now: float) -> None:
        """Process the end of a client's connection."""
        self.now = max(self.now, now)
        kept = (turn for turn in self._turns if not any(_goes_to(way, connection) for way in turn.ways))
        self._turns = deque(kept)
        self._gone(connection)

    @abstractmethod
    def _came(self, connection: int, door: int) -> None:
        """Register a client's connection."""

    @abstractmethod
    def _hear(self, connection: int, name: str, fields: Fields) -> None:
        """Process a client's message."""

    @abstractmethod
    def _gone(self, connection: int) -> None:
        """Process the end of a client's connection."""

    def _tell(self, to: int, name: str, /, **fields: Any) -> None:
        """Queue a message to one client."""
        self._may(Say(name, fields, to))


def _goes_to(act: Act, connection: int) -> bool:
    return not isinstance(act, Call) and act.to == connection


PlayerMaker = Callable[[str, int, int], Player]
"""Creates a bot from its name, seed and number of games."""

HostMaker = Callable[[int, int, int], Host]
"""Creates a simulated server from its number of players, seed and number of games."""
