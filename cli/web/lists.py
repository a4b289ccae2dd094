"""Lists of a session for the page: windows of events, messages, diagnostics and streams.

In a player's view, filters see only what that player could know: otherwise their matches would reveal what
is hidden.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from kiebitz.cli.web import records
from kiebitz.cli.web.pagination import RowRange, read_window
from kiebitz.cli.web.reader import Reader, View
from kiebitz.dissectors.escaping import field_words
from kiebitz.dissectors.filters import Row
from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.model import Altered, Diagnostic, Event, Message, Severity, TableInfo
from kiebitz.services.wording import GRAVITY, gravest_of
from kiebitz.storage.read.alterations import AlteredMessages, original_message
from kiebitz.storage.read.conditions import sql_condition
from kiebitz.storage.read.message_queries import (
    StoredDiagnostic,
    diagnostics_by_id,
    diagnostics_of_messages,
    placeholders,
    visible_groups,
)
from kiebitz.storage.read.message_queries import messages as stored_messages
from kiebitz.storage.read.seen_rows import byte_diagnostics, seen_event_row
from kiebitz.storage.session.session import Session, diagnostic_numbers, event_record, message_record, project

# Events.


def events(reader: Reader, table: TableInfo, view: View, place: RowRange) -> records.Events:
    """Return a window of a table's events, by their numbers at the table."""
    found, is_first, is_last = read_window(
        lambda after, before: seen_events(reader, table, view, after, before), lambda event: event.seq, place
    )
    return records.Events(event_records(reader, found, view.player), is_first, is_last)


def seen_events(
    reader: Reader, table: TableInfo, view: View, after: int | None, before: int | None
) -> Iterator[Event]:
    """Yield the visible events that match, after a number, or before one with the latest first."""
    timeline = reader.timeline
    player = view.player
    condition, parameters = sql_condition(timeline, view.wanted if player is None else None, "events")
    if view.game is not None:
        game = timeline.numbers.row_id("games", view.game)
        condition, parameters = f"e.game_id = ? AND {condition}", [game, *parameters]
    upto = None if before is None else before - 1
    found = timeline.events_between(table.id, after, upto, condition, parameters)
    if player is None:
        yield from found
        return
    passes = view.wanted.predicate("events", timeline.numbers) if view.wanted is not None else None
    for event in found:
        seen = reader.visibility.seen(event, player)
        if seen is not None and (
            passes is None or passes(seen_event_row(reader.visibility, seen, player, reader.names))
        ):
            yield seen


def event_records(reader: Reader, events: Iterable[Event], player: str | None) -> list[records.Event]:
    """Return visible events as records; a player's view does not show alterations."""
    altered = AlteredMessages(reader.timeline) if player is None else None
    told = (
        event_record(
            reader.timeline,
            event,
            reader.visibility.sentence(event),
            altered.action_of_event(event.id) if altered is not None else None,
        )
        for event in events
    )
    return [project(records.Event, one) for one in told]


# Messages.


def messages(reader: Reader, table: TableInfo | None, view: View, place: RowRange) -> records.Messages:
    """Return a window of a table's or all messages, by their numbers."""
    numbers = reader.timeline.numbers
    found, is_first, is_last = read_window(
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


def message_records(reader: Reader, player: str | None, found: Sequence[Message]) -> list[records.Message]:
    """Return messages as records, with the players' names."""
    timeline = reader.timeline
    diagnostics = diagnostics_of_messages(timeline, [row.id for row in found], visible_groups(player))
    altered = AlteredMessages(timeline) if player is None else None
    listed = []
    for row in found:
        done = altered.action(row.id) if altered is not None else None
        message = message_record(timeline, row, reader.names.get(row.stream.id), done)
        gravest = gravest_of([diagnostic.severity for diagnostic in diagnostics.get(row.id, ())])
        listed.append(project(records.Message, message, words=field_words(row.fields), severity=gravest))
    return listed


def seen_messages(
    reader: Reader, table: TableInfo | None, view: View, after: int | None, before: int | None
) -> Iterator[Message]:
    """Yield the visible messages that match, after an id, or before one with the latest first."""
    player = view.player
    wanted = view.wanted if player is None else None
    condition, parameters = sql_condition(reader.timeline, wanted, "messages")
    condition, parameters = _restrict(reader, "m", table, player, condition, parameters)
    rows = stored_messages(reader.timeline, condition, parameters, after, before)
    if player is None:
        yield from rows
        return
    passes = view.wanted.predicate("messages", reader.timeline.numbers) if view.wanted is not None else None
    for row in rows:
        event = _seen_event(reader, row.event_id, player)
        seen = _hide_event(row, event)
        if passes is None or passes(_row(reader, [seen], event, byte_diagnostics(reader.timeline, row))):
            yield seen


def seen_original(reader: Reader, view: View, altered: Altered) -> bool:
    """Return True if the original of an altered message matches, in the full view."""
    if view.wanted is None:
        return True
    passes = view.wanted.predicate("messages", reader.timeline.numbers)
    return passes(_row(reader, [original_message(altered)], None, []))


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
    reader: Reader, table: TableInfo | None, view: View, place: RowRange, least: Severity = "note"
) -> records.Diagnostics:
    """Return a window of the diagnostics with at least the severity `least`, by their ids.

    A player's view has only diagnostics of the bytes themselves.
    """
    found, is_first, is_last = read_window(
        lambda after, before: seen_diagnostics(reader, table, view, least, after, before),
        lambda diagnostic: diagnostic.id,
        place,
    )
    return records.Diagnostics(
        [diagnostic_record(reader, table, diagnostic) for diagnostic in found], is_first, is_last
    )


