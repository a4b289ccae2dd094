"""A route for protocols whose clients only ever answer: each question gets its answer from a record.

It follows no order but the server's, so it works with any dice and turns. It plays badly: its announcements
were good for another roll.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.codec import UNWRITABLE
from kiebitz.dissectors.grammar.grammar import Decoded, MessageType
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.probing.message_reader import MessageReader, ReceivedMessage
from kiebitz.dissectors.probing.routes import Address, InjectionPoint, ScriptRoute
from kiebitz.dissectors.replay.binding import Bindings
from kiebitz.dissectors.replay.replay_peer import (
    AwaitPeer,
    InputResult,
    OpenConnection,
    PeerAction,
    SendBytes,
)
from kiebitz.dissectors.replay.script import RecordedLine, Script, StreamRole

MAX_POINTS = 6
"""Maximum number of injection points to try for a case, as they are all alike."""


def side_only_answers(dissector: Dissector, plays: Direction) -> bool:
    """Return True if every message of this side, except introductions, answers one of the other side."""
    rows = [row for row in dissector.grammar.rows if row.direction == plays and row.deviation is None]
    asked = [row for row in rows if row.name not in dissector.identity.login_messages]
    return plays == "c2s" and bool(asked) and all(row.answers for row in asked)


class AnswerRoute(ScriptRoute):
    """A route that plays all clients of a record against a server.

    An injection point is a message that `fits`, once two clients are connected; with `at_start` it is the
    beginning of a conversation, where a message that fits is sent too early.
    """

    def __init__(
        self,
        script: Script,
        dissector: Dissector,
        servers: Mapping[StreamRole, Address],
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
        self._openings: dict[int, list[RecordedLine]] = {role.number: [] for role in script.roles}
        """By role: the messages sent before the server sends any."""
        self._answers: dict[str, list[tuple[RecordedLine, RecordedLine]]] = {}
        """By a question's name: recorded questions, each with its answer."""
        self._next: dict[int, RecordedLine] = {}
        """By the number of one of our lines: the server's next line in its conversation."""
        self._early: RecordedLine | None = None
        """The first line that fits."""
        self._learn(script)
        self._roles: dict[int, StreamRole] = {}
        """The role played on each connection."""
        self._readers: dict[int, MessageReader] = {}
        self._turns: dict[tuple[int, str], int] = {}
        """By connection and question: how often it was answered."""
        self._due: deque[SendBytes] = deque()
        self._held: SendBytes | None = None
        self._passed = 0
        """Number of injection points passed by."""
        self._has_acted = False
        self._continued_normally = False

    def _learn(self, script: Script) -> None:
        """Collect the questions of a record and their answers."""
        questions: dict[int, dict[str, RecordedLine]] = {}
        last: dict[int, RecordedLine] = {}
        for line in (step for step in script.steps if isinstance(step, RecordedLine) and step.whole):
            role = line.role.number
            decoded = self._dissector.codec.decode(line.data, line.direction)
            if decoded.row is None or decoded.row.heartbeat:
                continue
            if line.direction == "s2c":
                questions.setdefault(role, {})[line.name] = line
                if role in last:
                    self._next.setdefault(last[role].number, line)
                continue
            if self._early is None and self._fits(decoded):
                self._early = line
            last[role] = line
            if role not in questions:
                self._openings[role].append(line)
                continue
            for name in decoded.row.answers:
                if name in questions[role]:
                    self._answers.setdefault(name, []).append((questions[role][name], line))

    # Actions.

    def actions(self) -> Iterator[PeerAction]:
        if self._early is None:
            self.lost = "the record has no point to inject it"
        elif self._passed > MAX_POINTS:
            self.lost = f"it can be injected at none of {self._passed} points"
        held, self._held = self._held, None
        if held is not None:
            yield held
        while self.lost is None and not self._continued_normally:
            if self._due:
                action = self._due.popleft()
                if self._has_acted and self.point is not None and action.connection == self.point.connection:
                    # Only the answer to the case's actions is awaited on this connection.
                    continue
                if self._is_point(action):
                    self._held = action
                    self.point = self._at(action)
                    return
                yield action
            elif self._to_come and all(ear.has_received for ear in self._readers.values()):
                yield OpenConnection(self._to_come.popleft(), 0, True)
            elif self._roles:
                yield AwaitPeer(next(iter(self._roles.values())), None)

    def _is_point(self, action: SendBytes) -> bool:
        if self._has_acted or action.line is None or len(self._roles) < min(2, self._seats):
            return False
        if self._at_start:
            return self._early is not None and action.line in self._openings[action.line.role.number][:1]
        return self._fits(self._dissector.codec.decode(action.data, "c2s"))

    def _at(self, action: SendBytes) -> InjectionPoint:
        line = action.line
        assert line is not None
        role = self._roles[action.connection]
        others = tuple(connection for connection in self._roles if connection != action.connection)
        if self._at_start and self._early is not None:
            return InjectionPoint(action.connection, role, self._early.data, None, False, others, None)
        following = next((one for one in self._all_answers() if one.number > line.number), None)
        return InjectionPoint(
            action.connection,
            role,
            action.data,
            None if following is None else following.data,
            True,
            others,
            self._next.get(line.number),
        )

    def _all_answers(self) -> Iterator[RecordedLine]:
        for pairs in self._answers.values():
            for _, answer in pairs:
                yield answer

    def skip_point(self) -> None:
        self.point = None
        self._passed += 1

    def confirm_actions(self, uses: int) -> None:
        self._has_acted = True
        if uses or self._at_start:
            self._held = None

    @property
    def continued_normally(self) -> bool:
        return self._continued_normally

    # Input from the server.

    def server_moved(self, server: StreamRole, address: str) -> None:
        """Ignore the call: this route plays no servers."""

    def client_accepted(self, connection: int, server: StreamRole) -> None:
        """Ignore the call: no peer connects to a client."""

    def connected(self, connection: int, role: StreamRole) -> None:
        self._roles[connection] = role
        self._readers[connection] = MessageReader(self._dissector, "s2c")
        for line in self._openings[role.number]:
            self._due.append(SendBytes(connection, line.data, 0, True, line))

    def data_received(self, connection: int, data: bytes) -> InputResult:
        if connection not in self._roles:
            return InputResult()
        replies: list[SendBytes] = []
        for message in self._readers[connection].read(data):
            if message.row.heartbeat:
                for answer in self._dissector.grammar.heartbeats_to(message.row.name, "c2s"):
                    replies.append(SendBytes(connection, self._dissector.codec.encode(answer, "c2s", {})))
            else:
                self._compare(connection, message)
                self._answer(connection, message)
        return InputResult((), tuple(replies))

    def connection_ended(self, connection: int, how: str) -> InputResult:
        if connection in self._roles and not self._has_acted:
            self.lost = f"the server {how}"
        return InputResult()

    def timed_out(self, listened: AwaitPeer) -> InputResult:
        if not self._has_acted:
            self.lost = "the server did not ask for it in time"
        return InputResult()

    def _compare(self, connection: int, live: ReceivedMessage) -> None:
        """Check if a message is the recorded one after the injection point: same row, about the same players.

        Their dice differ in each game.
        """
        if not self._has_acted or self.point is None or connection != self.point.connection:
            return
        expected = self.point.expected
        if expected is None:
            return
        recorded = self._dissector.codec.decode(expected.data, "s2c")
        if recorded.row is not live.row:
            return
        is_others = expected.role is not self._roles[connection]
        named, expected_named = (self._players(live.row, each.fields) for each in (live, recorded))
        self._continued_normally = is_others or named == expected_named

    def _players(self, row: MessageType, fields: dict[str, Any]) -> list[str]:
        named = row.identifiers(fields)
        return sorted(str(name) for identifier, name in named if identifier.of_player)

    def _answer(self, connection: int, live: ReceivedMessage) -> None:
        """Answer a question as in the record, with the live identifiers."""
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
        answered = self._dissector.codec.decode(answer.data, "c2s")
        if asked.row is None or answered.row is None:
            return
        try:
            if asked.row is live.row:
                self._bindings.take(self._dissector, live.row, asked.fields, live.fields, role.number)
            fields = self._bindings.to_live(self._dissector, answered.row, answered.fields, role.number)
            data = self._dissector.codec.rewrite(answer.data, "c2s", fields)
        except UNWRITABLE:
            return
        self._due.append(SendBytes(connection, data, 0, True, answer))
