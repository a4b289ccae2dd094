"""A flaw for people: what is wrong, its place, its bytes with carets, and what was expected there."""

from __future__ import annotations

from collections.abc import Iterator

from kiebitz.cli.checking.evidence import Evidence
from kiebitz.cli.differences.altered import deed_in_words
from kiebitz.cli.sessions import since
from kiebitz.cli.terminal.console import Line as Shown
from kiebitz.cli.terminal.console import Styled, terminal_columns
from kiebitz.cli.terminal.excerpt import ROOM, looked_at
from kiebitz.cli.terminal.flaw_block import GUTTER, flaw_block, place_of, reasons
from kiebitz.cli.terminal.severities import COLOURS
from kiebitz.cli.terminal.table import seconds
from kiebitz.storage.traffic import DiagnosticRow

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
    address, server = evidence.ends(flaw)
    client = evidence.player(flaw) or address
    way = f"{client} → {server}" if flaw.direction == "c2s" else f"{server} → {client}"
    place = place_of(flaw.offset, flaw.message, flaw.message_offset)
    time = seconds(since(evidence.timeline, flaw.ts_ns))
    return (
        (label, f": {flaw.text}"),
        f"{time} s, {_numbers(flaw)}stream {flaw.stream_id}, {way} ({flaw.direction}), {place}",
    )


def _numbers(flaw: DiagnosticRow) -> str:
    """Under which numbers `messages` and `events` have it."""
    message = f"message #{flaw.message_id}, " if flaw.message_id is not None else ""
    return message + (f"event #{flaw.event_id}, " if flaw.event_id is not None else "")


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
