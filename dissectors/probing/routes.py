"""Routes: what is sent until a message comes up at which a test case can be injected, and after it.

Like `replay.replay_peer`, a route has no socket and no clock: a driver carries out its actions one after the
other, and reports what the target does. `RecordedRoute` follows a recorded game; bots and simulated servers
follow the rules. All share the interface `Route`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Set

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.model import OPPOSITE, Direction
from kiebitz.dissectors.replay.replay_peer import (
    AwaitPeer,
    CloseConnection,
    InputResult,
    PeerAction,
    ReplayPeer,
    SendBytes,
)
from kiebitz.dissectors.replay.script import RecordedLine, Script, StreamClosing, StreamOpening, StreamRole

Address = tuple[str, int]
"""Host and port."""

NO_POINT = "the record has no point to inject it"
"""Why a record does not lead to a case whose message is not in it."""


class InjectionPoint(msgspec.Struct, frozen=True):
    """The point where a case is injected: the message due now, and the connection it is due on.

    `following` is the next message for that connection, or None; it `waits` if the target sends something
    before it. `others` are the connections of our other players. `expected` is the target's next recorded
    line on this connection. The point `is_last` if the record has nothing more from either side. A
    `heartbeat` may take the place of a next message that does not wait.
    """

    connection: int
    role: StreamRole
    frame: bytes
    following: bytes | None
    waits: bool
    others: tuple[int, ...]
    expected: RecordedLine | None
    is_last: bool = False
    heartbeat: bytes | None = None


class Route(ABC):
    """A route to the injection points of a case, one after the other, and on from there.

    `actions` ends when a `point` is reached. Then either `skip_point` or `confirm_actions` is called, and
    `actions` resumes: to the next point, or up to what follows the case's actions. If it ends without a
    point, `lost` gives the reason.
    """

    point: InjectionPoint | None = None
    lost: str | None = None
    diverged_at: int | None = None
    """The number of the recorded line in whose place the target first did something else."""
    never_came_up = False
    """True if the case's message never came up, so that its other cases need not be tried on this route."""
    points_before = 0
    """The number of points that other routes to the same case have skipped."""
    servers: Mapping[StreamRole, Address]
    """The address of each server, by the first role that it has."""

    @abstractmethod
    def actions(self) -> Iterator[PeerAction]:
        """Yield the next actions; each is requested when the one before it is done."""

    @abstractmethod
    def skip_point(self) -> None:
        """Skip this injection point: the case cannot be tried here, and the message is sent as it is."""

    @abstractmethod
    def confirm_actions(self, uses: int, names: Set[str] = frozenset()) -> None:
        """Report that the case's actions were done in place of `uses` messages.

        By the players' names in them the target may call their sender from then on.
        """

    def discard_answers(self) -> None:
        """Discard the target's messages since the actions: they were no answer to them."""
        return

    @property
    def is_passed_over(self) -> bool:
        """True if the usual next message has come, but for other players than the one of the actions."""
        return False

    def discard_passing_over(self) -> None:
        """Ignore such messages so far, as the actions were not complete."""
        return

    @property
    @abstractmethod
    def continued_normally(self) -> bool:
        """True if the target went on after the actions as if the message had been sent unchanged."""

    @property
    def has_finished_game(self) -> bool:
        """True if a game has been finished."""
        return False

    @property
    def first_line(self) -> int | None:
        """The number of the first recorded line at which a case can be injected; None if there is none."""
        return None

    @property
    def offered(self) -> frozenset[str] | None:
        """The names of all messages that could have been sent; None if only recorded ones are."""
        return None

    @abstractmethod
    def continued_normally_on(self, connection: int) -> bool:
        """Return True if the target went on as usual on another of our connections."""

    def is_finished_on(self, connection: int) -> bool:
        """Return True if one of our connections has sent everything, so that the target may end it."""
        return False

    @property
    @abstractmethod
    def newcomer_role(self) -> StreamRole:
        """The role of a new client."""

    @abstractmethod
    def opening_messages(self) -> tuple[bytes, ...]:
        """Return the messages that a new client sends before the target sends any."""

    @abstractmethod
    def server_moved(self, server: StreamRole, address: str) -> None:
        """Set the address of the simulated server to which this role belongs."""

    @abstractmethod
    def client_accepted(self, connection: int, server: StreamRole) -> None:
        """Report a client's connection to the server to which this role belongs."""

    @abstractmethod
    def connected(self, connection: int, role: StreamRole) -> None:
        """Report that our connection for a role is established."""

    @abstractmethod
    def data_received(self, connection: int, data: bytes) -> InputResult:
        """Process bytes from the target."""

    @abstractmethod
    def connection_ended(self, connection: int, how: str) -> InputResult:
        """Report that the target sends nothing more on a connection."""

    @abstractmethod
    def timed_out(self, listened: AwaitPeer) -> InputResult:
        """Report that an awaited line did not arrive in time."""


