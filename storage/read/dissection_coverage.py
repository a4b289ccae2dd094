"""The part of a session's traffic that a protocol describes."""

from __future__ import annotations

from collections import Counter, defaultdict

import msgspec

from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.model import DIRECTIONS, Direction, Transport, port_of
from kiebitz.storage.read.recorded_bytes import RecordedBytes
from kiebitz.storage.read.timeline import Timeline

_MAX_FAILURES = 1_000
"""Maximum number of different failures that are kept."""

_MAX_STATES = 20
"""Maximum number of states that are kept."""

_MAX_BYTES = 60
"""Maximum number of bytes of a malformed message that are kept."""

_MESSAGES = (
    "SELECT m.id, m.stream_id, m.direction, m.name, m.fields, m.offset, m.length FROM messages AS m"
    " JOIN streams AS s ON s.id = m.stream_id WHERE s.session_id = ? AND s.protocol = ? ORDER BY m.id"
)
_DIAGNOSTICS = (
    "SELECT d.message_id, d.code, d.text FROM diagnostics AS d JOIN streams AS s ON s.id = d.stream_id"
    " WHERE s.session_id = ? AND s.protocol = ? AND d.grp = 'malformed' AND d.severity != 'note'"
    " AND d.message_id IS NOT NULL ORDER BY d.id"
)
_OTHERS = (
    "SELECT s.transport, s.server, coalesce((SELECT sum(length) FROM chunks WHERE stream_id = s.id"
    " AND data IS NOT NULL), 0) FROM streams AS s WHERE s.session_id = ? AND s.protocol IS NOT ?"
)


class Covered(msgspec.Struct):
    """Messages and bytes of one direction; the `sound` ones have no malformed part."""

    messages: int = 0
    bytes: int = 0
    sound_messages: int = 0
    sound_bytes: int = 0


class Failure(msgspec.Struct):
    """Malformed messages with the same diagnostic: the first one's session, number and first bytes."""

    direction: Direction
    code: str
    text: str
    session: str
    number: int
    sent: bytes
    count: int = 0


class Coverage:
    """The traffic of sessions that is a protocol's.

    Attributes:
        directions: Messages and bytes by direction.
        shapes: The sets of fields that messages have, by direction and name.
        others: Bytes of streams that are not the protocol's, by transport and server port.
        kinds: The kinds of events.
        states: States of tables at the end of games, and of the sessions.
    """

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol
        self.directions = {direction: Covered() for direction in DIRECTIONS}
        self.shapes: dict[tuple[Direction, str], set[frozenset[str]]] = defaultdict(set)
        self._failures: dict[tuple[Direction, str], Failure] = {}
        self.others: Counter[tuple[Transport, int]] = Counter()
        self.kinds: set[str] = set()
        self.states: list[State] = []

    @property
    def failures(self) -> list[Failure]:
        """Malformed messages, in order of their first occurrence."""
        return [*self._failures.values()]

    @property
    def messages(self) -> int:
        """Number of messages."""
        return sum(covered.messages for covered in self.directions.values())

    def add(self, timeline: Timeline, session: str) -> None:
        """Add a session, which has this name."""
        which = timeline.session.id, self._protocol
        problems: dict[int, tuple[str, str]] = {}
        for number, code, text in timeline.connection.execute(_DIAGNOSTICS, which):
            problems.setdefault(number, (code, text))
        recorded = RecordedBytes(timeline.connection)
        decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
        for number, stream, direction, name, fields, offset, length in timeline.connection.execute(
            _MESSAGES, which
        ):
            covered = self.directions[direction]
            covered.messages += 1
            covered.bytes += length
            problem = problems.get(number)
            if problem is None:
                covered.sound_messages += 1
                covered.sound_bytes += length
                self.shapes[direction, name].add(frozenset(decode(fields)))
                continue
            code, text = problem
            failure = self._failures.get((direction, text))
            if failure is None and len(self._failures) < _MAX_FAILURES:
                end = offset + min(length, _MAX_BYTES)
                sent = b"".join(part.data or b"" for part in recorded.between(stream, direction, offset, end))
                shown = timeline.numbers.number("messages", number)
                failure = Failure(direction, code, text, session, shown, sent)
                self._failures[direction, text] = failure
            if failure is not None:
                failure.count += 1
        for transport, server, size in timeline.connection.execute(_OTHERS, which):
            self.others[transport, port_of(server)] += size
        for table in timeline.tables():
            if table.protocol == self._protocol:
                self._add_events(timeline, table.id)

    def _add_events(self, timeline: Timeline, table_id: int) -> None:
        state: State = {}
        for event in timeline.events_between(table_id, timeline.first_seq(table_id), None):
            self.kinds.add(event.kind)
            for path, value in event.changes:
                if value is None and path[0] == "games" and len(path) == 2:
                    self._add_state(state)
                apply(state, [(path, value)])
        self._add_state(state)

    def _add_state(self, state: State) -> None:
        if len(self.states) < _MAX_STATES:
            self.states.append(msgspec.json.decode(msgspec.json.encode(state)))
