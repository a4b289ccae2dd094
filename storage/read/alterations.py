"""Stored alterations of a session's messages by Kiebitz.

A listed message counts as altered if it begins in bytes that were forwarded with an alteration. A dropped
message has no forwarded bytes, and so no row among the messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from kiebitz.dissectors.grammar.grammar import UNREADABLE
from kiebitz.dissectors.model import Action, Altered, Message, Stream
from kiebitz.storage.database.schema import ALTERATION_OF_MESSAGE, OF_SESSION, SESSION_CONDITIONS
from kiebitz.storage.read.timeline import Timeline, check_ascending

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter

ACTION_WORDS: dict[Action, str] = {
    "drop": "dropped",
    "change": "changed",
    "insert": "inserted",
    "double": "duplicated",
    "hold": "held back",
    "delay": "delayed",
    "reorder": "reordered",
    "cut": "split",
    "reset": "ended the connection at",
}
"""Action -> past participle for a sentence about a message."""


class StoredAlteration(Altered, eq=False, gc=False):
    """A stored alteration; `chunk_id` is the last row of bytes before it."""

    id: int
    chunk_id: int

    @property
    def fields(self) -> dict[str, Any] | None:
        """The fields of the original message."""
        return None if self.fields_json is None else msgspec.json.decode(self.fields_json)

    def item(self, stream: Stream) -> Altered:
        """Return the source's item from which this row was made."""
        return Altered(stream, *msgspec.structs.astuple(self)[1:-2])


_COLUMNS = (
    "a.stream_id, a.direction, a.ts_ns, a.offset, a.length, a.action, a.rule, a.sent_ns, a.original, a.name,"
    " a.fields, a.id, a.chunk_id"
)
_OF_SESSION = SESSION_CONDITIONS["alterations"]


def alterations(
    timeline: Timeline,
    condition: str = "1",
    parameters: Sequence[str | int | float] = (),
    after: int = 0,
) -> Iterator[StoredAlteration]:
    """Yield the session's alterations above an id that meet an SQL condition (alias a), in order."""
    rows = timeline.connection.execute(
        f"SELECT a.id, {_COLUMNS} FROM alterations AS a"
        f" WHERE a.id > ? AND {OF_SESSION.format('a')} AND ({condition}) ORDER BY a.id",
        [after, timeline.session.id, *parameters],
    )
    stream_of = timeline.streams_now()
    return (StoredAlteration(stream_of(stream), *row) for _, stream, *row in check_ascending(rows))


def alteration_text(row: StoredAlteration, said: str) -> str:
    """Return a description of an alteration: action, rule, and original message; `said` are its fields."""
    done = f"{ACTION_WORDS[row.action]} by {row.rule}"
    if row.original is None:
        return done
    return f"{done}; as it was sent: {row.name or UNREADABLE} {said}".rstrip()


def count_alterations(timeline: Timeline) -> int:
    """Return the number of alterations in a session."""
    return int(timeline.scalar(f"SELECT count(*) FROM alterations WHERE {_OF_SESSION}", timeline.session.id))


def altered_message_ids(timeline: Timeline, after: int = 0) -> Mapping[int, int]:
    """Return the first forwarded message of each alteration above an id that has one."""
    if not count_alterations(timeline):
        return {}
    return dict(
        timeline.connection.execute(
            f"SELECT a.id, min(m.id) FROM messages AS m JOIN alterations AS a ON {ALTERATION_OF_MESSAGE}"
            f" WHERE a.id > ? AND m.{_OF_SESSION} GROUP BY a.id",
            (after, timeline.session.id),
        ).fetchall()
    )


class AlteredMessages:
    """The altered messages of a session."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        # Hardly any session has one; then no further query is made.
        self._has_some = timeline.scalar("SELECT 1 FROM alterations LIMIT 1") is not None

    def action(self, message_id: int) -> Action | None:
        """Return the alteration's action on a message; None if it was not altered."""
        found = self._found("a.action", message_id)
        return found[0] if found is not None else None

    def of(self, message_id: int) -> StoredAlteration | None:
        """Return the alteration of a message; None if it was not altered."""
        found = self._found(_COLUMNS, message_id)
        return StoredAlteration(self._timeline.stream(found[0]), *found[1:]) if found is not None else None

    def action_of_event(self, event_id: int) -> Action | None:
        """Return the action on the first altered message that reports an event; None if none was altered."""
        found = self._found("a.action", event_id, "m.event_id")
        return found[0] if found is not None else None

    def _found(self, columns: str, number: int, of: str = "m.id") -> tuple[Any, ...] | None:
        if not self._has_some:
            return None
        row: tuple[Any, ...] | None = self._timeline.connection.execute(
            f"SELECT {columns} FROM messages AS m JOIN alterations AS a ON {ALTERATION_OF_MESSAGE}"
            f" WHERE {of} = ? ORDER BY m.id LIMIT 1",
            (number,),
        ).fetchone()
        return row


def original_message(altered: Altered) -> Message:
    """Return the original message, without an id, to apply a filter to it."""
    fields_json = altered.fields_json or "{}"
    return Message(
        0,
        altered.stream,
        altered.direction,
        altered.ts_ns,
        altered.name or UNREADABLE,
        msgspec.json.decode(fields_json),
        fields_json,
        altered.offset,
        len(altered.original or b""),
        altered=altered.action,
    )


def original_filter(timeline: Timeline, wanted: Filter | None) -> Callable[[Altered], bool]:
    """Return the test whether the original of an altered message passes a filter."""
    if wanted is None:
        return lambda altered: True
    from kiebitz.dissectors.filters import Row

    passes, session = wanted.predicate("messages", timeline.numbers), timeline.session
    return lambda altered: passes(
        Row(timeline.started_ns, [original_message(altered)], session_id=session.id)
    )
