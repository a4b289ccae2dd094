"""Simple players and hosts: what one side of a game says, message by message, for the way to a case's place.

They work on decoded messages, and have no socket and no clock: they are told what is heard and how late it is
(seconds), and asked what they say next. They play by the rules as the table knows them, and need not play
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

MAX_TURNS = 1000
"""So much may wait to be said; of a peer that asks more than that, the rest is left unanswered."""

# What a message of a peer raises that makes no sense where it comes.
_NONSENSE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, StopIteration)


class Say(msgspec.Struct, frozen=True):
    """Say a message; a host says it on the connection of this number."""

    name: str
    fields: dict[str, Any]
    to: int = 0


class Call(msgspec.Struct, frozen=True):
    """Hang up, and call the server at this address, as it was told (`127.0.0.1:7002`)."""

    url: str


class Hang(msgspec.Struct, frozen=True):
    """Hang up; a host does on the connection of this number."""

    to: int = 0


class Wait(msgspec.Struct, frozen=True):
    """Nothing is to be said until the peer speaks, or until this time (seconds) if there is one."""

    until: float | None = None


class Done(msgspec.Struct, frozen=True):
    """As much was played as was to be played, and nothing more is said."""


Act = Say | Call | Hang
Step = Act | Wait | Done


class Aim(msgspec.Struct, frozen=True):
    """The message before which a place is looked for: of this name, any if it is None, with fields that fit.

    Whoever else plays has the same aim, and leads to it as well as they can.
    """

    name: str | None
    fits: Callable[[Fields], bool] = lambda fields: True

    def is_met(self, act: Act) -> bool:
        """Whether this is such a message."""
        return isinstance(act, Say) and self.name in (None, act.name) and self.fits(act.fields)


class _Turn(msgspec.Struct, frozen=True):
    """Something to be done, one of several ways; an `optional` thing only where it is aimed at."""

    ways: tuple[Act, ...]
    optional: bool


class Side:
    """One side of a conversation: what it is told, and what it does next.

    `next` does nothing yet. `did` says that it was done, or that something else was in its place: so whoever
    plays it can stop just before a message and do what a case does there.
    """

    def __init__(self, seed: int = 1, games: int = 0) -> None:
        """It plays so many games, or for ever if that is 0."""
        self.random = random.Random(seed)
        self.now = 0.0
        self.games = 0
        """How many are over."""
        self._most_games = games
        self._turns: deque[_Turn] = deque()
        self._planned: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    @property
    def had_enough(self) -> bool:
        """Whether it has played as many games as it was to play."""
        return 0 < self._most_games <= self.games

    def ways(self, now: float) -> tuple[Act, ...]:
        """What could be done now, all of it right by the rules; what it would do by itself comes first."""
        self.now = max(self.now, now)
        while not self._turns and self._planned and self._planned[0][0] <= self.now:
            _, _, plan = heapq.heappop(self._planned)
            with suppress(*_NONSENSE):
                plan()
        return self._turns[0].ways if self._turns else ()

    def next(self, now: float, aim: Aim | None = None) -> Step:
        """What to do next: what is aimed at, if the rules allow it now, or else what leads there."""
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
        """What is to be done on a connection without waiting for the peer, if there is anything."""
        self.ways(now)
        for turn in self._turns:
            if not turn.optional and (isinstance(turn.ways[0], Call) or turn.ways[0].to == to):
                return turn.ways[0]
        return None

    def did(self, act: Act) -> None:
        """This was done of what could be done."""
        if self._turns:
            self._turns.popleft()
        if isinstance(act, Say):
            with suppress(*_NONSENSE):
                self._said(act)

    def _may(self, *ways: Act, optional: bool = False) -> None:
        """One of these is to be done, after what is to be done already."""
        if ways and len(self._turns) < MAX_TURNS:
            self._turns.append(_Turn(ways, optional))

    def _plan(self, seconds: float, plan: Callable[[], None]) -> None:
        """Think of something once so long has passed."""
        if len(self._planned) < MAX_TURNS:
            heapq.heappush(self._planned, (self.now + seconds, next(self._numbers), plan))

    def _said(self, said: Say) -> None:
        """What follows from having said something."""

    def _leads(self, aim: Aim, way: Say) -> bool:
        """Whether saying this leads to what is aimed at, sooner than what it would say by itself."""
        return False


class Player(Side, ABC):
    """Plays a client, on one connection at a time."""

    def __init__(self, name: str, seed: int = 1, games: int = 0) -> None:
        super().__init__(seed, games)
        self.name = name

    def connected(self, now: float) -> None:
        """The server is reached."""
        self.now = max(self.now, now)
        self._turns.clear()
        self._planned.clear()
        self._begin()

    def hear(self, name: str, fields: Fields, now: float) -> None:
        """The server has said something. What makes no sense here is left alone: the peer's faults are for
        others to find."""
        self.now = max(self.now, now)
        with suppress(*_NONSENSE):
            self._hear(name, fields)

    @abstractmethod
    def _begin(self) -> None:
        """A connection begins."""

    @abstractmethod
    def _hear(self, name: str, fields: Fields) -> None:
        """The server has said something."""

    def _say(self, name: str, /, **fields: Any) -> None:
        """There is one thing to be said."""
        self._may(Say(name, fields))

    def _choose(self, ways: Sequence[Say]) -> None:
        """Any of these, by chance."""
        self._may(*self.random.sample(ways, len(ways)))


class Host(Side, ABC):
    """Plays a server, for as many players as it is made for. Connections have numbers, which others give."""

    doors = 1
    """At so many addresses clients come to it."""

    url = ""
    """The last of them, where others send their players to."""

    def __init__(self, players: int, seed: int = 1, games: int = 0) -> None:
        """It begins once so many players are there."""
        super().__init__(seed, games)
        self.players = players

    def came(self, connection: int, now: float, door: int = 0) -> None:
        """A client has connected, at this one of the server's addresses."""
        self.now = max(self.now, now)
        self._came(connection, door)

    def hear(self, connection: int, name: str, fields: Fields, now: float) -> None:
        """A client has said something. What makes no sense here is left alone."""
        self.now = max(self.now, now)
        with suppress(*_NONSENSE):
            self._hear(connection, name, fields)

    def gone(self, connection: int, now: float) -> None:
        """A client's connection is over."""
        self.now = max(self.now, now)
        kept = (turn for turn in self._turns if not any(_goes_to(way, connection) for way in turn.ways))
        self._turns = deque(kept)
        self._gone(connection)

    @abstractmethod
    def _came(self, connection: int, door: int) -> None:
        """A client has connected."""

    @abstractmethod
    def _hear(self, connection: int, name: str, fields: Fields) -> None:
        """A client has said something."""

    @abstractmethod
    def _gone(self, connection: int) -> None:
        """A client's connection is over."""

    def _tell(self, to: int, name: str, /, **fields: Any) -> None:
        """Tell one client something."""
        self._may(Say(name, fields, to))


def _goes_to(act: Act, connection: int) -> bool:
    return not isinstance(act, Call) and act.to == connection


PlayerMaker = Callable[[str, int, int], Player]
"""Makes a player of a name, with a seed, for so many games."""

HostMaker = Callable[[int, int, int], Host]
"""Makes a host for so many players, with a seed, for so many games."""