class ScriptRoute(Route):
    """The common base of routes that follow a recorded game."""

    def __init__(self, script: Script, servers: Mapping[StreamRole, Address]) -> None:
        self._script = script
        self.servers = servers

    def continued_normally_on(self, connection: int) -> bool:
        # The record covers the injection point's own connection only.
        return False

    @property
    def newcomer_role(self) -> StreamRole:
        return self._script.roles[0]

    def opening_messages(self) -> tuple[bytes, ...]:
        found: list[bytes] = []
        for step in self._script.steps:
            if isinstance(step, RecordedLine) and step.role is self.newcomer_role:
                if step.direction != "c2s":
                    break
                found.append(step.data)
        return tuple(found)


class RecordedRoute(ScriptRoute):
    """A route that replays a record up to a message for which `fits` is true, or to its end if that is None.

    It prefers injection points at which other players are present. With `at_start` the point is the very
    beginning of a conversation. If the actions end in the middle of a message (`is_cut`), nothing more is
    sent on that connection. If the target departs from the record, the route is lost.
    """

    def __init__(
        self,
        script: Script,
        plays: Direction,
        dissectors: Mapping[str, Dissector],
        servers: Mapping[StreamRole, Address],
        fits: Callable[[Decoded], bool] | None,
        at_start: bool = False,
        is_cut: bool = False,
    ) -> None:
        super().__init__(script, servers)
        self._is_cut = is_cut
        self._is_game = fits is None
        self._plays: Direction = plays
        self._dissectors = dissectors
        self._at_start = at_start
        self._replay_peer = ReplayPeer(script, plays, dissectors, "stop")
        self._todo = self._replay_peer.actions()
        self._early: dict[int, RecordedLine] = {}
        """By a conversation's first line: the line that is to be sent before it."""
        self._numbers = frozenset() if fits is None else self._find(fits)
        self._connections: dict[int, int] = {}
        """The connection of each role, by the role's number."""
        self._known: set[int] = set()
        """The connections that the replay peer knows."""
        self._held: SendBytes | None = None
        self._left_out: set[int] = set()
        self._has_passed = False
        self._has_acted = False
        self._divergence: str | None = None

    # Injection points.

    def _find(self, fits: Callable[[Decoded], bool]) -> frozenset[int]:
        """Return the numbers of the lines to inject at, preferably those with other players present."""
        found: list[tuple[int, bool]] = []
        here: set[int] = set()
        begun: dict[int, tuple[int, bool]] = {}
        """Our first line, by role."""
        for step in self._script.steps:
            number = step.role.number
            if isinstance(step, StreamOpening):
                here.add(number)
            elif isinstance(step, StreamClosing):
                here.discard(number)
            elif step.direction == self._plays and step.whole and not self._is_heartbeat(step):
                point = begun.setdefault(number, (step.number, len(here) > 1))
                if not fits(self._dissectors[step.role.protocol].codec.decode(step.data, step.direction)):
                    continue
                if not self._at_start:
                    found.append((step.number, len(here) > 1))
                elif point[0] not in self._early:
                    self._early[point[0]] = step
                    found.append(point)
        in_company = frozenset(number for number, is_in_company in found if is_in_company)
        return in_company or frozenset(number for number, _ in found)

    def _at(self, line: RecordedLine, connection: int, frame: bytes) -> InjectionPoint:
        others = tuple(other for number, other in self._connections.items() if number != line.role.number)
        if self._at_start:
            return InjectionPoint(
                connection, line.role, self._early[line.number].data, None, False, others, None
            )
        following = next(self._later(line, self._plays), None)
        expected = next(self._later(line, OPPOSITE[self._plays]), None)
        waits = following is not None and expected is not None and expected.number < following.number
        following_data = None
        if following is not None:
            # Identifiers in a line that waits are not known yet.
            following_data = following.data if waits else self._replay_peer.with_live_names(following)
        is_last = following is None and expected is None
        return InjectionPoint(connection, line.role, frame, following_data, waits, others, expected, is_last)

    def _later(self, line: RecordedLine, direction: Direction) -> Iterator[RecordedLine]:
        """Yield the later lines of the same stream in a direction, except heartbeats."""
        for step in self._script.steps:
            if not isinstance(step, RecordedLine) or step.number <= line.number or step.role is not line.role:
                continue
            if step.direction == direction and step.whole and not self._is_heartbeat(step):
                yield step

    def _is_heartbeat(self, line: RecordedLine) -> bool:
        grammar = self._dissectors[line.role.protocol].grammar
        return any(row.heartbeat for row in grammar.rows_named(line.direction, line.name))

    @property
    def first_line(self) -> int | None:
        return min(self._numbers, default=None)

    # Actions.

    def actions(self) -> Iterator[PeerAction]:
        held, self._held = self._held, None
        if held is not None:
            yield held
        for action in self._todo:
            if self._is_mute(action):
                continue
            if isinstance(action, SendBytes) and action.line is not None:
                line = action.line
                self._connections[line.role.number] = action.connection
                if line.number in self._left_out:
                    continue
                if not self._has_acted and line.number in self._numbers:
                    self._held = action
                    self.point = self._at(line, action.connection, action.data)
                    return
            if self._has_acted and self.continued_normally:
                return
            yield action
            if isinstance(action, CloseConnection):
                self._connections = {
                    number: other for number, other in self._connections.items() if other != action.connection
                }
        if not self._has_acted:
            self.point = None
            no_point = "the record has no other point to inject it" if self._has_passed else NO_POINT
            self.lost = self._divergence or (None if self._is_game else no_point)

    def _is_mute(self, action: PeerAction) -> bool:
        """Return True if an action would continue where a message was cut."""
        if not self._is_cut or not self._has_acted or self.point is None:
            return False
        return isinstance(action, SendBytes | CloseConnection) and action.connection == self.point.connection

    def skip_point(self) -> None:
        self.point = None
        self._has_passed = True

    def confirm_actions(self, uses: int, names: Set[str] = frozenset()) -> None:
        self._has_acted = True
        assert self.point is not None
        held = self._held
        if held is None or held.line is None:
            return
        if uses or self._at_start:
            self._held = None
        if uses > 1:
            following = next(self._later(held.line, self._plays), None)
            if following is not None:
                self._left_out.add(following.number)

    @property
    def continued_normally(self) -> bool:
        expected = self.point.expected if self.point is not None else None
        return expected is not None and self._divergence is None and not self._replay_peer.awaits(expected)

    def is_finished_on(self, connection: int) -> bool:
        return self._replay_peer.is_finished_on(connection)

    # Input from the target.

    def server_moved(self, server: StreamRole, address: str) -> None:
        self._replay_peer.server_moved(server, address)

    def client_accepted(self, connection: int, server: StreamRole) -> None:
        self._known.add(connection)
        self._replay_peer.client_accepted(connection, server)

    def connected(self, connection: int, role: StreamRole) -> None:
        self._known.add(connection)
        self._connections[role.number] = connection
        self._replay_peer.connected(connection, role)

    def data_received(self, connection: int, data: bytes) -> InputResult:
        # A connection outside the script has no part in the record.
        if connection not in self._known:
            return InputResult()
        reaction = self._replay_peer.data_received(connection, data)
        return self._noted(reaction, self.continued_normally)

    def connection_ended(self, connection: int, how: str) -> InputResult:
        if connection not in self._known:
            return InputResult()
        was_as_usual = self.continued_normally
        return self._noted(self._replay_peer.connection_ended(connection, how), was_as_usual)

    def timed_out(self, listened: AwaitPeer) -> InputResult:
        reaction = self._replay_peer.timed_out(listened)
        return self._noted(reaction, self.continued_normally)

    def _noted(self, reaction: InputResult, continued_normally: bool) -> InputResult:
        """Return a reaction; keep the first divergence, unless everything awaited has arrived already."""
        if self._divergence is None and reaction.divergences and not continued_normally:
            self._divergence = reaction.divergences[0].text
            self.diverged_at = reaction.divergences[0].number
        return reaction
