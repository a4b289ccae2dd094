"""The part of a session's traffic that a protocol describes."""

from __future__ import annotations

from collections import Counter, defaultdict

import msgspec

from kiebitz.dissectors.model import DIRECTIONS, Direction, Transport, port_of
from kiebitz.storage.read.recorded_bytes import RecordedBytes
from kiebitz.storage.read.timeline import Timeline

_MAX_FAILURES = 1_000
"""Maximum number of different failures that are kept."""

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
    """

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol
        self.directions = {direction: Covered() for direction in DIRECTIONS}
        self.shapes: dict[tuple[Direction, str], set[frozenset[str]]] = defaultdict(set)
        self._failures: dict[tuple[Direction, str], Failure] = {}
        self.others: Counter[tuple[Transport, int]] = Counter()

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
