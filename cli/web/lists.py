"""The lists of a session for the page: events, messages, diagnostics, streams, a window at a time.

With a player only what that player could know is listed, and a filter is asked about that alone: else it
would tell by its hits what is hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from kiebitz.cli.web import records
from kiebitz.cli.web.filter_rows import row_of_diagnostic, row_of_event, row_of_message
from kiebitz.cli.web.pagination import Place, window
from kiebitz.cli.web.reader import Reader, View
from kiebitz.dissectors.escaping import field_words
from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.model import (
    Event,
    Severity,
    Stream,
    TableInfo,
)
from kiebitz.dissectors.registry import dissector_of
from kiebitz.services.wording import GRAVITY, gravest_of
from kiebitz.storage.read.alterations import AlteredMessages
from kiebitz.storage.read.conditions import sql_condition
from kiebitz.storage.read.message_queries import (
    DiagnosticRow,
    MessageRow,
    diagnostics_between,
    flaws_of_messages,
    groups_seen,
    messages_between,
)
from kiebitz.storage.read.streams import stream_by_id
from kiebitz.storage.read.timeline import TableRow
from kiebitz.storage.session.session import Session, message_record

# Events.


def events(reader: Reader, table: TableRow, view: View, place: Place) -> records.Events:
    """A table's events, by their number there."""
    found, is_first, is_last = window(
        lambda after, before: seen_events(reader, table, view, after, before), lambda event: event.seq, place
    )
    return records.Events(event_records(reader, found, view.player), is_first, is_last)


def seen_events(
    reader: Reader, table: TableRow, view: View, after: int | None, before: int | None
) -> Iterator[Event]:
    """The events after a number, or before one and the latest first, that may be seen and are wanted.

    They are given as they may be seen.
    """
    timeline = reader.timeline
    player = view.player
    condition, parameters = sql_condition(timeline, view.wanted if player is None else None, "events")
    if view.game is not None:
        game = timeline.numbers.row_id("games", view.game)
        condition, parameters = f"e.game_id = ? AND {condition}", [game, *parameters]
    if after is not None:
        upto = _BEYOND if before is None else before - 1
        found = timeline.events_between(table.id, after, upto, condition, parameters)
    else:
        found = timeline.events_before(table.id, _BEYOND if before is None else before, condition, parameters)
    if player is None:
        yield from found
        return
    passes = view.wanted.predicate("events", reader.timeline.numbers) if view.wanted is not None else None
    info = TableInfo(table.id, table.protocol, table.server)
    stream_of = stream_by_id(timeline)
    for event in found:
        seen = reader.hearers.seen(event, player)
        if seen is not None and (
            passes is None or passes(row_of_event(reader, seen, player, info, stream_of))
        ):
            yield seen


def event_records(reader: Reader, events: Iterable[Event], player: str | None) -> list[records.Event]:
    """Events, given as they may be seen; no player can know what was done on the way."""
    altered = AlteredMessages(reader.timeline) if player is None else None
    return [_event_record(reader, event, altered) for event in events]


def _event_record(reader: Reader, event: Event, altered: AlteredMessages | None) -> records.Event:
    numbers = reader.timeline.numbers
    return records.Event(
        event.seq,
        numbers.number("events", event.id),
        event.id,
        event.table_id,
        numbers.number_if_any("games", event.game_id),
        reader.seconds(event.ts_ns),
        event.ts_ns,
        event.kind,
        event.actor,
        reader.hearers.sentence(event),
        event.data,
        altered.action_of_event(event.id) if altered is not None else None,
    )


# Messages.


def messages(reader: Reader, table: TableRow | None, view: View, place: Place) -> records.Messages:
    """Messages, by their number: a table's, or all."""
    numbers = reader.timeline.numbers
    found, is_first, is_last = window(
        lambda after, before: seen_messages(
            reader,
            table,
            view,
            numbers.row_id_if_any("messages", after),
            numbers.row_id_if_any("messages", before),
        ),
        lambda row: numbers.number("messages", row.id),
        place,
    )
    return records.Messages(message_records(reader, view.player, found), is_first, is_last)


def message_records(reader: Reader, player: str | None, found: Sequence[MessageRow]) -> list[records.Message]:
    """Messages with what is known of their streams."""
    flaws = flaws_of_messages(reader.timeline, [row.id for row in found], groups_seen(player))
    stream_of = stream_by_id(reader.timeline)
    altered = AlteredMessages(reader.timeline)
    listed = []
    for row in found:
        stream = stream_of(row.stream_id)
        dissector = dissector_of(stream.protocol) if stream.protocol is not None else None
        severities = [flaw.severity for flaw in flaws.get(row.id, ())]
        message = message_record(
            reader.timeline,
            row,
            stream.client,
            stream.server,
            reader.names.get(row.stream_id),
            dissector,
            altered.action(row.id) if player is None else None,
        )
        gravest = gravest_of(severities)
        listed.append(
            records.Message(**msgspec.structs.asdict(message), words=field_words(row.fields), flaw=gravest)
        )
    return listed


