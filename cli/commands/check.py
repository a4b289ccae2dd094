"""`kiebitz check`: diagnostics of sessions, shown like compiler messages."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from kiebitz.cli.completion.session import complete_message
from kiebitz.cli.configuration.file import named
from kiebitz.cli.differences.altered import count_in_words, deed_in_words
from kiebitz.cli.listings import DIAGNOSTICS, SUMMED_DIAGNOSTICS
from kiebitz.cli.multi_session import each_session, list_sessions
from kiebitz.cli.options.catalog import filter_option
from kiebitz.cli.options.messages import MESSAGE_NUMBER, message_numbered
from kiebitz.cli.options.protocol_files import protocol_option
from kiebitz.cli.options.session import sessions_argument
from kiebitz.cli.status import VIOLATIONS
from kiebitz.cli.terminal.byte_rows import GUTTER, diagnostic_block, place_of, reasons
from kiebitz.cli.terminal.console import COLOURS, Styled, is_terminal, show_line, terminal_columns
from kiebitz.cli.terminal.console import Line as Shown
from kiebitz.cli.terminal.table import Form, output_options, seconds
from kiebitz.dissectors.session_numbering import Numbers
from kiebitz.services.evidence.evidence import Evidence
from kiebitz.services.evidence.excerpt import MAX_CELLS, ranges_to_read
from kiebitz.services.sessions import is_in_memory, is_several
from kiebitz.services.standard_streams import print_error_line, warn
from kiebitz.services.wording import GRAVITY, in_words
from kiebitz.storage.read.alterations import count_alterations
from kiebitz.storage.read.conditions import sql_condition
from kiebitz.storage.read.message_queries import StoredDiagnostic, diagnostics
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.session.listing_records import DiagnosticSummary, ListedDiagnostic, summarize_diagnostics
from kiebitz.storage.session.message_detail import MessageDetails

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter

_NARROWEST = 20
"""Minimum number of cells for the excerpt."""

_MANY = 20
"""Number of diagnostics above which a hint suggests --summary."""


@click.command()
@sessions_argument
@filter_option
@protocol_option
@click.option(
    "--at",
    "number",
    type=MESSAGE_NUMBER,
    metavar="#N",
    shell_complete=complete_message,
    help="Show only the diagnostics of message N.",
)
@click.option(
    "--summary",
    "is_summed",
    is_flag=True,
    help="Count diagnostics by code and blamed side, most severe first, with the first occurrence.",
)
@output_options
def check(
    sessions: tuple[str, ...], wanted: Filter | None, number: int | None, is_summed: bool, form: Form | None
) -> None:
    """Show violations of the protocol and the rules of the game: who, at which byte, and what was expected.

    For a TCP stream, the lines around the violation are shown with their offsets, and where parsing resumed.
    Messages that Kiebitz altered (kiebitz relay --change and others), and their consequences until the end
    of the game, are only reported as notes. The exit status is 3 if any error is shown.

    \b
    Example:
      kiebitz check odd.pcap -Y 'diag.severity != "note"'
      kiebitz check odd.pcap --at '#31'
      kiebitz check 'game.db:*' other.pcap --summary
    """
    if number is not None and is_several(sessions):
        raise click.UsageError("--at requires a single session")
    found = _Found(wanted, number)
    if is_summed or form is not None:
        columns = SUMMED_DIAGNOSTICS if is_summed else DIAGNOSTICS
        rows = found.summed if is_summed else found.listed
        list_sessions(sessions, columns, lambda one: rows(one.timeline), form, found.nothing)
    else:
        _show_blocks(sessions, found)
    if form is None and not found.is_told:
        altered = f"; {count_in_words(found.altered)}" if found.altered else ""
        show_line(f"{in_words(found.count)}{altered}")
        if is_terminal():
            # Suggest further commands.
            if found.count.total() > _MANY and not is_summed:
                print_error_line(f"For a summary: kiebitz check {shlex.join(sessions)} --summary")
            if found.gravest is not None and not is_several(sessions):
                session = shlex.quote(sessions[0])
                print_error_line(f"For the message in full: kiebitz show {session} '#{found.gravest[1]}'")
    if found.count["error"]:
        raise click.exceptions.Exit(VIOLATIONS)


class _Found:
    """The diagnostics that match a filter, or those of one message, counted during iteration."""

    def __init__(self, wanted: Filter | None, number: int | None) -> None:
        self._wanted = wanted
        self._number = number
        self.count: Counter[str] = Counter()
        """Number of diagnostics by severity."""
        self.altered = 0
        """Number of alterations by Kiebitz."""
        self.gravest: tuple[int, int] | None = None
        """Index in GRAVITY of the most severe diagnostic, and the number of its first message."""
        self.is_told = False
        """True if it was reported that the message has no diagnostics."""

    @property
    def nothing(self) -> str:
        """Text for an empty result."""
        if self._number is not None:
            matching = "matching " if self._wanted else ""
            return f"no {matching}diagnostics for message #{self._number}"
        return "no matching diagnostics" if self._wanted else "no diagnostics"

    def of(self, timeline: Timeline) -> Iterator[StoredDiagnostic]:
        """Yield the diagnostics of a session and count them. Raises NoSuchMessageError."""
        condition, parameters = sql_condition(timeline, self._wanted, "diagnostics")
        if self._number is not None:
            row = message_numbered(timeline, self._number)
            condition, parameters = f"d.message_id = ? AND ({condition})", [row.id, *parameters]
        if timeline.session.lacks is not None and not is_in_memory(timeline):
            # A capture's own losses are reported when it is opened.
            warn(f"{timeline.session.name}: {timeline.session.lacks}")
        self.altered += count_alterations(timeline)
        for diagnostic in diagnostics(timeline, condition, parameters):
            self.count[diagnostic.severity] += 1
            gravity = GRAVITY.index(diagnostic.severity)
            if diagnostic.message_id is not None and (self.gravest is None or gravity < self.gravest[0]):
                self.gravest = gravity, timeline.numbers.number("messages", diagnostic.message_id)
            yield diagnostic

    def listed(self, timeline: Timeline) -> Iterator[ListedDiagnostic]:
        """Yield the diagnostics of a session with their evidence."""
        return map(Evidence(timeline).listed, self.of(timeline))

    def summed(self, timeline: Timeline) -> list[DiagnosticSummary]:
        """Return the diagnostics of a session, counted by code, most severe first."""
        found = summarize_diagnostics(timeline, self.of(timeline))
        # The sort is stable: the first occurrence stays first.
        return sorted(found, key=lambda same: (GRAVITY.index(same.severity), -same.count))

    def show_if_none(self, timeline: Timeline) -> None:
        """Show the event and the nearest diagnostic of a selected message without diagnostics."""
        if self._number is None or self.count:
            return
        self.is_told = True
        row = message_numbered(timeline, self._number)
        shown = MessageDetails(timeline).message(row.id)
        event = None if shown is None else shown.event
        told = "" if event is None else f": {event.sentence} (event #{event.number})"
        show_line(f"{self.nothing}, {row.name}{told}")
        count: Counter[str] = Counter()
        nearest: tuple[int, str] | None = None
        for diagnostic in diagnostics(timeline):
            count[diagnostic.severity] += 1
            if diagnostic.message_id is not None:
                number = timeline.numbers.number("messages", diagnostic.message_id)
                found = (
                    abs(diagnostic.message_id - row.id),
                    f"{diagnostic.severity}[{diagnostic.code}] in message #{number}",
                )
                nearest = found if nearest is None else min(nearest, found)
        where = "" if nearest is None else f"; the nearest is {nearest[1]}"
        show_line(f"in the whole session: {in_words(count)}{where}")


def _show_blocks(sessions: Sequence[str], found: _Found) -> None:
    """Show each diagnostic; of several sessions, the name comes above its diagnostics."""
    for name, session in each_session(sessions):
        evidence = Evidence(session.timeline)
        is_named = not is_several(sessions)
        for diagnostic in found.of(session.timeline):
            if not is_named:
                is_named = True
                show_line(Styled(name, bold=True))
                show_line()
            columns = terminal_columns()
            room = MAX_CELLS
            if columns is not None:
                # A wrapped line would separate the carets from their bytes.
                digits = len(str(ranges_to_read(diagnostic.offset, diagnostic.length)[-1][1]))
                room = max(_NARROWEST, min(MAX_CELLS, columns - max(GUTTER, digits) - len(" | ") - len("……")))
            head, place = _head(evidence, diagnostic)
            lines = evidence.excerpt(diagnostic, room)
            numbered = not evidence.is_in_datagram(diagnostic)
            for line in diagnostic_block(
                head, place, lines, numbered, _remarks(evidence, diagnostic), columns
            ):
                show_line(*line)
            show_line()
        found.show_if_none(session.timeline)


def _head(evidence: Evidence, diagnostic: StoredDiagnostic) -> tuple[Shown, str]:
    """Return the heading, and the line with time and location."""
    label = Styled(f"{diagnostic.severity}[{diagnostic.code}]", COLOURS[diagnostic.severity], bold=True)
    address, server = map(named, (diagnostic.stream.client, diagnostic.stream.server))
    client = diagnostic.stream.player or address
    way = f"{client} → {server}" if diagnostic.direction == "c2s" else f"{server} → {client}"
    place = place_of(diagnostic.offset, diagnostic.message, diagnostic.message_offset)
    time = seconds(evidence.timeline.seconds(diagnostic.ts_ns))
    return (
        (label, f": {diagnostic.text}"),
        f"{time} s, {_numbers(evidence.timeline.numbers, diagnostic)}, {way} ({diagnostic.direction}),"
        f" {place}",
    )


def _numbers(numbers: Numbers, diagnostic: StoredDiagnostic) -> str:
    """Return its numbers in the listings of messages, events and streams."""
    message, event = diagnostic.message_id, diagnostic.event_id
    told = [f"message #{numbers.number('messages', message)}"] if message is not None else []
    told += [f"event #{numbers.number('events', event)}"] if event is not None else []
    return ", ".join([*told, f"stream {numbers.number('streams', diagnostic.stream.id)}"])


def _remarks(evidence: Evidence, diagnostic: StoredDiagnostic) -> Iterator[tuple[str, str]]:
    """Yield the titles and texts below the excerpt."""
    yield from reasons(diagnostic)
    altered = evidence.alteration(diagnostic)
    if altered is not None:
        yield "altered", deed_in_words(altered)
    # In datagrams, parsing always resumes at the next one.
    if not evidence.is_in_datagram(diagnostic):
        offset, name = evidence.resumption(diagnostic)
        if offset is not None:
            yield "parsing resumed", f"at byte {offset}, with {name}"
        elif diagnostic.message is not None or diagnostic.length:
            yield "parsing resumed", "not before the end of the stream"
