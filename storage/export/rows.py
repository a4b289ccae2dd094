"""A session's messages as rows of one table, for CSV and Parquet, with sender, time and event.

Streams, messages, events and games have their numbers within the session.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from kiebitz.storage.database.schema import ALTERATION_OF_MESSAGE, GREATEST_ID
from kiebitz.storage.derived.selection import Selection
from kiebitz.storage.read.event_text import sentence
from kiebitz.storage.read.timeline import Timeline, check_ascending


class MessageRow(NamedTuple):
    """An exported message; the field names are those of the columns.

    `time` is in seconds since the start of the session, `ts_ns` the same time in nanoseconds since 1970 UTC;
    `fields` and `data` are JSON text. `event` to `data` describe the event that the message reports.
    """

    time: float
    ts_ns: int
    session: int
    message: int
    stream: int
    protocol: str
    client: str
    server: str
    direction: str
    player: str | None
    name: str
    fields: str
    game: int | None
    event: int | None
    kind: str | None
    actor: str | None
    sentence: str | None
    data: str | None
    diagnostics: int
    altered: str | None


def message_rows(timeline: Timeline, selection: Selection | None = None) -> Iterator[MessageRow]:
    """Yield the session's messages, or those of a part, in order."""
    first, last = (0, GREATEST_ID) if selection is None else selection.messages.span
    # The plus keeps SQLite from starting with the streams and sorting the whole session by id.
    rows = timeline.connection.execute(
        "SELECT m.id, m.ts_ns, m.stream_id, s.client, s.server, s.player, m.direction, m.name, m.fields,"
        " m.game_id, e.id, e.kind, e.actor, e.data,"
        " (SELECT count(*) FROM diagnostics WHERE message_id = m.id),"
        f" (SELECT a.action FROM alterations AS a WHERE {ALTERATION_OF_MESSAGE}), s.protocol"
        " FROM messages AS m JOIN streams AS s ON s.id = m.stream_id"
        " LEFT JOIN events AS e ON e.id = m.event_id"
        " WHERE m.id BETWEEN ? AND ? AND +s.session_id = ? ORDER BY m.id",
        (first, last, timeline.session.id),
    )
    number, if_any = timeline.numbers.number, timeline.numbers.number_if_any
    for row in check_ascending(rows):
        message, ts_ns, stream, client, server, player, direction, name, fields, game = row[:10]
        event, kind, actor, data, diagnostics, altered, protocol = row[10:]
        if selection is not None and message not in selection.messages:
            continue
        yield MessageRow(
            timeline.seconds(ts_ns),
            ts_ns,
            timeline.session.id,
            number("messages", message),
            number("streams", stream),
            protocol,
            client,
            server,
            direction,
            player,
            name,
            fields,
            if_any("games", game),
            if_any("events", event),
            kind,
            actor,
            None if kind is None else sentence(protocol, kind, json.loads(data)),
            data,
            diagnostics,
            altered,
        )
