"""`kiebitz messages`: what was said, message by message."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import click
import msgspec

from kiebitz.cli.options.catalog import filter_option
from kiebitz.cli.options.session import session_argument
from kiebitz.cli.sessions import open_session, since, split_number
from kiebitz.cli.terminal.console import warn
from kiebitz.cli.terminal.excerpt import shown_bytes
from kiebitz.cli.terminal.output import Form, output_options, show
from kiebitz.cli.terminal.severities import COLOURS
from kiebitz.cli.terminal.table import (
    BATCH,
    Column,
    Row,
    address,
    batches,
    moment,
    number,
    of_several,
    short_address,
)
from kiebitz.dissectors.registry import dissector_of
from kiebitz.storage.conditions import sql_condition
from kiebitz.storage.escaping import field_words
from kiebitz.storage.players import name_of_stream
from kiebitz.storage.recorder import RecorderWatch
from kiebitz.storage.timeline import Timeline, sessions
from kiebitz.storage.traffic import Bytes, FlawOfMessage, flaws_of_messages
from kiebitz.storage.traffic import messages as message_rows

if TYPE_CHECKING:
    from kiebitz.storage.filters import Filter

POLL_S = 0.2
"""How often a session that is being recorded is looked at: as often as its recorder commits."""

_SHOWN = 100
"""So many bytes of a message without fields are shown."""

RESTART_S = 5.0
"""So long nobody may record a session that goes on: a recorder that died is started again."""


class _Said(msgspec.Struct, frozen=True):
    """What a message says, for people: its flaws, its gloss and its fields, or its bytes if it has none."""

    flaws: Sequence[FlawOfMessage]
    gloss: str | None
    fields: dict[str, Any]
    sent: str | None


def _said(said: _Said) -> str:
    flaws = [f"{flaw.severity}[{flaw.code}]" for flaw in said.flaws if flaw.severity != "note"]
    return " · ".join(filter(None, (*flaws, said.gloss, field_words(said.fields), said.sent)))


def _colour(said: _Said) -> str | None:
    gravest = [severity for severity in COLOURS for flaw in said.flaws if flaw.severity == severity]
    return COLOURS[gravest[0]] if gravest and gravest[0] != "note" else None


class _Who(msgspec.Struct, frozen=True):
    """A client: its address, and what it calls itself if it has said so."""

    client: str
    name: str | None


def _who(who: _Who) -> str:
    return who.name or who.client


def _short_who(who: _Who) -> str:
    return who.name or short_address(who.client)


_COLUMNS = (
    number(width=5),
    moment("time", "time", width=12),
    number("stream", "stream"),
    Column("dir", "dir", stays=True),
    Column("client"),
    Column(
        "",
        "who",
        width=15,
        text=_who,
        short=_short_who,
        least=9,
        end_matters=lambda who: who.name is None,
        stays=True,
    ),
    address("server", "server"),
    Column("name", "name", width=15, least=8),
    Column("gloss"),
    Column("fields"),
    Column("", "fields", text=_said, least=8, colour=_colour),
    Column("offset"),
    Column("length"),
    Column("game"),
    Column("event"),
    Column("player"),
    Column("flaws"),
    Column("bytes"),
)


@click.command()
@session_argument
@filter_option
@click.option(
    "-F", "following", is_flag=True, help="Follow: keep printing new messages until the session ends."
)
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
    columns = of_several(_COLUMNS, len(timeline.tables()) > 1)
    show(columns, rows, form, "no messages match" if wanted else "there are no messages in this session")


def _rows(timeline: Timeline, wanted: Filter | None, after: int) -> Iterator[Row]:
    streams = {
        number: (client, server, dissector_of(protocol) if protocol is not None else None)
        for number, client, server, protocol in timeline.connection.execute(
            "SELECT id, client, server, protocol FROM streams WHERE session_id = ?", (timeline.session.id,)
        )
    }
    name_of = name_of_stream(timeline)
    recorded = Bytes(timeline.connection)
    remaining = message_rows(timeline, *sql_condition(timeline, wanted, "messages"), after)
    while found := list(islice(remaining, BATCH)):
        flaws = flaws_of_messages(timeline, [message.id for message in found])
        for message in found:
            client, server, dissector = streams[message.stream_id]
            name = name_of(message.stream_id)
            gloss = dissector.gloss(message.name, message.direction, message.fields) if dissector else None
            of_message = flaws.get(message.id, ())
            sent = None
            if not message.fields and any(flaw.severity != "note" for flaw in of_message):
                end = message.offset + min(message.length, _SHOWN)
                stretches = recorded.between(message.stream_id, message.direction, message.offset, end)
                sent = shown_bytes(b"".join(stretch.data or b"" for stretch in stretches))
            yield (
                message.id,
                since(timeline, message.ts_ns),
                message.stream_id,
                message.direction,
                client,
                _Who(client, name),
                server,
                message.name,
                gloss,
                message.fields,
                _Said(of_message, gloss, message.fields, sent),
                message.offset,
                message.length,
                message.game_id,
                message.event_id,
                name,
                [msgspec.structs.asdict(flaw) for flaw in of_message],
                sent,
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