def seen_diagnostics(
    reader: Reader,
    table: TableInfo | None,
    view: View,
    least: Severity,
    after: int | None,
    before: int | None,
    among: tuple[str, Sequence[str | int | float]] = ("1", ()),
) -> Iterator[StoredDiagnostic]:
    """Yield the visible diagnostics that match, after an id, or before one with the latest first.

    `among` is a further condition on `diagnostics` (alias d).
    """
    player = view.player
    wanted = view.wanted if player is None else None
    condition, parameters = sql_condition(reader.timeline, wanted, "diagnostics")
    condition, parameters = _restrict(reader, "d", table, player, condition, parameters)
    condition, parameters = f"{among[0]} AND {condition}", [*among[1], *parameters]
    severities, groups = GRAVITY[: GRAVITY.index(least) + 1], visible_groups(player)
    condition = (
        f"d.severity IN ({placeholders(severities)}) AND d.grp IN ({placeholders(groups)}) AND {condition}"
    )
    parameters = [*severities, *groups, *parameters]
    rows = diagnostics_by_id(reader.timeline, condition, parameters, after, before)
    if player is None:
        yield from rows
        return
    passes = (
        view.wanted.predicate("diagnostics", reader.timeline.numbers) if view.wanted is not None else None
    )
    for row in rows:
        event = _seen_event(reader, row.event_id, player)
        seen = _hide_event(row, event)
        if passes is None or passes(_row(reader, _message_of(reader, row, event), event, [seen])):
            yield seen


def diagnostic_record(reader: Reader, table: TableInfo | None, row: StoredDiagnostic) -> records.Diagnostic:
    """Return a diagnostic as a record, with the number of the table's event at which it was found."""
    return project(
        records.Diagnostic,
        row,
        client=row.stream.client,
        player=reader.names.get(row.stream.id),
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


# The plus keeps SQLite from using the index by stream and sorting the result.


def _restrict(
    reader: Reader,
    alias: str,
    table: TableInfo | None,
    player: str | None,
    condition: str,
    parameters: Sequence[str | int | float],
) -> tuple[str, list[str | int | float]]:
    """Restrict a condition to the streams of a table and of a player."""
    more: list[str | int | float] = []
    if table is not None:
        # The plus keeps SQLite from taking the index by stream, and sorting all of it.
        of = "SELECT id FROM streams WHERE server = ? AND protocol = ?"
        condition = f"+{alias}.stream_id IN ({of}) AND {condition}"
        more = [table.server, table.protocol]
    if player is not None:
        own = sorted(reader.visibility.streams_of(player))
        condition = f"+{alias}.stream_id IN (SELECT value FROM json_each(?)) AND {condition}"
        more = [to_json(own), *more]
    return condition, [*more, *parameters]


def _seen_event(reader: Reader, event_id: int | None, player: str) -> Event | None:
    if event_id is None:
        return None
    event = next(reader.timeline.events("e.id = ?", [event_id]), None)
    return reader.visibility.seen(event, player) if event is not None else None


_MessageOrDiagnostic = TypeVar("_MessageOrDiagnostic", Message, StoredDiagnostic)


def _hide_event(row: _MessageOrDiagnostic, event: Event | None) -> _MessageOrDiagnostic:
    """Return a row without its event if that is not visible."""
    return msgspec.structs.replace(row, event_id=event.id if event is not None else None)


# Rows for filters in a player's view.


def _row(
    reader: Reader,
    messages: Sequence[Message],
    event: Event | None,
    diagnostics: Sequence[Diagnostic],
    table: TableInfo | None = None,
) -> Row:
    timeline = reader.timeline
    return Row(timeline.started_ns, messages, event, diagnostics, table, timeline.session.id, reader.names)


def _message_of(reader: Reader, diagnostic: StoredDiagnostic, event: Event | None) -> list[Message]:
    """Return the message of a diagnostic, if there is one."""
    if diagnostic.message_id is None:
        return []
    found = stored_messages(reader.timeline, "m.id = ?", [diagnostic.message_id], diagnostic.message_id - 1)
    return [_hide_event(row, event) for row in found]
