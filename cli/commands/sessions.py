"""`kiebitz sessions`: the sessions in a database."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import click

from kiebitz.cli.configuration.file import configuration
from kiebitz.cli.sessions import open_database
from kiebitz.cli.terminal.output import Form, output_options, show
from kiebitz.cli.terminal.table import Column, Row, batches, milliseconds, number, seconds
from kiebitz.storage.session import between


def _moment(value: Any) -> str:
    """A moment, written as ISO 8601 in UTC, on the user's clock and to the second."""
    return "" if value is None else f"{datetime.fromisoformat(value).astimezone():%Y-%m-%d %H:%M:%S}"


def _minute(value: Any) -> str:
    """The same where there is little room."""
    return "" if value is None else f"{datetime.fromisoformat(value).astimezone():%m-%d %H:%M}"


def _utc(ns: int | None) -> str | None:
    return None if ns is None else datetime.fromtimestamp(ns / 1e9, UTC).isoformat(timespec="microseconds")


COLUMNS = (
    number("id"),
    Column("name", "name", least=12, stays=True),
    Column("kind", "kind"),
    Column("started", "started (local)", text=_moment, short=_minute),
    Column("seconds", "seconds", right=True, text=seconds, short=milliseconds),
    Column("streams", "streams", right=True),
    Column("messages", "messages", right=True),
    Column("games", "games", right=True),
    Column("errors", "errors", right=True),
)


@click.command()
@click.argument("database", metavar="[DB]", type=click.Path(), default=lambda: configuration().database)
@output_options
def sessions(database: str, form: Form | None) -> None:
    """List the sessions in a database.

    Without DB it is kiebitz.db, or the one of the configuration file.

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
    show(COLUMNS, batches(session_row(*row) for row in rows), form, "there is no session in this database")


def session_row(
    number: int, name: str, kind: str, started_ns: int | None, ended_ns: int | None, *counts: int
) -> Row:
    """The row of a session below `COLUMNS`; `counts` are those of streams, messages, games and errors."""
    return (number, name, kind, _utc(started_ns), between(started_ns, ended_ns), *counts)
