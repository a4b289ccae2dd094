"""The terminal report of a test run: violations in full, the rest as totals."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kiebitz.cli.probe.progress import COLOURS
from kiebitz.cli.terminal.console import Styled, ellipsis, show_line, terminal_columns, wrapped
from kiebitz.cli.terminal.table import Column, show_table
from kiebitz.dissectors.conformance.expectations import INPUT_DIRECTION
from kiebitz.dissectors.escaping import field_words
from kiebitz.dissectors.grammar.grammar import UNREADABLE, shortened
from kiebitz.services.evidence.excerpt import printable_bytes
from kiebitz.services.probing.results import NOT_TRIED, WORDS, ReportedMessage, Result, expectation_in_words
from kiebitz.services.probing.totals import Totals, totals_of
from kiebitz.services.wording import counted

_IN_FULL = ("NON-STRICT", "FAILED")
"""The verdicts that are shown in full, the worst last, where it stays visible."""

_COLUMNS = 100
"""Line width without a terminal."""

_INDENT = "  "

_MAX_MESSAGES = 6
"""Maximum number of messages shown per case."""

_MAX_LINES = 3
"""Maximum number of the program's last output lines to show."""

_MAX_FIELDS_LENGTH = 120
"""Maximum number of characters shown of a message's fields."""

_MAX_BYTES = 64
"""Maximum number of unreadable bytes to show."""

_MAX_GROUPS = 4
"""Maximum number of messages named for a reason."""


def _in_colour(colour: str | None) -> Callable[[int | None], str | None]:
    return lambda count: colour if count else None


def print_results(results: Sequence[Result]) -> None:
    """Print the results on stdout."""
    for word in _IN_FULL:
        for result in results:
            if result.verdict == word:
                _show_in_full(result)
    if not results:
        return
    totals = totals_of(results)
    _show_sums(totals)
    _show_reasons(totals)


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
    demand = result.demand
    if demand.clause is not None:
        quote = "" if demand.quote is None else f': "{demand.quote}"'
        _show(_INDENT, f"{expectation_in_words(result)}; {demand.clause}{quote}")
    if result.unread:
        _show(f"{_INDENT}sent  ", printable_bytes(result.unread[:_MAX_BYTES]))
    ours = INPUT_DIRECTION[result.role]
    for message in result.messages[:_MAX_MESSAGES]:
        _show(_INDENT + ("sent  " if message.direction == ours else "got   "), _words(message))
    more = len(result.messages) + result.left_out - _MAX_MESSAGES
    if more > 0:
        _show(_INDENT, f"{ellipsis()} {counted(more, 'message')} more")
    for line in (result.output or "").strip().splitlines()[-_MAX_LINES:]:
        _show(f"{_INDENT}wrote ", shortened(line, _MAX_FIELDS_LENGTH))
    if result.session is not None:
        _show(_INDENT, f"recorded as {result.session}")
    # Neither cut nor wrapped, so that it can be copied.
    show_line(f"{_INDENT}{result.command}")
    show_line()


def _words(message: ReportedMessage) -> str:
    if message.name == UNREADABLE:
        return f"{message.name} {printable_bytes(bytes.fromhex(message.hex)[:_MAX_BYTES])}"
    return f"{message.name} {shortened(field_words(message.fields), _MAX_FIELDS_LENGTH)}".rstrip()


def _show(start: str, text: str) -> None:
    columns = terminal_columns() or _COLUMNS
    for line in wrapped(text, max(columns, 30), start, " " * len(start)):
        show_line(line)
