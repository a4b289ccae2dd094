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


_Key = tuple[str, str]
"""Protocol and server of a table."""


class MessageCounts:
    """Counts of a session's messages that pass a filter, of one game if given, for all tables at once."""

    def __init__(self, timeline: Timeline, wanted: Filter | None, game: Game | None) -> None:
        condition, parameters = sql_condition(timeline, wanted, "messages")
        self._rest = "FROM messages m JOIN streams s ON s.id = m.stream_id"
        self._rest += f" WHERE s.session_id = ? AND ({condition})"
        self._parameters = [timeline.session.id, *parameters]
        if game is not None:
            self._rest += " AND m.game_id = ?"
            self._parameters.append(game.id)
        self._timeline = timeline
        self._names: dict[_Key, list[tuple[str, Direction, int]]] = {}
        self._rates: dict[_Key, Rate] = {}
        self._read_names()
        self._read_rates()

    def count(self, table: TableInfo) -> int:
        """Return the number of a table's messages."""
        return sum(count for _, _, count in self._names.get((table.protocol, table.server), ()))

    def results(self, table: TableInfo) -> Iterator[Result]:
        """Yield the counts of a table's messages by name and over time."""
        key = table.protocol, table.server
        by_name = messages_by_name(self._names.get(key, ()))
        if by_name is not None:
            yield by_name
            yield self._rates[key]

    def _read_names(self) -> None:
        grouped = "GROUP BY 1, 2, 3, 4 ORDER BY count(*) DESC, 3, 4"
        for protocol, server, *counted in self._ask("m.name, m.direction, count(*)", grouped):
            name, direction, count = counted
            self._names.setdefault((protocol, server), []).append((name, direction, count))

    def _read_rates(self) -> None:
        spans = {}
        for protocol, server, first, last in self._ask("min(m.ts_ns), max(m.ts_ns)", "GROUP BY 1, 2"):
            stretch = max(_SECOND_NS, -(-(last - first + 1) // _MAX_INTERVALS))
            counts = [0] * ((last - first) // stretch + 1)
            rate = Rate("rate", "Messages a second", self._timeline.seconds(first), stretch / 1e9, counts)
            self._rates[protocol, server] = rate
            spans[protocol, server] = counts, first, stretch
        # In SQL, a query for each table would read all messages.
        for protocol, server, ts_ns in self._ask("m.ts_ns"):
            counts, first, stretch = spans[protocol, server]
            counts[(ts_ns - first) // stretch] += 1

    def _ask(self, what: str, grouped: str = "") -> Iterator[tuple[Any, ...]]:
        return self._timeline.connection.execute(
            f"SELECT s.protocol, s.server, {what} {self._rest} {grouped}", self._parameters
        )
