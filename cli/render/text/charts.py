"""Statistics as text charts, as wide as the terminal, and the contents of charts for both renderers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import msgspec

from kiebitz.cli.render.text.canvas import ASCII, UNICODE, Glyphs, glyphs_for, shorten, without_accents
from kiebitz.cli.terminal.console import (
    Line,
    Styled,
    can_write,
    encodable,
    letters_of_output,
    terminal_columns,
    wrapped,
)
from kiebitz.dissectors.statistics import COUNT
from kiebitz.dissectors.statistics.chance import Chance
from kiebitz.dissectors.statistics.results import (
    Counts,
    Durations,
    Histogram,
    Rate,
    Result,
    Shares,
    TableStatistics,
    Times,
    TimeSeries,
)
from kiebitz.services.evidence.cells import cell_len
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


NARROWEST, WIDEST = 40, 160
"""Minimum and maximum width in columns."""

MAX_LINES = 24
"""Maximum number of lines of a statistic; JSON has all."""

_DEFAULT_WIDTH = 80
"""Width if stdout is not a terminal."""

_MOST_COLUMNS = 24
_GAP = "  "
_INDENT = "  "
_NUMBER = 6
"""Width of a number, in cells."""


class Strokes(msgspec.Struct, frozen=True):
    """The characters of bars: `parts` of a cell, ascending; `levels` of a line; a `mark` on a bar."""

    full: str
    parts: str
    levels: str
    mark: str
    empty: str


_BLOCKS = Strokes("█", "▏▎▍▌▋▊▉", "▁▂▃▄▅▆▇█", "┃", "░")
_SIGNS = Strokes("#", "", "_.-=+*%#", "|", ".")


def charts_for_stdout() -> Charts:
    """Return the charts for stdout's width and encoding."""
    return Charts(terminal_columns() or _DEFAULT_WIDTH, letters_of_output())


