"""The cases themselves, without trying them: grouped by message for people, all of each for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import groupby, zip_longest

from kiebitz.cli.terminal.console import Styled, show_line, terminal_columns, wrapped
from kiebitz.cli.terminal.output import show
from kiebitz.cli.terminal.table import Column, batches
from kiebitz.dissectors.conformance.expectations import Level
from kiebitz.dissectors.probing.case import Case
from kiebitz.services.evidence.cells import cell_len
from kiebitz.services.probing.results import ANY_MESSAGE, IN_PLAY, group_of
from kiebitz.services.standard_streams import tell

_CASES = (
    Column("case", "case", stays=True, of="name"),
    Column("kind"),
    Column("message"),
    Column("field"),
    Column("sentence", "sentence"),
    Column("level", "level", of="demand.level"),
    Column("right", "right", text=", ".join, of=lambda case: list(case.demand.right)),
    Column("clause", "clause", of="demand.clause"),
    Column("quote", of="demand.quote"),
)

_LEVELS: tuple[Level, ...] = ("must", "should", "open")

_GAP = "  "

_MOST_OF_NAME = 0.4
"""So much of a line names get; a longer one has a line of its own."""

_WITH_CLAUSE = 110
"""From so many columns on, clauses are shown."""

_CLAUSE = 34

_LEAST = 20
"""So many columns a sentence has at the least."""


def show_cases(cases: Sequence[Case], as_json: bool) -> None:
    """Show the cases on stdout, and how many there are on stderr."""
    columns = terminal_columns()
    if as_json or columns is None:
        show(_CASES, batches(cases), "json" if as_json else None, "there are no cases")
        return
    for group, of_group in groupby(cases, lambda case: group_of(case)):
        _show_group(group, [*of_group], columns)
    tell(_counted(cases))


def _show_group(group: str, cases: Sequence[Case], columns: int) -> None:
    """The cases of a message below its name, which begins all of theirs."""
    protocol = cases[0].name.split("/")[0]
    start = f"{protocol}/" if group in (IN_PLAY, ANY_MESSAGE) else f"{protocol}/{group}/"
    gloss = None if cases[0].of is None else cases[0].of.description
    about = f"{_GAP}{gloss or group} ({_counted(cases)})"
    is_beside = cell_len(start + about) <= columns
    show_line(Styled(start, bold=True), about if is_beside else "")
    for line in wrapped(about, columns, _GAP, _GAP) if not is_beside else ():
        show_line(line)
    names = [case.name.removeprefix(start) for case in cases]
    of_names = max((cell_len(name) for name in names if cell_len(name) <= _MOST_OF_NAME * columns), default=0)
    of_levels = max(map(len, _LEVELS))
    of_clauses = _CLAUSE if columns >= _WITH_CLAUSE else 0
    room = columns - of_names - of_levels - of_clauses - 4 * len(_GAP)
    for name, case in zip(names, cases, strict=True):
        level: str = case.demand.level
        if cell_len(name) > of_names:
            show_line(_GAP, name)
            name = ""
        beside = wrapped(case.demand.clause or "", of_clauses) if of_clauses else []
        for said, clause in zip_longest(wrapped(_sentence(case), max(room, _LEAST)), beside, fillvalue=""):
            show_line(
                _GAP + _filled(name, of_names),
                Styled(f"{_GAP}{level:{of_levels}}{_GAP}", bold=level == "must"),
                _filled(said, room) if clause else said,
                Styled(_GAP + clause if clause else "", dim=True),
            )
            name, level = "", ""
    show_line()


def _filled(text: str, cells: int) -> str:
    return text + " " * (cells - cell_len(text))


def _sentence(case: Case) -> str:
    """What is done, without the names of message and field, which stand before it."""
    sentence = case.sentence
    for name in (case.message, case.says, case.field):
        sentence = sentence.removeprefix(f"{name}: ")
    return sentence


def _counted(cases: Sequence[Case]) -> str:
    """As in `3 must, 1 should, 20 open`."""
    count = Counter(case.demand.level for case in cases)
    return ", ".join(f"{count[level]} {level}" for level in _LEVELS if count[level]) or "no case"
