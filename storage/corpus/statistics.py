"""Statistics of a whole corpus by protocol, made in one pass over all events, in bounded memory.

A reader belongs to one table of one capture; its accumulator is shared by all tables. Series over time are
left out, as games of different days share no time axis.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from kiebitz.dissectors.game.state import State, apply
from kiebitz.dissectors.model import Direction, Event
from kiebitz.dissectors.registry import dissector_of
from kiebitz.dissectors.statistics import Read, Statistic, TimeSeries, statistics_of
from kiebitz.dissectors.statistics.accumulators import Accumulator, count, results_of
from kiebitz.dissectors.statistics.results import Result
from kiebitz.storage.corpus.engine import Engine
from kiebitz.storage.corpus.records import report_damage, sql_condition
from kiebitz.storage.statistics.session_statistics import messages_by_name

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter

_PROGRESS_INTERVAL = 1000
"""Events between two calls of `on_progress`."""


class ProtocolStatistics(msgspec.Struct, frozen=True):
    """The statistics of one protocol, with its numbers of captures, games, messages and events."""

    protocol: str
    captures: int
    games: int
    messages: int
    events: int
    statistics: list[Result]


class _Protocol:
    """The accumulators of one protocol."""

    def __init__(self, protocol: str) -> None:
        dissector = dissector_of(protocol)
        rows = () if dissector is None else statistics_of(dissector)
        self._counted: list[tuple[Statistic, Accumulator]] = [
            (row, Accumulator(row)) for row in rows if not isinstance(row, TimeSeries)
        ]
        self._readers: list[tuple[Read, Accumulator]] = []
        self._state: State = {}

    def begin(self) -> None:
        """Start reading the events of another table."""
        self._readers = [(row.reads(), accumulator) for row, accumulator in self._counted]
        self._state = {}

    def take(self, event: Event, counts: bool) -> None:
        """Read an event, and count it if `counts`."""
        apply(self._state, event.changes)
        # The rows do not use the time.
        count(self._readers, event, self._state, 0.0, counts)

    def results(self) -> list[Result]:
        """Return the results that are not empty."""
        return results_of(accumulator for _, accumulator in self._counted)


def corpus_statistics(
    engine: Engine, wanted: Filter | None, on_progress: Callable[[int], None] = lambda done: None
) -> list[ProtocolStatistics]:
    """Return the statistics of what passes a filter; the protocol with the most events comes first.

    `on_progress` is called now and then with the number of events read. Raises CorpusError.
    """
    return list(_counted(engine, wanted, on_progress))


@report_damage
def _counted(
    engine: Engine, wanted: Filter | None, on_progress: Callable[[int], None]
) -> Iterator[ProtocolStatistics]:
    protocols: dict[str, _Protocol] = {}
    table: tuple[str, int] | None = None
    for done, (protocol, at, event, counts) in enumerate(_events(engine, wanted)):
        if done % _PROGRESS_INTERVAL == 0:
            on_progress(done)
        of_protocol = protocols.get(protocol) or protocols.setdefault(protocol, _Protocol(protocol))
        if at != table:
            table = at
            of_protocol.begin()
        of_protocol.take(event, counts)
    yield from _results(engine, wanted, protocols)


def _events(engine: Engine, wanted: Filter | None) -> Iterator[tuple[str, tuple[str, int], Event, bool]]:
    """Yield all events, table by table: the protocol, the table, the event, and True if it counts."""
    condition, parameters = sql_condition(wanted, "events")
    rows = engine.rows(
        "SELECT e.protocol, e.capture, e.table_id, e.id, e.game_id, e.seq, e.ts_ns, e.kind, e.actor, e.data,"
        f" e.changes, ({condition}) IS TRUE FROM events AS e ORDER BY e.capture, e.table_id, e.seq",
        parameters,
    )
    for protocol, capture, table, number, game, seq, ts_ns, kind, actor, data, changes, counts in rows:
        decoded = msgspec.json.decode(data), msgspec.json.decode(changes)
        event = Event(number, table, game, seq, ts_ns, kind, actor, *decoded)
        yield protocol, (capture, table), event, counts


def _results(
    engine: Engine, wanted: Filter | None, protocols: dict[str, _Protocol]
) -> Iterator[ProtocolStatistics]:
    condition, parameters = sql_condition(wanted, "messages")
    said: dict[str, list[tuple[str, Direction, int]]] = {}
    for protocol, name, direction, times in engine.rows(
        "SELECT m.protocol, m.name, m.direction, count(*) FROM messages AS m"
        f" WHERE m.protocol IS NOT NULL AND {condition} GROUP BY ALL"
        " ORDER BY count(*) DESC, m.name, m.direction",
        parameters,
    ):
        said.setdefault(protocol, []).append((name, direction, times))
    condition, parameters = sql_condition(wanted, "events")
    happened = {
        protocol: counts
        for protocol, *counts in engine.rows(
            "SELECT e.protocol, count(*), count(DISTINCT e.capture), count(DISTINCT (e.capture, e.game_id))"
            f" FILTER (e.game_id IS NOT NULL) FROM events AS e WHERE {condition} GROUP BY ALL",
            parameters,
        )
    }
    for protocol in sorted({*said, *happened}, key=lambda one: (-happened.get(one, [0])[0], one)):
        events, captures, games = happened.get(protocol, (0, 0, 0))
        by_name = messages_by_name(said.get(protocol, []))
        results = [*(protocols[protocol].results() if protocol in protocols else ())]
        results += [by_name] if by_name is not None else []
        messages = sum(times for _, _, times in said.get(protocol, ()))
        yield ProtocolStatistics(protocol, captures, games, messages, events, results)
