"""What Kiebitz has done to a session's messages as they passed, as it is stored.

A message of the listing is altered if it begins in the bytes that were passed on with an alteration. One that
was kept from its receiver has no bytes, and so no message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.grammar import UNREADABLE
from kiebitz.dissectors.model import Action, Altered, Message, Stream
from kiebitz.storage.database.schema import OF_MESSAGE
from kiebitz.storage.read.timeline import Timeline, increasing

IN_WORDS: dict[Action, str] = {
    "drop": "dropped",
    "change": "changed",
    "insert": "put in",
    "double": "doubled",
    "hold": "held back",
    "delay": "delayed",
    "reorder": "put behind others",
    "cut": "cut into pieces",
    "reset": "ended the connection at",
}
"""What was done, as it is said of a message."""


class StoredAlteration(Altered, eq=False, gc=False):
    """An alteration as it is stored; `chunk_id` is the last row of bytes before it."""

    id: int
    chunk_id: int

    @property
    def fields(self) -> dict[str, Any] | None:
        """What had been sent, as fields."""
        return None if self.fields_json is None else msgspec.json.decode(self.fields_json)

    def item(self, stream: Stream) -> Altered:
        """Return the item of the source that this row was made of."""
        return Altered(stream, *msgspec.structs.astuple(self)[1:-2])


_COLUMNS = (
    "a.stream_id, a.direction, a.ts_ns, a.offset, a.length, a.action, a.rule, a.sent_ns, a.original, a.name,"
    " a.fields, a.id, a.chunk_id"
)
_OF_SESSION = "stream_id IN (SELECT id FROM streams WHERE session_id = ?)"


def alterations(
    timeline: Timeline,
    condition: str = "1",
    parameters: Sequence[str | int | float] = (),
    after: int = 0,
) -> Iterator[StoredAlteration]:
    """The session's alterations above a number that meet an SQL condition (alias a), in order."""
    # The plus keeps SQLite from taking the index by stream, and sorting all of it.
    rows = timeline.connection.execute(
        f"SELECT a.id, {_COLUMNS} FROM alterations AS a"
        f" WHERE a.id > ? AND +a.{_OF_SESSION} AND ({condition}) ORDER BY a.id",
        [after, timeline.session.id, *parameters],
    )
    return (_alteration(timeline, *row) for _, *row in increasing(rows))


def _alteration(timeline: Timeline, stream: int, *rest: Any) -> StoredAlteration:
    return StoredAlteration(timeline.stream(stream), *rest)


def deed(row: StoredAlteration, said: str) -> str:
    """What was done to a message, by which rule, and what had been sent, of which `said` are the fields."""
    done = f"{IN_WORDS[row.action]} by {row.rule}"
    if row.original is None:
        return done
    return f"{done}; as it was sent: {row.name or UNREADABLE} {said}".rstrip()


def count_alterations(timeline: Timeline) -> int:
    """How often something was altered in a session."""
    found: int = timeline.connection.execute(
        f"SELECT count(*) FROM alterations WHERE {_OF_SESSION}", (timeline.session.id,)
    ).fetchone()[0]
    return found


def message_ids(timeline: Timeline, after: int = 0) -> Mapping[int, int]:
    """Alteration above a number to the first message that its receiver got for it; without one left out."""
    if not count_alterations(timeline):
        return {}
    return dict(
        timeline.connection.execute(
            f"SELECT a.id, min(m.id) FROM messages AS m JOIN alterations AS a ON {OF_MESSAGE}"
            f" WHERE a.id > ? AND m.{_OF_SESSION} GROUP BY a.id",
            (after, timeline.session.id),
        ).fetchall()
    )


class AlteredMessages:
    """Which messages of a session were altered, as it stands now."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        # Hardly any session has one, and then nothing more is asked.
        self._has_some = (
            timeline.connection.execute("SELECT 1 FROM alterations LIMIT 1").fetchone() is not None
        )

    def action(self, message_id: int) -> Action | None:
        """What was done to a message; None if nothing was."""
        found = self._found("a.action", message_id)
        return found[0] if found is not None else None

    def of(self, message_id: int) -> StoredAlteration | None:
        """How a message was altered; None if it was not."""
        found = self._found(_COLUMNS, message_id)
        return _alteration(self._timeline, *found) if found is not None else None

    def action_of_event(self, event_id: int) -> Action | None:
        """What was done to the first message that tells of an event and was altered; None if none was."""
        found = self._found("a.action", event_id, "m.event_id")
        return found[0] if found is not None else None

    def _found(self, columns: str, number: int, of: str = "m.id") -> tuple[Any, ...] | None:
        if not self._has_some:
            return None
        row: tuple[Any, ...] | None = self._timeline.connection.execute(
            f"SELECT {columns} FROM messages AS m JOIN alterations AS a ON {OF_MESSAGE}"
            f" WHERE {of} = ? ORDER BY m.id LIMIT 1",
            (number,),
        ).fetchone()
        return row


def as_message(altered: Altered) -> Message:
    """What was sent as a message without a number, for a filter to be asked about it."""
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
