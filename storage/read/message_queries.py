"""Queries for a session's streams, messages and diagnostics.

The bytes themselves are in `storage/read/recorded_bytes.py`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, get_args

import msgspec

from kiebitz.dissectors.grammar.grammar import UNREADABLE
from kiebitz.dissectors.model import PUBLIC, Diagnostic, Direction, Group, Message, Severity, Stream
from kiebitz.storage.database.schema import GREATEST_ID, OF_SESSION, SESSION_CONDITIONS, scalar
from kiebitz.storage.read.timeline import STREAM_COLUMNS, Timeline, check_ascending

Parameters = Sequence[str | int | float]

_OF_SESSION = SESSION_CONDITIONS["messages"]

MAX_SHOWN_BYTES = 100
"""Maximum bytes shown of a message without fields."""

VISIBLE_GROUPS: tuple[Group, ...] = ("malformed", "network")
"""Groups of diagnostics that only depend on a message's own connection."""


def visible_groups(player: str | None) -> tuple[Group, ...]:
    """Return the visible groups of diagnostics: for a player without those that reveal hidden information.

    The public view has none, as each belongs to one connection.
    """
    return get_args(Group) if player is None else () if player == PUBLIC else VISIBLE_GROUPS


class CountedStream(Stream, eq=False):
    """A stream with its bytes and, from `streams`, its numbers of messages and missing bytes.

    Counting messages takes one pass over the whole database.
    """

    bytes: int = 0
    messages: int = 0
    missing_c2s: int = 0
    missing_s2c: int = 0


class StoredDiagnostic(Diagnostic, eq=False, gc=False):
    """A stored diagnostic, with name, position, event and game of its message, if any."""

    id: int = 0
    message: str | None = None
    message_offset: int | None = None
    message_length: int | None = None
    event_id: int | None = None
    game_id: int | None = None


class MessageDiagnostic(msgspec.Struct, frozen=True):
    """Summary of a message's diagnostic."""

    id: int
    severity: Severity
    code: str
    text: str


_STREAM = (
    f"{STREAM_COLUMNS},"
    " (SELECT coalesce(sum(length), 0) FROM chunks WHERE stream_id = s.id AND data IS NOT NULL)"
)
_MISSING = (
    "(SELECT coalesce(sum(length), 0) FROM chunks WHERE stream_id = s.id AND data IS NULL"
    " AND direction = '{}')"
)
_MESSAGE = (
    "m.id, m.stream_id, m.direction, m.ts_ns, m.name, m.fields, m.offset, m.length, m.game_id, m.event_id"
)
_DIAGNOSTIC = (
    "d.stream_id, d.direction, d.ts_ns, d.severity, d.grp, d.code, d.text, d.offset, d.length, d.expected,"
    " d.clause, d.blame, d.message_id, d.id, about.name, about.offset, about.length, about.event_id,"
    " about.game_id"
    " FROM diagnostics AS d LEFT JOIN messages AS about ON about.id = d.message_id"
)


def streams(timeline: Timeline) -> list[CountedStream]:
    """Return the session's streams, oldest first."""
    rows = timeline.connection.execute(
        f"SELECT {_STREAM}, coalesce(told.messages, 0), {_MISSING.format('c2s')}, {_MISSING.format('s2c')}"
        " FROM streams AS s LEFT JOIN"
        " (SELECT stream_id, count(*) AS messages FROM messages GROUP BY stream_id) AS told"
        " ON told.stream_id = s.id WHERE s.session_id = ? ORDER BY s.id",
        (timeline.session.id,),
    )
    return [CountedStream(*row) for row in check_ascending(rows)]


def streams_numbered(timeline: Timeline, numbers: Sequence[int]) -> list[CountedStream]:
    """Return the streams with these ids, without messages and losses."""
    rows = timeline.connection.execute(
        f"SELECT {_STREAM} FROM streams AS s WHERE s.id IN ({placeholders(numbers)}) ORDER BY s.id",
        [*numbers],
    )
    return [CountedStream(*row) for row in rows]


def messages(
    timeline: Timeline,
    condition: str = "1",
    parameters: Parameters = (),
    after: int | None = 0,
    before: int | None = None,
    by: str = "",
) -> Iterator[Message]:
    """Yield the session's messages that meet an SQL condition on `messages` (alias m), by id.

    With `after` those above it, ascending; without it those below `before` (None: all), descending. `by` is
    another order in SQL.
    """
    which, number, order = _id_range(after, before)
    rows = timeline.connection.execute(
        f"SELECT {_MESSAGE} FROM messages AS m"
        f" WHERE m.id {which} ? AND {OF_SESSION.format('m')} AND ({condition})"
        f" ORDER BY {by or f'm.id {order}'}",
        [number, timeline.session.id, *parameters],
    )
    stream_of, decode = timeline.streams_now(), msgspec.json.decode
    for number, stream, direction, ts_ns, name, fields, offset, length, game_id, event_id in (
        rows if by or after is None else check_ascending(rows)
    ):
        yield Message(
            number,
            stream_of(stream),
            direction,
            ts_ns,
            name,
            decode(fields),
            fields,
            offset,
            length,
            game_id,
            event_id,
        )