class Charts:
    """Text charts of a maximum width in the characters of an encoding."""

    def __init__(self, columns: int, encoding: str) -> None:
        self._width = max(NARROWEST, min(columns, WIDEST))
        self._encoding = encoding
        self._glyphs: Glyphs = ASCII if glyphs_for(encoding) is ASCII else UNICODE
        self._strokes = _BLOCKS if can_write("".join(msgspec.structs.astuple(_BLOCKS)), encoding) else _SIGNS

    def lines(self, table: TableStatistics) -> Iterator[Line]:
        """Yield all statistics of a table."""
        return self.charts(heading(table, self._glyphs.dot), table.statistics)

    def charts(self, title: str, statistics: Iterable[Result]) -> Iterator[Line]:
        """Yield statistics below a title."""
        known = without_accents(title) if self._glyphs is ASCII else title
        yield [Styled(self._words(known, self._width), bold=True)]
        for result in statistics:
            yield [""]
            yield [Styled(self._words(result.title, self._width), bold=True)]
            for line in self._chart(result):
                # On a very narrow terminal not all figures may fit.
                yield [shorten(f"{_INDENT}{line}".rstrip(), self._width, self._glyphs)]
            if not isinstance(result, Rate) and result.left_out:
                yield [f"{_INDENT}left out as too many: {result.left_out:,}"]

    def _chart(self, result: Result) -> Iterator[str]:
        match result:
            case Histogram():
                return self._histogram(result)
            case Counts():
                return self._counts(result)
            case Shares():
                return self._shares(result)
            case TimeSeries():
                return self._course(result)
            case Durations():
                return self._durations(result)
            case Rate():
                return self._rate(result)

    def _histogram(self, result: Histogram) -> Iterator[str]:
        expected = {} if result.chance is None else result.chance.expected
        most = max(1.0, *result.counts.values(), *expected.values())
        label = self._label_width([*result.counts])
        room = self._room(label, 2 if expected else 1)
        if expected:
            yield f"{'':{label}}{_GAP}{'seen':>{_NUMBER}}{_GAP}{'chance':>{_NUMBER}}"
        for value, count in islice(result.counts.items(), MAX_LINES):
            numbers = f"{count:>{_NUMBER},}"
            bar = self._bar(count, most, room)
            if value in expected:
                numbers += f"{_GAP}{expected[value]:>{_NUMBER}.1f}"
                bar = self._marked(bar, int(expected[value] / most * (room - 1)))
            yield f"{self._label(value, label)}{_GAP}{numbers}{_GAP}{bar}"
        yield from self._more(len(result.counts))
        if result.chance is not None:
            yield from wrapped(test_words(result.chance), self._width - len(_INDENT))

    def _counts(self, result: Counts) -> Iterator[str]:
        grid = grid_of(result)
        label = self._label_width(grid.lines)
        count = len(grid.columns) or 1
        width = (self._room(label, 0) - len(_GAP) * (count - 1)) // count
        digits = len(f"{grid.most:,}")
        if grid.columns and width < max(digits, *map(cell_len, grid.columns)):
            yield from self._in_words(grid, label)
        else:
            yield from self._in_columns(grid, label, width, digits)
        yield from self._more(len(grid.lines))

    def _in_columns(self, grid: Grid, label: int, width: int, digits: int) -> Iterator[str]:
        """Yield each number with its bar, in columns of equal width."""
        if grid.columns:
            yield f"{'':{label}}{_GAP}{_GAP.join(self._label(title, width) for title in grid.columns)}"
        for name, numbers in islice(zip(grid.lines, grid.cells, strict=True), MAX_LINES):
            cells = (
                f"{number:>{digits},} {self._bar(number, grid.most, width - digits - 1)}".ljust(width)
                for number in numbers
            )
            yield f"{self._label(name, label)}{_GAP}{_GAP.join(cells)}"

    def _in_words(self, grid: Grid, label: int) -> Iterator[str]:
        """Yield the nonzero numbers, if there is no room for columns."""
        room = self._room(label, 0)
        titles = [self._words(title, room) for title in grid.columns[:_MOST_COLUMNS]]
        for name, numbers in islice(zip(grid.lines, grid.cells, strict=True), MAX_LINES):
            told = ", ".join(
                f"{title} {number:,}" for title, number in zip(titles, numbers, strict=False) if number
            )
            for place, row in enumerate(wrapped(told, room)):
                yield f"{self._label(name, label) if not place else ' ' * label}{_GAP}{row}"
        if len(grid.columns) > _MOST_COLUMNS:
            yield f"and {counted(len(grid.columns) - _MOST_COLUMNS, 'column')} more; --json has all"

    def _shares(self, result: Shares) -> Iterator[str]:
        label = self._label_width([*result.lines])
        told = [f"{share.part:,} of {share.all:,}" for share in result.lines.values()]
        numbers = max(map(len, told))
        room = self._room(label, 0) - numbers - len(_GAP) - 7
        yield f"{'':{label}}{_GAP}{result.part}"
        for (name, share), words in islice(zip(result.lines.items(), told, strict=True), MAX_LINES):
            bar = self._bar(share.part, share.all, room)
            rest = self._strokes.empty * (room - len(bar))
            yield (
                f"{self._label(name, label)}{_GAP}{words:>{numbers}}{_GAP}{share.part / share.all:>5.0%}"
                f"{_GAP}{bar}{rest}"
            )
        yield from self._more(len(result.lines))

    def _course(self, result: TimeSeries) -> Iterator[str]:
        begin, end, least, most = span(result.lines)
        label = self._label_width([*result.lines])
        numbers = max(len(f"{line[-1][1]:,}") for line in result.lines.values())
        room = self._room(label, 0) - numbers - len(_GAP)
        levels = self._strokes.levels
        for name, line in islice(result.lines.items(), MAX_LINES):
            drawn = ""
            for cell in range(room):
                amount = at(line, begin + (end - begin) * cell / max(1, room - 1))
                place = (
                    0
                    if amount is None
                    else round((amount - least) / max(1, most - least) * (len(levels) - 1))
                )
                drawn += " " if amount is None else levels[place]
            yield f"{self._label(name, label)}{_GAP}{line[-1][1]:>{numbers},}{_GAP}{drawn}"
        yield from self._more(len(result.lines))
        scale = f"from {duration(begin)} to {duration(end)}; {least:,} to {most:,} {result.unit}"
        yield f"{'':{label}}{_GAP}{scale}"

    def _durations(self, result: Durations) -> Iterator[str]:
        label = self._label_width([*result.lines])
        rows = [times_words(times) for times in result.lines.values()]
        widths = [max(map(len, column)) for column in zip(TIMES, *rows, strict=True)]
        room = self._room(label, 0) - sum(widths) - len(_GAP) * len(widths)
        titles = _GAP.join(f"{title:>{width}}" for title, width in zip(TIMES, widths, strict=True))
        yield f"{'':{label}}{_GAP}{titles}" + (f"{_GAP}median" if room >= _NUMBER else "")
        most = max(times.median for times in result.lines.values())
        for (name, times), row in islice(zip(result.lines.items(), rows, strict=True), MAX_LINES):
            cells = _GAP.join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True))
            yield f"{self._label(name, label)}{_GAP}{cells}{_GAP}{self._bar(times.median, most, room)}"
        yield from self._more(len(result.lines))

    def _rate(self, result: Rate) -> Iterator[str]:
        room = self._width - len(_INDENT)
        counts, most = result.counts, max(result.counts)
        levels = self._strokes.levels
        cells = min(room, len(counts) * max(1, room // len(counts)))
        drawn = [counts[cell * len(counts) // cells] for cell in range(cells)]
        # A single bin is described in words.
        if len(counts) > 1:
            yield "".join(levels[round(count / most * (len(levels) - 1))] for count in drawn)
        yield rate_words(result)

    # Parts of lines.

    def _words(self, text: str, width: int) -> str:
        """Return a text in the encoding's characters, cut to a width."""
        return shorten(encodable(text, self._encoding), width, self._glyphs)

    def _label_width(self, labels: Sequence[str]) -> int:
        widest = max(cell_len(self._words(label, self._width // 3)) for label in labels[:MAX_LINES])
        return max(widest, 2)

    def _label(self, label: str, width: int) -> str:
        words = self._words(label or '""', width)
        return words + " " * (width - cell_len(words))

    def _room(self, label: int, numbers: int) -> int:
        """Return the width left for a bar."""
        return self._width - len(_INDENT) - label - len(_GAP) - numbers * (_NUMBER + len(_GAP))

    def _bar(self, amount: float, most: float, room: int) -> str:
        if room <= 0 or amount <= 0 or most <= 0:
            return ""
        parts = len(self._strokes.parts) + 1
        # The smallest value above 0 is visible, too.
        whole, part = divmod(max(1, round(amount / most * room * parts)), parts)
        return self._strokes.full * whole + (self._strokes.parts[part - 1] if part else "")

    def _marked(self, bar: str, place: int) -> str:
        filled = bar.ljust(place + 1)
        return f"{filled[:place]}{self._strokes.mark}{filled[place + 1 :]}"

    def _more(self, count: int) -> Iterator[str]:
        if count > MAX_LINES:
            yield f"and {count - MAX_LINES:,} more; --json has all"
