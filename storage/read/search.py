"""Incremental search for rows that pass a filter; it yields control to the caller between steps.

A step examines a range of ids, sized so that it takes a few milliseconds, whatever the filter.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, get_args

from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.model import Group, TableInfo
from kiebitz.storage.read.conditions import sql_condition
from kiebitz.storage.read.message_queries import diagnostics_numbered, messages_numbered
from kiebitz.storage.read.seen_rows import SeenRows
from kiebitz.storage.read.timeline import Timeline

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter

_STEP_S = 0.005
"""Target duration of a step in seconds."""

_INITIAL_ROWS = 500
_MAX_ROWS = 100_000
"""Rows that a step examines: initial and maximum number."""

Streams = Collection[int] | TableInfo | None
"""The streams to search: these, those of a table's server, or all of the session."""

Lookup = Callable[[int, int], Sequence[int]]
"""Function that returns the matching ids above the first argument and up to the second."""


class Search:
    """An incremental search; all rows up to id `reached` have been examined."""

    def __init__(self, lookup: Lookup, reached: int) -> None:
        self._found = array("q")
        self.reached = reached
        self._lookup = lookup
        self._step_rows = _INITIAL_ROWS

    @property
    def found(self) -> Sequence[int]:
        """The matching ids, ascending."""
        return self._found

    def go_on(self, last: int, seconds: float) -> bool:
        """Examine rows up to id `last` for about this many seconds; return True if some are left.

        Raises sqlite3.Error; `storage.filters.sql.original_error` returns a filter's own exception.
        """
        end = time.monotonic() + seconds
        while self.reached < last:
            upto = min(self.reached + self._step_rows, last)
            begun = time.monotonic()
            self._found.extend(self._lookup(self.reached, upto))
            self.reached = upto
            now = time.monotonic()
            if now - begun < _STEP_S / 2:
                self._step_rows = min(2 * self._step_rows, _MAX_ROWS)
            elif now - begun > _STEP_S:
                self._step_rows = max(self._step_rows // 2, 1)
            if now >= end:
                break
        return self.reached < last


class MatchAll(Search):
    """A search that matches every row without reading any: the ids of a single session are contiguous."""

    def __init__(self, first: int) -> None:
        super().__init__(lambda after, upto: (), first - 1)
        self._first = first

    @property
    def found(self) -> Sequence[int]:
        return range(self._first, self.reached + 1)

    def go_on(self, last: int, seconds: float) -> bool:
        self.reached = max(last, self.reached)
        return False


def search_events(
    timeline: Timeline,
    table_id: int,
    wanted: Filter | None,
    game_id: int | None,
    between: tuple[int, int] | None,
    rows: SeenRows | None = None,
) -> Search:
    """Search a table's events by `seq`, of a game, with ids `between` two (inclusive).

    In a player's view, `rows` are those that pass the filter there.
    """
    condition, parameters = sql_condition(timeline, wanted if rows is None else None, "events")
    if game_id is not None:
        condition, parameters = f"e.game_id = ? AND {condition}", [game_id, *parameters]
    if between is not None:
        condition, parameters = f"e.id BETWEEN ? AND ? AND {condition}", [*between, *parameters]

    def lookup(after: int, upto: int) -> Sequence[int]:
        if rows is None:
            return timeline.seqs(table_id, after, upto, condition, parameters)
        events = timeline.events_between(table_id, after, upto, condition, parameters)
        return [event.seq for event in events if rows.event(event) is not None]

    return Search(lookup, timeline.first_seq(table_id))


def search_messages(
    timeline: Timeline, streams: Streams, wanted: Filter | None, rows: SeenRows | None = None
) -> Search:
    """Search the session's messages by id; `rows` are those of `search_events`."""
    # Of the messages on a player's own streams, all are visible.
    if rows is None or (wanted is None and isinstance(streams, Collection)):
        condition = sql_condition(timeline, wanted, "messages")
        return _on_streams(timeline, "messages", "m", streams, *condition)

    def passing(found: Sequence[int]) -> Sequence[int]:
        return [row.id for row in messages_numbered(timeline, found) if rows.message(row) is not None]

    return _on_streams(timeline, "messages", "m", streams, passing=passing)


def search_diagnostics(
    timeline: Timeline,
    streams: Streams,
    wanted: Filter | None,
    groups: Sequence[Group] = get_args(Group),
    rows: SeenRows | None = None,
) -> Search:
    """Search the session's diagnostics of these groups by id; `rows` are those of `search_events`."""
    condition, parameters = sql_condition(timeline, wanted if rows is None else None, "diagnostics")
    condition = f"d.grp IN ({', '.join('?' * len(groups))}) AND ({condition})"

    def passing(found: Sequence[int]) -> Sequence[int]:
        if rows is None or wanted is None:
            return found
        return [row.id for row in diagnostics_numbered(timeline, found) if rows.diagnostic(row) is not None]

    return _on_streams(timeline, "diagnostics", "d", streams, condition, [*groups, *parameters], passing)


def _on_streams(
    timeline: Timeline,
    table: str,
    alias: str,
    streams: Streams,
    condition: str = "1",
    parameters: Sequence[Any] = (),
    passing: Callable[[Sequence[int]], Sequence[int]] | None = None,
) -> Search:
    """Search the rows on some streams that meet an SQL condition; `passing` selects among their ids."""
    of = "SELECT id FROM streams WHERE session_id = ?"
    known: list[Any] = [timeline.session.id]
    if isinstance(streams, TableInfo):
        of, known = f"{of} AND server = ? AND protocol = ?", [*known, streams.server, streams.protocol]
    elif streams is not None:
        of, known = "SELECT value FROM json_each(?)", [to_json(sorted(streams))]
    # The plus keeps SQLite from using the index by stream, and reading all of it in each step.
    query = (
        f"SELECT {alias}.id FROM {table} AS {alias} WHERE {alias}.id > ? AND {alias}.id <= ?"
        f" AND +{alias}.stream_id IN ({of}) AND ({condition}) ORDER BY {alias}.id"
    )

    def lookup(after: int, upto: int) -> Sequence[int]:
        rows = timeline.connection.execute(query, [after, upto, *known, *parameters])
        found = [number for (number,) in rows]
        return found if passing is None else passing(found)

    is_alone = timeline.scalar("SELECT count(*) FROM sessions") == 1
    # Earlier sessions' rows are skipped in steps, as none of them matches.
    first = timeline.scalar(f"SELECT coalesce(min(id), 1) FROM {table}")
    if streams is None and condition == "1" and passing is None and is_alone:
        return MatchAll(first)
    return Search(lookup, first - 1)
