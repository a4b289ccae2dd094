"""The common base of routes played by simulated peers, which adapt to the target's dice and cards.

The injection point is reached when one of them is about to send the target message. `client_route.py` plays
all clients of a server, `server_route.py` the server and all other clients of a client.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Set
from contextlib import suppress
from typing import Any

import msgspec

from kiebitz.dissectors.conformance import bots as play
from kiebitz.dissectors.conformance.bots import TargetMessage
from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.field_type import UNWRITABLE
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import OPPOSITE, Direction
from kiebitz.dissectors.probing.baseline import Baseline, MessageReader
from kiebitz.dissectors.probing.routes import Address, InjectionPoint, Route
from kiebitz.dissectors.replay.replay_peer import AwaitPeer, InputResult, PeerAction, SendBytes, WaitUntil
from kiebitz.dissectors.replay.script import StreamRole

MAX_SEARCH_S = 20.0
"""Maximum number of seconds to look for an injection point; some real servers take 14 s to a second trick."""

_SILENCE_TIMEOUT_S = 4.0
"""Seconds of silence after which the route is considered lost."""

_NEXT_POINT_S = 3.0
"""Maximum number of seconds to look for another injection point after an unsuitable one."""

_NEXT_LOGIN_S = 0.5
"""The same number for a message with which players begin, so that it hardly comes up again."""

_MAX_POINTS = 12
"""Maximum number of injection points to try for a case."""

_POINTS_WITHOUT_NEXT = 3
"""Number of skipped points after which a heartbeat may be the next message: others come up by chance."""

_MAX_RECEIVED = 50
"""Maximum number of received messages kept after one of ours."""

_CHECK_INTERVAL_S = 0.25
"""Seconds between two checks of these timeouts."""


class RouteGoal(msgspec.Struct, frozen=True):
    """The target message to reach; without one, all peers play until they have played enough.

    `early` means that a new client sends it before any other message; `harmless` that the target should
    continue as usual after it; `cut` that nothing can be sent after it.
    """

    target_message: TargetMessage | None = None
    early: bool = False
    harmless: bool = False
    cut: bool = False


class SimulatedConnection(MessageReader):
    """A connection of ours: reads the target's messages and remembers our last one."""

    def __init__(self, dissector: Dissector, direction: Direction) -> None:
        super().__init__(dissector, direction)
        self.last_sent: str | None = None
        """The name of our last message on it."""
        self.has_begun = False
        """True if we sent a message before that one."""
        self.received: list[tuple[str, bool]] = []
        """The names of the messages received since, each with whether it named our player."""
        self.unanswered: list[MessageType] = []
        """Our messages to which the grammar names an answer that has not arrived."""
        self.was_answered = False
        """True if one of those answers has arrived."""


