"""The common base of routes played by simulated peers, which adapt to the target's dice and cards.

The injection point is reached when one of them is about to send the target message. `client_route.py` plays
all clients of a server, `server_route.py` the server and all other clients of a client.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from kiebitz.dissectors.conformance import bots as play
from kiebitz.dissectors.conformance.bots import Aim
from kiebitz.dissectors.dissector import UNWRITABLE, Dissector
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import OPPOSITE, Direction
from kiebitz.dissectors.probing.baseline import Habits
from kiebitz.dissectors.probing.message_reader import Ear
from kiebitz.dissectors.probing.routes import Address, Place, Way
from kiebitz.dissectors.probing.spelling_style import Manner
from kiebitz.dissectors.replay.replay_peer import Action, Listen, Reaction, Rest, Say
from kiebitz.dissectors.replay.script import Role

REACH_S = 10.0
"""Maximum number of seconds to look for an injection point."""

_QUIET_S = 4.0
"""Seconds of silence after which the route is considered lost."""

_MOST_PLACES = 12
"""Maximum number of injection points to try for a case."""

_MOST_HEARD = 50
"""Maximum number of received messages kept after one of ours."""

_LOOK_S = 0.25
"""Seconds between two checks of these timeouts."""


class Goal(msgspec.Struct, frozen=True):
    """The target message to reach; without one, all peers play until they have played enough.

    `early` means that a new client sends it before any other message; `harmless` that the target should
    continue as usual after it; `cut` that nothing can be sent after it.
    """

    aim: Aim | None = None
    early: bool = False
    harmless: bool = False
    cut: bool = False


class Line(Ear):
    """A connection of ours: reads the target's messages and remembers our last one."""

    def __init__(self, dissector: Dissector, hears: Direction) -> None:
        super().__init__(dissector, hears)
        self.said: str | None = None
        """The name of our last message on it."""
        self.has_begun = False
        """True if we sent a message before that one."""
        self.heard: list[tuple[str, bool]] = []
        """The names of the messages received since, each with whether it named our player."""


