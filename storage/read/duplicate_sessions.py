"""Whether a database has the traffic of a session already: the same bytes at the same times."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from kiebitz.storage.read.timeline import Timeline, sessions


def earlier_copy(connection: sqlite3.Connection, session_id: int) -> int | None:
    """The first session before this one that has the same traffic; None if none has. Raises sqlite3.Error."""
    rows = {row.id: row for row in sessions(connection)}
    this = rows[session_id]
    for row in rows.values():
        if row.id >= session_id:
            break
        # All chunks are only compared where this much is the same.
        if (row.started_ns, row.ended_ns) == (this.started_ns, this.ended_ns):
            pairs = zip_longest(_traffic(Timeline(connection, row)), _traffic(Timeline(connection, this)))
            if all(one == other for one, other in pairs):
                return row.id
    return None


def _traffic(timeline: Timeline) -> Iterator[tuple[Any, ...]]:
    """A session's bytes and gaps as they came, each with who spoke with whom."""
    # The plus keeps SQLite from taking the index by stream and sorting the whole session by id.
    return timeline.connection.execute(
        "SELECT s.transport, s.client, s.server, c.direction, c.ts_ns, c.offset, c.length, c.data"
        " FROM chunks AS c JOIN streams AS s ON s.id = +c.stream_id WHERE s.session_id = ? ORDER BY c.id",
        (timeline.session.id,),
    )
