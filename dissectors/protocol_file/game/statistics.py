"""Statistics that a protocol's file describes, ready to be counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import partial
from itertools import islice
from typing import Any

from kiebitz.dissectors.game.context import label
from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.game.table import LimitError, python_part
from kiebitz.dissectors.grammar.grammar import EventKind
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocol_file.expressions import (
    ASKED,
    Compiled,
    Question,
    Scope,
    compile_expression,
    optional_expression,
)
from kiebitz.dissectors.protocol_file.game.board import states_of
from kiebitz.dissectors.protocol_file.sections import StatisticSpec
from kiebitz.dissectors.protocol_file.templates import asked_values
from kiebitz.dissectors.protocol_file.values import MAX_NUMBER, step_text
from kiebitz.dissectors.statistics import (
    COUNT,
    Counts,
    Durations,
    Histogram,
    Read,
    Sample,
    Shares,
    Statistic,
    TimeSeries,
    evict_oldest,
    remember,
)

MAX_SAMPLES = 1000
"""Maximum number of samples of one event, as a peer can list any number of names."""

KIND = "kind"
"""Name of the event's kind in the expressions of statistics."""


def is_reader(name: str) -> bool:
    """Return True if a name is that of a reader in Python instead of a kind of event."""
    return ":" in name


def compiled_statistic(
    spec: StatisticSpec,
    events: Mapping[str, EventKind],
    display_name: Callable[[str, State], str],
    package: str = "",
) -> Statistic:
    """Return a statistic of these kinds of events; `display_name` returns the name of an actor in a state.

    In the file of a `package`, its reader may be in Python, and may have `columns`, which come first.
    """
    reads: Callable[[], Read]
    if package and is_reader(spec.on[0]):
        reads = python_part(spec.on[0], package)
    else:
        counting = _Counting(spec, events, display_name)

        def reads() -> Read:
            return partial(counting.samples, {})

    words = tuple(dict.fromkeys(filter(None, (spec.word_of or spec.lines).values())))
    title = spec.title or spec.key.replace("-", " ").capitalize()
    about: dict[str, Any] = {"key": spec.key, "title": title, "reads": reads}
    match spec.form:
        case "counts":
            return Counts(**about, columns=words or getattr(reads, "columns", ()), of=spec.of)
        case "shares":
            part, rest = words
            return Shares(**about, part=part, rest=rest, of=spec.of)
        case "histogram":
            total = sum(spec.chance.values())
            chance = {value: Fraction(weight, total) for value, weight in spec.chance.items()}
            return Histogram(**about, values=tuple(chance) or words, chance=chance or None, of=spec.of)
        case "course":
            return TimeSeries(**about, unit=spec.unit)
        case "durations":
            return Durations(**about)


Memory = dict[Any, int]
"""The memory of a reader of a table's events: numbers so far, or times at which durations began."""


