"""Accumulators of samples, one for each statistic, in bounded memory."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.statistics import (
    Counts,
    Durations,
    Histogram,
    Read,
    Sample,
    Shares,
    Statistic,
    TimeSeries,
    chance,
    results,
)

MAX_LINES = 200
"""Maximum number of lines, and of columns; samples beyond it are counted in one number."""

MAX_POINTS = 1000
"""Maximum number of points in a line of a course; beyond it every second one is dropped."""

_BIN = math.log(1.05)
"""Width of a bin of durations, as a logarithm; the median is taken from the bins."""


class _Amounts(dict[str, int]):
    """The amounts of a line by column; all lines share the bounded set of `columns`."""

    def __init__(self, columns: dict[str, None]) -> None:
        self._columns = columns

    def add(self, sample: Sample, _seconds: float) -> int:
        """Add a sample, and return the amount that had no room."""
        if sample.column not in self._columns and len(self._columns) >= MAX_LINES:
            return sample.amount
        self._columns[sample.column] = None
        self[sample.column] = self.get(sample.column, 0) + sample.amount
        return 0


class _Points(list[tuple[float, int]]):
    """The points of a course: seconds since the session began, and an amount."""

    def __init__(self, _columns: object) -> None:
        super().__init__()

    def add(self, sample: Sample, seconds: float) -> int:
        self.append((seconds, sample.amount))
        if len(self) > MAX_POINTS:
            # The last one stays: it is the present amount.
            del self[1:-1:2]
        return 0


class _Times:
    """The durations of a line, in nanoseconds."""

    def __init__(self, _columns: object) -> None:
        self._bins: dict[int, int] = {}
        self._total = 0
        self._longest = 0

    def add(self, sample: Sample, _seconds: float) -> int:
        ns = sample.amount
        place = math.floor(math.log(ns) / _BIN) if ns else -1
        self._bins[place] = self._bins.get(place, 0) + 1
        self._total += ns
        self._longest = max(self._longest, ns)
        return 0

    def result(self) -> results.Times:
        count = sum(self._bins.values())
        left = (count + 1) // 2
        for place in sorted(self._bins):
            left -= self._bins[place]
            if left <= 0:
                break
        # The middle of the bin, but never beyond the longest.
        median = min(math.exp((place + 0.5) * _BIN), self._longest) if place >= 0 else 0.0
        return results.Times(count, self._total / count / 1e9, median / 1e9, self._longest / 1e9)


_LINES: dict[type[Statistic], type[Any]] = {
    Histogram: _Amounts,
    Counts: _Amounts,
    Shares: _Amounts,
    TimeSeries: _Points,
    Durations: _Times,
}


class Accumulator:
    """The samples of one statistic, counted line by line."""

    def __init__(self, statistic: Statistic) -> None:
        self.statistic = statistic
        self._columns = dict.fromkeys(statistic.columns if isinstance(statistic, Counts) else ())
        self._new_line = _LINES[type(statistic)]
        values = statistic.values if isinstance(statistic, Histogram) else ()
        self._lines: dict[str, Any] = {value: self._new_line(self._columns) for value in values}
        self._left_out = 0

    def add(self, sample: Sample, seconds: float) -> None:
        """Count a sample of an event at this time since the session began."""
        if self._new_line is _Times and sample.amount < 0:
            # The capture's clock was set back in between.
            return
        line = self._lines.get(sample.line)
        if line is None and len(self._lines) < MAX_LINES:
            line = self._lines[sample.line] = self._new_line(self._columns)
        if line is not None:
            self._left_out += line.add(sample, seconds)
        else:
            self._left_out += sample.amount if self._new_line is _Amounts else 1

    def result(self) -> results.Result | None:
        """Return the result; None if nothing was counted."""
        about, left_out = self.statistic, self._left_out
        if isinstance(about, Histogram):
            counts = {name: sum(line.values()) for name, line in self._lines.items()}
            if not any(counts.values()):
                return None
            test = None if about.chance is None else chance.chance_test(about.of, counts, about.chance)
            return results.Histogram(about.key, about.title, about.of, counts, test, left_out)
        lines = {name: line for name, line in self._lines.items() if line}
        if not lines:
            return None
        if isinstance(about, Counts):
            used = {column for line in lines.values() for column in line}
            columns = [column for column in self._columns if column in used]
            cells = {
                name: {column: line.get(column, 0) for column in columns} for name, line in lines.items()
            }
            return results.Counts(about.key, about.title, about.of, cells, left_out)
        if isinstance(about, Shares):
            parts = {name: (line.get(about.part, 0), sum(line.values())) for name, line in lines.items()}
            shares = {name: results.Share(*part) for name, part in parts.items()}
            return results.Shares(about.key, about.title, about.of, about.part, about.rest, shares, left_out)
        if isinstance(about, TimeSeries):
            points = {name: [*line] for name, line in lines.items()}
            return results.TimeSeries(about.key, about.title, about.unit, points, left_out)
        times = {name: line.result() for name, line in lines.items()}
        return results.Durations(about.key, about.title, times, left_out)


def count(
    counted: Iterable[tuple[Read, Accumulator]], event: Event, state: State, seconds: float, counts: bool
) -> None:
    """Pass an event, with the table's state after it, to readers, and add the samples to the accumulators."""
    for read, accumulator in counted:
        # The generator must be exhausted to update its memory, even if the event is not counted.
        for sample in read(event, state):
            if counts:
                accumulator.add(sample, seconds)


def results_of(accumulators: Iterable[Accumulator]) -> list[results.Result]:
    """Return the results; statistics in which nothing was counted are left out."""
    found = (accumulator.result() for accumulator in accumulators)
    return [result for result in found if result is not None]