class PlayedWay(Way):
    """A route on which simulated peers play with the target."""

    def __init__(
        self,
        dissector: Dissector,
        plays: Direction,
        goal: Goal,
        habits: Habits,
        clock: Callable[[], float],
    ) -> None:
        """Create a route.

        Args:
            dissector: The protocol.
            plays: The direction of the simulated messages.
            goal: The injection point to reach.
            habits: The baseline to extend by the target's behaviour after each message.
            clock: Returns the current time in seconds.
        """
        self._dissector = dissector
        self._plays: Direction = plays
        self._goal = goal
        self._habits = habits
        self._clock = clock
        self._manner = Manner(dissector)
        self._lines: dict[int, Line] = {}
        self._strangers: dict[int, Line] = {}
        """Connections of ours that belong to no player."""
        self._begun: float | None = None
        self._heard_at = 0.0
        self._passed = 0
        self._held: Say | None = None
        self._row: MessageType | None = None
        """The row of the message that the case replaces."""
        self._skipped: play.Act | None = None
        """The next message, if it may have been sent with the case's actions already."""
        self._has_acted = False
        self._answered: set[int] = set()
        """The connections on which the target went on as usual after the actions."""
        self._later: dict[tuple[int, str], bytes] = {}
        """By connection and message: what was sent next on it last time."""

    def _role(self, number: int, address: Address) -> Role:
        """Return the role of a player of ours or of the client under test, at a server's address."""
        host, port = address
        client = f"player {number + 1}" if self._plays == "c2s" else "the client"
        return Role(number, self._dissector.protocol, self._dissector.transport, client, f"{host}:{port}")

    # Actions.

    def actions(self) -> Iterator[Action]:
        held, self._held = self._held, None
        if held is not None:
            yield held
        while self.lost is None and not (self._has_acted and self.is_as_usual):
            has_moved = False
            for action in self._moves():
                if isinstance(action, Place):
                    self.place = action
                    return
                has_moved = True
                yield action
            if not has_moved:
                if self._goal.aim is None and self._have_enough():
                    return
                self.lost = self._why_lost()
                yield Rest(min(self._until(), self._clock() + _LOOK_S))

    def _why_lost(self) -> str | None:
        if self._has_acted or self._begun is None:
            return None
        now = self._clock()
        if self._passed > _MOST_PLACES:
            return f"it can be injected at none of {self._passed} points"
        quiet_s = now - max(self._heard_at, self._begun)
        if self._goal.aim is None or (now < self._begun + REACH_S and quiet_s < _QUIET_S):
            return None
        self.never = self._passed == 0
        after = f"{REACH_S:g} s of play" if quiet_s < _QUIET_S else f"{_QUIET_S:g} s without any message"
        return f"its message did not come up in {after}"

    @abstractmethod
    def _moves(self) -> Iterator[Action | Place]:
        """Yield the actions due now, or the injection point if it is reached."""

    @abstractmethod
    def _until(self) -> float:
        """Return the time until which nothing is due if the target is silent."""

    @abstractmethod
    def _have_enough(self) -> bool:
        """Return True if all games have been played."""

    def _said(self, said: play.Say, connection: int) -> Say | None:
        """Return the action that sends a message; None if it cannot be encoded."""
        frame = self._written(said)
        if frame is None:
            return None
        line = self._lines[connection]
        if line.said is not None:
            self._later[connection, line.said] = frame
            if not self._has_acted:
                self._habits.learn(line.said, line.heard)
        line.has_begun = line.said is not None
        line.said, line.heard = said.name, []
        return Say(connection, frame)

    def _written(self, said: play.Say) -> bytes | None:
        with suppress(*UNWRITABLE):
            return self._manner.written(said.name, self._plays, said.fields)
        return None

    def _is_met(self, said: play.Say) -> bool:
        """Return True if the case may be injected at this message, given enough other players."""
        aim = self._goal.aim
        if aim is None or self._has_acted or not aim.is_met(said):
            return False
        # Messages before a game are no injection points of a case that fits any message.
        return aim.name is not None or said.name not in self._dissector.introductions

    def _place(self, sent: Say, upcoming: play.Act | None, role: Role) -> Place:
        """Return a message's injection point; `upcoming` is sent after it without waiting for the target."""
        self._held = sent
        self._row = self._dissector.decode(sent.data, self._plays).row
        following = self._written(upcoming) if isinstance(upcoming, play.Say) else None
        self._skipped = upcoming if following is not None else None
        waits = following is None
        if following is None and self._row is not None:
            following = self._later.get((sent.connection, self._row.name))
        others = tuple(other for other in self._lines if other != sent.connection)
        return Place(
            sent.connection, role, sent.data, following, waits and following is not None, others, None
        )

    def pass_by(self) -> None:
        self.place = None
        self._skipped = None
        self._passed += 1

    def acted(self, uses: int) -> None:
        self._has_acted = True
        if uses or self._goal.early:
            self._held = None
        if uses < 2:
            self._skipped = None

    def forget(self) -> None:
        self._answered.clear()

    def _is_skipped(self, act: play.Act) -> bool:
        """Return True if the case's actions included this one."""
        if not self._has_acted or self._skipped is None or act != self._skipped:
            return False
        self._skipped = None
        return True

    def _is_mute(self, connection: int) -> bool:
        """Return True if this connection only awaits the answer to the case's actions."""
        if not self._has_acted or self.place is None or connection != self.place.connection:
            return False
        if self._goal.cut or self._plays == "s2c" or self._row is None:
            return self._goal.cut
        return not self._goal.harmless or self._habits.is_answered(self._row)

    # Input from the target.

    @property
    def is_as_usual(self) -> bool:
        return self.place is not None and self.place.connection in self._answered

    def has_gone_on(self, connection: int) -> bool:
        return connection in self._answered

    def heard(self, connection: int, data: bytes) -> Reaction:
        line = self._lines.get(connection)
        if line is None:
            hears = OPPOSITE[self._plays]
            line = self._strangers.setdefault(connection, Line(self._dissector, hears))
        replies: list[Say] = []
        for message in line.hear(data):
            row = message.row
            self._manner.learn(message)
            if row.heartbeat and not self._is_aimed_at_answer(row):
                replies += self._heartbeat(connection, row)
                is_asked = self._has_acted and self._row is not None and self._row.heartbeat
                if is_asked and self._goes_on(row, names_speaker=False):
                    self._answered.add(connection)
                continue
            self._heard_at = self._clock()
            called = self._called(connection)
            named = [name for handle, name in self._dissector.names(row, message.fields) if handle.of_player]
            if self._has_acted:
                if self._goes_on(row, called in named):
                    self._answered.add(connection)
            elif len(line.heard) < _MOST_HEARD and not self._is_held(connection):
                line.heard.append((row.name, called in named))
            if connection in self._lines:
                self._hear(connection, row.name, message.fields)
        return Reaction((), tuple(replies))

    def _is_held(self, connection: int) -> bool:
        """Return True if the next message for a connection is not sent yet."""
        return self._held is not None and self._held.connection == connection

    def _goes_on(self, row: MessageType, names_speaker: bool) -> bool:
        if self._row is None or (self._goal.harmless and not self._habits.is_answered(self._row)):
            return True
        return self._habits.follows(self._row, row.name, names_speaker)

    def _heartbeat(self, connection: int, asked: MessageType) -> Iterator[Say]:
        if connection in self._lines and not self._is_mute(connection):
            for name in self._answers_to(asked):
                yield Say(connection, self._manner.written(name, self._plays, {}))

    def _answers_to(self, asked: MessageType) -> list[str]:
        """Return the names of our messages that answer a heartbeat."""
        return self._dissector.grammar.heartbeats_to(asked.name, self._plays)

    def _is_aimed_at_answer(self, asked: MessageType) -> bool:
        """Return True if a case replaces the answer to this heartbeat, so that it is not sent at once."""
        aim = self._goal.aim
        return aim is not None and not self._has_acted and aim.name in self._answers_to(asked)

    def _called(self, connection: int) -> str | None:
        """Return our player's name on a connection."""
        return None

    @abstractmethod
    def _hear(self, connection: int, name: str, fields: dict[str, Any]) -> None:
        """Process a valid message of the target."""

    def overdue(self, listened: Listen) -> Reaction:
        return Reaction()
