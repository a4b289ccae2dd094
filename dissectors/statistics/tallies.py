"""What has been counted so far of one statistic, in bounded memory."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.statistics import (
    Counts,
    Course,
    Durations,
    Histogram,
    Read,
    Sample,
    Shares,
    Statistic,
    chance,
    results,
)

MOST_LINES = 200
"""A tally has no more lines, and a line no more columns; all that does not fit is counted in one number."""

MOST_POINTS = 1000
"""Of a line in a course no more points are kept: beyond that every other goes."""

_STEP = math.log(1.05)
"""The durations of a line are kept to within so much, in bins; the median is taken from these."""

Row = TypeVar("Row", bound=Statistic)


class Tally(ABC, Generic[Row]):
    """What has been counted of a statistic; `left_out` samples had no room."""

    def __init__(self, statistic: Row) -> None:
        self.statistic = statistic
        self.left_out = 0

    @abstractmethod
    def add(self, sample: Sample, seconds: float) -> None:
        """Count a sample of an event so many seconds after the session began."""

    @abstractmethod
    def result(self) -> results.Result | None:
        """What it comes to; None where nothing was counted."""


class _Amounts(Tally[Row]):
    """How much of which column is in which line."""

    def __init__(self, statistic: Row, lines: Sequence[str] = (), columns: Sequence[str] = ()) -> None:
        super().__init__(statistic)
        self._lines: dict[str, dict[str, int]] = {line: {} for line in lines}
        self._columns = dict.fromkeys(columns)

    def add(self, sample: Sample, seconds: float) -> None:
        line = self._lines.get(sample.line)
        if line is None and len(self._lines) < MOST_LINES:
            line = self._lines[sample.line] = {}
        if line is None or (sample.column not in self._columns and len(self._columns) >= MOST_LINES):
            self.left_out += sample.amount
            return
        self._columns[sample.column] = None
        line[sample.column] = line.get(sample.column, 0) + sample.amount

    def counted(self) -> dict[str, dict[str, int]]:
        """The lines in which there is something, each with all columns in which there is something."""
        used = {column for line in self._lines.values() for column in line}
        columns = [column for column in self._columns if column in used]
        return {
            name: {column: line.get(column, 0) for column in columns}
            for name, line in self._lines.items()
            if line
        }


class _HistogramTally(_Amounts[Histogram]):
    def __init__(self, statistic: Histogram) -> None:
        super().__init__(statistic, statistic.values)

    def result(self) -> results.Histogram | None:
        counts = {name: sum(line.values()) for name, line in self._lines.items()}
        if not any(counts.values()):
            return None
        about = self.statistic
        test = None if about.chance is None else chance.judged(about.of, counts, about.chance)
        return results.Histogram(about.key, about.title, about.of, counts, test, self.left_out)


class _CountsTally(_Amounts[Counts]):
    def __init__(self, statistic: Counts) -> None:
        super().__init__(statistic, columns=statistic.columns)

    def result(self) -> results.Counts | None:
        lines = self.counted()
        about = self.statistic
        return results.Counts(about.key, about.title, about.of, lines, self.left_out) if lines else None


class _SharesTally(_Amounts[Shares]):
    def result(self) -> results.Shares | None:
        about = self.statistic
        lines = {
            name: results.Share(line.get(about.part, 0), sum(line.values()))
            for name, line in self.counted().items()
        }
        if not lines:
            return None
        return results.Shares(about.key, about.title, about.of, about.part, about.rest, lines, self.left_out)


class _CourseTally(Tally[Course]):
    def __init__(self, statistic: Course) -> None:
        super().__init__(statistic)
        self._lines: dict[str, list[tuple[float, int]]] = {}

    def add(self, sample: Sample, seconds: float) -> None:
        line = self._lines.get(sample.line)
        if line is None:
            if len(self._lines) >= MOST_LINES:
                self.left_out += 1
                return
            line = self._lines[sample.line] = []
        line.append((seconds, sample.amount))
        if len(line) > MOST_POINTS:
            # The last one stays: it is how things stand.
            del line[1:-1:2]

    def result(self) -> results.Course | None:
        about = self.statistic
        if not self._lines:
            return None
        return results.Course(about.key, about.title, about.unit, self._lines, self.left_out)


class _DurationsTally(Tally[Durations]):
    def __init__(self, statistic: Durations) -> None:
        super().__init__(statistic)
        self._lines: dict[str, _Times] = {}

    def add(self, sample: Sample, seconds: float) -> None:
        if sample.amount < 0:
            # The clock of a capture was set back meanwhile.
            return
        times = self._lines.get(sample.line)
        if times is None:
            if len(self._lines) >= MOST_LINES:
                self.left_out += 1
                return
            times = self._lines[sample.line] = _Times()
        times.add(sample.amount)

    def result(self) -> results.Durations | None:
        about = self.statistic
        lines = {name: times.result() for name, times in self._lines.items()}
        return results.Durations(about.key, about.title, lines, self.left_out) if lines else None


class _Times:
    """The durations of a line, in nanoseconds."""

    def __init__(self) -> None:
        self._bins: dict[int, int] = {}
        self._total = 0
        self._longest = 0

    def add(self, ns: int) -> None:
        """Count one."""
        place = math.floor(math.log(ns) / _STEP) if ns else -1
        self._bins[place] = self._bins.get(place, 0) + 1
        self._total += ns
        self._longest = max(self._longest, ns)

    def result(self) -> results.Times:
        count = sum(self._bins.values())
        left = (count + 1) // 2
        for place in sorted(self._bins):
            left -= self._bins[place]
            if left <= 0:
                break
        # The middle of the bin, but never beyond what there was.
        median = min(math.exp((place + 0.5) * _STEP), self._longest) if place >= 0 else 0.0
        return results.Times(count, self._total / count / 1e9, median / 1e9, self._longest / 1e9)


_TALLIES: Mapping[type[Statistic], Any] = {
    Histogram: _HistogramTally,
    Counts: _CountsTally,
    Shares: _SharesTally,
    Course: _CourseTally,
    Durations: _DurationsTally,
}


def tally_of(statistic: Statistic) -> Tally[Any]:
    """An empty tally for a statistic."""
    tally: Tally[Any] = _TALLIES[type(statistic)](statistic)
    return tally


def count(
    counted: Iterable[tuple[Read, Tally[Any]]], event: Event, state: State, seconds: float, counts: bool
) -> None:
    """Let readers read an event, with the table's state after it, and add its samples to their tallies."""
    for read, tally in counted:
        # Whether it counts or not, the reader must get to its end, and remember.
        for sample in read(event, state):
            if counts:
                tally.add(sample, seconds)


def results_of(tallies: Iterable[Tally[Any]]) -> list[results.Result]:
    """What these tallies come to; those in which nothing was counted are left out."""
    found = (tally.result() for tally in tallies)
    return [result for result in found if result is not None]
