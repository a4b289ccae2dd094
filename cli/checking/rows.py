"""A flaw as a row for programs: all that is known of it, whatever it was read from."""

from __future__ import annotations

from typing import Any, NamedTuple

from kiebitz.cli.terminal.table import Column, Row
from kiebitz.dissectors.model import Action
from kiebitz.services.evidence.excerpt import shown_bytes
from kiebitz.storage.read.blame_summary import blamed
from kiebitz.storage.read.message_queries import DiagnosticRow

COLUMNS = tuple(
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


class Told(NamedTuple):
    """What is known of a flaw beside its own row; numbers are those within the session.

    `seconds` counts from its beginning; `marked` are the bytes that are meant, `lines` those around them,
    each with its `offset` and its `text`; `resumed` is where parsing went on, and with which message.
    """

    seconds: float | None
    stream: int
    ends: tuple[str, str]
    marked: bytes | None
    lines: list[dict[str, Any]]
    resumed: tuple[int | None, str | None]
    message: int | None
    event: int | None
    player: str | None
    altered: Action | None


def flaw_row(flaw: DiagnosticRow, told: Told) -> Row:
    """The row of a flaw below `COLUMNS`."""
    return (
        flaw.id,
        told.seconds,
        flaw.severity,
        flaw.group,
        flaw.code,
        blamed(flaw),
        told.stream,
        *told.ends,
        flaw.direction,
        flaw.offset,
        flaw.length,
        flaw.message,
        flaw.text,
        flaw.expected,
        flaw.clause,
        flaw.suggestion,
        None if flaw.message_offset is None else flaw.offset - flaw.message_offset,
        None if told.marked is None else shown_bytes(told.marked),
        None if told.marked is None else told.marked.hex(),
        told.lines,
        *told.resumed,
        told.message,
        told.event,
        told.player,
        told.altered,
    )
