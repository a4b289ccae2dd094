"""Columns and rows of the listing of sessions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from kiebitz.cli.terminal.table import Column, Row, milliseconds, number, seconds
from kiebitz.storage.read.timeline import SessionRow
from kiebitz.storage.read.times import between, utc


def _moment(value: Any) -> str:
    """A moment, written as ISO 8601 in UTC, on the user's clock and to the second."""
    return "" if value is None else f"{datetime.fromisoformat(value).astimezone():%Y-%m-%d %H:%M:%S}"


def _minute(value: Any) -> str:
    """The same where there is little room."""
    return "" if value is None else f"{datetime.fromisoformat(value).astimezone():%m-%d %H:%M}"


def _utc(ns: int | None) -> str | None:
    return None if ns is None else utc(ns).isoformat(timespec="microseconds")


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
    Column("note", "note", least=8),
)


def session_row(row: SessionRow, counts: Sequence[int]) -> Row:
    """The row of a session below `COLUMNS`; `counts` are those of streams, messages, games and errors."""
    return (
        *(row.id, row.name, row.kind, _utc(row.started_ns), between(row.started_ns, row.ended_ns)),
        *counts,
        row.note,
    )
