"""What is counted in the games of a protocol: rows, as messages and events are, and what all protocols share.

A row says what it counts and in which form. Its reader is given all events of a table in their order, so it
may remember; each of the samples that it gives stands for one event, and counts if that event does. So what
is counted of some events and of all the others comes to what is counted of all.
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
"""A reader remembers no more players or games at a time: a peer can make up any number of them."""

COUNT = "count"
"""The column of what is only counted."""


class Sample(NamedTuple):
    """Something to count: in which line, as a rule a player's, and in which column of it.

    `amount` is how often; in a `Course` how much it is now, in `Durations` how long (nanoseconds).
    """

    line: str
    column: str = COUNT
    amount: int = 1


Read = Callable[[Event, State], Iterable[Sample]]
"""What an event gives to count, with the table's state after it, which may not be kept."""


class Statistic(msgspec.Struct, frozen=True, kw_only=True):
    """A row: its `key` for programs, its `title` for people, and what makes a reader for a table."""

    key: str
    title: str
    reads: Callable[[], Read]


class Histogram(Statistic, frozen=True, kw_only=True):
    """How often each value came: a sample's line is the value. `values` come first, in this order.

    With `chance`, how probable each value is if chance alone decides, it is compared with that. `of` says
    what the samples are, in the plural.
    """

    of: str
    values: tuple[str, ...] = ()
    chance: Mapping[str, Fraction] | None = None


class Counts(Statistic, frozen=True, kw_only=True):
    """How often each player did what; `columns` come first, in this order. `of` says what the lines are."""

    columns: tuple[str, ...] = ()
    of: str = "player"


class Shares(Statistic, frozen=True, kw_only=True):
    """How many of all samples of a line have the column `part`; `rest` is that of the others."""

    part: str
    rest: str
    of: str = "player"


class Course(Statistic, frozen=True, kw_only=True):
    """How much each player had at which time, in this `unit`."""

    unit: str


class Durations(Statistic, frozen=True, kw_only=True):
    """How long each player took."""


def of_each(*kinds: str, give: Callable[[Event], Iterable[Sample]]) -> Callable[[], Read]:
    """Readers that need no memory: what each event of these kinds gives."""
    wanted = frozenset(kinds)

    def read(event: Event, state: State) -> Iterable[Sample]:
        return give(event) if event.kind in wanted else ()

    return lambda: read


def faces_rolled(give: Callable[[Event], Iterable[Sample]]) -> Histogram:
    """The row about each die that was rolled; `give` has the faces of an event `rolled`."""
    chance = {str(face): Fraction(1, 6) for face in range(1, 7)}
    return Histogram(
        key="faces",
        of="dice",
        title="Each die of them, against chance",
        reads=of_each("rolled", give=give),
        values=tuple(chance),
        chance=chance,
    )


def actions(**columns: str) -> Callable[[], Read]:
    """Readers that count what players do: event kind to column, in the line of the event's actor."""

    def give(event: Event) -> Iterable[Sample]:
        if event.actor is not None:
            yield Sample(event.actor, columns[event.kind])

    return of_each(*columns, give=give)


def general(dissector: Dissector) -> Iterator[Statistic]:
    """The rows that follow from what a protocol says anyway: who has how much, and whose turn it is."""
    unit = dissector.presentation.counts
    yield Course(
        key="course",
        title=f"{unit[:1].upper()}{unit[1:]} over time",
        unit=unit,
        reads=lambda: _Scores(dissector),
    )
    if dissector.presentation.turn in dissector.grammar.events:
        yield Durations(key="move-times", title="Time for a move", reads=lambda: _Moves(dissector))


def statistics_of(dissector: Dissector) -> tuple[Statistic, ...]:
    """All rows of a protocol, its own first."""
    return (*dissector.presentation.statistics, *general(dissector))


class _Scores:
    """Gives a sample whenever what somebody has is another amount than before."""

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
    """Gives how long it took from a player's turn to what that player did then, in the same game."""

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
            bound(self._since)
        elif kind.ending is not None:
            self._since.pop(key, None)
        elif not kind.directed and (since := self._since.pop(key, None)) is not None:
            yield Sample(
                self._dissector.presentation.display_name(event.actor, state), amount=event.ts_ns - since
            )


def remember(memory: dict[Key, Value], key: Key, value: Value) -> None:
    """Put something into a reader's memory; the oldest goes where there is too much."""
    memory[key] = value
    bound(memory)


def bound(memory: dict[Key, Value]) -> None:
    """Let the oldest go where there is too much in a reader's memory."""
    if len(memory) > MAX_WAITING:
        del memory[next(iter(memory))]
