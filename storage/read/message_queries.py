"""The wire side of a stored session: its streams, messages and diagnostics.

The bytes themselves are in `storage/read/recorded_bytes.py`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, get_args

import msgspec

from kiebitz.dissectors.grammar.grammar import UNREADABLE
from kiebitz.dissectors.model import Blame, Direction, Group, Severity, Transport
from kiebitz.dissectors.suggestions import suggested
from kiebitz.storage.database.schema import GREATEST_ID, OF_SESSION
from kiebitz.storage.read.timeline import Timeline, increasing

Parameters = Sequence[str | int | float]

_OF_SESSION = OF_SESSION["messages"]

SHOWN = 100
"""So many bytes of a message without fields are shown."""

FROM_ITS_BYTES: tuple[Group, ...] = ("malformed", "network")
"""What can be said of a message from what its own connection shows."""


def groups_seen(player: str | None) -> tuple[Group, ...]:
    """The groups of diagnostics that somebody may see: to a player the others tell what is hidden."""
    return get_args(Group) if player is None else FROM_ITS_BYTES


class StreamRow(msgspec.Struct, frozen=True):
    """A stream, with the number of its messages, its bytes, and the bytes that are known to be missing."""

    id: int
    protocol: str | None
    transport: Transport
    client: str
    server: str
    opened_ns: int
    closed_ns: int | None
    close_reason: str | None
    messages: int
    bytes: int
    missing_c2s: int
    missing_s2c: int


class StreamOnList(msgspec.Struct, frozen=True):
    """A stream in short: how many messages it carried takes one pass over all of them, and is left out."""

    id: int
    protocol: str | None
    transport: Transport
    client: str
    server: str
    closed_ns: int | None
    close_reason: str | None
    bytes: int


class MessageRow(msgspec.Struct, frozen=True):
    """A message as it is stored."""

    id: int
    stream_id: int
    direction: Direction
    ts_ns: int
    name: str
    fields: dict[str, Any]
    offset: int
    length: int
    game_id: int | None
    event_id: int | None


class DiagnosticRow(msgspec.Struct, frozen=True):
    """A diagnostic as it is stored, with name, place and event of the message it is about, if any."""

    id: int
    stream_id: int
    direction: Direction
    message_id: int | None
    ts_ns: int
    severity: Severity
    group: Group
    code: str
    text: str
    offset: int
    length: int
    expected: str | None
    clause: str | None
    blame: Blame
    message: str | None
    message_offset: int | None
    message_length: int | None
    event_id: int | None

    @property
    def suggestion(self) -> str | None:
        """What was probably meant."""
        return suggested(self.group, self.text)


class FlawOfMessage(msgspec.Struct, frozen=True):
    """In short what is wrong with a message."""

    id: int
    severity: Severity
    code: str
    text: str


_MISSING = (
    "(SELECT coalesce(sum(length), 0) FROM chunks WHERE stream_id = s.id AND data IS NULL"
    " AND direction = '{}')"
)


def streams(timeline: Timeline) -> list[StreamRow]:
    """The session's streams, oldest first."""
    rows = timeline.connection.execute(
        "SELECT s.id, s.protocol, s.transport, s.client, s.server, s.opened_ns, s.closed_ns, s.close_reason,"
        " coalesce(told.messages, 0),"
        " (SELECT coalesce(sum(length), 0) FROM chunks WHERE stream_id = s.id AND data IS NOT NULL),"
        f" {_MISSING.format('c2s')}, {_MISSING.format('s2c')}"
        " FROM streams AS s LEFT JOIN"
        " (SELECT stream_id, count(*) AS messages FROM messages GROUP BY stream_id) AS told"
        " ON told.stream_id = s.id WHERE s.session_id = ? ORDER BY s.id",
        (timeline.session.id,),
    )
    return [StreamRow(*row) for row in increasing(rows)]


_MESSAGE_COLUMNS = (
    "m.id, m.stream_id, m.direction, m.ts_ns, m.name, m.fields, m.offset, m.length, m.game_id, m.event_id"
)
_DIAGNOSTIC_COLUMNS = (
    "d.id, d.stream_id, d.direction, d.message_id, d.ts_ns, d.severity, d.grp, d.code, d.text, d.offset,"
    " d.length, d.expected, d.clause, d.blame, about.name, about.offset, about.length, about.event_id"
)


