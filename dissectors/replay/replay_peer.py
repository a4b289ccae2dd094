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
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.grammar.framing import FRAME_LIMIT, Frame, Framer
from kiebitz.dissectors.grammar.grammar import Decoded, MessageType, Violation, unreadable
from kiebitz.dissectors.model import OPPOSITE, Direction
from kiebitz.dissectors.replay.binding import Bindings
from kiebitz.dissectors.replay.exchanges import Exchanges
from kiebitz.dissectors.replay.expected_lines import ExpectedLines, LiveMessage
from kiebitz.dissectors.replay.script import (
    RecordedLine,
    Script,
    ScriptStep,
    StreamClosing,
    StreamOpening,
    StreamRole,
)

DivergencePolicy = Literal["stop", "skip", "wait", "adapt"]
"""After a divergence: stop; or use the message received in place of the expected one and continue without the
latter; or ignore it and keep waiting, up to the timeout, for what the record has; or adapt to
a server: use its values, ignore messages that the record lacks, and answer whichever client it asks."""

_TOO_LONG = unreadable(Violation("error", "malformed", "too-long", f"longer than {FRAME_LIMIT} bytes", 0, 0))


class SendBytes(msgspec.Struct, frozen=True):
    """Send bytes on a connection, `since_ns` nanoseconds after the previous step at the recorded pace.

    An action that is `apart` follows one on another stream at once; a short delay must separate them, so that
    both arrive in order. `line` is the recorded line, None for a reply to a heartbeat. `wire` are the bytes
    that carry the frame `data`, None if those are the same.
    """

    connection: int
    data: bytes
    since_ns: int = 0
    apart: bool = False
    line: RecordedLine | None = None
    wire: bytes | None = None

    @property
    def to_send(self) -> bytes:
        """The bytes to send."""
        return self.data if self.wire is None else self.wire


class OpenConnection(msgspec.Struct, frozen=True):
    """Open a connection to the role's server, and report its number to `ReplayPeer.connected`."""

    role: StreamRole
    since_ns: int
    apart: bool


class CloseConnection(msgspec.Struct, frozen=True):
    """Send nothing more on a connection, and close it."""

    connection: int
    since_ns: int
    apart: bool


class AwaitPeer(msgspec.Struct, frozen=True):
    """Wait for the peer: for `line`, or, if that is None, for a client to connect."""

    role: StreamRole
    line: RecordedLine | None


class WaitUntil(msgspec.Struct, frozen=True):
    """Wait until a peer does anything, at most until this time of the monotonic clock."""

    until: float


PeerAction = SendBytes | OpenConnection | CloseConnection | AwaitPeer | WaitUntil


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


class InputResult(msgspec.Struct, frozen=True):
    """The consequences of input from the peer: its divergences, and replies to send at once."""

    divergences: tuple[Divergence, ...] = ()
    replies: tuple[SendBytes, ...] = ()


class _LiveConnection(msgspec.Struct, eq=False):
    """A live connection to a server of the record; its role may still have to be determined."""

    dissector: Dissector
    server_key: str
    framer: Framer
    received_bytes: int = 0
    latest: bytes = b""
    """The last frame that was received."""
    progress: _RoleProgress | None = None


class _RoleProgress(msgspec.Struct, eq=False):
    """The progress of a role: the lines it expects, and the numbers of the lines it has still to send."""

    role: StreamRole
    expected_lines: ExpectedLines
    ours: deque[int] = msgspec.field(default_factory=deque)
    greets: bool = False
    """True if the very first line is ours."""
    unanswered_heartbeats: int = 0
    """Number of heartbeats of the peer that the record, as far as it is known, does not answer."""
    connection: int | None = None
    absent: bool = False
    """True if no client connected for this role, and the replay continues without it."""