class SimulatedRoute(Route):
    """A route on which simulated peers play with the target."""

    def __init__(
        self,
        dissector: Dissector,
        plays: Direction,
        goal: RouteGoal,
        baseline: Baseline,
        clock: Callable[[], float],
    ) -> None:
        """Create a route.

        Args:
            dissector: The protocol.
            plays: The direction of the simulated messages.
            goal: The injection point to reach.
            baseline: The baseline to extend by the target's behaviour after each message.
            clock: Returns the current time in seconds.
        """
        self._dissector = dissector
        self._plays: Direction = plays
        self._goal = goal
        self._baseline = baseline
        self._clock = clock
        self._style = baseline.style
        self._lines: dict[int, SimulatedConnection] = {}
        self._strangers: dict[int, SimulatedConnection] = {}
        """Connections of ours that belong to no player."""
        self._begun: float | None = None
        self._heard_at = 0.0
        self._sent_at = 0.0
        self._passed = 0
        self._passed_at = 0.0
        self._held: SendBytes | None = None
        self._row: MessageType | None = None
        """The row of the message that the case replaces."""
        self._skipped: play.BotAction | None = None
        """The next message, if it may have been sent with the case's actions already."""
        self._has_acted = False
        self._new_names: Set[str] = frozenset()
        """Names in the case's messages that are no player's yet."""
        self._answered: set[int] = set()
        """The connections on which the target went on as usual after the actions."""
        self._is_passed_over = False
        self._later: dict[tuple[int, str], bytes] = {}
        """By connection and message: what was sent next on it last time."""

    def _role(self, number: int, address: Address) -> StreamRole:
        """Return the role of a player of ours or of the client under test, at a server's address."""
        host, port = address
        client = f"player {number + 1}" if self._plays == "c2s" else "the client"
        return StreamRole(
            number, self._dissector.protocol, self._dissector.transport, client, f"{host}:{port}"
        )

    # Actions.

    def actions(self) -> Iterator[PeerAction]:
        held, self._held = self._held, None
        if held is not None:
            yield held
        while self.lost is None and not (self._has_acted and self.continued_normally):
            has_moved = False
            for action in self._next_actions():
                if isinstance(action, InjectionPoint):
                    self.point = action
                    return
                has_moved = True
                yield action
            if not has_moved:
                if self._goal.target_message is None and self._all_finished():
                    return
                self.lost = self._why_lost()
                yield WaitUntil(min(self._wait_until(), self._clock() + _CHECK_INTERVAL_S))

    def _why_lost(self) -> str | None:
        if self._has_acted or self._begun is None:
            return None
        now = self._clock()
        wanted = self._goal.target_message
        is_login = wanted is not None and wanted.name in self._dissector.identity.login_messages
        next_s = _NEXT_LOGIN_S if is_login else _NEXT_POINT_S
        if self._passed > _MAX_POINTS or (self._passed and now > self._passed_at + next_s):
            return f"it can be injected at none of {self._passed} points"
        quiet_s = now - max(self._heard_at, self._begun)
        if self._goal.target_message is None or (
            now < self._begun + MAX_SEARCH_S and quiet_s < _SILENCE_TIMEOUT_S
        ):
            return None
        self.never_came_up = self._passed == 0
        after = (
            f"{MAX_SEARCH_S:g} s of play"
            if quiet_s < _SILENCE_TIMEOUT_S
            else f"{_SILENCE_TIMEOUT_S:g} s without any message"
        )
        return f"its message did not come up in {after}"

    @abstractmethod
    def _next_actions(self) -> Iterator[PeerAction | InjectionPoint]:
        """Yield the actions due now, or the injection point if it is reached."""

    @abstractmethod
    def _wait_until(self) -> float:
        """Return the time until which nothing is due if the target is silent."""

    @abstractmethod
    def _all_finished(self) -> bool:
        """Return True if all games have been played."""

    def _to_send(self, message: play.SendMessage, connection: int) -> SendBytes | None:
        """Return the action that sends a message; None if it cannot be encoded."""
        frame = self._encode(message)
        if frame is None:
            return None
        line = self._lines[connection]
        if line.last_sent is not None:
            self._later[connection, line.last_sent] = frame
            if not self._has_acted:
                self._baseline.learn(line.last_sent, line.received)
        line.has_begun = line.last_sent is not None
        line.last_sent, line.received = message.name, []
        self._sent_at = self._clock()
        row = self._dissector.codec.decode(frame, self._plays).row
        if row is not None and not row.heartbeat and self._baseline.is_answered(row):
            line.unanswered.append(row)
        return SendBytes(connection, frame)

    def _learn_pace(
        self, message: play.SendMessage, connection: int, upcoming: play.BotAction | None
    ) -> None:
        """Extend the baseline by the message sent last on a connection; `upcoming` need not wait after it."""
        if not self._has_acted:
            waits = not isinstance(upcoming, play.SendMessage)
            self._baseline.learn_pace(message.name, waits, (connection, message.name) in self._later)

    def _encode(self, message: play.SendMessage) -> bytes | None:
        with suppress(*UNWRITABLE):
            return self._style.encode(message.name, self._plays, message.fields)
        return None

    def _is_target(self, message: play.SendMessage) -> bool:
        """Return True if the case may be injected at this message, given enough other players."""
        target_message = self._goal.target_message
        if target_message is None or self._has_acted or not target_message.matches(message):
            return False
        # Messages before a game are no injection points of a case that fits any message.
        return target_message.name is not None or message.name not in self._dissector.identity.login_messages

    def _point_at(self, sent: SendBytes, upcoming: play.BotAction | None, role: StreamRole) -> InjectionPoint:
        """Return a message's injection point; `upcoming` is sent after it without waiting for the target."""
        self._held = sent
        self._row = self._dissector.codec.decode(sent.data, self._plays).row
        following = self._encode(upcoming) if isinstance(upcoming, play.SendMessage) else None
        self._skipped = upcoming if following is not None else None
        waits = following is None
        if following is None and self._row is not None:
            following = self._later.get((sent.connection, self._row.name))
        others = tuple(other for other in self._lines if other != sent.connection)
        return InjectionPoint(
            sent.connection,
            role,
            sent.data,
            following,
            waits and following is not None,
            others,
            None,
            heartbeat=self._heartbeat_as_next(),
        )

    def _heartbeat_as_next(self) -> bytes | None:
        """Return a heartbeat that may be sent at any time; None if there is none, or not yet time for it."""
        if self.points_before + self._passed < _POINTS_WITHOUT_NEXT:
            return None
        for name in self._dissector.grammar.free_heartbeats(self._plays):
            return self._encode(play.SendMessage(name, {}))
        return None

    def skip_point(self) -> None:
        self.point = None
        self._skipped = None
        self._passed += 1
        self._passed_at = self._clock()

    def confirm_actions(self, uses: int, names: Set[str] = frozenset()) -> None:
        self._has_acted = True
        self._new_names = names - {self._player_name(connection) for connection in self._lines}
        if uses or self._goal.early:
            self._held = None
        if uses < 2:
            self._skipped = None

    def discard_answers(self) -> None:
        self._answered.clear()

    def discard_passing_over(self) -> None:
        self._is_passed_over = False

    def _is_skipped(self, act: play.BotAction) -> bool:
        """Return True if the case's actions included this one."""
        if not self._has_acted or self._skipped is None or act != self._skipped:
            return False
        self._skipped = None
        return True

    def _is_mute(self, connection: int) -> bool:
        """Return True if this connection only awaits the answer to the case's actions."""
        if not self._has_acted or self.point is None or connection != self.point.connection:
            return False
        if self._goal.cut or self._plays == "s2c" or self._row is None:
            return self._goal.cut
        return not self._goal.harmless or self._baseline.is_answered(self._row)

    # Input from the target.

    @property
    def continued_normally(self) -> bool:
        return self.point is not None and self.point.connection in self._answered

    def continued_normally_on(self, connection: int) -> bool:
        return connection in self._answered

    @property
    def is_passed_over(self) -> bool:
        return self._is_passed_over

    def data_received(self, connection: int, data: bytes) -> InputResult:
        line = self._lines.get(connection)
        if line is None:
            direction = OPPOSITE[self._plays]
            line = self._strangers.setdefault(connection, SimulatedConnection(self._dissector, direction))
        replies: list[SendBytes] = []
        for message in line.read(data):
            row = message.row
            self._style.learn(message)
            if row.heartbeat and not self._is_aimed_at_answer(row):
                replies += self._heartbeat(connection, row)
                is_asked = self._has_acted and self._row is not None and self._row.heartbeat
                if is_asked and self._goes_on(row, names_speaker=False):
                    self._answered.add(connection)
                continue
            self._heard_at = self._clock()
            answered = (sent for sent in line.unanswered if row.name in self._baseline.answers_to(sent))
            if (sent := next(answered, None)) is not None:
                line.unanswered.remove(sent)
                line.was_answered = True
            called = self._player_name(connection)
            named = row.player_names(message.fields)
            if self._has_acted:
                names_speaker = called in named or not self._new_names.isdisjoint(named)
                if self._goes_on(row, names_speaker):
                    self._answered.add(connection)
                elif self.point is not None and connection == self.point.connection:
                    self._is_passed_over = self._is_passed_over or self._goes_on(row, names_speaker=True)
            elif len(line.received) < _MAX_RECEIVED and not self._is_held(connection):
                line.received.append((row.name, called in named))
            if connection in self._lines:
                self._receive(connection, row.name, message.fields)
        return InputResult((), tuple(replies))

    def _is_held(self, connection: int) -> bool:
        """Return True if the next message for a connection is not sent yet."""
        return self._held is not None and self._held.connection == connection

    def _goes_on(self, row: MessageType, names_speaker: bool) -> bool:
        if self._row is None or (self._goal.harmless and not self._baseline.is_answered(self._row)):
            return True
        return self._baseline.follows(self._row, row.name, names_speaker)

    def _heartbeat(self, connection: int, asked: MessageType) -> Iterator[SendBytes]:
        if connection in self._lines and not self._is_mute(connection):
            for name in self._answers_to(asked):
                yield SendBytes(connection, self._style.encode(name, self._plays, {}))

    def _answers_to(self, asked: MessageType) -> list[str]:
        """Return the names of our messages that answer a heartbeat."""
        return self._dissector.grammar.heartbeats_to(asked.name, self._plays)

    def _is_aimed_at_answer(self, asked: MessageType) -> bool:
        """Return True if a case replaces the answer to this heartbeat, so that it is not sent at once."""
        target_message = self._goal.target_message
        return (
            target_message is not None
            and not self._has_acted
            and target_message.name in self._answers_to(asked)
        )

    def _player_name(self, connection: int) -> str | None:
        """Return our player's name on a connection."""
        return None

    @abstractmethod
    def _receive(self, connection: int, name: str, fields: dict[str, Any]) -> None:
        """Process a valid message of the target."""

    def timed_out(self, listened: AwaitPeer) -> InputResult:
        return InputResult()
