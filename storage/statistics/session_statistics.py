"""Statistics of a session by table, made in one pass over its events, in bounded memory.

All events are read, so that readers know the history; a filter and a game only determine which of them count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.model import Event, Game, TableInfo
from kiebitz.dissectors.registry import dissector_of
from kiebitz.dissectors.statistics import Read, statistics_of
from kiebitz.dissectors.statistics.accumulators import Accumulator, count, results_of
from kiebitz.dissectors.statistics.results import Result, TableStatistics
from kiebitz.storage.read.conditions import sql_condition
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.statistics.message_counts import MessageCounts

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
    said = MessageCounts(timeline, wanted, game)
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
