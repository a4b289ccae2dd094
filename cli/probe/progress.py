"""The progress view of a test run: counts by verdict, the current case, the latest failures."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence

from kiebitz.cli.terminal.console import ellipsis
from kiebitz.cli.terminal.screen import (
    LINE_BREAK,
    AnyConsole,
    ConsoleOptions,
    ProgressBar,
    RenderableType,
    RenderResult,
    Table,
    Text,
)
from kiebitz.dissectors.probing.case import Case
from kiebitz.services.probing.results import KNOWN, UNSTABLE, WORDS, Result, Totals, counts_in_words

COLOURS = {"FAILED": "red", UNSTABLE: "yellow", KNOWN: "yellow", "NON-STRICT": "yellow", "OK": "green"}

_RARE = (UNSTABLE, KNOWN)
"""The verdicts that have a column only if they occur."""

_MAX_FAILED = 4
"""Maximum number of failed cases shown."""

_OTHER_LINES = 5
"""Lines other than messages and failures: progress, titles, totals, the current case, the cursor."""

_MIN_ROWS = 3
"""Minimum number of messages shown, however low the terminal is."""

_WIDE_COLUMNS = 76
"""Number of columns below which titles take two lines."""

_TITLES = {
    "NON-STRICT": ("NON-", "STRICT"),
    "INFORMATIONAL": ("INFOR-", "MATIONAL"),
    "NOT TRIED": ("NOT", "TRIED"),
}
"""Titles on two lines."""

_MIN_COLUMNS = 48
"""Number of columns below which there is no table."""

_MIN_COUNT_WIDTH = 4
"""Minimum width of a count."""


class ProgressView:
    """A view of the results of `cases` so far, rendered again at each refresh."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases = cases
        self._totals = Totals(cases)
        self._failed: deque[Result] = deque(maxlen=_MAX_FAILED)
        self._begun = time.monotonic()
        self._done: set[str] = set()
        """The names of the finished cases."""

    def add(self, result: Result) -> None:
        """Add the result of a case."""
        self._totals.add(result)
        self._done.add(result.case)
        if result.is_failed:
            self._failed.append(result)

    def __rich_console__(self, console: AnyConsole, options: ConsoleOptions) -> RenderResult:
        """Render the view in no more lines than the terminal has."""
        width = options.max_width
        failed = [*self._failed]
        yield self._progress_row(width)
        # Verdicts that need columns of their own leave less room for the others.
        rare = sum(len(word) + 2 for word in _RARE if self._totals.total[word])
        if width - rare < _MIN_COLUMNS:
            yield _line(Text(counts_in_words(self._totals.total)))
        else:
            is_wide = width - rare >= _WIDE_COLUMNS
            room = console.size.height - _OTHER_LINES - len(failed) - (not is_wide)
            yield self._table(is_wide, max(room, _MIN_ROWS))
        current = next((case.name for case in self._cases if case.name not in self._done), None)
        if current is not None:
            yield _line(Text.assemble(("now ", "dim"), current))
        for result in failed:
            yield _line(Text.assemble((result.verdict, "red bold"), f" {result.case}: {result.why}"))

    def _progress_row(self, width: int) -> RenderableType:
        elapsed = time.monotonic() - self._begun
        row = Table.grid(padding=(0, 1))
        label = f"{_duration(elapsed)}"
        done, left = len(self._done), len(self._cases) - len(self._done)
        if done and left:
            label += f", about {_duration(elapsed / done * left)} left"
        count = f"{done:,} of {len(self._cases):,} cases"
        bar = ProgressBar(len(self._cases), done, width=max(min(30, width - len(count + label) - 3), 5))
        row.add_row(Text(count), bar, Text(label, no_wrap=True))
        return row

    def _table(self, is_wide: bool, room: int) -> RenderableType:
        words = [word for word in WORDS if word not in _RARE or self._totals.total[word]]
        table = Table(box=None, padding=(0, 2 if is_wide else 1, 0, 0), header_style="bold", pad_edge=False)
        table.add_column("message", vertical="bottom")
        for word in (*words, "left"):
            lines = (word,) if is_wide else _TITLES.get(word, (word,))
            title = LINE_BREAK.join(map(Text, lines))
            table.add_column(
                title, justify="right", vertical="bottom", width=max(*map(len, lines), _MIN_COUNT_WIDTH)
            )
        for group, above in _window(self._totals.groups, self._current_index(), room):
            if group is None:
                table.add_row(_line(Text(f"{ellipsis()} {above} more", "dim")))
            else:
                cells = _cells(words, self._totals.of(group), self._totals.left(group))
                table.add_row(_line(Text(group)), *cells)
        left = len(self._cases) - len(self._done)
        table.add_row(Text("all", "bold"), *_cells(words, self._totals.total, left), style="bold")
        return table

    def _current_index(self) -> int:
        """Return the index of the message whose case runs now."""
        indexes = [index for index, group in enumerate(self._totals.groups) if self._totals.left(group)]
        return indexes[0] if indexes else len(self._totals.groups) - 1


def _window(groups: Sequence[str], here: int, room: int) -> Iterator[tuple[str | None, int]]:
    """Yield the groups around one of them for which there is room; None and a number for those left out."""
    if len(groups) <= room:
        yield from ((group, 0) for group in groups)
        return
    shown = room - 2
    first = min(max(here - shown // 2, 0), len(groups) - shown)
    if first:
        yield None, first
    yield from ((group, 0) for group in groups[first : first + shown])
    if first + shown < len(groups):
        yield None, len(groups) - first - shown


def _cells(words: Sequence[str], count: Counter[str], left: int) -> Iterator[Text]:
    for word in words:
        yield Text(f"{count[word]:,}", COLOURS.get(word, "")) if count[word] else Text()
    yield Text(f"{left:,}", "dim") if left else Text()


def _line(text: Text) -> Text:
    """Limit a text to one line."""
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"