def messages(
    timeline: Timeline, condition: str = "1", parameters: Parameters = (), after: int = 0
) -> Iterator[MessageRow]:
    """The session's messages numbered above `after` that meet an SQL condition on `messages` (alias m)."""
    rows = timeline.connection.execute(
        f"SELECT {_MESSAGE_COLUMNS} FROM messages AS m"
        f" WHERE m.id > ? AND m.{_OF_SESSION} AND ({condition}) ORDER BY m.id",
        [after, timeline.session.id, *parameters],
    )
    return map(_message, increasing(rows))


def messages_between(
    timeline: Timeline,
    after: int | None,
    before: int | None,
    condition: str = "1",
    parameters: Parameters = (),
) -> Iterator[MessageRow]:
    """The session's messages above a number; or, if that is None, those below one, the latest first."""
    which, number, order = _side(after, before)
    # The plus keeps SQLite from taking the index by stream, and sorting all of it.
    rows = timeline.connection.execute(
        f"SELECT {_MESSAGE_COLUMNS} FROM messages AS m"
        f" WHERE m.id {which} ? AND +m.{_OF_SESSION} AND ({condition}) ORDER BY m.id {order}",
        [number, timeline.session.id, *parameters],
    )
    return map(_message, rows)


def _message(row: tuple[Any, ...]) -> MessageRow:
    number, stream, direction, ts_ns, name, fields, *rest = row
    return MessageRow(number, stream, direction, ts_ns, name, msgspec.json.decode(fields), *rest)


def _side(after: int | None, before: int | None) -> tuple[str, int, str]:
    if after is not None:
        return ">", after, "ASC"
    return "<", GREATEST_ID if before is None else before, "DESC"


def diagnostics(
    timeline: Timeline, condition: str = "1", parameters: Parameters = ()
) -> Iterator[DiagnosticRow]:
    """The session's diagnostics that meet an SQL condition on `diagnostics` (alias d), in order of time."""
    rows = timeline.connection.execute(
        f"SELECT {_DIAGNOSTIC_COLUMNS}"
        " FROM diagnostics AS d LEFT JOIN messages AS about ON about.id = d.message_id"
        f" WHERE d.{_OF_SESSION} AND ({condition}) ORDER BY d.ts_ns, d.id",
        [timeline.session.id, *parameters],
    )
    return (DiagnosticRow(*row) for row in rows)


def diagnostics_between(
    timeline: Timeline,
    after: int | None,
    before: int | None,
    condition: str = "1",
    parameters: Parameters = (),
) -> Iterator[DiagnosticRow]:
    """The session's diagnostics above a number, or below one, as `messages_between` has messages."""
    which, number, order = _side(after, before)
    rows = timeline.connection.execute(
        f"SELECT {_DIAGNOSTIC_COLUMNS}"
        " FROM diagnostics AS d LEFT JOIN messages AS about ON about.id = d.message_id"
        f" WHERE d.id {which} ? AND +d.{_OF_SESSION} AND ({condition}) ORDER BY d.id {order}",
        [number, timeline.session.id, *parameters],
    )
    return (DiagnosticRow(*row) for row in rows)


def flaws_of_messages(
    timeline: Timeline, messages: Sequence[int], groups: Sequence[Group] = get_args(Group)
) -> dict[int, list[FlawOfMessage]]:
    """What of these groups is wrong with each of these messages; those with which nothing is are left out."""
    rows = timeline.connection.execute(
        "SELECT message_id, id, severity, code, text FROM diagnostics"
        f" WHERE message_id IN ({', '.join('?' * len(messages))})"
        f" AND grp IN ({', '.join('?' * len(groups))}) ORDER BY id",
        [*messages, *groups],
    )
    flaws: dict[int, list[FlawOfMessage]] = {}
    for message, *flaw in rows:
        flaws.setdefault(message, []).append(FlawOfMessage(*flaw))
    return flaws


class MessageOnStream(NamedTuple):
    """A message, the client that said it or was told it, and which protocol is spoken there."""

    message: MessageRow
    client: str
    protocol: str | None


