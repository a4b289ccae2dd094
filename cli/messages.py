"""`kiebitz messages`: what was said, message by message."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from cli.catalog import filter_option, sql_condition
from cli.console import warn
from cli.output import Form, output_options, show
from cli.sessions import open_session, session_argument, since, split_number
from cli.table import Column, Row, address, batches, moment, number
from dissectors.registry import dissector_of
from storage.escaping import field_words
from storage.recorder import RecorderWatch
from storage.timeline import Timeline, sessions
from storage.traffic import messages as message_rows

if TYPE_CHECKING:
    from storage.filters import Filter

POLL_S = 0.2
"""How often a session that is being recorded is looked at: as often as its recorder commits."""

RESTART_S = 5.0
"""So long nobody may record a session that goes on: a recorder that died is started again."""


def _said(said: tuple[str | None, dict[str, Any]]) -> str:
    """What a message says: its gloss, if it has one, and its fields."""
    gloss, fields = said
    return " · ".join(filter(None, (gloss, field_words(fields))))


_COLUMNS = (
    number(width=5),
    moment("time", "time", width=12),
    number("stream", "stream"),
    Column("dir", "dir", stays=True),
    address("client", "who", width=15),
    Column("name", "name", width=15, least=8),
    Column("gloss"),
    Column("fields"),
    Column("", "fields", text=_said, least=8),
    Column("offset"),
    Column("length"),
    Column("game"),
    Column("event"),
)


@click.command()
@session_argument
@filter_option
@click.option("-F", "following", is_flag=True, help="Go on with what comes until the session has ended.")
@output_options
def messages(session: str, wanted: Filter | None, following: bool, form: Form | None) -> None:
    """List a session's messages: when, on which stream, by which client or to which, and what.

    \b
    Example:
      kiebitz messages game.db -Y 'msg == "ANNOUNCE" && maexchen.dice == "2,1"'
      kiebitz messages game.db -F --nl
    """
    timeline = open_session(session)
    rows = _followed(session, timeline, wanted) if following else batches(_rows(timeline, wanted, 0))
    show(_COLUMNS, rows, form, "no messages match" if wanted else "there are no messages in this session")


def _rows(timeline: Timeline, wanted: Filter | None, after: int) -> Iterator[Row]:
    streams = {
        number: (client, dissector_of(protocol) if protocol is not None else None)
        for number, client, protocol in timeline.connection.execute(
            "SELECT id, client, protocol FROM streams WHERE session_id = ?", (timeline.session.id,)
        )
    }
    for message in message_rows(timeline, *sql_condition(timeline, wanted, "messages"), after):
        client, dissector = streams[message.stream_id]
        gloss = dissector.gloss(message.name, message.direction, message.fields) if dissector else None
        yield (
            message.id,
            since(timeline, message.ts_ns),
            message.stream_id,
            message.direction,
            client,
            message.name,
            gloss,
            message.fields,
            (gloss, message.fields),
            message.offset,
            message.length,
            message.game_id,
            message.event_id,
        )


def _followed(session: str, timeline: Timeline, wanted: Filter | None) -> Iterator[list[Row]]:
    """What is there, then what comes, until the session has ended, or its recorder has died."""
    path, _ = split_number(session)
    watch = RecorderWatch(path) if timeline.session.ended_ns is None else None
    recording_at = time.monotonic()
    latest = 0
    while True:
        # The end first: what was written before it is then not missed.
        now = time.monotonic()
        if watch is None or watch.is_recording():
            recording_at = now
        abandoned = now - recording_at > RESTART_S
        timeline = _reread(timeline)
        over = timeline.session.ended_ns is not None
        newest = timeline.connection.execute("SELECT coalesce(max(id), 0) FROM messages").fetchone()[0]
        for batch in batches(_rows(timeline, wanted, latest)):
            yield batch
            newest = max(newest, batch[-1][0])
        latest = newest
        if over:
            return
        if abandoned:
            warn("nobody records this session any more; it was never ended")
            return
        time.sleep(POLL_S)


def _reread(timeline: Timeline) -> Timeline:
    """The same session as it stands now."""
    number = timeline.session.id
    now = next(row for row in sessions(timeline.connection) if row.id == number)
    return Timeline(timeline.connection, now)
