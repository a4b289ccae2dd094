"""The part of a session that a sequence diagram on the page shows: messages, and what is between them."""

from __future__ import annotations

from collections.abc import Iterator

from kiebitz.cli.web import records
from kiebitz.cli.web.lists import (
    diagnostic_record,
    event_records,
    messages,
)
from kiebitz.cli.web.reader import Reader
from kiebitz.cli.web.request_params import RowRange
from kiebitz.dissectors.escaping import field_words
from kiebitz.dissectors.grammar.grammar import UNREADABLE
from kiebitz.dissectors.model import Event, TableInfo
from kiebitz.storage.read.alterations import alterations, original_filter
from kiebitz.storage.read.message_queries import placeholders
from kiebitz.storage.read.view_rows import ViewRows

_ALWAYS = (0, (1 << 63) - 1)


def sequence(reader: Reader, table: TableInfo, rows: ViewRows, place: RowRange) -> records.Sequence:
    """Return a window of a table's messages with the events, problems and dropped messages between them."""
    page = messages(reader, table, rows, place)
    times = _times(reader, table, rows, page)
    return records.Sequence(
        page.messages,
        event_records(reader, _events(reader, table, rows, page, times), rows.player),
        [*_diagnostics(reader, table, rows, page, times)],
        [*dropped_messages(reader, table, rows, times)],
        page.is_first,
        page.is_last,
    )


def _times(reader: Reader, table: TableInfo, rows: ViewRows, page: records.Messages) -> tuple[int, int]:
    """Return the first and the last time (ns) of a window: up to that of the next message."""
    if not page.messages:
        return _ALWAYS if page.is_first and page.is_last else (0, -1)
    first, last = page.messages[0].ts_ns, page.messages[-1].ts_ns
    following = None
    if not page.is_last:
        following = next(rows.messages(table, page.messages[-1].id, None), None)
    upto = _ALWAYS[1] if following is None else max(last, following.ts_ns - 1)
    return (0 if page.is_first else first), upto


def _events(
    reader: Reader, table: TableInfo, rows: ViewRows, page: records.Messages, times: tuple[int, int]
) -> Iterator[Event]:
    numbers = reader.timeline.numbers
    reported = sorted(
        {numbers.row_id("events", message.event) for message in page.messages if message.event is not None}
    )
    condition, parameters = f"e.id IN ({placeholders(reported)})", [*reported]
    if rows.wanted is None:
        condition, parameters = f"({condition} OR e.ts_ns BETWEEN ? AND ?)", [*parameters, *times]
    for event in reader.timeline.events(f"e.table_id = ? AND {condition}", [table.id, *parameters]):
        seen = event if rows.player is None else reader.visibility.seen(event, rows.player)
        if seen is not None:
            yield seen


def _diagnostics(
    reader: Reader, table: TableInfo, rows: ViewRows, page: records.Messages, times: tuple[int, int]
) -> Iterator[records.Diagnostic]:
    ids = [message.id for message in page.messages if message.severity not in (None, "note")]
    condition, parameters = f"d.message_id IN ({placeholders(ids)})", [*ids]
    if rows.wanted is None:
        condition += " OR d.message_id IS NULL AND d.ts_ns BETWEEN ? AND ?"
        parameters += times
    found = reader.rows(rows.player).diagnostics(
        table, 0, None, severities=("error", "warning"), among=(f"({condition})", parameters)
    )
    return (diagnostic_record(reader, table, row) for row in found)


def dropped_messages(
    reader: Reader, table: TableInfo | None, rows: ViewRows, times: tuple[int, int] = _ALWAYS
) -> Iterator[records.DroppedMessage]:
    """Yield the messages of a table that were not forwarded in a range of times (ns).

    A player cannot know of them.
    """
    if rows.player is not None:
        return
    numbers = reader.timeline.numbers
    condition = "a.original IS NOT NULL AND a.length = 0 AND a.ts_ns BETWEEN ? AND ?"
    passes = original_filter(reader.timeline, rows.wanted)
    for row in alterations(reader.timeline, condition, times):
        stream = row.stream
        if table is not None and (stream.server, stream.protocol) != (table.server, table.protocol):
            continue
        if not passes(row):
            continue
        yield records.DroppedMessage(
            row.id,
            reader.timeline.seconds(row.ts_ns),
            numbers.number("streams", stream.id),
            row.direction,
            stream.client,
            stream.player,
            row.name or UNREADABLE,
            field_words(row.fields or {}),
            row.action,
            row.rule,
        )
