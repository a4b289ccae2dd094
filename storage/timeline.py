"""The timeline of a stored session: its events, and the state of a table at any moment.

State at a moment = the latest snapshot at or before it, plus the changes up to it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

import msgspec

from dissectors.records import Event
from dissectors.state import State, apply

_EVENT_COLUMNS = "e.id, e.table_id, e.game_id, e.seq, e.ts_ns, e.kind, e.actor, e.data, e.changes"


class SessionRow(msgspec.Struct, frozen=True):
    """A row of the table `sessions`."""

    id: int
    name: str
    kind: str
    source: str
    started_ns: int | None
    ended_ns: int | None
    kiebitz_version: str


class TableRow(msgspec.Struct, frozen=True):
    """A game table of a session."""

    id: int
    protocol: str
    server: str


class GameRow(msgspec.Struct, frozen=True):
    """A game of a session; `result` is None while it is on or where it was not seen."""

    id: int
    table_id: int
    protocol: str
    label: str
    started_ns: int
    ended_ns: int | None
    result: dict[str, Any] | None


class Timeline:
    """One session of an open database."""

    def __init__(self, connection: sqlite3.Connection, session: SessionRow) -> None:
        self.connection = connection
        self.session = session

    @property
    def started_ns(self) -> int:
        """The session's time zero; 0 where nothing was recorded."""
        return self.session.started_ns or 0

    def tables(self) -> list[TableRow]:
        """The session's game tables, oldest first."""
        rows = self.connection.execute(
            "SELECT id, protocol, server FROM tables WHERE session_id = ? ORDER BY id", (self.session.id,)
        )
        return [TableRow(*row) for row in rows]

    def games(self) -> list[GameRow]:
        """The session's games, oldest first."""
        rows = self.connection.execute(
            "SELECT id, table_id, protocol, label, started_ns, ended_ns, result FROM games"
            " WHERE session_id = ? ORDER BY id",
            (self.session.id,),
        )
        return [
            GameRow(number, table, protocol, label, started, ended, json.loads(result) if result else None)
            for number, table, protocol, label, started, ended, result in rows
        ]

    def events(self, condition: str = "1", parameters: list[Any] | None = None) -> Iterator[Event]:
        """The session's events that meet an SQL condition on the table `events` (alias e), in order."""
        rows = self.connection.execute(
            f"SELECT {_EVENT_COLUMNS} FROM events e WHERE e.session_id = ? AND ({condition}) ORDER BY e.id",
            [self.session.id, *(parameters or ())],
        )
        for number, table, game, seq, ts_ns, kind, actor, data, changes in rows:
            yield Event(number, table, game, seq, ts_ns, kind, actor, json.loads(data), json.loads(changes))

    def state_at(self, table_id: int, seq: int) -> State:
        """A table's state after its event number `seq`; 0 is before the first."""
        row = self.connection.execute(
            "SELECT seq, state FROM snapshots WHERE table_id = ? AND seq <= ? ORDER BY seq DESC LIMIT 1",
            (table_id, seq),
        ).fetchone()
        start, state = (row[0], json.loads(row[1])) if row is not None else (0, {})
        changes = self.connection.execute(
            "SELECT changes FROM events WHERE table_id = ? AND seq > ? AND seq <= ? ORDER BY seq",
            (table_id, start, seq),
        )
        for (step,) in changes:
            apply(state, json.loads(step))
        return state

    def seq_at(self, table_id: int, ts_ns: int) -> int:
        """The number of a table's last event at or before a time; 0 if there is none."""
        row = self.connection.execute(
            "SELECT max(seq) FROM events WHERE session_id = ? AND table_id = ? AND ts_ns <= ?",
            (self.session.id, table_id, ts_ns),
        ).fetchone()
        return row[0] or 0


def sessions(connection: sqlite3.Connection) -> list[SessionRow]:
    """All sessions of a database, oldest first."""
    rows = connection.execute(
        "SELECT id, name, kind, source, started_ns, ended_ns, kiebitz_version FROM sessions ORDER BY id"
    )
    return [SessionRow(*row) for row in rows]
