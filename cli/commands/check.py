"""`kiebitz check`: what is wrong in a session, shown like a good compiler's messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from kiebitz.cli.configuration.naming import named
from kiebitz.cli.differences.altered import deed_in_words
from kiebitz.cli.options.catalog import filter_option
from kiebitz.cli.options.session import session_argument
from kiebitz.cli.sessions import open_session, since
from kiebitz.cli.status import VIOLATIONS
from kiebitz.cli.terminal.console import Line as Shown
from kiebitz.cli.terminal.console import Styled, show_line, terminal_columns
from kiebitz.cli.terminal.excerpt import ROOM, Line, datagram_excerpt, looked_at, shown_bytes, stream_excerpt
from kiebitz.cli.terminal.flaw_block import GUTTER, flaw_block, place_of, reasons
from kiebitz.cli.terminal.output import Form, output_options, show
from kiebitz.cli.terminal.severities import COLOURS, in_words
from kiebitz.cli.terminal.table import Column, Row, batches, seconds
from kiebitz.storage.alterations import AlterationRow, AlteredMessages, count_alterations
from kiebitz.storage.conditions import sql_condition
from kiebitz.storage.numbers import Numbers
from kiebitz.storage.players import name_of_stream
from kiebitz.storage.timeline import Timeline
from kiebitz.storage.traffic import Bytes, DiagnosticRow, ReadingOn, Stretch, diagnostics, streams

if TYPE_CHECKING:
    from kiebitz.storage.filters import Filter

_COLUMNS = tuple(
    Column(key, key)
    for key in (
        "id",
        "time",
        "severity",
        "group",
        "code",
        "blame",
        "stream",
        "client",
        "server",
        "dir",
        "offset",
        "length",
        "msg",
        "text",
        "expected",
        "clause",
        "suggestion",
        "offset_in_msg",
        "bytes",
        "hex",
        "lines",
        "resumed_offset",
        "resumed_message",
        "message",
        "event",
        "player",
        "altered",
    )
)

_MARKED = 256
"""So many of the bytes that are meant are given to programs."""

_NARROWEST = 20


@click.command()
@session_argument
@filter_option
@output_options
def check(session: str, wanted: Filter | None, form: Form | None) -> None:
    """Show who broke which rule, at which byte, and what was expected there.

    Of a TCP stream the lines around the place are shown with their offsets, and the place where parsing
    resumed. Nobody is blamed for what Kiebitz has altered (kiebitz relay --change and the like), nor for what
    that has led to: those are notes, until the game is over. The exit status is 3 if any error is shown.

    \b
    Example:
      kiebitz check odd.pcap -Y 'diag.severity != "note"'
    """
    timeline = open_session(session)
    count: Counter[str] = Counter()
    flaws = _counted(diagnostics(timeline, *sql_condition(timeline, wanted, "diagnostics")), count)
    evidence = _Evidence(timeline)
    if form is None:
        for flaw in flaws:
            for line in _block(evidence, flaw):
                show_line(*line)
            show_line()
        show_line(f"{in_words(count)}{_altered_in_words(count_alterations(timeline))}")
    else:
        rows = (_row(evidence, flaw) for flaw in flaws)
        show(_COLUMNS, batches(rows), form, "no diagnostics match" if wanted else "nothing is wrong")
    if count["error"]:
        raise click.exceptions.Exit(VIOLATIONS)


def _altered_in_words(count: int) -> str:
    """How often Kiebitz itself has done something, if it has."""
    times = "once" if count == 1 else f"{count} times"
    return f"; Kiebitz has altered what passed {times}" if count else ""


def _counted(flaws: Iterable[DiagnosticRow], count: Counter[str]) -> Iterator[DiagnosticRow]:
    for flaw in flaws:
        count[flaw.severity] += 1
        yield flaw


class _Evidence:
    """What a session has on a flaw: its stream, its bytes, and what came after it."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self._streams = {stream.id: stream for stream in streams(timeline)}
        self._bytes = Bytes(timeline.connection)
        self._reading_on = ReadingOn(timeline)
        self._name_of = name_of_stream(timeline)
        self._altered = AlteredMessages(timeline)

    def player(self, flaw: DiagnosticRow) -> str | None:
        """What the client calls itself; None if it has not said so."""
        return self._name_of(flaw.stream_id)

    def alteration(self, flaw: DiagnosticRow) -> AlterationRow | None:
        """What Kiebitz has done to the message; None if nothing."""
        return None if flaw.message_id is None else self._altered.of(flaw.message_id)

    def ends(self, flaw: DiagnosticRow) -> tuple[str, str]:
        """Client and server."""
        stream = self._streams[flaw.stream_id]
        return stream.client, stream.server

    def is_in_datagram(self, flaw: DiagnosticRow) -> bool:
        return self._streams[flaw.stream_id].transport == "udp"

    def excerpt(self, flaw: DiagnosticRow, room: int = ROOM) -> list[Line]:
        """What was sent there, with carets; nothing where no bytes belong to it."""
        if self.is_in_datagram(flaw):
            found = self._bytes.datagram(flaw)
            return datagram_excerpt(*found, flaw.offset, flaw.length, room) if found is not None else []
        stretches: list[Stretch] = []
        for start, end in looked_at(flaw.offset, flaw.length):
            near = self._bytes.between(flaw.stream_id, flaw.direction, start, end)
            stretches += [stretch for stretch in near if stretch not in stretches]
        if not stretches:
            return []
        return stream_excerpt(stretches, flaw.offset, flaw.length, flaw.message_offset, room)

    def marked(self, flaw: DiagnosticRow) -> bytes | None:
        """The first of the bytes that are meant, up to a gap; None if they are not there."""
        size = min(flaw.length, _MARKED)
        if self.is_in_datagram(flaw):
            found = self._bytes.datagram(flaw)
            if found is None:
                return None
            start, data = found
            return data[flaw.offset - start : flaw.offset - start + size]
        if not size:
            return b""
        stretches = self._bytes.between(flaw.stream_id, flaw.direction, flaw.offset, flaw.offset + size)
        pieces = (stretch.data for stretch in stretches if stretch.offset == flaw.offset)
        return next((data for data in pieces if data is not None), None)

    def resumption(self, flaw: DiagnosticRow) -> tuple[int, str] | tuple[None, None]:
        """Offset and name of the message with which parsing resumed."""
        return self._reading_on.after(flaw) or (None, None)


