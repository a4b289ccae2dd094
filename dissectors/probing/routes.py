"""The way to a case's place: what is said until a message comes up that the case is about, and after it.

A way has no socket and no clock, as `replay.part` has none: whoever goes it does its actions one after the
other, and tells it what the peer does. `RecordedWay` goes by a recorded game. A player that plays by the
rules is another way: all that is asked of it stands in `Way`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.model import OPPOSITE, Direction
from kiebitz.dissectors.replay.replay_peer import Action, Hang, Listen, Part, Reaction, Say
from kiebitz.dissectors.replay.script import Closing, Line, Opening, Role, Script

Address = tuple[str, int]
"""Host and port."""


class Place(msgspec.Struct, frozen=True):
    """Where a case is tried: the message that is to be sent now, on which of our connections.

    `following` is what is to be sent there next, None if nothing is; it `waits` if the peer says something
    before it. `others` are our other players' connections. `expected` is what the record has next of the
    peer on this one; it `is_last` if the record has nothing more from either side.
    """

    connection: int
    role: Role
    frame: bytes
    following: bytes | None
    waits: bool
    others: tuple[int, ...]
    expected: Line | None
    is_last: bool = False


class Way(ABC):
    """Goes to places that fit a case, one after the other, and on from there.

    `actions` ends when a `place` is reached. Then either `pass_by` or `acted` is called, and `actions` goes
    on: to the next place, or up to what is to come after the acts. If it ends without a place, `lost` says
    why.
    """

    place: Place | None = None
    lost: str | None = None
    parted_at: int | None = None
    """The number of the line of a record in whose place the peer did something else first."""
    never = False
    """Whether the message of the case never came up, so that other cases of it need not be tried this way."""
    servers: Mapping[Role, Address]
    """Where each server is, by the first role that it has."""

    @abstractmethod
    def actions(self) -> Iterator[Action]:
        """What is to be done next; each action is taken when the one before it is done."""

    @abstractmethod
    def pass_by(self) -> None:
        """The case cannot be tried at this place: what is to be said there is said."""

    @abstractmethod
    def acted(self, uses: int) -> None:
        """The case's acts were done, in place of so many messages."""

    def forget(self) -> None:
        """What the peer has said since the acts began was no answer to them."""
        return

    @property
    @abstractmethod
    def is_as_usual(self) -> bool:
        """Whether the peer has gone on after the acts as if the message had been sent as it is."""

    @property
    def has_played(self) -> bool:
        """Whether a game has come to its end."""
        return False

    @abstractmethod
    def has_gone_on(self, connection: int) -> bool:
        """The same of another of our connections."""

    def has_left(self, connection: int) -> bool:
        """Whether all was said on one of our connections, so that the peer may end it."""
        return False

    @property
    @abstractmethod
    def door(self) -> Role:
        """The role of a new client."""

    @abstractmethod
    def opening(self) -> tuple[bytes, ...]:
        """What a new client says before the peer says anything."""

    @abstractmethod
    def moved(self, server: Role, address: str) -> None:
        """The server that this role is of, which we play, is at this address."""

    @abstractmethod
    def accepted(self, connection: int, server: Role) -> None:
        """A client has come to the server that this role is of."""

    @abstractmethod
    def connected(self, connection: int, role: Role) -> None:
        """A call for a role has been taken."""

    @abstractmethod
    def heard(self, connection: int, data: bytes) -> Reaction:
        """The peer has sent bytes."""

    @abstractmethod
    def ended(self, connection: int, how: str) -> Reaction:
        """The peer says nothing more on a connection."""

    @abstractmethod
    def overdue(self, listened: Listen) -> Reaction:
        """What was listened for has not come in time."""


class WayOfRecord(Way):
    """What all ways have in common that know a game from a record."""

    def __init__(self, script: Script, servers: Mapping[Role, Address]) -> None:
        self._script = script
        self.servers = servers

    def has_gone_on(self, connection: int) -> bool:
        # The record has what is said on the place's own connection, and no more.
        return False

    @property
    def door(self) -> Role:
        return self._script.roles[0]

    def opening(self) -> tuple[bytes, ...]:
        found: list[bytes] = []
        for step in self._script.steps:
            if isinstance(step, Line) and step.role is self.door:
                if step.direction != "c2s":
                    break
                found.append(step.data)
        return tuple(found)


