"""Statistics of a protocol's games, as declarative rows, and those that all protocols have in common.

A row describes what is counted, and the form of the result. Its reader gets all events of a table in order,
so it may have a memory. Each sample belongs to one event, and is counted if the event is selected. So the
counts of a selection and of its complement add up to those of all events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Event

if TYPE_CHECKING:
    from kiebitz.dissectors.dissector import Dissector

Key = TypeVar("Key")
Value = TypeVar("Value")

MAX_WAITING = 1024
"""Maximum number of players or games in a reader's memory, as a peer can invent any number."""

COUNT = "count"
"""The column of statistics with a single one."""


class Sample(NamedTuple):
    """A sample to count: its line (usually a player) and its column.

    `amount` is a number of times; in a `TimeSeries` the present amount, in `Durations` a duration in ns.
    """

    line: str
    column: str = COUNT
    amount: int = 1


Read = Callable[[Event, State], Iterable[Sample]]
"""Returns the samples of an event; the state is the table's after it, and must not be kept."""


class Statistic(msgspec.Struct, frozen=True, kw_only=True):
    """A row: `key` for programs, `title` for people, and a factory for a table's reader."""

    key: str
    title: str
    reads: Callable[[], Read]


class Histogram(Statistic, frozen=True, kw_only=True):
    """The number of samples of each value (a sample's line). `values` come first, in this order.

    `chance` has the probability of each value, if chance alone decides. `of` names the samples, in the
    plural.
    """

    of: str
    values: tuple[str, ...] = ()
    chance: Mapping[str, Fraction] | None = None


class Counts(Statistic, frozen=True, kw_only=True):
    """The number of actions by player; `columns` come first, in this order. `of` names the lines."""

    columns: tuple[str, ...] = ()
    of: str = "player"


class Shares(Statistic, frozen=True, kw_only=True):
    """The share of the column `part` in each line's samples; `rest` names the others."""

    part: str
    rest: str
    of: str = "player"


class TimeSeries(Statistic, frozen=True, kw_only=True):
    """Each player's amount over time, in this `unit`."""

    unit: str


class Durations(Statistic, frozen=True, kw_only=True):
    """Each player's durations."""


def of_each(*kinds: str, give: Callable[[Event], Iterable[Sample]]) -> Callable[[], Read]:
    """Return a factory for readers without memory, which return the samples of each event of these kinds."""
    wanted = frozenset(kinds)

    def read(event: Event, state: State) -> Iterable[Sample]:
        return give(event) if event.kind in wanted else ()

    return lambda: read


def actions(**columns: str) -> Callable[[], Read]:
    """Return a factory for readers that count actions: event kind to column, in the line of the actor."""

    def give(event: Event) -> Iterable[Sample]:
        if event.actor is not None:
            yield Sample(event.actor, columns[event.kind])

    return of_each(*columns, give=give)


def common_statistics(dissector: Dissector) -> Iterator[Statistic]:
    """Yield the statistics that all protocols share: scores over time, and durations of moves."""
    unit = dissector.presentation.counts
    yield TimeSeries(
        key="course",
        title=f"{unit[:1].upper()}{unit[1:]} over time",
        unit=unit,
        reads=lambda: _Scores(dissector),
    )
    if dissector.presentation.turn in dissector.grammar.events:
        yield Durations(key="move-times", title="Time for a move", reads=lambda: _Moves(dissector))


def statistics_of(dissector: Dissector) -> tuple[Statistic, ...]:
    """Return all statistics of a protocol, its own first."""
    return (*dissector.presentation.statistics, *common_statistics(dissector))


class _Scores:
    """Yields a sample whenever a player's score changes."""

    def __init__(self, dissector: Dissector) -> None:
        self._dissector = dissector
        self._known: dict[str, int] = {}

    def __call__(self, event: Event, state: State) -> Iterable[Sample]:
        if event.changes:
            for name, score in self._dissector.presentation.scores(state).items():
                if self._known.get(name) != score:
                    remember(self._known, name, score)
                    yield Sample(name, amount=score)


class _Moves:
    """Yields the time from the beginning of a player's turn to their next action in the same game."""

    def __init__(self, dissector: Dissector) -> None:
        self._dissector = dissector
        self._since: dict[tuple[int | None, str], int] = {}

    def __call__(self, event: Event, state: State) -> Iterable[Sample]:
        if event.actor is None:
            return
        key = (event.game_id, event.actor)
        kind = self._dissector.grammar.events[event.kind]
        if event.kind == self._dissector.presentation.turn:
            self._since.setdefault(key, event.ts_ns)
            evict_oldest(self._since)
        elif kind.ending is not None:
            self._since.pop(key, None)
        elif not kind.directed and (since := self._since.pop(key, None)) is not None:
            yield Sample(
                self._dissector.presentation.display_name(event.actor, state), amount=event.ts_ns - since
            )


def remember(memory: dict[Key, Value], key: Key, value: Value) -> None:
    """Set a value in a reader's memory, and evict the oldest beyond the limit."""
    memory[key] = value
    evict_oldest(memory)


def evict_oldest(memory: dict[Key, Value]) -> None:
    """Evict the oldest value of a reader's memory beyond the limit."""
    if len(memory) > MAX_WAITING:
        del memory[next(iter(memory))]
