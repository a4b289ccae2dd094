"""`kiebitz check`: what is wrong in a session, shown like a good compiler's messages."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from kiebitz.cli.checking.blocks import block
from kiebitz.cli.checking.evidence import Evidence
from kiebitz.cli.checking.rows import COLUMNS, Told, flaw_row
from kiebitz.cli.checking.summary import show_summary
from kiebitz.cli.options.catalog import filter_option
from kiebitz.cli.options.messages import MessageNumber, message_numbered
from kiebitz.cli.options.session import session_argument
from kiebitz.cli.sessions import open_session, since
from kiebitz.cli.status import VIOLATIONS
from kiebitz.cli.terminal.console import is_terminal, show_line, tell
from kiebitz.cli.terminal.output import Form, output_options, show
from kiebitz.cli.terminal.severities import GRAVITY, in_words
from kiebitz.cli.terminal.table import batches
from kiebitz.storage.alterations import count_alterations
from kiebitz.storage.conditions import sql_condition
from kiebitz.storage.in_full import InFull
from kiebitz.storage.timeline import Timeline
from kiebitz.storage.traffic import DiagnosticRow, MessageRow, diagnostics

if TYPE_CHECKING:
    from kiebitz.storage.filters import Filter

_MANY = 20
"""Of more flaws it is said how they are summed up."""


@click.command()
@session_argument
@filter_option
@click.option(
    "--at", "number", type=MessageNumber(), metavar="#N", help="What is wrong with message N alone."
)
@click.option(
    "--summary",
    "is_summed",
    is_flag=True,
    help="A line for each code and culprit, the gravest first: how many, and where the first is.",
)
@output_options
def check(
    session: str, wanted: Filter | None, number: int | None, is_summed: bool, form: Form | None
) -> None:
    """Show who broke which rule, at which byte, and what was expected there.

    Of a TCP stream the lines around the place are shown with their offsets, and the place where parsing
    resumed. Nobody is blamed for what Kiebitz has altered (kiebitz relay --change and the like), nor for what
    that has led to: those are notes, until the game is over. The exit status is 3 if any error is shown.

    \b
    Example:
      kiebitz check odd.pcap -Y 'diag.severity != "note"'
      kiebitz check odd.pcap --summary
      kiebitz check odd.pcap --at '#31'
    """
    timeline = open_session(session)
    row = None if number is None else message_numbered(timeline, number)
    tally = _Tally()
    flaws = tally.over(_flaws(timeline, wanted, row))
    nothing = "no diagnostics match" if wanted else "nothing is wrong"
    if row is not None:
        nothing = f"nothing {'that matches ' if wanted else ''}is wrong with message #{number}"
    if is_summed:
        show_summary(timeline, flaws, form, nothing)
    elif form is not None:
        evidence = Evidence(timeline)
        show(COLUMNS, batches(flaw_row(flaw, _told(evidence, flaw)) for flaw in flaws), form, nothing)
    else:
        evidence = Evidence(timeline)
        for flaw in flaws:
            for line in block(evidence, flaw):
                show_line(*line)
            show_line()
    if form is None and row is not None and not is_summed and not tally.count:
        _show_how_it_stands(timeline, row, nothing)
    elif form is None:
        show_line(f"{in_words(tally.count)}{_altered_in_words(count_alterations(timeline))}")
        if is_terminal():
            _point_on(session, timeline, tally, is_summed)
    if tally.count["error"]:
        raise click.exceptions.Exit(VIOLATIONS)


def _flaws(timeline: Timeline, wanted: Filter | None, row: MessageRow | None) -> Iterator[DiagnosticRow]:
    condition, parameters = sql_condition(timeline, wanted, "diagnostics")
    if row is not None:
        condition, parameters = f"d.message_id = ? AND ({condition})", [row.id, *parameters]
    return diagnostics(timeline, condition, parameters)


class _Tally:
    """How many flaws there were of each severity, and the first of the gravest that is about a message."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()
        self.gravest: DiagnosticRow | None = None

    def over(self, flaws: Iterable[DiagnosticRow]) -> Iterator[DiagnosticRow]:
        """The flaws, counted as they pass."""
        for flaw in flaws:
            self.count[flaw.severity] += 1
            if flaw.message_id is not None and (
                self.gravest is None or GRAVITY.index(flaw.severity) < GRAVITY.index(self.gravest.severity)
            ):
                self.gravest = flaw
            yield flaw


def _altered_in_words(count: int) -> str:
    """How often Kiebitz itself has done something, if it has."""
    times = "once" if count == 1 else f"{count} times"
    return f"; Kiebitz has altered what passed {times}" if count else ""


def _show_how_it_stands(timeline: Timeline, row: MessageRow, nothing: str) -> None:
    """Say that nothing is wrong with a message, what it told, and what is wrong elsewhere."""
    shown = InFull(timeline).message(row.id)
    event = None if shown is None else shown.event
    told = "" if event is None else f": {event.sentence} (event #{event.number})"
    show_line(f"{nothing}, {row.name}{told}")
    count: Counter[str] = Counter()
    nearest: tuple[int, str] | None = None
    for flaw in diagnostics(timeline):
        count[flaw.severity] += 1
        if flaw.message_id is not None:
            found = abs(flaw.message_id - row.id), _in_short(timeline, flaw.message_id, flaw)
            nearest = found if nearest is None else min(nearest, found)
    where = "" if nearest is None else f"; the nearest is {nearest[1]}"
    show_line(f"in the whole session: {in_words(count)}{where}")


def _in_short(timeline: Timeline, message_id: int, flaw: DiagnosticRow) -> str:
    number = timeline.numbers.number("messages", message_id)
    return f"{flaw.severity}[{flaw.code}] with message #{number}"


def _point_on(session: str, timeline: Timeline, tally: _Tally, is_summed: bool) -> None:
    """Say on stderr by which command one sees more."""
    given = shlex.quote(session)
    if tally.count.total() > _MANY and not is_summed:
        tell(f"To sum them up: kiebitz check {given} --summary")
    if tally.gravest is not None and tally.gravest.message_id is not None:
        number = timeline.numbers.number("messages", tally.gravest.message_id)
        tell(f"To see the message in full: kiebitz show {given} '#{number}'")


def _told(evidence: Evidence, flaw: DiagnosticRow) -> Told:
    numbers = evidence.timeline.numbers
    altered = evidence.alteration(flaw)
    return Told(
        since(evidence.timeline, flaw.ts_ns),
        numbers.number("streams", flaw.stream_id),
        evidence.ends(flaw),
        evidence.marked(flaw),
        evidence.lines(flaw),
        evidence.resumption(flaw),
        numbers.number_if_any("messages", flaw.message_id),
        numbers.number_if_any("events", flaw.event_id),
        evidence.player(flaw),
        None if altered is None else altered.action,
    )