class RecordedWay(WayOfRecord):
    """Goes by a record, in which `fits` tells the places; if that is None it is played to its end.

    It prefers places at which others play, too. With `at_start` a place is the very beginning of a
    conversation, before anything else is said in it. Where the acts are to end in the middle of a message
    (`is_cut`), nothing more is said there. Where the peer does something else than recorded, the way is lost.
    """

    def __init__(
        self,
        script: Script,
        plays: Direction,
        dissectors: Mapping[str, Dissector],
        servers: Mapping[Role, Address],
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
        self._part = Part(script, plays, dissectors, "stop")
        self._todo = self._part.actions()
        self._early: dict[int, Line] = {}
        """By a conversation's first line the one that is to come before it."""
        self._numbers = frozenset() if fits is None else self._find(fits)
        self._connections: dict[int, int] = {}
        """By the number of a role its connection."""
        self._known: set[int] = set()
        """The connections of which the part knows."""
        self._held: Say | None = None
        self._left_out: set[int] = set()
        self._has_passed = False
        self._has_acted = False
        self._parted: str | None = None

    # The places.

    def _find(self, fits: Callable[[Decoded], bool]) -> frozenset[int]:
        """The numbers of the lines that are places, with others at the table if there are such."""
        found: list[tuple[int, bool]] = []
        here: set[int] = set()
        begun: dict[int, tuple[int, bool]] = {}
        """By role its first line of ours."""
        for step in self._script.steps:
            number = step.role.number
            if isinstance(step, Opening):
                here.add(number)
            elif isinstance(step, Closing):
                here.discard(number)
            elif step.direction == self._plays and step.whole and not self._is_heartbeat(step):
                place = begun.setdefault(number, (step.number, len(here) > 1))
                if not fits(self._dissectors[step.role.protocol].codec.decode(step.data, step.direction)):
                    continue
                if not self._at_start:
                    found.append((step.number, len(here) > 1))
                elif place[0] not in self._early:
                    self._early[place[0]] = step
                    found.append(place)
        in_company = frozenset(number for number, is_in_company in found if is_in_company)
        return in_company or frozenset(number for number, _ in found)

    def _at(self, line: Line, connection: int, frame: bytes) -> Place:
        others = tuple(other for number, other in self._connections.items() if number != line.role.number)
        if self._at_start:
            return Place(connection, line.role, self._early[line.number].data, None, False, others, None)
        following = next(self._later(line, self._plays), None)
        expected = next(self._later(line, OPPOSITE[self._plays]), None)
        waits = following is not None and expected is not None and expected.number < following.number
        told = None
        if following is not None:
            # Names in what waits are not known yet.
            told = following.data if waits else self._part.worded(following)
        is_last = following is None and expected is None
        return Place(connection, line.role, frame, told, waits, others, expected, is_last)

    def _later(self, line: Line, direction: Direction) -> Iterator[Line]:
        """What is said later on the same stream in a direction, but for heartbeats."""
        for step in self._script.steps:
            if not isinstance(step, Line) or step.number <= line.number or step.role is not line.role:
                continue
            if step.direction == direction and step.whole and not self._is_heartbeat(step):
                yield step

    def _is_heartbeat(self, line: Line) -> bool:
        grammar = self._dissectors[line.role.protocol].grammar
        return any(row.heartbeat for row in grammar.rows_named(line.direction, line.name))

    # What is to be done.

    def actions(self) -> Iterator[Action]:
        held, self._held = self._held, None
        if held is not None:
            yield held
        for action in self._todo:
            if self._is_mute(action):
                continue
            if isinstance(action, Say) and action.line is not None:
                line = action.line
                self._connections[line.role.number] = action.connection
                if line.number in self._left_out:
                    continue
                if self._is_place(line):
                    self._held = action
                    self.place = self._at(line, action.connection, action.data)
                    return
            if self._has_acted and self.is_as_usual:
                return
            yield action
            if isinstance(action, Hang):
                self._connections = {
                    number: other for number, other in self._connections.items() if other != action.connection
                }
        if not self._has_acted:
            self.place = None
            self.lost = self._parted or self._why_none()
            self.never = self._parted is None and not self._numbers

    def _why_none(self) -> str | None:
        if self._is_game:
            return None
        return f"the record has no {'other ' if self._has_passed else ''}place for it"

    def _is_mute(self, action: Action) -> bool:
        """Whether an action would go on where a message was cut."""
        if not self._is_cut or not self._has_acted or self.place is None:
            return False
        return isinstance(action, Say | Hang) and action.connection == self.place.connection

    def _is_place(self, line: Line) -> bool:
        return not self._has_acted and line.number in self._numbers

    def pass_by(self) -> None:
        self.place = None
        self._has_passed = True

    def acted(self, uses: int) -> None:
        self._has_acted = True
        assert self.place is not None
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
    def is_as_usual(self) -> bool:
        expected = self.place.expected if self.place is not None else None
        return expected is not None and self._parted is None and not self._part.awaits(expected)

    def has_left(self, connection: int) -> bool:
        return self._part.is_through(connection)

    # What the peer does.

    def moved(self, server: Role, address: str) -> None:
        self._part.moved(server, address)

    def accepted(self, connection: int, server: Role) -> None:
        self._known.add(connection)
        self._part.accepted(connection, server)

    def connected(self, connection: int, role: Role) -> None:
        self._known.add(connection)
        self._connections[role.number] = connection
        self._part.connected(connection, role)

    def heard(self, connection: int, data: bytes) -> Reaction:
        # A stranger of ours has no part in the record.
        if connection not in self._known:
            return Reaction()
        reaction = self._part.heard(connection, data)
        self._note(reaction, self.is_as_usual)
        return reaction

    def ended(self, connection: int, how: str) -> Reaction:
        if connection not in self._known:
            return Reaction()
        was_as_usual = self.is_as_usual
        reaction = self._part.ended(connection, how)
        self._note(reaction, was_as_usual)
        return reaction

    def overdue(self, listened: Listen) -> Reaction:
        reaction = self._part.overdue(listened)
        self._note(reaction, self.is_as_usual)
        return reaction

    def _note(self, reaction: Reaction, is_as_usual: bool) -> None:
        """Remember the first divergence, unless all has come already that is waited for."""
        if self._parted is None and reaction.divergences and not is_as_usual:
            self._parted = reaction.divergences[0].text
            self.parted_at = reaction.divergences[0].number
