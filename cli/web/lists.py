"""Lists of a session for the page, and help with filters: values to complete, numbers of matches.

In a player's view, filters see only what that player could know: otherwise their matches would reveal what
is hidden.

Statistics of a table as tables of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, get_args

from kiebitz.cli.render.text.charts import grid_of, rate_words, test_words
from kiebitz.cli.web import records
from kiebitz.cli.web.reader import Reader
from kiebitz.cli.web.request_params import RowRange, read_window
from kiebitz.dissectors.escaping import field_words
from kiebitz.dissectors.filters.fields import ALIASES
from kiebitz.dissectors.model import (
    DIRECTIONS,
    PUBLIC,
    Blame,
    Event,
    Group,
    Message,
    Severity,
    TableInfo,
)
from kiebitz.dissectors.registry import dissector_of
from kiebitz.dissectors.statistics.results import Counts, Durations, Histogram, Rate, Result, Shares
from kiebitz.services.wording import GRAVITY, gravest_of
from kiebitz.storage.read.alterations import AlteredMessages
from kiebitz.storage.read.message_queries import (
    StoredDiagnostic,
    diagnostics_of_messages,
    visible_groups,
)
from kiebitz.storage.read.timeline import Timeline
from kiebitz.storage.read.view_rows import ViewRows
from kiebitz.storage.session.session import Event as EventRecord
from kiebitz.storage.session.session import Session, diagnostic_numbers, event_record, message_record, project
from kiebitz.storage.statistics.session_statistics import session_statistics

if TYPE_CHECKING:
    from kiebitz.dissectors.filters import Filter

_Rows = list[list[int | float | str]]


def table_statistics(timeline: Timeline, table: TableInfo, wanted: Filter | None) -> records.Statistics:
    """Return the statistics of a table, limited to the events that pass a filter. Raises sqlite3.Error."""
    found = next((one for one in session_statistics(timeline, wanted) if one.table == table.id), None)
    return records.Statistics([] if found is None else [_table(result) for result in found.statistics])


def _table(result: Result) -> records.StatisticTable:
    says, columns, rows = "", [""], _Rows()
    match result:
        case Histogram():
            columns = [result.of, "number"]
            rows = [[*item] for item in result.counts.items()]
            says = test_words(result.chance) if result.chance is not None else ""
        case Counts():
            grid = grid_of(result)
            columns = [result.of, *(grid.columns or ["number"])]
            rows = [[line, *cells] for line, cells in zip(grid.lines, grid.cells, strict=True)]
        case Shares():
            columns = [result.of, result.part, "of", "%"]
            rows = [
                [line, share.part, share.all, round(100 * share.part / max(share.all, 1))]
                for line, share in result.lines.items()
            ]
        case Durations():
            columns = ["", "number", "mean (s)", "median (s)", "longest (s)"]
            rows = [
                [
                    line,
                    times.count,
                    *(float(f"{one:.3g}") for one in (times.mean, times.median, times.longest)),
                ]
                for line, times in result.lines.items()
            ]
        case Rate():
            says = rate_words(result)
        case _:
            columns = ["", f"last {result.unit}", "lowest", "highest"]
            for line, points in result.lines.items():
                amounts = [amount for _, amount in points]
                rows.append(
                    [line, amounts[-1], min(amounts), max(amounts)] if amounts else [line, "", "", ""]
                )
    return records.StatisticTable(result.title, says, columns, rows)


# Events.


_CLIENT = "(SELECT coalesce(player, client) FROM streams WHERE id = {0}.stream_id)"

EVENT_ORDERS = {"number": "e.seq", "time": "e.ts_ns", "kind": "e.kind", "actor": "kiebitz_natural(e.actor)"}
MESSAGE_ORDERS = {
    "number": "m.id",
    "time": "m.ts_ns",
    "client": _CLIENT.format("m"),
    "name": "m.name",
    "words": "kiebitz_natural(m.fields)",
    "length": "m.length",
}
DIAGNOSTIC_ORDERS = {
    "id": "d.id",
    "time": "d.ts_ns",
    "client": _CLIENT.format("d"),
    "code": "instr('ewn', substr(d.severity, 1, 1)) || d.code",
    "text": "kiebitz_natural(d.text)",
}
"""Column of a list -> SQL expression."""


def events(reader: Reader, table: TableInfo, rows: ViewRows, place: RowRange) -> records.Events:
    """Return a window of a table's events, by their numbers at the table or in another order."""
    found, is_first, is_last = read_window(
        lambda after, before: rows.events(table.id, after, None if before is None else before - 1, place.by),
        lambda event: event.seq,
        place,
    )
    return records.Events(event_records(reader, found, rows.player), is_first, is_last)


def event_records(reader: Reader, events: Iterable[Event], player: str | None) -> list[EventRecord]:
    """Return visible events as records; a player's view does not show alterations."""
    altered = AlteredMessages(reader.timeline) if player is None else None
    return [event_record(reader.visibility, event, altered) for event in events]


# Messages.


