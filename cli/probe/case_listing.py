"""The listing of test cases without running them: grouped by message, or with all columns for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby, zip_longest

from kiebitz.cli.terminal.console import Styled, show_line, terminal_columns, wrapped
from kiebitz.cli.terminal.output import show
from kiebitz.cli.terminal.table import Column, batches
from kiebitz.dissectors.conformance.expectations import RequirementLevel
from kiebitz.dissectors.probing.case import Case
from kiebitz.services.evidence.cells import cell_len
from kiebitz.services.probing.results import ANY_MESSAGE, IN_PLAY, group_of
from kiebitz.services.standard_streams import print_error_line

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
