"""Contents of charts shared by both renderers: numbers in words, and their layout."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import msgspec

from kiebitz.cli.render.text.canvas import UNICODE
from kiebitz.dissectors.statistics import COUNT
from kiebitz.dissectors.statistics.chance import Chance
from kiebitz.dissectors.statistics.results import Counts, Rate, TableStatistics, Times
from kiebitz.services.wording import counted
from kiebitz.storage.read.event_text import game_title

TIMES = ("moves", "mean", "median", "longest")
"""Columns of durations."""


class Grid(msgspec.Struct, frozen=True):
    """Counts in lines and columns; the longer dimension is vertical. A single column has no title."""

    lines: list[str]
    columns: list[str]
    cells: list[list[int]]

    @property
    def most(self) -> int:
        """The largest number, at least 1."""
        return max(1, *(max(row) for row in self.cells))


def grid_of(counts: Counts) -> Grid:
    """Lay out counts."""
    lines = [*counts.lines]
    columns = list(dict.fromkeys(column for line in counts.lines.values() for column in line))
    cells = [[line.get(column, 0) for column in columns] for line in counts.lines.values()]
    if columns == [COUNT]:
        return Grid(lines, [], cells)
    if len(columns) > len(lines):
        return Grid(columns, lines, [list(row) for row in zip(*cells, strict=True)])
    return Grid(lines, columns, cells)


def heading(table: TableStatistics, dot: str = UNICODE.dot) -> str:
    """Return the name of a table and its totals."""
    told = f"{counted(table.messages, 'message')}, {counted(table.events, 'event')}"
    return f" {dot} ".join((game_title(table.protocol), table.server, told))


def test_words(chance: Chance) -> str:
    """Return the result of the comparison with chance, with its figures."""
    if chance.chi_squared is None or chance.p is None:
        return chance.says
    p = f"{chance.p:.3f}" if chance.p >= 0.001 else "below 0.001"
    return f"{chance.says} (chi-squared {chance.chi_squared:.2f}, {chance.degrees} degrees of freedom, p {p})"


def duration(seconds: float) -> str:
    """Return a duration in a suitable unit, as in `0.60 ms`, `2.3 s` and `5 min 3 s`."""
    if seconds < 0.001:
        return f"{seconds * 1000:.2f} ms"
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{counted(int(seconds // 60), 'min', 'min')} {int(seconds % 60)} s"


def times_words(times: Times) -> list[str]:
    """Return the columns of durations."""
    return [f"{times.count:,}", duration(times.mean), duration(times.median), duration(times.longest)]


def rate_words(rate: Rate) -> str:
    """Return a number of messages per second in words."""
    seconds = rate.stretch * len(rate.counts)
    mean, most = sum(rate.counts) / seconds, max(rate.counts) / rate.stretch
    return f"{_rounded(mean)} on average, {_rounded(most)} at most, over {duration(seconds)}"


def _rounded(number: float) -> str:
    return f"{number:,.1f}" if number < 100 else f"{number:,.0f}"


def at(line: Sequence[tuple[float, int]], seconds: float) -> int | None:
    """Return the value at a time; None before the first."""
    place = bisect_right(line, seconds, key=lambda point: point[0])
    return line[place - 1][1] if place else None


def span(lines: dict[str, list[tuple[float, int]]]) -> tuple[float, float, int, int]:
    """Return begin, end, minimum and maximum of lines; 0 lies within the last two."""
    times = [seconds for line in lines.values() for seconds, _ in line]
    amounts = [amount for line in lines.values() for _, amount in line]
    return min(times), max(times), min(0, *amounts), max(0, *amounts)