class _Counting:
    """The samples that a row of `[statistics]` takes from an event."""

    def __init__(
        self,
        spec: StatisticSpec,
        events: Mapping[str, EventKind],
        display_name: Callable[[str, State], str],
    ) -> None:
        self._spec = spec
        self._form = spec.form
        self._ends = frozenset(kind for kind, about in events.items() if about.ends or about.cancels)
        self._display_name = display_name
        self._on = frozenset(spec.on)
        self._asked = asked_values(spec)
        self._by, self._amount, self._when, self._begins = map(
            optional_expression, (spec.by, spec.amount, spec.when, spec.begins)
        )
        self._line = [(compile_expression(text), column) for text, column in spec.lines.items()]
        self._words = spec.word_of

    def samples(self, memory: Memory, event: Event, state: State) -> Iterable[Sample]:
        """Return the samples of an event; the state is the one after it."""
        if self._begins is not None and event.kind in self._ends:
            for key in [key for key in memory if key[0] == event.game_id]:
                del memory[key]
        if event.kind not in self._on:
            return ()
        number = None if event.game_id is None else str(event.game_id)
        data = {KIND: event.kind, **event.data}
        scope = Scope(data, event.actor, states_of(state, number))
        if self._asked:
            told = {text: event.data.get(word) for word, text in self._asked.items()}
            name = told.pop(ASKED, None)
            fields = {text.removeprefix(f"{ASKED}."): value for text, value in told.items()}
            scope.asked = Question(name, fields, is_certain=True)
            data.pop(ASKED, None)
        try:
            return [*islice(self._samples(memory, event, scope, state), MAX_SAMPLES)]
        except LimitError:
            # A regular expression of the file takes too long.
            return ()

    def _samples(self, memory: Memory, event: Event, scope: Scope, state: State) -> Iterator[Sample]:
        if self._form == "durations":
            yield from self._durations(memory, event, scope, state)
        elif not _holds(self._when, scope):
            return
        elif self._form == "course":
            yield from self._course(memory, event, scope, state)
        elif self._form == "histogram":
            for value, amount in self._columns(event, scope):
                yield Sample(value, amount=amount)
        else:
            for line, fixed in self._lines(event, scope, state):
                for column, amount in self._columns(event, scope):
                    yield Sample(line, fixed or column, amount)

    def _lines(self, event: Event, scope: Scope, state: State) -> Iterator[tuple[str, str | None]]:
        """Yield the lines of an event, and their columns if these are fixed."""
        if not self._line and event.actor is not None:
            yield self._display_name(event.actor, state), None
        for expression, column in self._line:
            for name, _ in _texts(expression.evaluate(scope)):
                yield name, column

    def _columns(self, event: Event, scope: Scope) -> Iterator[tuple[str, int]]:
        """Yield the columns of an event, or the values of a histogram, with the amount of each."""
        found: Iterable[tuple[str, int]] = [(event.kind if len(self._on) > 1 else COUNT, 1)]
        if self._by is not None:
            found = _texts(self._by.evaluate(scope), self._spec.split)
        factor = 1 if self._amount is None else _number(self._amount.evaluate(scope))
        allowed: Mapping[str, Any] = self._words or self._spec.chance
        for text, count in found:
            amount = None if factor is None else _number(count * factor)
            if amount is not None and amount > 0 and (not allowed or text in allowed or text == COUNT):
                yield self._words.get(text, text), amount

    def _course(self, memory: Memory, event: Event, scope: Scope, state: State) -> Iterator[Sample]:
        for line, _ in self._lines(event, scope, state):
            if self._amount is None:
                remember(memory, line, memory.get(line, 0) + 1)
                yield Sample(line, amount=memory[line])
            elif (amount := _number(self._amount.evaluate(scope))) is not None:
                yield Sample(line, amount=amount)

    def _durations(self, memory: Memory, event: Event, scope: Scope, state: State) -> Iterator[Sample]:
        begins = _holds(self._begins, scope)
        for line, _ in self._lines(event, scope, state):
            key = (event.game_id, line)
            if begins:
                memory.setdefault(key, event.ts_ns)
                evict_oldest(memory)
            elif _holds(self._when, scope) and (since := memory.pop(key, None)) is not None:
                yield Sample(line, amount=event.ts_ns - since)


def _holds(condition: Compiled | None, scope: Scope) -> bool:
    return condition is None or condition.holds(scope) is True


def _number(value: Any) -> int | None:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return value if is_number and abs(value) <= MAX_NUMBER else None


def _texts(value: Any, split: str = "") -> Iterator[tuple[str, int]]:
    """Yield the texts of a value and their amounts: of each item, or of each number in an object."""
    if isinstance(value, dict):
        for key, amount in value.items():
            if count := _number(amount):
                yield label(key), count
        return
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, str) and split:
            yield from ((label(part), 1) for part in item.split(split))
        elif item is not None and not isinstance(item, dict | list):
            yield label(step_text(item)), 1
