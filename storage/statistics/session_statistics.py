"""Statistics of a session by table, made in one pass over its events, in bounded memory.

All events are read, so that readers know the history; a filter and a game only determine which of them count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.model import Direction, Event, Game, TableInfo
from kiebitz.dissectors.registry import dissector_of
from kiebitz.dissectors.statistics import Read, statistics_of
from kiebitz.dissectors.statistics.accumulators import Accumulator, count, results_of
from kiebitz.dissectors.statistics.results import Counts, Rate, Result, TableStatistics
from kiebitz.storage.read.conditions import sql_condition
from kiebitz.storage.read.timeline import Timeline

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter

_PROGRESS_INTERVAL = 1000
"""Events between two calls of `on_progress`."""


class _Table:
    """The accumulators of one table."""

    def __init__(self, timeline: Timeline, row: TableInfo, dissector: Dissector | None) -> None:
        self.row = row
        self.events = 0
        self._timeline = timeline
        self._state: State | None = None
        rows = () if dissector is None else statistics_of(dissector)
        self._counted: list[tuple[Read, Accumulator]] = [(each.reads(), Accumulator(each)) for each in rows]

    def take(self, event: Event, counts: bool) -> None:
        """Read an event, and count it if `counts`."""
        self.events += counts
        if not self._counted:
            return
        if self._state is None:
            self._state = self._timeline.state_at(event.table_id, event.seq - 1)
        apply(self._state, event.changes)
        seconds = self._timeline.seconds(event.ts_ns)
        count(self._counted, event, self._state, seconds, counts)

    def results(self) -> list[Result]:
        """Return the results that are not empty."""
        return results_of(accumulator for _, accumulator in self._counted)


def session_statistics(
    timeline: Timeline,
    wanted: Filter | None = None,
    game: Game | None = None,
    on_progress: Callable[[int], None] = lambda done: None,
) -> list[TableStatistics]:
    """Return the statistics of a session's tables, limited to a filter and to one game if given.

    Tables without results are left out. `on_progress` is called now and then with the number of events read.
    """
    tables = {
        row.id: _Table(timeline, row, dissector_of(row.protocol))
        for row in timeline.tables()
        if game is None or row.id == game.table_id
    }
    meets = _filtered(timeline, wanted)
    for done, event in enumerate(_events(timeline, game)):
        if done % _PROGRESS_INTERVAL == 0:
            on_progress(done)
        is_wanted = meets(event) and (game is None or event.game_id == game.id)
        tables[event.table_id].take(event, is_wanted)
    said = _MessageCounts(timeline, wanted, game)
    found = []
    for number, table in tables.items():
        messages = said.count(table.row)
        if messages or table.events:
            results = [*table.results(), *said.results(table.row)]
            row = table.row
            found.append(TableStatistics(number, row.protocol, row.server, messages, table.events, results))
    return found


def _events(timeline: Timeline, game: Game | None) -> Iterator[Event]:
    """Return the events to read: for a game those of its table, from its first to its last."""
    if game is None:
        return timeline.events()
    span = timeline.span(game.id)
    if span is None:
        return iter(())
    first, last = span
    return timeline.events_between(game.table_id, first.seq - 1, last.seq)


def _filtered(timeline: Timeline, wanted: Filter | None) -> Callable[[Event], bool]:
    """Return a predicate that tests events, passed in order, for whether they pass a filter."""
    if wanted is None:
        return lambda event: True
    found = timeline.stored_events(*sql_condition(timeline, wanted, "events"))
    following = next(found, None)

    def meets(event: Event) -> bool:
        nonlocal following
        while following is not None and following.id < event.id:
            following = next(found, None)
        return following is not None and following.id == event.id

    return meets


_MAX_NAMES = 200
_MAX_INTERVALS = 60
"""Number of intervals between the first and the last message; an interval is at least a second."""

_SECOND_NS = 1_000_000_000
_DIRECTIONS = {"c2s": "by clients", "s2c": "by the server"}


def messages_by_name(rows: Iterable[tuple[str, Direction, int]]) -> Counts | None:
    """Return the counts by name, from rows of name, direction and count; None if there are none."""
    lines: dict[str, dict[str, int]] = {}
    left_out = 0
    for name, direction, times in rows:
        if name not in lines and len(lines) >= _MAX_NAMES:
            left_out += times
            continue
        lines.setdefault(name, dict.fromkeys(_DIRECTIONS.values(), 0))[_DIRECTIONS[direction]] = times
    return Counts("messages", "Messages", "message", lines, left_out) if lines else None


_Key = tuple[str, str]
"""Protocol and server of a table."""


class _MessageCounts:
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
        grouped = "GROUP BY 1, 2, 3, 4 ORDER BY count(*) DESC, 3, 4"
        for protocol, server, *counted in self._ask("m.name, m.direction, count(*)", grouped):
            name, direction, count = counted
            self._names.setdefault((protocol, server), []).append((name, direction, count))
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
