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
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.field_type import Fields

MAX_PENDING = 1000
"""Maximum number of pending messages; further questions of a peer are left unanswered."""


class SendMessage(msgspec.Struct, frozen=True):
    """Send a message; a server sends it on the connection of this number."""

    name: str
    fields: dict[str, Any]
    to: int = 0


class Reconnect(msgspec.Struct, frozen=True):
    """Disconnect, and connect to the server at this address, in the form received (`127.0.0.1:7002`)."""

    url: str


class Disconnect(msgspec.Struct, frozen=True):
    """Disconnect; a server closes the connection of this number."""

    to: int = 0


class Wait(msgspec.Struct, frozen=True):
    """Wait for the peer, or until this time in seconds if there is one."""

    until: float | None = None


class Done(msgspec.Struct, frozen=True):
    """Stop: all games have been played."""


BotAction = SendMessage | Reconnect | Disconnect
BotStep = BotAction | Wait | Done


class TargetMessage(msgspec.Struct, frozen=True):
    """The message to lead to: one of this name, any if it is None, with fields that fit.

    Every simulated peer gets the same target and leads to it as well as it can.
    """

    name: str | None
    fits: Callable[[Fields], bool] = lambda fields: True

    def matches(self, act: BotAction) -> bool:
        """Return True if an action sends such a message."""
        return isinstance(act, SendMessage) and self.name in (None, act.name) and self.fits(act.fields)


class _PendingAction(msgspec.Struct, frozen=True):
    """A pending action with its alternatives; an `optional` one is done only as a target."""

    choices: tuple[BotAction, ...]
    optional: bool


class SimulatedPeer:
    """A simulated client or server: it receives messages and chooses the next action.

    `next` has no effect yet. `confirm` confirms that the action, or a replacement, was carried out. So a
    driver can stop just before a message and inject a case there.
    """

    ignored_errors: tuple[type[Exception], ...] = (
        *(LookupError, TypeError, ValueError),
        *(AttributeError, ArithmeticError, StopIteration),
    )
    """Exceptions that a peer's message raises if it makes no sense in its context."""

    def __init__(self, seed: int = 1, games: int = 0) -> None:
        """Create a side that plays a number of games, or for ever if that is 0."""
        self.random = random.Random(seed)
        self.now = 0.0
        self.games = 0
        """Number of finished games."""
        self.offered: set[str] = set()
        """The names of all messages that it could have sent so far."""
        self._max_games = games
        self._pending: deque[_PendingAction] = deque()
        self._scheduled: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    @property
    def is_finished(self) -> bool:
        """True if it has played all its games."""
        return 0 < self._max_games <= self.games

    def choices(self, now: float) -> tuple[BotAction, ...]:
        """Return all actions that the rules allow now; the one it would choose by itself comes first."""
        self.now = max(self.now, now)
        while not self._pending and self._scheduled and self._scheduled[0][0] <= self.now:
            _, _, plan = heapq.heappop(self._scheduled)
            with suppress(*self.ignored_errors):
                plan()
        return self._pending[0].choices if self._pending else ()

    def next(self, now: float, target_message: TargetMessage | None = None) -> BotStep:
        """Return the next step: the target if the rules allow it now, else what leads to it."""
        while choices := self.choices(now):
            found = self._choose_towards(target_message, choices) if target_message is not None else None
            if found is not None:
                return found
            if not self._pending[0].optional:
                return choices[0]
            self._pending.popleft()
        if self._scheduled:
            return Wait(self._scheduled[0][0])
        return Done() if self.is_finished else Wait()

    def _choose_towards(
        self, target_message: TargetMessage, choices: Sequence[BotAction]
    ) -> BotAction | None:
        met = next(filter(target_message.matches, choices), None)
        if met is not None:
            return met
        return next(
            (
                choice
                for choice in choices
                if isinstance(choice, SendMessage) and self._leads_to(target_message, choice)
            ),
            None,
        )

    def upcoming(self, now: float, to: int = 0) -> BotAction | None:
        """Return the next action on a connection that need not wait for the peer, or None."""
        self.choices(now)
        for pending in self._pending:
            if not pending.optional and (
                isinstance(pending.choices[0], Reconnect) or pending.choices[0].to == to
            ):
                return pending.choices[0]
        return None

    def confirm(self, act: BotAction) -> None:
        """Confirm that an action was carried out."""
        if self._pending:
            self._pending.popleft()
        if isinstance(act, SendMessage):
            with suppress(*self.ignored_errors):
                self._on_sent(act)

    def _queue(self, *choices: BotAction, optional: bool = False) -> None:
        """Queue one action, given with its alternatives."""
        if choices and len(self._pending) < MAX_PENDING:
            self._pending.append(_PendingAction(choices, optional))
            self.offered.update(choice.name for choice in choices if isinstance(choice, SendMessage))

    def _schedule(self, seconds: float, plan: Callable[[], None]) -> None:
        """Schedule a call after a number of seconds."""
        if len(self._scheduled) < MAX_PENDING:
            heapq.heappush(self._scheduled, (self.now + seconds, next(self._numbers), plan))

    def _on_sent(self, sent: SendMessage) -> None:
        """Update the state after sending a message."""

    def _leads_to(self, target_message: TargetMessage, choice: SendMessage) -> bool:
        """Return True if this message leads to the target sooner than the default one."""
        return False


