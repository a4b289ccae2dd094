"""A way to a case's place where clients only ever answer: each question gets what a record has as its answer.

It goes there whatever dice and turns the server gives, as it follows no order but the server's. It plays
badly: what it announces was good for another roll.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.codec import UNWRITABLE
from kiebitz.dissectors.grammar.grammar import Decoded, MessageType
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.probing.message_reader import Ear, Heard
from kiebitz.dissectors.probing.routes import Address, Place, WayOfRecord
from kiebitz.dissectors.replay.binding import Bindings
from kiebitz.dissectors.replay.replay_peer import Action, Call, Listen, Reaction, Say
from kiebitz.dissectors.replay.script import Line, Role, Script

MOST_PLACES = 6
"""After so many places at which a case cannot be tried it is given up: they are all alike."""


def only_answers(dissector: Dissector, plays: Direction) -> bool:
    """Whether all that this side says, but for how it comes in, answers a message of the other."""
    rows = [row for row in dissector.grammar.rows if row.direction == plays and row.deviation is None]
    asked = [row for row in rows if row.name not in dissector.identity.login_messages]
    return plays == "c2s" and bool(asked) and all(row.answers for row in asked)


class AnsweringWay(WayOfRecord):
    """Plays all clients of a record to a server. A place is a message that `fits`, once two are there; with
    `at_start` it is the beginning of a conversation, where a message that fits is sent too early."""

    def __init__(
        self,
        script: Script,
        dissector: Dissector,
        servers: Mapping[Role, Address],
        fits: Callable[[Decoded], bool],
        at_start: bool = False,
    ) -> None:
        super().__init__(script, servers)
        self._dissector = dissector
        self._fits = fits
        self._at_start = at_start
        self._bindings = Bindings()
        self._to_come = deque(script.roles)
        self._seats = len(script.roles)
        self._openings: dict[int, list[Line]] = {role.number: [] for role in script.roles}
        """By role what is said before the server says anything."""
        self._answers: dict[str, list[tuple[Line, Line]]] = {}
        """By a question's name questions of the record, each with its answer."""
        self._next: dict[int, Line] = {}
        """By the number of one of our lines what the server says next in its conversation."""
        self._early: Line | None = None
        """The first line that fits."""
        self._learn(script)
        self._roles: dict[int, Role] = {}
        """By connection the role that is played on it."""
        self._ears: dict[int, Ear] = {}
        self._turns: dict[tuple[int, str], int] = {}
        """By connection and question how often it was answered."""
        self._due: deque[Say] = deque()
        self._held: Say | None = None
        self._passed = 0
        """So many places were passed by."""
        self._has_acted = False
        self._is_as_usual = False

    def _learn(self, script: Script) -> None:
        """Take in what is said as an answer to what."""
        heard: dict[int, dict[str, Line]] = {}
        last: dict[int, Line] = {}
        for line in (step for step in script.steps if isinstance(step, Line) and step.whole):
            role = line.role.number
            decoded = self._dissector.codec.decode(line.data, line.direction)
            if decoded.row is None or decoded.row.heartbeat:
                continue
            if line.direction == "s2c":
                heard.setdefault(role, {})[line.name] = line
                if role in last:
                    self._next.setdefault(last[role].number, line)
                continue
            if self._early is None and self._fits(decoded):
                self._early = line
            last[role] = line
            if role not in heard:
                self._openings[role].append(line)
                continue
            for name in decoded.row.answers:
                if name in heard[role]:
                    self._answers.setdefault(name, []).append((heard[role][name], line))

    # What is to be done.

    def actions(self) -> Iterator[Action]:
        if self._early is None:
            self.lost = "the record has no place for it"
        elif self._passed > MOST_PLACES:
            self.lost = f"it can be tried at none of {self._passed} places"
        held, self._held = self._held, None
        if held is not None:
            yield held
        while self.lost is None and not self._is_as_usual:
            if self._due:
                said = self._due.popleft()
                if self._has_acted and self.place is not None and said.connection == self.place.connection:
                    # What comes of the acts is waited for.
                    continue
                if self._is_place(said):
                    self._held = said
                    self.place = self._at(said)
                    return
                yield said
            elif self._to_come and all(ear.has_heard for ear in self._ears.values()):
                yield Call(self._to_come.popleft(), 0, True)
            elif self._roles:
                yield Listen(next(iter(self._roles.values())), None)

    def _is_place(self, said: Say) -> bool:
        if self._has_acted or said.line is None or len(self._roles) < min(2, self._seats):
            return False
        if self._at_start:
            return self._early is not None and said.line in self._openings[said.line.role.number][:1]
        return self._fits(self._dissector.codec.decode(said.data, "c2s"))

    def _at(self, said: Say) -> Place:
        line = said.line
        assert line is not None
        role = self._roles[said.connection]
        others = tuple(connection for connection in self._roles if connection != said.connection)
        if self._at_start and self._early is not None:
            return Place(said.connection, role, self._early.data, None, False, others, None)
        following = next((one for one in self._all_answers() if one.number > line.number), None)
        return Place(
            said.connection,
            role,
            said.data,
            None if following is None else following.data,
            True,
            others,
            self._next.get(line.number),
        )

    def _all_answers(self) -> Iterator[Line]:
        for pairs in self._answers.values():
            for _, answer in pairs:
                yield answer

    def pass_by(self) -> None:
        self.place = None
        self._passed += 1

    def acted(self, uses: int) -> None:
        self._has_acted = True
        if uses or self._at_start:
            self._held = None

    @property
    def is_as_usual(self) -> bool:
        return self._is_as_usual

    # What the server does.

    def moved(self, server: Role, address: str) -> None:
        """Servers are played by no such way."""

    def accepted(self, connection: int, server: Role) -> None:
        """Nobody comes to a client."""

    def connected(self, connection: int, role: Role) -> None:
        self._roles[connection] = role
        self._ears[connection] = Ear(self._dissector, "s2c")
        for line in self._openings[role.number]:
            self._due.append(Say(connection, line.data, 0, True, line))

    def heard(self, connection: int, data: bytes) -> Reaction:
        if connection not in self._roles:
            return Reaction()
        replies: list[Say] = []
        for message in self._ears[connection].hear(data):
            if message.row.heartbeat:
                for answer in self._dissector.grammar.heartbeats_to(message.row.name, "c2s"):
                    replies.append(Say(connection, self._dissector.codec.encode(answer, "c2s", {})))
            else:
                self._compare(connection, message)
                self._answer(connection, message)
        return Reaction((), tuple(replies))

    def ended(self, connection: int, how: str) -> Reaction:
        if connection in self._roles and not self._has_acted:
            self.lost = f"the server {how}"
        return Reaction()

    def overdue(self, listened: Listen) -> Reaction:
        if not self._has_acted:
            self.lost = "the server does not ask for it in time"
        return Reaction()

    def _compare(self, connection: int, live: Heard) -> None:
        """See whether a message is what the record has after the place: of the same row, about the same
        players. Their dice are their own."""
        if not self._has_acted or self.place is None or connection != self.place.connection:
            return
        expected = self.place.expected
        if expected is None:
            return
        recorded = self._dissector.codec.decode(expected.data, "s2c")
        if recorded.row is not live.row:
            return
        is_others = expected.role is not self._roles[connection]
        named, expected_named = (self._players(live.row, each.fields) for each in (live, recorded))
        self._is_as_usual = is_others or named == expected_named

    def _players(self, row: MessageType, fields: dict[str, Any]) -> list[str]:
        named = row.identifiers(fields)
        return sorted(str(name) for identifier, name in named if identifier.of_player)

    def _answer(self, connection: int, live: Heard) -> None:
        """Answer a question as in the record, with today's names."""
        pairs = self._answers.get(live.row.name, [])
        role = self._roles[connection]
        own = [pair for pair in pairs if pair[1].role is role] or pairs
        fitting = [pair for pair in pairs if self._fits(self._dissector.codec.decode(pair[1].data, "c2s"))]
        pairs = [pair for pair in fitting if pair[1].role is role] or fitting or own
        if not pairs:
            return
        key = (connection, live.row.name)
        turn = self._turns[key] = self._turns.get(key, -1) + 1
        question, answer = pairs[turn % len(pairs)]
        asked = self._dissector.codec.decode(question.data, "s2c")
        told = self._dissector.codec.decode(answer.data, "c2s")
        if asked.row is None or told.row is None:
            return
        try:
            if asked.row is live.row:
                self._bindings.take(self._dissector, live.row, asked.fields, live.fields, role.number)
            fields = self._bindings.told(self._dissector, told.row, told.fields, role.number)
            data = self._dissector.codec.rewrite(answer.data, "c2s", fields)
        except UNWRITABLE:
            return
        self._due.append(Say(connection, data, 0, True, answer))
