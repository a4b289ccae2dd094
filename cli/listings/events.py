"""Columns and rows of the listing of events."""

from __future__ import annotations

from kiebitz.cli.terminal.table import Column, Row, address, moment, number
from kiebitz.storage.session.session import Event


def _told(event: Event) -> str:
    """What happened, and whether Kiebitz has altered a message that tells of it."""
    return event.sentence if event.altered is None else f"{event.sentence} · altered[{event.altered}]"


COLUMNS = (
    number(width=5),
    moment("time", "time", width=12),
    address("server", "server", of_tables=True),
    number("game", "game", width=4),
    Column("kind", "kind", width=14, least=8),
    Column("actor", "actor", width=8, least=8),
    Column("sentence"),
    Column("", "what happened", text=_told, least=16, stays=True),
    Column("data"),
    Column("table"),
    Column("seq"),
    Column("altered"),
    Column("id"),
)


def event_row(event: Event) -> Row:
    """The row of an event below `COLUMNS`."""
    return (
        event.number,
        event.time,
        event.server,
        event.game,
        event.kind,
        event.actor,
        event.sentence,
        event,
        event.data,
        event.table,
        event.seq,
        event.altered,
        event.id,
    )
