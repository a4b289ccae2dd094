"""One side of a recorded session, replayed to a live peer.

The replay follows its script in the order of the record. It sends one of its lines once all lines that the
peer sent before it have arrived (`expected_lines.py`), with the live peer's identifiers in place of the
recorded ones (`binding.py`). An unexpected line is a divergence.

It has no socket and no clock: a driver takes one action after the other from `actions`, carries it out, and
reports what the peer does.
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
"""After a divergence: stop; or use the message received in place of the expected one and continue without the
latter; or ignore it and keep waiting for what the record has."""

_TOO_LONG = unreadable(Flaw("error", "malformed", "too-long", f"longer than {FRAME_LIMIT} bytes", 0, 0))


class Say(msgspec.Struct, frozen=True):
    """Send bytes on a connection, `since_ns` nanoseconds after the previous step at the recorded pace.

    An action that is `apart` follows one on another stream at once; a short delay must separate them, so that
    both arrive in order. `line` is the recorded line, None for a reply to a heartbeat.
    """

    connection: int
    data: bytes
    since_ns: int = 0
    apart: bool = False
    line: Line | None = None


class Call(msgspec.Struct, frozen=True):
    """Open a connection to the role's server, and report its number to `Part.connected`."""

    role: Role
    since_ns: int
    apart: bool


class Hang(msgspec.Struct, frozen=True):
    """Send nothing more on a connection, and close it."""

    connection: int
    since_ns: int
    apart: bool


class Listen(msgspec.Struct, frozen=True):
    """Wait for the peer: for `line`, or, if that is None, for a client to connect."""

    role: Role
    line: Line | None


class Rest(msgspec.Struct, frozen=True):
    """Wait until a peer does anything, at most until this time of the monotonic clock."""

    until: float


Action = Say | Call | Hang | Listen | Rest


class Divergence(msgspec.Struct, frozen=True):
    """A difference between the live peer and the record; the text has both versions, `expected` the record's.

    `offset` and `length` refer to the peer's direction of the connection, which is None if no client
    connected.
    """

    connection: int | None
    direction: Direction
    offset: int
    length: int
    text: str
    expected: str | None
    number: int | None = None
    """The expected line's number, None if the record has nothing more."""


class Reaction(msgspec.Struct, frozen=True):
    """The consequences of input from the peer: its divergences, and replies to send at once."""

    divergences: tuple[Divergence, ...] = ()
    replies: tuple[Say, ...] = ()


class _Talk(msgspec.Struct, eq=False):
    """A live connection to a server of the record; its role may still have to be determined."""

    dissector: Dissector
    server_key: str
    framer: Framer
    came: int = 0
    played: _Played | None = None


class _Played(msgspec.Struct, eq=False):
    """The progress of a role: the lines it expects, and the numbers of the lines it has still to send."""

    role: Role
    cues: Cues
    ours: deque[int] = msgspec.field(default_factory=deque)
    greets: bool = False
    """True if the very first line is ours."""
    connection: int | None = None
    absent: bool = False
    """True if no client connected for this role, and the replay continues without it."""