def messages_numbered(timeline: Timeline, numbers: Sequence[int]) -> list[MessageOnStream]:
    """The messages with these numbers; those that are not there are left out."""
    rows = timeline.connection.execute(
        "SELECT m.id, m.stream_id, m.direction, m.ts_ns, m.name, m.fields, m.offset, m.length, m.game_id,"
        " m.event_id, s.client, s.protocol FROM messages AS m JOIN streams AS s ON s.id = m.stream_id"
        f" WHERE m.id IN ({', '.join('?' * len(numbers))}) ORDER BY m.id",
        [*numbers],
    )
    found = []
    for number, stream, way, ts_ns, name, fields, offset, length, game, event, client, protocol in rows:
        said = msgspec.json.decode(fields)
        message = MessageRow(number, stream, way, ts_ns, name, said, offset, length, game, event)
        found.append(MessageOnStream(message, client, protocol))
    return found


class FlawOnStream(msgspec.Struct, frozen=True):
    """A diagnostic in short, and whose stream it is on."""

    id: int
    stream_id: int
    direction: Direction
    message_id: int | None
    ts_ns: int
    severity: Severity
    code: str
    text: str
    client: str
    server: str
    protocol: str | None
    event_id: int | None


def flaws_numbered(timeline: Timeline, numbers: Sequence[int]) -> list[FlawOnStream]:
    """The diagnostics with these numbers."""
    rows = timeline.connection.execute(
        "SELECT d.id, d.stream_id, d.direction, d.message_id, d.ts_ns, d.severity, d.code, d.text, s.client,"
        " s.server, s.protocol, about.event_id FROM diagnostics AS d JOIN streams AS s ON s.id = d.stream_id"
        " LEFT JOIN messages AS about ON about.id = d.message_id"
        f" WHERE d.id IN ({', '.join('?' * len(numbers))}) ORDER BY d.id",
        [*numbers],
    )
    return [FlawOnStream(*row) for row in rows]


def streams_numbered(timeline: Timeline, numbers: Sequence[int]) -> list[StreamOnList]:
    """The streams with these numbers."""
    rows = timeline.connection.execute(
        "SELECT s.id, s.protocol, s.transport, s.client, s.server, s.closed_ns, s.close_reason,"
        " (SELECT coalesce(sum(length), 0) FROM chunks WHERE stream_id = s.id AND data IS NOT NULL)"
        f" FROM streams AS s WHERE s.id IN ({', '.join('?' * len(numbers))}) ORDER BY s.id",
        [*numbers],
    )
    return [StreamOnList(*row) for row in rows]


class ReadingOn:
    """Finds where parsing resumed after a flaw.

    The first question makes one pass over the messages, of which it keeps 16 bytes each: they have no index
    by stream.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._connection = timeline.connection
        self._session = timeline.session.id
        self._known: dict[tuple[int, Direction], tuple[array[int], array[int]]] | None = None

    def after(self, flaw: DiagnosticRow) -> tuple[int, str] | None:
        """Offset and name of the next message of that direction that could be read; None if none came."""
        if self._known is None:
            self._known = self._readable()
        ids, offsets = self._known.get((flaw.stream_id, flaw.direction), (array("q"), array("q")))
        if flaw.message_id is not None:
            place = bisect_right(ids, flaw.message_id)
        else:
            place = bisect_left(offsets, flaw.offset + flaw.length)
        if place == len(ids):
            return None
        row = self._connection.execute("SELECT name FROM messages WHERE id = ?", (ids[place],)).fetchone()
        return offsets[place], row[0]

    def _readable(self) -> dict[tuple[int, Direction], tuple[array[int], array[int]]]:
        """Numbers and offsets of the messages that could be read, in each direction of a flawed stream."""
        known: dict[tuple[int, Direction], tuple[array[int], array[int]]] = {}
        rows = self._connection.execute(
            "SELECT stream_id, direction, id, offset FROM messages WHERE name != ? AND stream_id IN"
            f" (SELECT stream_id FROM diagnostics WHERE {_OF_SESSION}) ORDER BY id",
            (UNREADABLE, self._session),
        )
        for stream_id, direction, number, offset in rows:
            ids, offsets = known.setdefault((stream_id, direction), (array("q"), array("q")))
            ids.append(number)
            offsets.append(offset)
        return known
