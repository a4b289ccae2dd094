"""Statistics as charts on a sheet in the style of the tables, one card below or beside the other.

Words can be read from the back of a room, lines have their names at their ends, and nothing is shown by
colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, islice

import msgspec

from kiebitz.cli.render.svg.svg_canvas import (
    BOLD,
    LETTER_WIDTH,
    SIZES,
    SMALL,
    Element,
    Sheet,
    fragment,
    group,
    label,
    line,
    lines,
    rect,
    shape,
)
from kiebitz.cli.render.svg.theme import document
from kiebitz.cli.render.text.charts import (
    Grid,
    duration,
    grid_of,
    heading,
    rate_words,
    span,
    test_words,
    times_words,
)
from kiebitz.cli.render.text.pen import COLOURS
from kiebitz.dissectors.escaping import printable
from kiebitz.dissectors.statistics.results import (
    Counts,
    Durations,
    Histogram,
    Rate,
    Result,
    Shares,
    TableStatistics,
    TimeSeries,
)
from kiebitz.services.wording import counted

_EDGE = 30
_GAP = 20
_PAD = 24
_TITLE = 32.0
_WORDS = 26.0
_ROW = 42.0
_BAR = 26.0

_MANY_VALUES = 12
_MANY_COLUMNS = 3
"""A chart with more columns spans the sheet."""

_TITLES = 460.0
"""A chart with wider titles spans the sheet, too."""

_MOST_ROWS = 16
_MOST_COLUMNS = 8
_MOST_CURVES = 12

_DASHES = ("none", "14 6", "4 6", "20 6 4 6")
_PLOT = 300.0


def document_of(table: TableStatistics, caption: str) -> bytes:
    """Return an SVG document with all charts of a table."""
    return document(draw_charts(table).drawing(), heading(table), caption)


def draw_charts(table: TableStatistics) -> Sheet:
    """Draw the charts of a table on a wide sheet of the height needed."""
    width = SIZES["wide"][0] - 2 * _EDGE
    half = (width - _GAP) / 2
    bottoms = [0.0, 0.0]
    placed: list[tuple[_Card, float, float]] = []
    for is_large, run in groupby(table.statistics, _is_large):
        results = list(run)
        for result in results:
            # A single small chart would leave a gap beside it.
            if is_large or len(results) == 1:
                card, x, y = _card(result, width), float(_EDGE), max(bottoms)
                bottoms = [y + card.height + _GAP] * 2
            else:
                column = bottoms.index(min(bottoms))
                card, x, y = _card(result, half), _EDGE + column * (half + _GAP), bottoms[column]
                bottoms[column] += card.height + _GAP
            placed.append((card, x, y))
    sheet = Sheet("wide", max(1, round(max(bottoms))))
    for card, x, y in placed:
        sheet.put(fragment(card.drawn), x, y)
        sheet.say(printable(card.title))
    return sheet


def _is_large(result: Result) -> bool:
    match result:
        case Histogram():
            return len(result.counts) > _MANY_VALUES
        case Counts():
            grid = grid_of(result)
            titles = max(map(_estimated_width, grid.columns), default=0.0)
            return len(grid.columns) > _MANY_COLUMNS or titles * len(grid.columns) > _TITLES
        case TimeSeries():
            return True
        case _:
            return False


class _Card(msgspec.Struct):
    """A chart in progress; the space below its `height` is free."""

    drawn: Element
    title: str
    width: float
    height: float

    @property
    def room(self) -> float:
        """The inner width."""
        return self.width - 2 * _PAD

    def words(self, words: str, most: int = 6) -> None:
        """Write words below all else, in at most `most` lines."""
        for row in lines(words, _WORDS, self.room)[:most]:
            label(self.drawn, (_PAD, self.height + _WORDS), row, _WORDS, "k-ink", self.room)
            self.height += _WORDS * 1.25


def _card(result: Result, width: float) -> _Card:
    """Return the card of a statistic."""
    drawn = group()
    ground = shape(drawn, "rect", width=width, rx=16, class_="k-card k-s-line", stroke_width=2)
    card = _Card(drawn, result.title, width, _PAD + 44.0)
    # Text is cut for letters of average width.
    room = card.room * LETTER_WIDTH / BOLD
    label(drawn, (_PAD, _PAD + 26), result.title, _TITLE, "bold k-ink", room)
    match result:
        case Histogram():
            _histogram(card, result)
        case Counts():
            _grid(card, grid_of(result))
        case Shares():
            _shares(card, result)
        case TimeSeries():
            _course(card, result)
        case Durations():
            _durations(card, result)
        case Rate():
            # A single bin is described in words.
            if len(result.counts) > 1:
                _columns(card, [float(count) for count in result.counts], {}, [], 140)
            card.words(rate_words(result))
    card.height += _PAD
    ground.set("height", f"{card.height:g}")
    return card


def _histogram(card: _Card, result: Histogram) -> None:
    expected = {} if result.chance is None else result.chance.expected
    values = list(islice(result.counts, 40))
    marks = {place: expected[value] for place, value in enumerate(values) if value in expected}
    _columns(card, [float(result.counts[value]) for value in values], marks, values, _PLOT)
    if result.chance is not None:
        y = card.height + 16
        line(card.drawn, (_PAD, y), (_PAD + 44, y), class_="k-s-ink", stroke_width=5)
        label(card.drawn, (_PAD + 56, y + 9), "expected by chance", _WORDS, "k-ink", card.room)
        card.height += 40
        card.words(test_words(result.chance))


def _columns(
    card: _Card, counts: Sequence[float], marks: dict[int, float], values: Sequence[str], height: float
) -> None:
    """Draw vertical bars with counts above, values below, and marks across."""
    most = max(1.0, *counts, *marks.values())
    step = card.room / len(counts)
    top = card.height + (SMALL + 10 if values else 0)
    base = top + height
    thick = step * (0.66 if values else 0.9)
    for place, count in enumerate(counts):
        left = _PAD + place * step + (step - thick) / 2
        high = count / most * height
        rect(card.drawn, left, base - high, thick, high, class_="k-turn")
        middle = left + thick / 2
        if place in marks:
            y = base - marks[place] / most * height
            line(
                card.drawn,
                (left - step * 0.1, y),
                (left + thick + step * 0.1, y),
                class_="k-s-ink",
                stroke_width=5,
            )
        if values:
            above = high
            if place in marks and high - 8 < (mark := marks[place] / most * height) < high + SMALL + 14:
                above = mark
            for words, y in ((f"{count:,.0f}", base - above - 10), (values[place], base + 30)):
                label(card.drawn, (middle, y), words, SMALL, "middle k-ink", step)
    line(card.drawn, (_PAD, base), (_PAD + card.room, base), class_="k-s-line", stroke_width=3)
    card.height = base + (46 if values else 12)


def _label_room(card: _Card, names: Sequence[str]) -> float:
    """Return the width of the names before the bars."""
    return min(card.room * 0.4, max(map(_estimated_width, names)) + 16)


def _estimated_width(name: str) -> float:
    """Estimate the width of a name; capitals are wider than other letters."""
    return sum(BOLD if letter.isupper() else LETTER_WIDTH for letter in name[:200]) * _WORDS


def _rows(card: _Card, names: Sequence[str]) -> list[tuple[float, float]]:
    """Write names below each other; return the beginning of each one's bar and its base line."""
    room = _label_room(card, names[:_MOST_ROWS])
    places = []
    for name in names[:_MOST_ROWS]:
        card.height += _ROW
        base = card.height - 12
        label(card.drawn, (_PAD, base), name or '""', _WORDS, "k-ink", room - 12)
        places.append((_PAD + room, base))
    return places