class Part:
    """A replay of the side that sends in the direction `plays`.

    `dissectors` are those of the script's protocols, by name.
    """

    def __init__(
        self, script: Script, plays: Direction, dissectors: Mapping[str, Dissector], policy: Policy
    ) -> None:
        self._hears: Direction = OPPOSITE[plays]
        self._bindings = Bindings()
        self.stopped = False
        """True if a divergence has ended the replay."""
        self.lines = 0
        """Number of recorded messages replayed so far."""
        self._script = script
        self._plays: Direction = plays
        self._policy = policy
        self._dissectors = dissectors
        self._talks: dict[int, _Talk] = {}
        self._acted: set[tuple[int, int | None]] = set()
        """Our actions since the peer was last awaited: role and event."""
        self._overdue: int | None = None
        """The line that was reported as overdue and is still awaited."""
        self._played = {
            role.number: _Played(role, Cues(role, dissectors[role.protocol], self._bindings))
            for role in script.roles
        }
        for step in script.steps:
            if isinstance(step, Line):
                self._learn(self._played[step.role.number], step)

    def _learn(self, played: _Played, line: Line) -> None:
        """Note a line as ours, or as one to wait for."""
        if line.direction == self._plays:
            played.greets = played.greets or played.cues.next is None
            played.ours.append(line.number)
        elif not self._row(line, lambda row: row.heartbeat):
            played.cues.expect(line)

    # Actions.

    def actions(self) -> Iterator[Action]:
        """Yield the next actions; each is requested when the one before it is done."""
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
            # A client that is to be greeted, or sends nothing at all, takes the role by connecting.
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
            # It is sent whenever the live peer asks.
            return
        yield from self._await_client(played)
        if played.connection is not None and not self.stopped:
            yield Say(played.connection, self.worded(line), since_ns, self._act(line), line)

    def worded(self, line: Line) -> bytes:
        """Return a line with the live identifiers; an identifier that is not bound yet is bound to itself."""
        played = self._played[line.role.number]
        dissector = played.cues.dissector
        decoded = dissector.decode(line.data, line.direction)
        if decoded.row is None or not line.whole:
            return line.data
        fields = self._bindings.told(dissector, decoded.row, decoded.fields, played.role.number)
        return dissector.rewrite(line.data, line.direction, fields)

    def awaits(self, line: Line) -> bool:
        """Return True if a line of the peer has not arrived yet."""
        return self._played[line.role.number].cues.awaits(line)

    def is_through(self, connection: int) -> bool:
        """Return True if the record has nothing more on a connection, from either side."""
        played = self._talks[connection].played if connection in self._talks else None
        return played is not None and played.cues.next is None and not played.ours

    def _act(self, step: Step) -> bool:
        """Note an action; return whether another one was just done on another stream.

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

    # Input from the peer.

    def moved(self, server: Role, address: str) -> None:
        """Set the live address of the server to which this role belongs."""
        self._bindings.move(server.server, address)

    def accepted(self, connection: int, server: Role) -> None:
        """Report a client's connection to the server to which this role belongs."""
        self._meet(connection, server)

    def connected(self, connection: int, role: Role) -> None:
        """Report that our connection for a role is established."""
        self._meet(connection, role)
        self._give(connection, self._played[role.number])

    def heard(self, connection: int, data: bytes) -> Reaction:
        """Process bytes from the peer: a datagram, or a piece of a stream."""
        talk = self._talks[connection]
        frames = [*talk.framer.feed(talk.came, data)]
        talk.came += len(data)
        # It may be our turn now, so a possible rest of a line end is not waited for.
        return self._read(connection, [*frames, *talk.framer.settle()])

    def ended(self, connection: int, how: str) -> Reaction:
        """Report that the peer sends nothing more; `how` is a predicate, as in "has hung up"."""
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
        """Report that an awaited line or client did not arrive in time."""
        played = self._played[listened.role.number]
        line = listened.line
        if line is None:
            text = f"no client has connected for the recorded conversation of {played.role.client}"
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
        """Assign a connection to a role."""
        played.connection = connection
        self._talks[connection].played = played

    def _may_take(self, connection: int, played: _Played) -> bool:
        """Return True if a connection is unassigned and belongs to the role's server."""
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
                    replies.append(Say(connection, talk.dissector.encode(answer, self._plays, {})))
                continue
            played = talk.played or self._choose(connection, heard)
            # A client beyond those of the record is ignored.
            if played is not None and not played.cues.take(heard, played.ours[0] if played.ours else None):
                divergences.append(self._surprised(played, heard))
        return Reaction(tuple(divergences), tuple(replies))

    def _decode(self, talk: _Talk, frame: Frame) -> Decoded:
        if frame.cut is None:
            return talk.dissector.decode(frame.data, self._hears)
        return talk.dissector.truncated(frame.data, self._hears) if frame.cut == "end" else _TOO_LONG

    def _choose(self, connection: int, heard: Heard) -> _Played | None:
        """Return the role of a client that sends its first message; None for one beyond the record.

        It is the role that begins with this message: preferably with the same name in it, else with any.
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
        """Return the divergence for an unexpected message."""
        text = f"{self._peer} says {played.cues.surprise(heard)}"
        divergence = self._diverge(played, text, played.cues.next, (heard.offset, heard.length))
        if self._policy == "skip":
            played.cues.stand_in(heard)
        return divergence

    def _diverge(
        self, played: _Played, text: str, line: Line | None, at: tuple[int, int] | None = None
    ) -> Divergence:
        """Return a divergence at an offset and length of the input; stop if that is the policy."""
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
        """Return True if a condition holds for a row of a line's name."""
        grammar = self._dissectors[line.role.protocol].grammar
        return any(holds(row) for row in grammar.rows_named(line.direction, line.name))
