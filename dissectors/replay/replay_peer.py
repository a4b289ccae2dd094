"""One side of a recorded session, played to a live peer: what is to be said next, and what to be heard first.

A part goes through its script in the order of the record. It sends a line of its own once all lines that the
peer sent before it have come (`expected_lines.py`), with the live peer's names in place of the recorded ones
(`binding.py`). An unexpected line is a divergence.

It has no socket and no clock: whoever plays it takes one action after the other from `actions`, does it, and
tells what the peer does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.framing import FRAME_LIMIT, Frame, Framer
from kiebitz.dissectors.grammar.grammar import Decoded, Flaw, MessageType, unreadable
from kiebitz.dissectors.model import OPPOSITE, Direction
from kiebitz.dissectors.replay.binding import Bindings
from kiebitz.dissectors.replay.expected_lines import Cues, Heard
from kiebitz.dissectors.replay.script import Closing, Line, Opening, Role, Script, Step

Policy = Literal["stop", "skip", "wait"]
"""After a divergence: end; or take what came for what was to come, and go on without what did not come; or
let it pass, and wait for what the record has."""

_TOO_LONG = unreadable(Flaw("error", "malformed", "too-long", f"longer than {FRAME_LIMIT} bytes", 0, 0))


class Say(msgspec.Struct, frozen=True):
    """Send bytes on a connection, `since_ns` after the step before it if the pace is the record's.

    What is `apart` follows another stream's at once: for both to arrive in order, a moment must lie between.
    `line` is the record's, None for what is only answered.
    """

    connection: int
    data: bytes
    since_ns: int = 0
    apart: bool = False
    line: Line | None = None


class Call(msgspec.Struct, frozen=True):
    """Open a connection to the role's server, and tell `Part.connected` its number."""

    role: Role
    since_ns: int
    apart: bool


class Hang(msgspec.Struct, frozen=True):
    """Say nothing more on a connection, and end it."""

    connection: int
    since_ns: int
    apart: bool


class Listen(msgspec.Struct, frozen=True):
    """Wait until the peer does something: it is to say `line`, or, if that is None, to connect."""

    role: Role
    line: Line | None


class Rest(msgspec.Struct, frozen=True):
    """Wait until a peer does anything, but no longer than until this moment of the monotonic clock."""

    until: float


Action = Say | Call | Hang | Listen | Rest


class Divergence(msgspec.Struct, frozen=True):
    """Where the live peer parts from the record; the text has both versions, `expected` the record's.

    `offset` and `length` are bytes in the peer's direction of the connection; that is None where nobody came.
    """

    connection: int | None
    direction: Direction
    offset: int
    length: int
    text: str
    expected: str | None
    number: int | None = None
    """That line's, None where the record has nothing more."""


class Reaction(msgspec.Struct, frozen=True):
    """What comes of what the peer did: how it diverges, and what is to be answered at once."""

    divergences: tuple[Divergence, ...] = ()
    replies: tuple[Say, ...] = ()


class _Talk(msgspec.Struct, eq=False):
    """A live connection, to a server of the record; who it is may have to be seen yet."""

    dissector: Dissector
    server_key: str
    framer: Framer
    came: int = 0
    played: _Played | None = None


class _Played(msgspec.Struct, eq=False):
    """How far a role is: what is to be heard, and the numbers of the lines that are yet to be said."""

    role: Role
    cues: Cues
    ours: deque[int] = msgspec.field(default_factory=deque)
    greets: bool = False
    """Whether the first line of all is ours."""
    connection: int | None = None
    absent: bool = False
    """True if no client came for this role, and the replay goes on without it."""


