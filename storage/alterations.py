"""What Kiebitz has done to a session's messages as they passed, as it is stored.

A message of the listing is altered if it begins in the bytes that were passed on with an alteration. One that
was kept from its receiver has no bytes, and so no message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from kiebitz.dissectors.records import Action, Direction
from kiebitz.storage.timeline import Timeline, increasing


class AlterationRow(msgspec.Struct, frozen=True):
    """An alteration as it is stored: in place of the `original` bytes came `length` bytes at `offset`.

    `chunk_id` is the last row of bytes before it. `original`, `sent_ns`, `name` and `fields_json` are None
    where nothing had been sent, the last two also where it could not be read.
    """

    id: int
    stream_id: int
    direction: Direction
    ts_ns: int
    chunk_id: int
    offset: int
    length: int
    action: Action
    rule: str
    sent_ns: int | None
    name: str | None
    fields_json: str | None
    original: bytes | None


_COLUMNS = (
    "a.id, a.stream_id, a.direction, a.ts_ns, a.chunk_id, a.offset, a.length, a.action, a.rule, a.sent_ns,"
    " a.name, a.fields, a.original"
)


def alterations(
    timeline: Timeline, condition: str = "1", parameters: Sequence[str | int | float] = ()
) -> Iterator[AlterationRow]:
    """The session's alterations that meet an SQL condition on the table (alias a), in order."""
    # The plus keeps SQLite from taking the index by stream, and sorting all of it.
    rows = timeline.connection.execute(
        f"SELECT {_COLUMNS} FROM alterations AS a"
        " WHERE +a.stream_id IN (SELECT id FROM streams WHERE session_id = ?)"
        f" AND ({condition}) ORDER BY a.id",
        [timeline.session.id, *parameters],
    )
    return (AlterationRow(*row) for row in increasing(rows))
