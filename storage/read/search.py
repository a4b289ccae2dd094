"""Rows that meet a filter, looked for piece by piece, so that who asks can do something else in between.

Each piece is a range of numbers. It is made as long as takes a few milliseconds, whatever the filter asks.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, get_args

from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.model import Event, Group, TableInfo
from kiebitz.storage.read.conditions import sql_condition
from kiebitz.storage.read.timeline import Timeline

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter

_PIECE_S = 0.005
"""A piece takes about this long."""

_FIRST = 500
_LONGEST = 100_000
"""How many rows a piece looks through, at first and at the most."""

Streams = Collection[int] | TableInfo | None
"""These, those of a table's server, or all of the session."""

Look = Callable[[int, int], Sequence[int]]
"""Gives the numbers of the rows that meet, of those above the first number and up to the second."""


class Search:
    """Looks for rows; all up to number `reached` were looked at."""

    def __init__(self, look: Look, reached: int) -> None:
        self._found = array("q")
        self.reached = reached
        self._look = look
        self._piece = _FIRST

    @property
    def found(self) -> Sequence[int]:
        """The numbers, ascending."""
        return self._found

    def go_on(self, last: int, seconds: float) -> bool:
        """Look at rows up to number `last`, for about so many seconds; whether some are left.

        Raises sqlite3.Error; `storage.filters.reason_of` tells what a filter has raised in it.
        """
        end = time.monotonic() + seconds
        while self.reached < last:
            upto = min(self.reached + self._piece, last)
            begun = time.monotonic()
            self._found.extend(self._look(self.reached, upto))
            self.reached = upto
            now = time.monotonic()
            if now - begun < _PIECE_S / 2:
                self._piece = min(2 * self._piece, _LONGEST)
            elif now - begun > _PIECE_S:
                self._piece = max(self._piece // 2, 1)
            if now >= end:
                break
        return self.reached < last


class All(Search):
    """Finds every row, without looking at any: where there is one session, they are numbered one by one."""

    def __init__(self, first: int) -> None:
        super().__init__(lambda after, upto: (), first - 1)
        self._first = first

    @property
    def found(self) -> Sequence[int]:
        return range(self._first, self.reached + 1)

    def go_on(self, last: int, seconds: float) -> bool:
        self.reached = max(last, self.reached)
        return False


def events_of(
    timeline: Timeline,
    table_id: int,
    wanted: Filter | None,
    game_id: int | None,
    between: tuple[int, int] | None,
    may_see: Callable[[Event], bool] | None,
) -> Search:
    """Searches a table's events, by their number `seq`.

    Of one game if one is named, with ids `between` two, both among them, and those that somebody may see.
    """
    condition, parameters = sql_condition(timeline, wanted, "events")
    if game_id is not None:
        condition, parameters = f"e.game_id = ? AND {condition}", [game_id, *parameters]
    if between is not None:
        condition, parameters = f"e.id BETWEEN ? AND ? AND {condition}", [*between, *parameters]

    def look(after: int, upto: int) -> Sequence[int]:
        if may_see is None:
            return timeline.seqs(table_id, after, upto, condition, parameters)
        events = timeline.events_between(table_id, after, upto, condition, parameters)
        return [event.seq for event in events if may_see(event)]

    return Search(look, timeline.first_seq(table_id))


def messages_on(timeline: Timeline, streams: Streams, wanted: Filter | None) -> Search:
    """Searches the session's messages, by their id."""
    return _on_streams(timeline, "messages", "m", streams, *sql_condition(timeline, wanted, "messages"))


def diagnostics_on(
    timeline: Timeline, streams: Streams, wanted: Filter | None, groups: Sequence[Group] = get_args(Group)
) -> Search:
    """Searches the session's diagnostics, by their id, likewise: those of these groups."""
    condition, parameters = sql_condition(timeline, wanted, "diagnostics")
    condition = f"d.grp IN ({', '.join('?' * len(groups))}) AND ({condition})"
    return _on_streams(timeline, "diagnostics", "d", streams, condition, [*groups, *parameters])


def _on_streams(
    timeline: Timeline,
    table: str,
    alias: str,
    streams: Streams,
    condition: str,
    parameters: Sequence[Any],
) -> Search:
    of = "SELECT id FROM streams WHERE session_id = ?"
    known: list[Any] = [timeline.session.id]
    if isinstance(streams, TableInfo):
        of, known = f"{of} AND server = ? AND protocol = ?", [*known, streams.server, streams.protocol]
    elif streams is not None:
        of, known = "SELECT value FROM json_each(?)", [to_json(sorted(streams))]
    # The plus keeps SQLite from taking the index by stream, and so from reading all of it for each piece.
    query = (
        f"SELECT {alias}.id FROM {table} AS {alias} WHERE {alias}.id > ? AND {alias}.id <= ?"
        f" AND +{alias}.stream_id IN ({of}) AND ({condition}) ORDER BY {alias}.id"
    )

    def look(after: int, upto: int) -> Sequence[int]:
        rows = timeline.connection.execute(query, [after, upto, *known, *parameters])
        return [number for (number,) in rows]

    is_alone = timeline.connection.execute("SELECT count(*) FROM sessions").fetchone()[0] == 1
    # What other sessions have before it is skipped in pieces, as nothing of it meets.
    first = timeline.connection.execute(f"SELECT coalesce(min(id), 1) FROM {table}").fetchone()[0]
    if streams is None and condition == "1" and is_alone:
        return All(first)
    return Search(look, first - 1)