def messages_numbered(timeline: Timeline, numbers: Sequence[int]) -> Iterator[Message]:
    """Yield the messages with these ids that exist."""
    return messages(timeline, f"m.id IN ({placeholders(numbers)})", numbers)


def diagnostics(
    timeline: Timeline, condition: str = "1", parameters: Parameters = ()
) -> Iterator[StoredDiagnostic]:
    """Yield the diagnostics that meet an SQL condition on `diagnostics` (alias d), in order of time."""
    rows = timeline.connection.execute(
        f"SELECT {_DIAGNOSTIC} WHERE d.{_OF_SESSION} AND ({condition}) ORDER BY d.ts_ns, d.id",
        [timeline.session.id, *parameters],
    )
    stream_of = timeline.streams_now()
    return (StoredDiagnostic(stream_of(stream), *row) for stream, *row in rows)


def diagnostics_by_id(
    timeline: Timeline,
    condition: str = "1",
    parameters: Parameters = (),
    after: int | None = 0,
    before: int | None = None,
    by: str = "",
) -> Iterator[StoredDiagnostic]:
    """Yield the diagnostics that meet a condition by id, above `after` or below `before` as in `messages`."""
    which, number, order = _id_range(after, before)
    rows = timeline.connection.execute(
        f"SELECT {_DIAGNOSTIC} WHERE d.id {which} ? AND {OF_SESSION.format('d')} AND ({condition})"
        f" ORDER BY {by or f'd.id {order}'}",
        [number, timeline.session.id, *parameters],
    )
    stream_of = timeline.streams_now()
    return (StoredDiagnostic(stream_of(stream), *row) for stream, *row in rows)


def diagnostics_numbered(timeline: Timeline, numbers: Sequence[int]) -> Iterator[StoredDiagnostic]:
    """Yield the diagnostics with these ids."""
    return diagnostics_by_id(timeline, f"d.id IN ({placeholders(numbers)})", numbers)


def _id_range(after: int | None, before: int | None) -> tuple[str, int, str]:
    if after is not None:
        return ">", after, "ASC"
    return "<", GREATEST_ID if before is None else before, "DESC"


def placeholders(values: Sequence[Any]) -> str:
    """Return placeholders for an SQL list of values."""
    return ", ".join("?" * len(values))


def diagnostics_of_messages(
    timeline: Timeline, messages: Sequence[int], groups: Sequence[Group] = get_args(Group)
) -> dict[int, list[MessageDiagnostic]]:
    """Return the diagnostics of these groups by message, for those messages that have any."""
    rows = timeline.connection.execute(
        "SELECT message_id, id, severity, code, text FROM diagnostics"
        f" WHERE message_id IN ({placeholders(messages)}) AND grp IN ({placeholders(groups)}) ORDER BY id",
        [*messages, *groups],
    )
    diagnostics: dict[int, list[MessageDiagnostic]] = {}
    for message, *diagnostic in rows:
        diagnostics.setdefault(message, []).append(MessageDiagnostic(*diagnostic))
    return diagnostics


class ResumptionFinder:
    """Finds the message at which parsing resumed after a violation.

    The first call makes one pass over the messages and keeps 16 bytes for each, as they have no index by
    stream.
    """

    def __init__(self, timeline: Timeline) -> None:
        self._connection = timeline.connection
        self._session = timeline.session.id
        self._known: dict[tuple[int, Direction], tuple[array[int], array[int]]] | None = None

    def after(self, diagnostic: StoredDiagnostic) -> tuple[int, str] | None:
        """Return offset and name of the direction's next readable message; None if there is none."""
        if self._known is None:
            self._known = self._readable()
        ids, offsets = self._known.get((diagnostic.stream.id, diagnostic.direction), (array("q"), array("q")))
        if diagnostic.message_id is not None:
            place = bisect_right(ids, diagnostic.message_id)
        else:
            place = bisect_left(offsets, diagnostic.offset + diagnostic.length)
        if place == len(ids):
            return None
        return offsets[place], scalar(self._connection, "SELECT name FROM messages WHERE id = ?", ids[place])

    def _readable(self) -> dict[tuple[int, Direction], tuple[array[int], array[int]]]:
        """Return ids and offsets of the readable messages by direction of each stream with diagnostics."""
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
