"""The flaws of a session summed up: a row for each code and culprit, with how many and where the first is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kiebitz.cli.configuration.naming import named
from kiebitz.cli.sessions import since
from kiebitz.cli.terminal.output import Form, show
from kiebitz.cli.terminal.severities import COLOURS, GRAVITY
from kiebitz.cli.terminal.table import Column, Row, batches, moment, number, short_address
from kiebitz.storage.culprits import Culprit, Culprits, Repeated, blamed
from kiebitz.storage.timeline import Timeline
from kiebitz.storage.traffic import DiagnosticRow


def _who(culprit: Culprit) -> str:
    return culprit.player or named(culprit.address or "")


def _short_who(culprit: Culprit) -> str:
    return culprit.player or short_address(culprit.address)


_COLUMNS = (
    number("count", "count"),
    Column("severity", "severity", stays=True, colour=COLOURS.get),
    Column("group"),
    Column("code", "code", least=12, stays=True),
    Column("blame", "blame", stays=True),
    Column("who"),
    Column(
        "",
        "who",
        text=_who,
        short=_short_who,
        least=9,
        end_matters=lambda culprit: culprit.player is None,
        stays=True,
    ),
    moment("time", "first at"),
    number("message", "message"),
    Column("text", "text", least=8),
)


def show_summary(timeline: Timeline, flaws: Iterable[DiagnosticRow], form: Form | None, nothing: str) -> None:
    """Show how many of each flaw there are, the gravest first; the sentence `nothing` if there are none."""
    found = Culprits(timeline).repeated(flaws)
    # What came first stays first among its equals.
    found.sort(key=lambda same: (GRAVITY.index(same.first.severity), -same.count))
    show(_COLUMNS, batches(_rows(timeline, found)), form, nothing)


def _rows(timeline: Timeline, found: Iterable[Repeated]) -> Iterator[Row]:
    for same in found:
        flaw = same.first
        yield (
            same.count,
            flaw.severity,
            flaw.group,
            flaw.code,
            blamed(flaw),
            same.culprit.player or same.culprit.address,
            same.culprit,
            since(timeline, flaw.ts_ns),
            timeline.numbers.number_if_any("messages", flaw.message_id),
            flaw.text,
        )
