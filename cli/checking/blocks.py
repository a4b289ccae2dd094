"""A flaw for people: what is wrong, its place, its bytes with carets, and what was expected there."""

from __future__ import annotations

from collections.abc import Iterator

from kiebitz.cli.configuration.naming import named
from kiebitz.cli.differences.altered import deed_in_words
from kiebitz.cli.terminal.console import Line as Shown
from kiebitz.cli.terminal.console import Styled, terminal_columns
from kiebitz.cli.terminal.flaw_block import GUTTER, flaw_block, place_of, reasons
from kiebitz.cli.terminal.severities import COLOURS
from kiebitz.cli.terminal.table import seconds
from kiebitz.dissectors.session_numbering import Numbers
from kiebitz.services.evidence.evidence import Evidence
from kiebitz.services.evidence.excerpt import ROOM, looked_at
from kiebitz.services.sessions import since
from kiebitz.storage.read.message_queries import DiagnosticRow

_NARROWEST = 20


def block(evidence: Evidence, flaw: DiagnosticRow) -> Iterator[Shown]:
    """The lines of a flaw."""
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


def _head(evidence: Evidence, flaw: DiagnosticRow) -> tuple[Shown, str]:
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


def _told(evidence: Evidence, flaw: DiagnosticRow) -> Iterator[tuple[str, str]]:
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
