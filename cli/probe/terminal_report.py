"""The terminal report of a test run: totals, then each violation in full; the listing of cases.

The transcript of a test case as lines of text: all messages in order, with time and bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, zip_longest

from kiebitz.cli.probe.progress import COLOURS
from kiebitz.cli.terminal.console import Styled, ellipsis, show_line, terminal_columns, wrapped
from kiebitz.cli.terminal.table import Column, batches, show, show_table
from kiebitz.dissectors.conformance.expectations import INPUT_DIRECTION, RequirementLevel
from kiebitz.dissectors.escaping import field_words
from kiebitz.dissectors.grammar.grammar import UNREADABLE, shortened
from kiebitz.dissectors.probing.case import Case
from kiebitz.services.evidence.cells import cell_len
from kiebitz.services.evidence.excerpt import printable_bytes
from kiebitz.services.probing.results import (
    ANY_MESSAGE,
    IN_FULL,
    IN_PLAY,
    NOT_TRIED,
    WORDS,
    ReportedMessage,
    Result,
    Totals,
    expectation_in_words,
    group_of,
    totals_of,
)
from kiebitz.services.standard_streams import print_error_line
from kiebitz.services.wording import counted

_MAX_FIELDS_LENGTH = 120
"""Maximum number of characters shown of a message's fields."""

_MAX_BYTES = 64
"""Maximum number of bytes shown of a message."""


def transcript(result: Result, max_messages: int) -> Iterator[tuple[str, str]]:
    """Yield what was sent and received, as pairs of a heading and a text.

    The heading of a message has its direction as seen by Kiebitz, and its time in seconds; the one of its
    bytes is empty.
    """
    if result.unread:
        yield "sent", f"no message: {_bytes(result.unread)}"
    ours = INPUT_DIRECTION[result.role]
    for message in result.messages[:max_messages]:
        direction = "sent" if message.direction == ours else "got"
        yield f"{direction:4} {message.time:.3f} s", _words(message)
        if message.name != UNREADABLE:
            yield "", _bytes(bytes.fromhex(message.hex))
    more = len(result.messages) + result.left_out - max_messages
    if more > 0:
        yield "", f"and {counted(more, 'message')} more"


def specification(result: Result) -> str:
    """Return what the specification expects, with its clause and words."""
    demand = result.demand
    words = expectation_in_words(result)
    if demand.clause is None:
        return words
    return f"{words}; {demand.clause}" + ("" if demand.quote is None else f': "{demand.quote}"')


def _words(message: ReportedMessage) -> str:
    if message.name == UNREADABLE:
        return f"{message.name} {_bytes(bytes.fromhex(message.hex))}"
    return f"{message.name} {shortened(field_words(message.fields), _MAX_FIELDS_LENGTH)}".rstrip()


def _bytes(data: bytes) -> str:
    more = f"… ({counted(len(data), 'byte')})" if len(data) > _MAX_BYTES else ""
    return printable_bytes(data[:_MAX_BYTES]) + more


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


_CASES = (
    Column("case", "case", stays=True, of="name"),
    Column("kind"),
    Column("message"),
    Column("field"),
    Column("sentence", "sentence"),
    Column("level", "level", of="expectation.level"),
    Column("right", "right", text=", ".join, of=lambda case: list(case.expectation.right)),
    Column("clause", "clause", of="expectation.clause"),
    Column("quote", of="expectation.quote"),
)

_LEVELS: tuple[RequirementLevel, ...] = ("must", "should", "open")

_GAP = "  "

_MAX_NAME_SHARE = 0.4
"""Maximum share of a line for names; a longer name gets a line of its own."""

_CLAUSE_COLUMNS = 110
"""Minimum number of terminal columns to show clauses."""

_CLAUSE_WIDTH = 34

_MIN_SENTENCE_WIDTH = 20
"""Minimum width of a sentence in columns."""


def show_cases(cases: Sequence[Case], as_json: bool) -> None:
    """Print the cases on stdout, and their number on stderr."""
    columns = terminal_columns()
    if as_json or columns is None:
        show(_CASES, batches(cases), "json" if as_json else None, "there are no cases")
        return
    for group, of_group in groupby(cases, lambda case: group_of(case)):
        _show_group(group, [*of_group], columns)
    print_error_line(_counted(cases))


def _show_group(group: str, cases: Sequence[Case], columns: int) -> None:
    """Print the cases of a message below its label, which is the common beginning of their names."""
    protocol = cases[0].name.split("/")[0]
    start = f"{protocol}/" if group in (IN_PLAY, ANY_MESSAGE) else f"{protocol}/{group}/"
    gloss = None if cases[0].of is None else cases[0].of.description
    about = f"{_GAP}{gloss or group} ({_counted(cases)})"
    is_beside = cell_len(start + about) <= columns
    show_line(Styled(start, bold=True), about if is_beside else "")
    for line in wrapped(about, columns, _GAP, _GAP) if not is_beside else ():
        show_line(line)
    names = [case.name.removeprefix(start) for case in cases]
    of_names = max(
        (cell_len(name) for name in names if cell_len(name) <= _MAX_NAME_SHARE * columns), default=0
    )
    of_levels = max(map(len, _LEVELS))
    of_clauses = _CLAUSE_WIDTH if columns >= _CLAUSE_COLUMNS else 0
    room = columns - of_names - of_levels - of_clauses - 4 * len(_GAP)
    for name, case in zip(names, cases, strict=True):
        level: str = case.expectation.level
        if cell_len(name) > of_names:
            show_line(_GAP, name)
            name = ""
        beside = wrapped(case.expectation.clause or "", of_clauses) if of_clauses else []
        for sentence_line, clause in zip_longest(
            wrapped(_sentence(case), max(room, _MIN_SENTENCE_WIDTH)), beside, fillvalue=""
        ):
            show_line(
                _GAP + _filled(name, of_names),
                Styled(f"{_GAP}{level:{of_levels}}{_GAP}", bold=level == "must"),
                _filled(sentence_line, room) if clause else sentence_line,
                Styled(_GAP + clause if clause else "", dim=True),
            )
            name, level = "", ""
    show_line()


def _filled(text: str, cells: int) -> str:
    return text + " " * (cells - cell_len(text))


def _sentence(case: Case) -> str:
    """Return a case's sentence without the leading names of message and field."""
    sentence = case.sentence
    for name in (case.message, case.checked_message, case.field):
        sentence = sentence.removeprefix(f"{name}: ")
    return sentence


def _counted(cases: Sequence[Case]) -> str:
    """Return the number of cases by level, as in `3 must, 1 should, 20 open`."""
    count = Counter(case.expectation.level for case in cases)
    return ", ".join(f"{count[level]} {level}" for level in _LEVELS if count[level]) or "no case"