def _more(card: _Card, count: int, most: int, what: str) -> None:
    if count > most:
        card.words(f"and {counted(count - most, what)} more")


def _bar(card: _Card, x: float, base: float, width: float) -> None:
    if width > 0:
        # The smallest value above 0 is visible, too.
        rect(card.drawn, x, base - 21, max(3.0, width), _BAR, 3, class_="k-turn")


def _grid(card: _Card, grid: Grid) -> None:
    columns = grid.columns[:_MOST_COLUMNS]
    titles_base = card.height + _WORDS
    if columns:
        card.height += _ROW
    places = _rows(card, grid.lines)
    begin = places[0][0]
    step = (card.width - _PAD - begin) / max(1, len(columns))
    digits = len(f"{grid.most:,}") * LETTER_WIDTH * _WORDS
    for column, title in enumerate(columns):
        at = (begin + column * step, titles_base)
        label(card.drawn, at, title or '""', SMALL, "k-faint", step - 10)
    for (x, base), numbers in zip(places, grid.cells, strict=False):
        for column, number in enumerate(numbers[: max(1, len(columns))]):
            left = x + column * step
            label(card.drawn, (left + digits, base), f"{number:,}", _WORDS, "end k-ink")
            _bar(card, left + digits + 12, base, (step - digits - 30) * number / grid.most)
    _more(card, len(grid.lines), _MOST_ROWS, "line")
    _more(card, len(grid.columns), _MOST_COLUMNS, "column")


