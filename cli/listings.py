"""`kiebitz sessions`, `streams` and `games`: what a database holds."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from kiebitz.cli.output import Form, output_options, show
from kiebitz.cli.sessions import DEFAULT_DB, open_database, open_session, session_argument, since
from kiebitz.cli.table import Column, address, batches, milliseconds, moment, number, of_several, seconds
from kiebitz.storage.escaping import json_text
from kiebitz.storage.results import named_result
from kiebitz.storage.traffic import streams as stream_rows


def _moment(value: Any) -> str:
    """A moment, written as ISO 8601 in UTC, on the user's clock and to the second."""
    return "" if value is None else f"{datetime.fromisoformat(value).astimezone():%Y-%m-%d %H:%M:%S}"


def _minute(value: Any) -> str:
    """The same where there is little room."""
    return "" if value is None else f"{datetime.fromisoformat(value).astimezone():%m-%d %H:%M}"


def _utc(ns: int | None) -> str | None:
    return None if ns is None else datetime.fromtimestamp(ns / 1e9, UTC).isoformat(timespec="microseconds")


def _between(started_ns: int | None, ended_ns: int | None) -> float | None:
    """Seconds; None where it is not over, or the clock of a capture was set back meanwhile."""
    if started_ns is None or ended_ns is None or ended_ns < started_ns:
        return None
    return (ended_ns - started_ns) / 1e9


def _result(value: Any) -> str:
    """How a game ended, as in `winner bob; points bob 9, carl 7`: first what is short."""
    if value is None:
        return "no end seen"
    known = [(key, part) for key, part in value.items() if part not in (None, {}, [])]
    known.sort(key=lambda one: isinstance(one[1], dict))
    return "; ".join(f"{key} {_plain(part)}" for key, part in known)


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(part)}" for key, part in value.items())
    return value if isinstance(value, str) else json_text(value)


_SESSIONS = (
    number(),
    Column("name", "name", least=12, stays=True),
    Column("kind", "kind"),
    Column("started", "started (local)", text=_moment, short=_minute),
    Column("seconds", "seconds", right=True, text=seconds, short=milliseconds),
    Column("streams", "streams", right=True),
    Column("messages", "messages", right=True),
    Column("games", "games", right=True),
    Column("errors", "errors", right=True),
)

_STREAMS = (
    number(),
    Column("protocol", "protocol"),
    Column("transport", "over"),
    address("client", "client"),
    address("server", "server"),
    moment("opened", "opened"),
    moment("closed", "closed"),
    Column("close_reason", "why"),
    Column("messages", "messages", right=True),
    Column("bytes", "bytes", right=True),
)

_GAMES = (
    number(width=4),
    Column("protocol", "protocol"),
    address("server", "server"),
    Column("label", "label", width=9, least=8),
    moment("started", "started", width=12),
    moment("ended", "ended", width=12),
    Column("seconds", "seconds", right=True, text=seconds, short=milliseconds),
    Column("result"),
    Column("", "result", text=_result, least=16, stays=True),
)


@click.command()
@click.argument("database", metavar="[DB]", type=click.Path(), default=DEFAULT_DB)
@output_options
def sessions(database: str, form: Form | None) -> None:
    """List the sessions in a database (kiebitz.db, if none is named).

    \b
    Example:
      kiebitz sessions game.db
    """
    rows = open_database(database).execute(
        "SELECT id, name, kind, started_ns, ended_ns,"
        " (SELECT count(*) FROM streams WHERE session_id = x.id),"
        " coalesce(told.messages, 0),"
        " (SELECT count(*) FROM games WHERE session_id = x.id),"
        " (SELECT count(*) FROM diagnostics AS d JOIN streams AS s ON s.id = d.stream_id"
        "  WHERE s.session_id = x.id AND d.severity = 'error')"
        " FROM sessions AS x LEFT JOIN"
        " (SELECT s.session_id, count(*) AS messages FROM messages AS m"
        "  JOIN streams AS s ON s.id = m.stream_id GROUP BY s.session_id) AS told"
        " ON told.session_id = x.id ORDER BY id"
    )
    listed = (
        (number, name, kind, _utc(started), _between(started, ended), *counts)
        for number, name, kind, started, ended, *counts in rows
    )
    show(_SESSIONS, batches(listed), form, "there is no session in this database")


@click.command()
@session_argument
@output_options
def streams(session: str, form: Form | None) -> None:
    """List the streams of a session: TCP connections, and pairs of addresses that talk over UDP.

    Times are seconds since the session began.

    \b
    Example:
      kiebitz streams game.db
    """
    timeline = open_session(session)
    rows = (
        (
            stream.id,
            stream.protocol,
            stream.transport,
            stream.client,
            stream.server,
            since(timeline, stream.opened_ns),
            since(timeline, stream.closed_ns),
            stream.close_reason,
            stream.messages,
            stream.bytes,
        )
        for stream in stream_rows(timeline)
    )
    show(_STREAMS, batches(rows), form, "there are no streams in this session")


@click.command()
@session_argument
@output_options
def games(session: str, form: Form | None) -> None:
    """List the games of a session, when each began and ended, and how.

    Times are seconds since the session began.

    \b
    Example:
      kiebitz games game.db
    """
    timeline = open_session(session)
    servers = {table.id: table.server for table in timeline.tables()}
    rows = (
        (
            game.id,
            game.protocol,
            servers[game.table_id],
            game.label,
            since(timeline, game.started_ns),
            since(timeline, game.ended_ns),
            _between(game.started_ns, game.ended_ns),
            game.result,
            named_result(timeline, game),
        )
        for game in timeline.games()
    )
    show(of_several(_GAMES, len(servers) > 1), batches(rows), form, "there are no games in this session")
