"""The flaws of a session summed up: a row for each code and culprit, with how many and where the first is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kiebitz.cli.terminal.severities import COLOURS
from kiebitz.cli.terminal.table import Column, Row, Who, moment, number, who
from kiebitz.services.sessions import since
from kiebitz.services.wording import GRAVITY
from kiebitz.storage.read.blame_summary import Culprits, blamed
from kiebitz.storage.read.message_queries import DiagnosticRow
from kiebitz.storage.read.timeline import Timeline

SUMMED = (
    number("count", "count"),
    Column("severity", "severity", stays=True, colour=COLOURS.get),
    Column("group"),
    Column("code", "code", least=12, stays=True),
    Column("blame", "blame", stays=True),
    Column("who"),
    who(),
    moment("time", "first at"),
    number("message", "message"),
    Column("text", "text", least=8),
)
"""The columns of the rows."""


def summary_rows(timeline: Timeline, flaws: Iterable[DiagnosticRow]) -> Iterator[Row]:
    """How many of each flaw of a session there are, the gravest first."""
    found = Culprits(timeline).repeated(flaws)
    # What came first stays first among its equals.
    found.sort(key=lambda same: (GRAVITY.index(same.first.severity), -same.count))
    for same in found:
        flaw = same.first
        yield (
            same.count,
            flaw.severity,
            flaw.group,
            flaw.code,
            blamed(flaw),
            same.culprit.player or same.culprit.address,
            Who(same.culprit.address or "", same.culprit.player),
            since(timeline, flaw.ts_ns),
            timeline.numbers.number_if_any("messages", flaw.message_id),
            flaw.text,
        )
