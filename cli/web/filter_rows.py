"""Rows of a session as a filter is asked about them where one sees only what a player could know."""

from __future__ import annotations

import msgspec

from kiebitz.cli.web.reader import Reader
from kiebitz.dissectors.filters import Row
from kiebitz.dissectors.model import Diagnostic, Event, Message, Stream, TableInfo
from kiebitz.storage.read.message_queries import (
    FROM_ITS_BYTES,
    DiagnosticRow,
    MessageRow,
    diagnostics_between,
    messages_between,
)
from kiebitz.storage.read.streams import StreamOf


def row_of_event(reader: Reader, event: Event, player: str, info: TableInfo, stream_of: StreamOf) -> Row:
    """An event with its messages on the player's own streams, and what their bytes show to be wrong."""
    timeline = reader.timeline
    own = reader.hearers.streams_of(player)
    rows = [
        row
        for row in messages_between(timeline, 0, None, "m.event_id = ?", [event.id])
        if row.stream_id in own
    ]
    said = [_message(row, stream_of(row.stream_id)) for row in rows]
    flaws = [flaw for row in rows for flaw in _flaws(reader, row, stream_of(row.stream_id))]
    return Row(timeline.started_ns, said, event, flaws, info, timeline.session.id, names=reader.names)


def row_of_message(reader: Reader, row: MessageRow, event: Event | None, stream: Stream) -> Row:
    """A message, the event it tells of as far as that is known, and what its bytes show to be wrong."""
    timeline = reader.timeline
    return Row(
        timeline.started_ns,
        [_message(row, stream)],
        event,
        _flaws(reader, row, stream),
        session_id=timeline.session.id,
        names=reader.names,
    )


def row_of_diagnostic(reader: Reader, row: DiagnosticRow, event: Event | None, stream: Stream) -> Row:
    """A diagnostic, the message it is about, and the event that tells of as far as that is known."""
    timeline = reader.timeline
    about = (
        next(messages_between(timeline, row.message_id - 1, None, "m.id = ?", [row.message_id]), None)
        if row.message_id is not None
        else None
    )
    if about is not None:
        about = msgspec.structs.replace(about, event_id=event.id if event is not None else None)
    return Row(
        timeline.started_ns,
        [_message(about, stream)] if about is not None else [],
        event,
        [_flaw(row, stream)],
        session_id=timeline.session.id,
        names=reader.names,
    )


def _flaws(reader: Reader, row: MessageRow, stream: Stream) -> list[Diagnostic]:
    groups = ", ".join("?" * len(FROM_ITS_BYTES))
    found = diagnostics_between(
        reader.timeline, 0, None, f"d.message_id = ? AND d.grp IN ({groups})", [row.id, *FROM_ITS_BYTES]
    )
    return [_flaw(flaw, stream) for flaw in found]


def _message(row: MessageRow, stream: Stream) -> Message:
    return Message(
        row.id,
        stream,
        row.direction,
        row.ts_ns,
        row.name,
        row.fields,
        "",
        row.offset,
        row.length,
        row.game_id,
        row.event_id,
    )


def _flaw(row: DiagnosticRow, stream: Stream) -> Diagnostic:
    return Diagnostic(
        stream,
        row.direction,
        row.ts_ns,
        row.severity,
        row.group,
        row.code,
        row.text,
        row.offset,
        row.length,
        row.expected,
        row.clause,
        row.blame,
        row.message_id,
    )