def _shares(card: _Card, result: Shares) -> None:
    shares = [*result.lines.values()]
    for (x, base), share in zip(_rows(card, [*result.lines]), shares, strict=False):
        words = f"{share.part:,} of {share.all:,} {result.part}"
        told = len(words) * LETTER_WIDTH * _WORDS + 16
        width = card.width - _PAD - x - told
        rect(card.drawn, x, base - 21, width, _BAR, 3, class_="k-paper k-s-line", stroke_width=2)
        _bar(card, x, base, width * share.part / share.all)
        label(card.drawn, (x + width + 14, base), words, _WORDS, "k-ink", told)
    _more(card, len(shares), _MOST_ROWS, "line")


def _durations(card: _Card, result: Durations) -> None:
    most = max(times.median for times in result.lines.values())
    for (x, base), times in zip(_rows(card, [*result.lines]), result.lines.values(), strict=False):
        _, _, median, longest = times_words(times)
        words = f"{median} (longest {longest})"
        told = len(words) * LETTER_WIDTH * _WORDS + 16
        width = max(40.0, card.width - _PAD - x - told)
        drawn = width * times.median / most if most else 0.0
        _bar(card, x, base, drawn)
        label(card.drawn, (x + drawn + 14, base), words, _WORDS, "k-ink", card.width - x - drawn - 20)
    _more(card, len(result.lines), _MOST_ROWS, "line")
    card.words("The bars are the medians: half of the times were shorter.")


def _course(card: _Card, result: TimeSeries) -> None:
    begin, end, least, most = span(result.lines)
    curves = dict(islice(result.lines.items(), _MOST_CURVES))
    axis = max(len(f"{amount:,}") for amount in (least, most)) * LETTER_WIDTH * SMALL + 14
    names = _label_room(card, [f"{name}  {curve[-1][1]:,}" for name, curve in curves.items()])
    left, right = _PAD + axis, card.width - _PAD - names
    top, base = card.height + 12, card.height + 12 + _PLOT * 1.3

    def y_of(amount: float) -> float:
        return base - (amount - least) / max(1, most - least) * (base - top)

    def x_of(seconds: float) -> float:
        return left + (seconds - begin) / (end - begin) * (right - left) if end > begin else left

    # With negative values, 0 is labelled; the middle might be too near to it.
    between = 0 if least < 0 else round(most / 2)
    for amount in sorted({least, between, most}):
        line(card.drawn, (left, y_of(amount)), (right, y_of(amount)), class_="k-s-line", stroke_width=2)
        at = (left - 12, y_of(amount) + 8)
        label(card.drawn, at, f"{amount:,}", SMALL, "end k-faint")
    ends = {name: y_of(curve[-1][1]) for name, curve in curves.items()}
    for number, (name, y) in enumerate(_spread(ends, top, base).items()):
        colour, dash = COLOURS[number % len(COLOURS)], _DASHES[number // 2 % len(_DASHES)]
        _curve(card, [(x_of(seconds), y_of(amount)) for seconds, amount in curves[name]], right, colour, dash)
        line(card.drawn, (right, ends[name]), (right + 18, y), stroke=colour, stroke_width=2)
        words = f"{name} {curves[name][-1][1]:,}"
        label(card.drawn, (right + 24, y + 9), words, _WORDS, "k-ink", names - 20)
    for words, x, anchor in ((duration(begin), left, "start"), (duration(end), right, "end")):
        label(card.drawn, (x, base + 34), words, SMALL, f"{anchor} k-faint")
    card.height = base + 44
    _more(card, len(result.lines), _MOST_CURVES, "line")


def _curve(card: _Card, points: Sequence[tuple[float, float]], right: float, colour: str, dash: str) -> None:
    """Draw a step line: a value holds until the next one."""
    (x, y), *rest = points
    path = [f"M{x:.1f} {y:.1f}", *(f"H{x:.1f}V{y:.1f}" for x, y in rest), f"H{right:.1f}"]
    shape(
        card.drawn,
        "path",
        d="".join(path),
        fill="none",
        stroke=colour,
        stroke_width=5,
        stroke_dasharray=dash,
        stroke_linejoin="round",
    )


def _spread(ends: dict[str, float], top: float, base: float) -> dict[str, float]:
    """Return positions of names near the ends of their lines, in their order and without overlaps."""
    step = min(_WORDS + 6, (base - top) / max(1, len(ends) - 1)) if len(ends) > 1 else 0.0
    found: dict[str, float] = {}
    y = top - step
    for name in sorted(ends, key=ends.__getitem__):
        y = found[name] = max(ends[name], y + step)
    # Names pushed below the plot move up again, and push others.
    y = base + step
    for name in reversed(found):
        y = found[name] = min(found[name], y - step)
    return found