class Part:
    """Plays the side that says what goes in the direction `plays`.

    `dissectors` are those of the script's protocols, by name.
    """

    def __init__(
        self, script: Script, plays: Direction, dissectors: Mapping[str, Dissector], policy: Policy
    ) -> None:
        self._hears: Direction = OPPOSITE[plays]
        self._bindings = Bindings()
        self.stopped = False
        """Whether a divergence has ended it."""
        self.lines = 0
        """How many messages of the record it has gone past."""
        self._script = script
        self._plays: Direction = plays
        self._policy = policy
        self._dissectors = dissectors
        self._talks: dict[int, _Talk] = {}
        self._acted: set[tuple[int, int | None]] = set()
        """What we have done since the peer was last waited for: role and event."""
        self._overdue: int | None = None
        """The line that was told to be overdue, and is waited for nevertheless."""
        self._played = {
            role.number: _Played(role, Cues(role, dissectors[role.protocol], self._bindings))
            for role in script.roles
        }
        for step in script.steps:
            if isinstance(step, Line):
                self._learn(self._played[step.role.number], step)

    def _learn(self, played: _Played, line: Line) -> None:
        """Note a line as ours, or as one to be waited for."""
        if line.direction == self._plays:
            played.greets = played.greets or played.cues.next is None
            played.ours.append(line.number)
        elif not self._row(line, lambda row: row.heartbeat):
            played.cues.expect(line)

    # What is to be done.

    def actions(self) -> Iterator[Action]:
        """What is to be done next; each action is taken when the one before it is done."""
        before_ns: int | None = None
        for step in self._script.steps:
            played = self._played[step.role.number]
            since_ns = step.ts_ns - before_ns if before_ns is not None else 0
            before_ns = step.ts_ns
            if isinstance(step, Opening):
                yield from self._open(played, step, since_ns)
            elif isinstance(step, Closing):
                if played.connection is not None:
                    yield Hang(played.connection, since_ns, self._act(step))
            elif step.direction == self._plays:
                yield from self._say(played, step, since_ns)
            else:
                while played.cues.awaits(step) and not self.stopped:
                    self._acted.clear()
                    yield Listen(played.role, step)
            if self.stopped:
                return
            self.lines += isinstance(step, Line)

    def _open(self, played: _Played, step: Opening, since_ns: int) -> Iterator[Action]:
        if self._plays == "c2s":
            yield Call(played.role, since_ns, self._act(step))
        elif played.greets or played.cues.next is None:
            # Who is to be greeted, or says nothing at all, takes the role by coming.
            yield from self._await_client(played)

    def _await_client(self, played: _Played) -> Iterator[Action]:
        while played.connection is None and not (played.absent or self.stopped):
            come = next((number for number in self._talks if self._may_take(number, played)), None)
            if come is not None:
                self._give(come, played)
            else:
                self._acted.clear()
                yield Listen(played.role, None)

    def _say(self, played: _Played, line: Line, since_ns: int) -> Iterator[Action]:
        played.ours.popleft()
        if self._row(line, lambda row: row.heartbeat and bool(row.answers)):
            # It is said whenever the live peer asks.
            return
        yield from self._await_client(played)
        if played.connection is not None and not self.stopped:
            yield Say(played.connection, self.worded(line), since_ns, self._act(line), line)

    def worded(self, line: Line) -> bytes:
        """A line with the live names in it; a name that is not bound yet is bound to itself."""
        played = self._played[line.role.number]
        dissector = played.cues.dissector
        decoded = dissector.codec.decode(line.data, line.direction)
        if decoded.row is None or not line.whole:
            return line.data
        fields = self._bindings.told(dissector, decoded.row, decoded.fields, played.role.number)
        return dissector.codec.rewrite(line.data, line.direction, fields)

    def awaits(self, line: Line) -> bool:
        """Whether a line of the peer's is yet to come."""
        return self._played[line.role.number].cues.awaits(line)

    def is_through(self, connection: int) -> bool:
        """Whether the record has nothing more on a connection, of ours or of the peer's."""
        played = self._talks[connection].played if connection in self._talks else None
        return played is not None and played.cues.next is None and not played.ours

    def _act(self, step: Step) -> bool:
        """Note that we act, and say whether something else was just done on another stream.

        Copies of one broadcast may arrive in any order.
        """
        event = step.event_id if isinstance(step, Line) else None
        apart = any(
            number != step.role.number and (event is None or event != other) for number, other in self._acted
        )
        if apart:
            self._acted.clear()
        self._acted.add((step.role.number, event))
        return apart

    # What the peer does.

    def moved(self, server: Role, address: str) -> None:
        """The server that this role is of is at this address today."""
        self._bindings.move(server.server, address)

    def accepted(self, connection: int, server: Role) -> None:
        """A client has come to the server that this role is of."""
        self._meet(connection, server)

    def connected(self, connection: int, role: Role) -> None:
        """Our call for a role has been taken."""
        self._meet(connection, role)
        self._give(connection, self._played[role.number])

    def heard(self, connection: int, data: bytes) -> Reaction:
        """The peer has sent bytes: a datagram, or a piece of a stream."""
        talk = self._talks[connection]
        frames = [*talk.framer.feed(talk.came, data)]
        talk.came += len(data)
        # It may be our turn now: what could still belong to a line end is not waited for.
        return self._read(connection, [*frames, *talk.framer.settle()])

    def ended(self, connection: int, how: str) -> Reaction:
        """What the peer was still to say will not come; `how` is a predicate, as in "has hung up"."""
        talk = self._talks[connection]
        reaction = self._read(connection, talk.framer.eof())
        played = talk.played
        line = played.cues.next if played is not None else None
        if played is None or line is None or self.stopped:
            return reaction
        text = f"{self._peer} {how}, where the record goes on with {played.cues.recorded(line)}"
        played.cues.give_all_up()
        divergence = self._diverge(played, text, line)
        return Reaction((*reaction.divergences, divergence), reaction.replies)

    def overdue(self, listened: Listen) -> Reaction:
        """What was listened for has not come in time."""
        played = self._played[listened.role.number]
        line = listened.line
        if line is None:
            text = f"nobody has come for the conversation that {played.role.client} had"
            if self._policy == "skip":
                played.absent = True
                played.cues.give_all_up()
        elif self._overdue == line.number:
            return Reaction()
        else:
            self._overdue = line.number
            text = f"{self._peer} says nothing, where the record has {played.cues.recorded(line)}"
        divergence = self._diverge(played, text, line)
        if line is not None and self._policy == "skip":
            played.cues.give_up(line)
        return Reaction((divergence,))

    def _meet(self, connection: int, role: Role) -> None:
        dissector = self._dissectors[role.protocol]
        self._talks[connection] = _Talk(dissector, role.server_key, dissector.framer(self._hears))

    def _give(self, connection: int, played: _Played) -> None:
        """This connection is the role's from now on."""
        played.connection = connection
        self._talks[connection].played = played

    def _may_take(self, connection: int, played: _Played) -> bool:
        """Whether a connection is nobody's yet, and a role's."""
        talk = self._talks[connection]
        return talk.played is None and talk.server_key == played.role.server_key

    def _read(self, connection: int, frames: Iterable[Frame]) -> Reaction:
        talk = self._talks[connection]
        divergences: list[Divergence] = []
        replies: list[Say] = []
        for frame in frames:
            if self.stopped:
                break
            decoded = self._decode(talk, frame)
            heard = Heard(decoded, frame.data, frame.offset, frame.size)
            if decoded.row is not None and decoded.row.heartbeat:
                for answer in talk.dissector.grammar.heartbeats_to(decoded.row.name, self._plays):
                    replies.append(Say(connection, talk.dissector.codec.encode(answer, self._plays, {})))
                continue
            played = talk.played or self._choose(connection, heard)
            # A client more than the record has is nobody's concern.
            if played is not None and not played.cues.take(heard, played.ours[0] if played.ours else None):
                divergences.append(self._surprised(played, heard))
        return Reaction(tuple(divergences), tuple(replies))

    def _decode(self, talk: _Talk, frame: Frame) -> Decoded:
        if frame.cut is None:
            return talk.dissector.codec.decode(frame.data, self._hears)
        return talk.dissector.codec.truncated(frame.data, self._hears) if frame.cut == "end" else _TOO_LONG

    def _choose(self, connection: int, heard: Heard) -> _Played | None:
        """The role of a client who speaks for the first time; None for one more than the record has.

        It is the role that begins with what he says: one of his name, else anybody's.
        """
        free = [
            played
            for played in self._played.values()
            if played.connection is None and not played.absent and self._may_take(connection, played)
        ]
        chosen = (
            next((played for played in free if played.cues.is_first(heard)), None)
            or next((played for played in free if played.cues.could_be_first(heard)), None)
            or next(iter(free), None)
        )
        if chosen is not None:
            self._give(connection, chosen)
        return chosen

    def _surprised(self, played: _Played, heard: Heard) -> Divergence:
        """The peer says what is not expected of it."""
        text = f"{self._peer} says {played.cues.surprise(heard)}"
        divergence = self._diverge(played, text, played.cues.next, (heard.offset, heard.length))
        if self._policy == "skip":
            played.cues.stand_in(heard)
        return divergence

    def _diverge(
        self, played: _Played, text: str, line: Line | None, at: tuple[int, int] | None = None
    ) -> Divergence:
        """Tell a divergence, at an offset and length in what came; end, if that is the policy."""
        self.stopped = self.stopped or self._policy == "stop"
        connection = played.connection
        offset, length = at or (self._talks[connection].came if connection is not None else 0, 0)
        expected = played.cues.recorded(line) if line is not None else None
        number = line.number if line is not None else None
        return Divergence(connection, self._hears, offset, length, text, expected, number)

    @property
    def _peer(self) -> str:
        return "the server" if self._hears == "s2c" else "the client"

    def _row(self, line: Line, holds: Callable[[MessageType], bool]) -> bool:
        """Whether something holds for a row of a line's name."""
        grammar = self._dissectors[line.role.protocol].grammar
        return any(holds(row) for row in grammar.rows_named(line.direction, line.name))