def seen_messages(
    reader: Reader, table: TableRow | None, view: View, after: int | None, before: int | None
) -> Iterator[MessageRow]:
    """The messages after an id, or before one, that may be seen and are wanted, as they may be seen."""
    player = view.player
    wanted = view.wanted if player is None else None
    condition, parameters = sql_condition(reader.timeline, wanted, "messages")
    condition, parameters = _of(reader, "m", table, player, condition, parameters)
    rows = messages_between(reader.timeline, after, before, condition, parameters)
    if player is None:
        yield from rows
        return
    passes = view.wanted.predicate("messages", reader.timeline.numbers) if view.wanted is not None else None
    stream_of = stream_by_id(reader.timeline)
    for row in rows:
        event = _seen_event(reader, row.event_id, player)
        seen = msgspec.structs.replace(row, event_id=event.id if event is not None else None)
        if passes is None or passes(row_of_message(reader, seen, event, stream_of(row.stream_id))):
            yield seen


def message_at(reader: Reader, table: TableRow, seq: int) -> int | None:
    """The number of the first message that tells of an event, or of the nearest before it; None if none."""
    for event in reader.timeline.events_before(table.id, seq + 1):
        (number,) = reader.timeline.connection.execute(
            "SELECT min(id) FROM messages WHERE event_id = ?", (event.id,)
        ).fetchone()
        if number is not None:
            return reader.timeline.numbers.number("messages", number)
    return None


# Diagnostics.


def diagnostics(
    reader: Reader, table: TableRow | None, view: View, place: Place, least: Severity = "note"
) -> records.Diagnostics:
    """Diagnostics as grave as `least` or graver, by their number; of a player's those that bytes show."""
    found, is_first, is_last = window(
        lambda after, before: seen_diagnostics(reader, table, view, least, after, before),
        lambda pair: pair[0].id,
        place,
    )
    return records.Diagnostics([diagnostic_record(reader, table, *pair) for pair in found], is_first, is_last)


def seen_diagnostics(
    reader: Reader,
    table: TableRow | None,
    view: View,
    least: Severity,
    after: int | None,
    before: int | None,
) -> Iterator[tuple[DiagnosticRow, Stream]]:
    """The diagnostics after a number, or before one, that may be seen and are wanted, and their streams."""
    player = view.player
    wanted = view.wanted if player is None else None
    condition, parameters = sql_condition(reader.timeline, wanted, "diagnostics")
    condition, parameters = _of(reader, "d", table, player, condition, parameters)
    severities, groups = GRAVITY[: GRAVITY.index(least) + 1], groups_seen(player)
    condition = (
        f"d.severity IN ({', '.join('?' * len(severities))})"
        f" AND d.grp IN ({', '.join('?' * len(groups))}) AND {condition}"
    )
    rows = diagnostics_between(reader.timeline, after, before, condition, [*severities, *groups, *parameters])
    stream_of = stream_by_id(reader.timeline)
    passes = (
        view.wanted.predicate("diagnostics", reader.timeline.numbers) if view.wanted is not None else None
    )
    for row in rows:
        stream = stream_of(row.stream_id)
        if player is None:
            yield row, stream
            continue
        event = _seen_event(reader, row.event_id, player)
        seen = msgspec.structs.replace(row, event_id=event.id if event is not None else None)
        if passes is None or passes(row_of_diagnostic(reader, seen, event, stream)):
            yield seen, stream


def diagnostic_record(
    reader: Reader, table: TableRow | None, row: DiagnosticRow, stream: Stream
) -> records.Diagnostic:
    """A diagnostic, with the event of the table at which it stands."""
    numbers = reader.timeline.numbers
    return records.Diagnostic(
        row.id,
        reader.seconds(row.ts_ns),
        row.severity,
        row.group,
        row.code,
        row.text,
        row.blame,
        row.suggestion,
        numbers.number("streams", row.stream_id),
        row.direction,
        stream.client,
        reader.names.get(row.stream_id),
        row.offset,
        row.length,
        row.expected,
        row.clause,
        numbers.number_if_any("messages", row.message_id),
        row.message,
        numbers.number_if_any("events", row.event_id),
        reader.timeline.seq_of_flaw(table.id, row.event_id, row.ts_ns) if table is not None else None,
    )


# Streams.


def stream_list(reader: Reader, player: str | None) -> records.Streams:
    """The streams: all, or a player's own."""
    own = None if player is None else reader.hearers.streams_of(player)
    found = Session(reader.timeline).streams()
    return records.Streams([stream for stream in found if own is None or stream.id in own])


# What may be seen.


def _of(
    reader: Reader,
    alias: str,
    table: TableRow | None,
    player: str | None,
    condition: str,
    parameters: Sequence[str | int | float],
) -> tuple[str, list[str | int | float]]:
    """A condition that takes only what is on a table's streams, and on the player's."""
    more: list[str | int | float] = []
    if table is not None:
        # The plus keeps SQLite from taking the index by stream, and sorting all of it.
        of = "SELECT id FROM streams WHERE server = ? AND protocol = ?"
        condition = f"+{alias}.stream_id IN ({of}) AND {condition}"
        more = [table.server, table.protocol]
    if player is not None:
        own = sorted(reader.hearers.streams_of(player))
        condition = f"+{alias}.stream_id IN (SELECT value FROM json_each(?)) AND {condition}"
        more = [to_json(own), *more]
    return condition, [*more, *parameters]


def _seen_event(reader: Reader, event_id: int | None, player: str) -> Event | None:
    if event_id is None:
        return None
    event = next(reader.timeline.events("e.id = ?", [event_id]), None)
    return reader.hearers.seen(event, player) if event is not None else None


_BEYOND = (1 << 63) - 1
