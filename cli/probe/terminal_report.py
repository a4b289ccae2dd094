"""The terminal report of a test run: totals, then each violation in full."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kiebitz.cli.probe.progress import COLOURS
from kiebitz.cli.probe.transcript import specification, transcript
from kiebitz.cli.terminal.console import Styled, ellipsis, show_line, terminal_columns, wrapped
from kiebitz.cli.terminal.table import Column, show_table
from kiebitz.dissectors.grammar.grammar import shortened
from kiebitz.services.probing.results import IN_FULL, NOT_TRIED, WORDS, Result
from kiebitz.services.probing.totals import Totals, totals_of

_COLUMNS = 100
"""Line width without a terminal."""

_INDENT = "  "

_MAX_MESSAGES = 6
"""Maximum number of messages shown per case."""

_MAX_LINES = 3
"""Maximum number of the program's last output lines to show."""

_MAX_LINE_LENGTH = 120
"""Maximum number of characters shown of such a line."""

_MAX_GROUPS = 4
"""Maximum number of messages named for a reason."""


def _in_colour(colour: str | None) -> Callable[[int | None], str | None]:
    return lambda count: colour if count else None


def print_results(results: Sequence[Result]) -> None:
    """Print the results on stdout."""
    if not results:
        return
    totals = totals_of(results)
    _show_sums(totals)
    _show_reasons(totals)
    for word in IN_FULL:
        for result in results:
            if result.verdict == word:
                show_line()
                _show_in_full(result)


def _show_sums(totals: Totals) -> None:
    """Print the number of results by message and verdict; a verdict that does not occur has no column."""
    words = [word for word in WORDS if totals.total[word]]
    columns = [
        Column("", "message", least=8, stays=True),
        *(Column("", word, right=True, colour=_in_colour(COLOURS.get(word)), stays=True) for word in words),
    ]
    rows = [(group, totals.of(group)) for group in totals.groups]
    if len(rows) > 1:
        rows.append(("all", totals.total))
    show_table(columns, [[(group, *(count[word] or None for word in words)) for group, count in rows]])


def _show_reasons(totals: Totals) -> None:
    """Print why cases could not be tried."""
    reasons = [*totals.reasons()]
    if reasons:
        show_line()
        show_line(Styled(NOT_TRIED, bold=True), " because")
    for why, groups in reasons:
        named = [f"{group} {count}" for group, count in groups.most_common(_MAX_GROUPS)]
        if len(groups) > _MAX_GROUPS:
            named.append(ellipsis())
        _show(f"{groups.total():>5}  ", f"{why} ({', '.join(named)})")


def _show_in_full(result: Result) -> None:
    """Print a case: its sentence, the specification, the messages, and the command to repeat it."""
    show_line(Styled(result.verdict, COLOURS.get(result.verdict), bold=True), f" {result.case}")
    _show(_INDENT, result.sentence)
    _show(_INDENT, result.why)
    if result.demand.clause is not None:
        _show(_INDENT, specification(result))
    _show_run(result)
    if result.other is not None:
        _show(_INDENT, f"in the other run, which was {result.other.verdict}:")
        _show_run(result.other)
    # Neither cut nor wrapped, so that it can be copied.
    show_line(f"{_INDENT}{result.command}")


def _show_run(result: Result) -> None:
    """Print the messages of one run, and the last output of the target."""
    for heading, text in transcript(result, _MAX_MESSAGES):
        _show(f"{_INDENT}{heading:<14}", text)
    for line in (result.output or "").strip().splitlines()[-_MAX_LINES:]:
        _show(f"{_INDENT}{'wrote':<14}", shortened(line, _MAX_LINE_LENGTH))
    if result.session is not None:
        _show(_INDENT, f"recorded as {result.session}")


def _show(start: str, text: str) -> None:
    columns = terminal_columns() or _COLUMNS
    for line in wrapped(text, max(columns, 30), start, " " * len(start)):
        show_line(line)
