"""Counts of a server's messages by name and over time, made by SQLite as they need no state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kiebitz.dissectors.model import Direction, Game, TableInfo
from kiebitz.dissectors.statistics.results import Counts, Rate, Result
from kiebitz.storage.read.conditions import sql_condition
from kiebitz.storage.read.timeline import Timeline

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter

_MAX_NAMES = 200
_MAX_INTERVALS = 60
"""Number of intervals between the first and the last message; an interval is at least a second."""

_SECOND_NS = 1_000_000_000
_DIRECTIONS = {"c2s": "by clients", "s2c": "by the server"}


def messages_by_name(rows: Iterable[tuple[str, Direction, int]]) -> Counts | None:
    """Return the counts by name, from rows of name, direction and count; None if there are none."""
    lines: dict[str, dict[str, int]] = {}
    left_out = 0
    for name, direction, count in rows:
        if name not in lines and len(lines) >= _MAX_NAMES:
            left_out += count
            continue
        lines.setdefault(name, dict.fromkeys(_DIRECTIONS.values(), 0))[_DIRECTIONS[direction]] = count
    return Counts("messages", "Messages", "message", lines, left_out) if lines else None


class MessageCounts:
    """Counts of a session's messages that pass a filter, of one game if given."""

    def __init__(self, timeline: Timeline, wanted: Filter | None, game: Game | None) -> None:
        self._timeline = timeline
        condition, parameters = sql_condition(timeline, wanted, "messages")
        self._where = f"s.session_id = ? AND s.protocol = ? AND s.server = ? AND ({condition})"
        self._parameters = [*parameters]
        if game is not None:
            self._where += " AND m.game_id = ?"
            self._parameters.append(game.id)

    def count(self, table: TableInfo) -> int:
        """Return the number of a table's messages."""
        ((count,),) = self._ask("count(*)", table)
        found: int = count
        return found

    def results(self, table: TableInfo) -> Iterator[Result]:
        """Yield the counts of a table's messages by name and over time."""
        rows = self._ask("m.name, m.direction, count(*)", table, "GROUP BY 1, 2 ORDER BY count(*) DESC, 1, 2")
        by_name = messages_by_name(rows)
        if by_name is not None:
            yield by_name
        yield from self._by_time(table)

    def _by_time(self, table: TableInfo) -> Iterator[Rate]:
        ((first, last),) = self._ask("min(m.ts_ns), max(m.ts_ns)", table)
        if first is None:
            return
        stretch = max(_SECOND_NS, -(-(last - first + 1) // _MAX_INTERVALS))
        counts = [0] * ((last - first) // stretch + 1)
        for place, count in self._ask("(m.ts_ns - ?) / ?, count(*)", table, "GROUP BY 1", first, stretch):
            counts[place] = count
        begin = self._timeline.seconds(first)
        yield Rate("rate", "Messages a second", begin, stretch / 1e9, counts)

    def _ask(self, what: str, table: TableInfo, rest: str = "", *first: int) -> Iterator[tuple[Any, ...]]:
        return self._timeline.connection.execute(
            f"SELECT {what} FROM messages m JOIN streams s ON s.id = m.stream_id WHERE {self._where} {rest}",
            [*first, self._timeline.session.id, table.protocol, table.server, *self._parameters],
        )