class ReplayPeer:
    """A replay of the side that sends in the direction `plays`.

    `dissectors` are those of the script's protocols, by name.
    """

    def __init__(
        self, script: Script, plays: Direction, dissectors: Mapping[str, Dissector], policy: DivergencePolicy
    ) -> None:
        self._input_direction: Direction = OPPOSITE[plays]
        self._bindings = Bindings()
        self.stopped = False
        """True if a divergence has ended the replay."""
        self.lines = 0
        """Number of recorded messages replayed so far."""
        self._script = script
        self._plays: Direction = plays
        self._policy = policy
        self._dissectors = dissectors
        self._connections: dict[int, _LiveConnection] = {}
        self._immediate: set[int] = set()
        """The numbers of our answers to heartbeats, which are sent whenever the live peer asks."""
        self._acted: set[tuple[int, int | None]] = set()
        """Our actions since the peer was last awaited: role and event."""
        self._progress = {
            role.number: _RoleProgress(role, ExpectedLines(role, dissectors[role.protocol], self._bindings))
            for role in script.roles
        }
        self._exchanges = Exchanges(script if policy == "adapt" else Script((), ()), dissectors)
        for step in script.steps:
            if isinstance(step, RecordedLine):
                self._learn(self._progress[step.role.number], step)

    def _learn(self, progress: _RoleProgress, line: RecordedLine) -> None:
        """Note a line as ours, or as one to wait for."""
        if line.number in self._exchanges.by_answer:
            return
        if line.direction == self._plays:
            progress.greets = progress.greets or progress.expected_lines.next is None
            progress.ours.append(line.number)
            if progress.unanswered_heartbeats and self._row(
                line, lambda row: row.heartbeat and bool(row.answers)
            ):
                progress.unanswered_heartbeats -= 1
                self._immediate.add(line.number)
        elif self._row(line, lambda row: row.heartbeat):
            progress.unanswered_heartbeats += 1
        else:
            progress.expected_lines.expect(line)

    # Actions.

    def actions(self) -> Iterator[PeerAction]:
        """Yield the next actions; each is requested when the one before it is done."""
        before_ns: int | None = None
        for step in self._script.steps:
            progress = self._progress[step.role.number]
            since_ns = step.ts_ns - before_ns if before_ns is not None else 0
            before_ns = step.ts_ns
            if isinstance(step, StreamOpening):
                yield from self._open(progress, step, since_ns)
            elif isinstance(step, StreamClosing):
                if progress.connection is not None:
                    yield CloseConnection(progress.connection, since_ns, self._note_action(step))
            elif (exchange := self._exchanges.by_answer.get(step.number)) is not None:
                while self._exchanges.is_pending(exchange) and not self.stopped:
                    self._acted.clear()
                    yield AwaitPeer(progress.role, exchange.question)
                if exchange.asked is not None and not self.stopped:
                    yield self._sending(self._progress[exchange.asked], step, since_ns)
            elif step.direction == self._plays:
                yield from self._send_line(progress, step, since_ns)
            elif not self._exchanges.covers(step):
                while progress.expected_lines.awaits(step) and not self.stopped:
                    self._acted.clear()
                    yield AwaitPeer(progress.role, step)
            if self.stopped:
                return
            self.lines += isinstance(step, RecordedLine)

    def _open(self, progress: _RoleProgress, step: StreamOpening, since_ns: int) -> Iterator[PeerAction]:
        if self._plays == "c2s":
            yield OpenConnection(progress.role, since_ns, self._note_action(step))
        elif progress.greets or progress.expected_lines.next is None:
            # A client that is to be greeted, or sends nothing at all, takes the role by connecting.
            yield from self._await_client(progress)

    def _await_client(self, progress: _RoleProgress) -> Iterator[PeerAction]:
        while progress.connection is None and not (progress.absent or self.stopped):
            come = next((number for number in self._connections if self._is_free_for(number, progress)), None)
            if come is not None:
                self._assign(come, progress)
            else:
                self._acted.clear()
                yield AwaitPeer(progress.role, None)

    def _send_line(self, progress: _RoleProgress, line: RecordedLine, since_ns: int) -> Iterator[PeerAction]:
        progress.ours.popleft()
        if line.number in self._immediate:
            return
        yield from self._await_client(progress)
        if progress.connection is not None and not self.stopped:
            yield self._sending(progress, line, since_ns)

    def _sending(self, progress: _RoleProgress, line: RecordedLine, since_ns: int) -> SendBytes:
        """Return the action that sends a line as this role, with the live identifiers."""
        assert progress.connection is not None
        talk = self._connections[progress.connection]
        data = self.with_live_names(line, progress.role.number)
        if talk.dissector.encapsulation is not None:
            data = talk.dissector.encapsulation.fitting(data, talk.latest)
        wire = talk.dissector.to_wire(data, self._plays)
        return SendBytes(progress.connection, data, since_ns, self._note_action(line), line, wire)

    def with_live_names(self, line: RecordedLine, role: int | None = None) -> bytes:
        """Return a line with the live identifiers; an identifier that is not bound yet is bound to itself.

        `role` is the number of the role that sends it, if it is not the line's own.
        """
        progress = self._progress[line.role.number if role is None else role]
        dissector = progress.expected_lines.dissector
        decoded = dissector.codec.decode(line.data, line.direction)
        if decoded.row is None or not line.whole:
            return line.data
        fields = self._bindings.to_live(dissector, decoded.row, decoded.fields, progress.role.number)
        return dissector.codec.rewrite(line.data, line.direction, fields)

    def awaits(self, line: RecordedLine) -> bool:
        """Return True if a line of the peer has not arrived yet."""
        return self._progress[line.role.number].expected_lines.awaits(line)

    def is_finished_on(self, connection: int) -> bool:
        """Return True if the record has nothing more on a connection, from either side."""
        progress = self._connections[connection].progress if connection in self._connections else None
        return progress is not None and progress.expected_lines.next is None and not progress.ours

    def _note_action(self, step: ScriptStep) -> bool:
        """Note an action; return whether another one was just done on another stream.

        Copies of one broadcast may arrive in any order.
        """
        event = step.event_id if isinstance(step, RecordedLine) else None
        apart = any(
            number != step.role.number and (event is None or event != other) for number, other in self._acted
        )
        if apart:
            self._acted.clear()
        self._acted.add((step.role.number, event))
        return apart

    # Input from the peer.

    def server_moved(self, server: StreamRole, address: str) -> None:
        """Set the live address of the server to which this role belongs."""
        self._bindings.move(server.server, address)

    def client_accepted(self, connection: int, server: StreamRole) -> None:
        """Report a client's connection to the server to which this role belongs."""
        self._add_connection(connection, server)

    def connected(self, connection: int, role: StreamRole) -> None:
        """Report that our connection for a role is established."""
        self._add_connection(connection, role)
        self._assign(connection, self._progress[role.number])

    def data_received(self, connection: int, data: bytes) -> InputResult:
        """Process bytes from the peer: a datagram, or a piece of a stream."""
        talk = self._connections[connection]
        frames = [*talk.framer.feed(talk.received_bytes, data)]
        talk.received_bytes += len(data)
        # It may be our turn now, so a possible rest of a line end is not waited for.
        return self._read(connection, [*frames, *talk.framer.settle()])

    def connection_ended(self, connection: int, how: str) -> InputResult:
        """Report that the peer sends nothing more; `how` is a predicate, as in "has hung up"."""
        talk = self._connections[connection]
        reaction = self._read(connection, talk.framer.eof())
        progress = talk.progress
        line = progress.expected_lines.next if progress is not None else None
        if progress is None or line is None or self.stopped:
            return reaction
        expected = progress.expected_lines.describe(line)
        text = f"{self._peer} {how}, but the recording continues with {expected}"
        progress.expected_lines.give_all_up()
        self.stopped = self._policy == "adapt"
        divergence = self._diverge(progress, text, line)
        return InputResult((*reaction.divergences, divergence), reaction.replies)

    def timed_out(self, listened: AwaitPeer) -> InputResult:
        """Report that an awaited line or client did not arrive in time."""
        progress = self._progress[listened.role.number]
        line = listened.line
        if line is None:
            text = f"no client has connected for the recorded conversation of {progress.role.client}"
            if self._policy == "skip":
                progress.absent = True
                progress.expected_lines.give_all_up()
        else:
            text = (
                f"{self._peer} sends nothing, but the recording has {progress.expected_lines.describe(line)}"
            )
        # Waiting has a limit, too.
        self.stopped = self._policy != "skip" and not self._is_passed(line)
        divergence = self._diverge(progress, text, line)
        if line is not None and self._policy == "skip":
            progress.expected_lines.give_up(line)
        return InputResult((divergence,))

    def _is_passed(self, line: RecordedLine | None) -> bool:
        """Return True if a live server has not asked this question, but later ones; it is given up then."""
        found = (one for one in self._exchanges.by_answer.values() if one.question is line)
        exchange = next(found, None)
        return exchange is not None and self._exchanges.drop(exchange)

    def _add_connection(self, connection: int, role: StreamRole) -> None:
        dissector = self._dissectors[role.protocol]
        self._connections[connection] = _LiveConnection(
            dissector, role.server_key, dissector.framer(self._input_direction)
        )

    def _assign(self, connection: int, progress: _RoleProgress) -> None:
        """Assign a connection to a role."""
        progress.connection = connection
        self._connections[connection].progress = progress

    def _is_free_for(self, connection: int, progress: _RoleProgress) -> bool:
        """Return True if a connection is unassigned and belongs to the role's server."""
        talk = self._connections[connection]
        return talk.progress is None and talk.server_key == progress.role.server_key

    def _read(self, connection: int, frames: Iterable[Frame]) -> InputResult:
        talk = self._connections[connection]
        divergences: list[Divergence] = []
        replies: list[SendBytes] = []
        for frame in frames:
            if self.stopped:
                break
            decoded = self._decode(talk, frame)
            message = LiveMessage(decoded, frame.data, frame.offset, frame.size)
            talk.latest = frame.data
            if decoded.row is not None and decoded.row.heartbeat:
                replies += self._heartbeats(connection, talk.dissector, decoded.row.name, decoded.fields)
                continue
            progress = talk.progress or self._choose(connection, message)
            # A client beyond those of the record is ignored.
            if progress is None:
                continue
            if not progress.expected_lines.take(message, progress.ours[0] if progress.ours else None):
                divergences.append(self._surprised(progress, message))
            self._note_question(progress, decoded)
        return InputResult(tuple(divergences), tuple(replies))

    def _note_question(self, progress: _RoleProgress, live: Decoded) -> None:
        """Choose the recorded exchange for a live question, and bind its identifiers."""
        role, dissector = progress.role.number, progress.expected_lines.dissector
        exchange = self._exchanges.take(role, live.row.name) if live.row is not None else None
        if exchange is None:
            return
        asked = dissector.codec.decode(exchange.question.data, self._input_direction)
        if asked.row is not None:
            self._bindings.take(dissector, asked.row, asked.fields, live.fields, role)

    def _heartbeats(
        self, connection: int, dissector: Dissector, asked: str, fields: Fields
    ) -> Iterator[SendBytes]:
        """Yield the answers to a heartbeat, with its fields as far as they have them."""
        for answer in dissector.grammar.heartbeats_to(asked, self._plays):
            (row, *_) = dissector.grammar.rows_named(self._plays, answer)
            echoed = {field.name: fields[field.name] for field in row.fields if field.name in fields}
            data = dissector.codec.encode(answer, self._plays, echoed)
            yield SendBytes(connection, data, wire=dissector.to_wire(data, self._plays))

    def _decode(self, talk: _LiveConnection, frame: Frame) -> Decoded:
        if frame.cut is None:
            return talk.dissector.codec.decode(frame.data, self._input_direction)
        return (
            talk.dissector.codec.truncated(frame.data, self._input_direction)
            if frame.cut == "end"
            else _TOO_LONG
        )

    def _choose(self, connection: int, message: LiveMessage) -> _RoleProgress | None:
        """Return the role of a client that sends its first message; None for one beyond the record.

        It is the role that begins with this message: preferably with the same name in it, else with any.
        """
        free = [
            progress
            for progress in self._progress.values()
            if progress.connection is None and not progress.absent and self._is_free_for(connection, progress)
        ]
        chosen = (
            next((progress for progress in free if progress.expected_lines.is_first(message)), None)
            or next((progress for progress in free if progress.expected_lines.could_be_first(message)), None)
            or next(iter(free), None)
        )
        if chosen is not None:
            self._assign(connection, chosen)
        return chosen

    def _surprised(self, progress: _RoleProgress, message: LiveMessage) -> Divergence:
        """Return the divergence for an unexpected message."""
        text = f"{self._peer} says {progress.expected_lines.describe_mismatch(message)}"
        divergence = self._diverge(
            progress, text, progress.expected_lines.next, (message.offset, message.length)
        )
        if self._policy == "skip":
            progress.expected_lines.substitute(message)
        elif self._policy == "adapt":
            progress.expected_lines.adapt(message)
        return divergence

    def _diverge(
        self, progress: _RoleProgress, text: str, line: RecordedLine | None, at: tuple[int, int] | None = None
    ) -> Divergence:
        """Return a divergence at an offset and length of the input; stop if that is the policy."""
        self.stopped = self.stopped or self._policy == "stop"
        connection = progress.connection
        offset, length = at or (
            self._connections[connection].received_bytes if connection is not None else 0,
            0,
        )
        expected = progress.expected_lines.describe(line) if line is not None else None
        number = line.number if line is not None else None
        return Divergence(connection, self._input_direction, offset, length, text, expected, number)

    @property
    def _peer(self) -> str:
        return "the server" if self._input_direction == "s2c" else "the client"

    def _row(self, line: RecordedLine, holds: Callable[[MessageType], bool]) -> bool:
        """Return True if a condition holds for a row of a line's name."""
        grammar = self._dissectors[line.role.protocol].grammar
        return any(holds(row) for row in grammar.rows_named(line.direction, line.name))