class Bot(SimulatedPeer, ABC):
    """A simulated client, with one connection at a time."""

    def __init__(self, name: str, seed: int = 1, games: int = 0) -> None:
        super().__init__(seed, games)
        self.name = name

    def connected(self, now: float) -> None:
        """Begin a conversation on an established connection."""
        self.now = max(self.now, now)
        self._pending.clear()
        self._scheduled.clear()
        self._begin()

    def receive(self, name: str, fields: Fields, now: float) -> None:
        """Process a message of the server.

        A message that makes no sense here is ignored: finding the peer's violations is not a bot's task.
        """
        self.now = max(self.now, now)
        with suppress(*self.ignored_errors):
            self._receive(name, fields)

    @abstractmethod
    def _begin(self) -> None:
        """Queue the first messages of a connection."""

    @abstractmethod
    def _receive(self, name: str, fields: Fields) -> None:
        """Process a message of the server."""

    def _send(self, name: str, /, **fields: Any) -> None:
        """Queue a message."""
        self._queue(SendMessage(name, fields))

    def _queue_any(self, choices: Sequence[SendMessage]) -> None:
        """Queue one of these messages in random order of preference."""
        self._queue(*self.random.sample(choices, len(choices)))


class SimulatedServer(SimulatedPeer, ABC):
    """A simulated server for a fixed number of players; its driver numbers the connections."""

    address_count = 1
    """Number of addresses at which it accepts clients."""

    url = ""
    """The last of these addresses, to which the others redirect their clients."""

    def __init__(self, players: int, seed: int = 1, games: int = 0) -> None:
        """Create a server that begins once this number of players is connected."""
        super().__init__(seed, games)
        self.players = players

    def client_connected(self, connection: int, now: float, address_index: int = 0) -> None:
        """Register a client's connection to this one of the server's addresses."""
        self.now = max(self.now, now)
        self._client_connected(connection, address_index)

    def receive(self, connection: int, name: str, fields: Fields, now: float) -> None:
        """Process a client's message; one that makes no sense here is ignored."""
        self.now = max(self.now, now)
        with suppress(*self.ignored_errors):
            self._receive(connection, name, fields)

    def client_disconnected(self, connection: int, now: float) -> None:
        """Process the end of a client's connection."""
        self.now = max(self.now, now)
        kept = (
            pending
            for pending in self._pending
            if all(isinstance(choice, Reconnect) or choice.to != connection for choice in pending.choices)
        )
        self._pending = deque(kept)
        self._client_disconnected(connection)

    @abstractmethod
    def _client_connected(self, connection: int, address_index: int) -> None:
        """Register a client's connection."""

    @abstractmethod
    def _receive(self, connection: int, name: str, fields: Fields) -> None:
        """Process a client's message."""

    @abstractmethod
    def _client_disconnected(self, connection: int) -> None:
        """Process the end of a client's connection."""

    def _send_to(self, to: int, name: str, /, **fields: Any) -> None:
        """Queue a message to one client."""
        self._queue(SendMessage(name, fields, to))


BotFactory = Callable[[str, int, int], Bot]
"""Creates a bot from its name, seed and number of games."""

SimulatedServerFactory = Callable[[int, int, int], SimulatedServer]
"""Creates a simulated server from its number of players, seed and number of games."""