def messages(reader: Reader, table: TableInfo | None, rows: ViewRows, place: RowRange) -> records.Messages:
    """Return a window of a table's or all messages, by their numbers or in another order."""
    numbers = reader.timeline.numbers
    found, is_first, is_last = read_window(
        lambda after, before: rows.messages(
            table,
            numbers.row_id_if_any("messages", after),
            numbers.row_id_if_any("messages", before),
            place.by,
        ),
        lambda row: numbers.number("messages", row.id),
        place,
    )
    return records.Messages(message_records(reader, rows.player, found), is_first, is_last)


def message_records(reader: Reader, player: str | None, found: Sequence[Message]) -> list[records.Message]:
    """Return messages as records, with the players' names."""
    timeline = reader.timeline
    diagnostics = diagnostics_of_messages(timeline, [row.id for row in found], visible_groups(player))
    altered = AlteredMessages(timeline) if player is None else None
    listed = []
    for row in found:
        message = message_record(timeline, row, altered)
        gravest = gravest_of([diagnostic.severity for diagnostic in diagnostics.get(row.id, ())])
        listed.append(project(records.Message, message, words=field_words(row.fields), severity=gravest))
    return listed


def message_at(reader: Reader, table: TableInfo, seq: int) -> int | None:
    """Return the number of the first message that reports an event, or of the nearest before it."""
    for event in reader.timeline.events_between(table.id, None, seq):
        (number,) = reader.timeline.connection.execute(
            "SELECT min(id) FROM messages WHERE event_id = ?", (event.id,)
        ).fetchone()
        if number is not None:
            return reader.timeline.numbers.number("messages", number)
    return None


# Diagnostics.


def diagnostics(
    reader: Reader, table: TableInfo | None, rows: ViewRows, place: RowRange, least: Severity
) -> records.Diagnostics:
    """Return a window of the diagnostics with at least the severity `least`, by their ids.

    A player's view has only diagnostics of the bytes themselves, numbered from 1.
    """
    severities = GRAVITY[: GRAVITY.index(least) + 1]
    found, is_first, is_last = read_window(
        lambda after, before: rows.diagnostics(table, after, before, place.by, severities),
        lambda diagnostic: diagnostic.id,
        place,
    )
    return records.Diagnostics(
        [diagnostic_record(reader, table, diagnostic) for diagnostic in found], is_first, is_last
    )


def diagnostic_record(reader: Reader, table: TableInfo | None, row: StoredDiagnostic) -> records.Diagnostic:
    """Return a diagnostic as a record, with the number of the table's event at which it was found."""
    return project(
        records.Diagnostic,
        row,
        client=row.stream.client,
        player=row.stream.player,
        seq=reader.timeline.seq_of_diagnostic(table.id, row.event_id, row.ts_ns)
        if table is not None
        else None,
        **diagnostic_numbers(reader.timeline, row),
    )


# Visibility.


def stream_list(reader: Reader, player: str | None) -> records.Streams:
    """Return all streams, or a player's own."""
    own = None if player is None else reader.visibility.streams_of(player)
    found = Session(reader.timeline).streams()
    return records.Streams([stream for stream in found if own is None or stream.id in own])


_MATCHES_S = 0.8
"""Maximum time in seconds to count the matches of each kind."""

_MAX_CODES = 500


def filter_values(reader: Reader, player: str | None, name: str) -> Iterable[str]:
    """Return the values that a name of filters can have in a session, as far as the viewer may know."""
    found = (dissector_of(table.protocol) for table in reader.tables(player))
    grammars = [dissector.grammar for dissector in found if dissector is not None]
    match ALIASES.get(name, name):
        case "kind":
            return sorted({kind for grammar in grammars for kind in grammar.events})
        case "msg":
            return sorted({row.name for grammar in grammars for row in grammar.rows})
        case "player" | "named" | "who":
            return reader.players() if player is None else [] if player == PUBLIC else [player]
        case "protocol":
            return sorted({grammar.protocol for grammar in grammars})
        case "dir":
            return DIRECTIONS
        case "diag.severity":
            return get_args(Severity)
        case "diag.group":
            return get_args(Group)
        case "diag.blame":
            return get_args(Blame)
        case "diag.code" if player is None:
            query = (
                "SELECT DISTINCT code FROM diagnostics WHERE stream_id IN"
                " (SELECT id FROM streams WHERE session_id = ?) ORDER BY code LIMIT ?"
            )
            rows = reader.timeline.connection.execute(query, (reader.timeline.session.id, _MAX_CODES))
            return [code for (code,) in rows]
    return []


def count_matches(timeline: Timeline, table: TableInfo, rows: ViewRows) -> records.Matches:
    """Count the events, messages and diagnostics at a table that pass a filter."""
    searches = (
        (rows.search_events(table.id), timeline.last_seq(table.id)),
        (rows.search_messages(table), timeline.last_id("messages")),
        (rows.search_diagnostics(table), timeline.last_id("diagnostics")),
    )
    is_more = [search.go_on(last, _MATCHES_S) for search, last in searches]
    events, messages, diagnostics = (len(search.found) for search, _ in searches)
    return records.Matches(events, messages, diagnostics, not any(is_more))
