"""A way to a case's place by those who play: they follow the peer's dice and cards.

The place is where one of them is about to say the message that is aimed at. `client_route.py` plays all
clients to a server, `server_route.py` the server and all other clients to a client.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import msgspec

from kiebitz.dissectors.conformance import bots as play
from kiebitz.dissectors.conformance.bots import Aim
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.codec import UNWRITABLE
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import OPPOSITE, Direction
from kiebitz.dissectors.probing.baseline import Habits
from kiebitz.dissectors.probing.message_reader import Ear
from kiebitz.dissectors.probing.routes import Address, Place, Way
from kiebitz.dissectors.probing.spelling_style import Manner
from kiebitz.dissectors.replay.replay_peer import Action, Listen, Reaction, Rest, Say
from kiebitz.dissectors.replay.script import Role

REACH_S = 10.0
"""A place is looked for no longer than this."""

_QUIET_S = 4.0
"""If nobody says anything for so long, nothing leads there."""

_MOST_PLACES = 12
"""After so many places at which a case cannot be tried it is given up."""

_MOST_HEARD = 50
"""So much is remembered of what comes after a message."""

_LOOK_S = 0.25
"""How often it is looked whether the time is over."""


class Goal(msgspec.Struct, frozen=True):
    """What is looked for: a place where `aim` is met; without an aim all play until they have played enough.

    `early` if somebody new is to say it, before anything else; `harmless` if the peer is to go on after it as
    ever; `cut` if nothing can be said after it.
    """

    aim: Aim | None = None
    early: bool = False
    harmless: bool = False
    cut: bool = False


class Line(Ear):
    """A connection of ours: hears what comes, and knows what was said before that."""

    def __init__(self, dissector: Dissector, hears: Direction) -> None:
        super().__init__(dissector, hears)
        self.said: str | None = None
        """The message that was said last on it."""
        self.has_begun = False
        """Whether something was said before that."""
        self.heard: list[tuple[str, bool]] = []
        """What has come since, and whether it named who had spoken."""


class PlayedWay(Way):
    """What both have in common."""

    def __init__(
        self,
        dissector: Dissector,
        plays: Direction,
        goal: Goal,
        habits: Habits,
        clock: Callable[[], float],
    ) -> None:
        """What the peer is seen to do after each message goes into `habits`; `clock` gives seconds."""
        self._dissector = dissector
        self._plays: Direction = plays
        self._goal = goal
        self._habits = habits
        self._clock = clock
        self._manner = Manner(dissector)
        self._lines: dict[int, Line] = {}
        self._strangers: dict[int, Line] = {}
        """Connections of ours that are no player's."""
        self._begun: float | None = None
        self._heard_at = 0.0
        self._passed = 0
        self._held: Say | None = None
        self._row: MessageType | None = None
        """The row of the message in whose place the case is."""
        self._skipped: play.Act | None = None
        """What was sent with the case's acts already."""
        self._has_acted = False
        self._answered: set[int] = set()
        """The connections on which the peer has gone on after the acts as if nothing were odd."""
        self._later: dict[tuple[int, str], bytes] = {}
        """By connection and message what was said next on it the last time."""

    def _role(self, number: int, address: Address) -> Role:
        """The role of this number: a player of ours or the client that is probed, at the server of this
        address."""
        host, port = address
        client = f"player {number + 1}" if self._plays == "c2s" else "the client"
        return Role(number, self._dissector.protocol, self._dissector.transport, client, f"{host}:{port}")

    # What is to be done.

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
            return f"it can be tried at none of {self._passed} places"
        quiet_s = now - max(self._heard_at, self._begun)
        if self._goal.aim is None or (now < self._begun + REACH_S and quiet_s < _QUIET_S):
            return None
        self.never = self._passed == 0
        after = f"{REACH_S:g} s of play" if quiet_s < _QUIET_S else f"{_QUIET_S:g} s in which nobody spoke"
        return f"its message did not come up; that was given up after {after}"

    @abstractmethod
    def _moves(self) -> Iterator[Action | Place]:
        """What is to be done now; or the place, if it is reached."""

    @abstractmethod
    def _until(self) -> float:
        """Until when nothing is to be done, if nobody speaks."""

    @abstractmethod
    def _have_enough(self) -> bool:
        """Whether all has been played that was to be played."""

    def _said(self, said: play.Say, connection: int) -> Say | None:
        """What is to be sent for a message; None if it cannot be written."""
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
        """Whether the case may be tried in the place of this message, if there are others enough."""
        aim = self._goal.aim
        if aim is None or self._has_acted or not aim.is_met(said):
            return False
        # What comes before a game has no place in it.
        return aim.name is not None or said.name not in self._dissector.identity.login_messages

    def _place(self, sent: Say, upcoming: play.Act | None, role: Role) -> Place:
        """The place of a message; `upcoming` is what is said after it without waiting for the peer."""
        self._held = sent
        self._row = self._dissector.codec.decode(sent.data, self._plays).row
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
        """Whether the acts had this in them."""
        if not self._has_acted or self._skipped is None or act != self._skipped:
            return False
        self._skipped = None
        return True

    def _is_mute(self, connection: int) -> bool:
        """Whether on this connection only the answer to the acts is waited for."""
        if not self._has_acted or self.place is None or connection != self.place.connection:
            return False
        if self._goal.cut or self._plays == "s2c" or self._row is None:
            return self._goal.cut
        return not self._goal.harmless or self._habits.is_answered(self._row)

    # What the peer does.

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
            self._manner.heard(message)
            if row.heartbeat and not self._is_aimed_at_answer(row):
                replies += self._heartbeat(connection, row)
                is_asked = self._has_acted and self._row is not None and self._row.heartbeat
                if is_asked and self._goes_on(row, names_speaker=False):
                    self._answered.add(connection)
                continue
            self._heard_at = self._clock()
            called = self._called(connection)
            named = [name for identifier, name in row.identifiers(message.fields) if identifier.of_player]
            if self._has_acted:
                if self._goes_on(row, called in named):
                    self._answered.add(connection)
            elif len(line.heard) < _MOST_HEARD and not self._is_held(connection):
                line.heard.append((row.name, called in named))
            if connection in self._lines:
                self._hear(connection, row.name, message.fields)
        return Reaction((), tuple(replies))

    def _is_held(self, connection: int) -> bool:
        """Whether what is to be said on it is not sent yet."""
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
        """Our messages that answer a heartbeat."""
        return self._dissector.grammar.heartbeats_to(asked.name, self._plays)

    def _is_aimed_at_answer(self, asked: MessageType) -> bool:
        """Whether a case is in the place of the answer: then it is not given at once."""
        aim = self._goal.aim
        return aim is not None and not self._has_acted and aim.name in self._answers_to(asked)

    def _called(self, connection: int) -> str | None:
        """What our player on a connection is called."""
        return None

    @abstractmethod
    def _hear(self, connection: int, name: str, fields: dict[str, Any]) -> None:
        """The peer has said something valid."""

    def overdue(self, listened: Listen) -> Reaction:
        return Reaction()