def _row(evidence: _Evidence, flaw: DiagnosticRow) -> Row:
    marked = evidence.marked(flaw)
    numbers = evidence.timeline.numbers
    return (
        flaw.id,
        since(evidence.timeline, flaw.ts_ns),
        flaw.severity,
        flaw.group,
        flaw.code,
        None if flaw.severity == "note" and flaw.blame != "kiebitz" else flaw.blame,
        numbers.number("streams", flaw.stream_id),
        *evidence.ends(flaw),
        flaw.direction,
        flaw.offset,
        flaw.length,
        flaw.message,
        flaw.text,
        flaw.expected,
        flaw.clause,
        flaw.suggestion,
        None if flaw.message_offset is None else flaw.offset - flaw.message_offset,
        None if marked is None else shown_bytes(marked),
        None if marked is None else marked.hex(),
        [
            {"offset": line.offset, "text": line.text + line.line_end}
            for line in evidence.excerpt(flaw)
            if line.offset is not None
        ],
        *evidence.resumption(flaw),
        numbers.number_if_any("messages", flaw.message_id),
        numbers.number_if_any("events", flaw.event_id),
        evidence.player(flaw),
        None if (altered := evidence.alteration(flaw)) is None else altered.action,
    )


def _block(evidence: _Evidence, flaw: DiagnosticRow) -> Iterator[Shown]:
    columns = terminal_columns()
    room = ROOM
    if columns is not None:
        # A line that wraps tears its carets off.
        digits = len(str(looked_at(flaw.offset, flaw.length)[-1][1]))
        room = max(_NARROWEST, min(ROOM, columns - max(GUTTER, digits) - len(" | ") - len("……")))
    head, place = _head(evidence, flaw)
    lines = evidence.excerpt(flaw, room)
    numbered = not evidence.is_in_datagram(flaw)
    return flaw_block(head, place, lines, numbered, _told(evidence, flaw), columns)


def _head(evidence: _Evidence, flaw: DiagnosticRow) -> tuple[Shown, str]:
    """What is wrong, and where and when."""
    label = Styled(f"{flaw.severity}[{flaw.code}]", COLOURS[flaw.severity], bold=True)
    address, server = map(named, evidence.ends(flaw))
    client = evidence.player(flaw) or address
    way = f"{client} → {server}" if flaw.direction == "c2s" else f"{server} → {client}"
    place = place_of(flaw.offset, flaw.message, flaw.message_offset)
    time = seconds(since(evidence.timeline, flaw.ts_ns))
    return (
        (label, f": {flaw.text}"),
        f"{time} s, {_numbers(evidence.timeline.numbers, flaw)}, {way} ({flaw.direction}), {place}",
    )


def _numbers(numbers: Numbers, flaw: DiagnosticRow) -> str:
    """Under which numbers `messages`, `events` and `streams` have it."""
    message, event = flaw.message_id, flaw.event_id
    told = [f"message #{numbers.number('messages', message)}"] if message is not None else []
    told += [f"event #{numbers.number('events', event)}"] if event is not None else []
    return ", ".join([*told, f"stream {numbers.number('streams', flaw.stream_id)}"])


def _told(evidence: _Evidence, flaw: DiagnosticRow) -> Iterator[tuple[str, str]]:
    """What is said of a flaw below its excerpt."""
    yield from reasons(flaw)
    altered = evidence.alteration(flaw)
    if altered is not None:
        yield "altered", deed_in_words(altered)
    # The next datagram is always where reading goes on.
    if not evidence.is_in_datagram(flaw):
        offset, name = evidence.resumption(flaw)
        if offset is not None:
            yield "parsing resumed", f"at byte {offset}, with {name}"
        elif flaw.message is not None or flaw.length:
            yield "parsing resumed", "nothing more came that can be read"
