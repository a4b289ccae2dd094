"""Sessions made up event by event, in a database in memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cleanup import close_after_test

from kiebitz.dissectors.model import Event, Findings, Game, TableInfo
from kiebitz.storage.database.schema import MEMORY, create_tables
from kiebitz.storage.read.timeline import Timeline, sessions
from kiebitz.storage.recording.rows import INSERTS, empty_rows, gather


@dataclass(frozen=True)
class EventSpec:
    """An event; `game` is any number of its own, 0 outside games."""

    kind: str
    actor: str | None = None
    data: dict[str, Any] = field(default_factory=dict)
    game: int = 0
    table: int = 0


def session(
    events: Sequence[EventSpec], protocol: str = "maexchen", servers: Sequence[str] = ("127.0.0.1:9000",)
) -> Timeline:
    """Return a session in which this happens, a millisecond apart, at tables of one protocol."""
    connection = close_after_test(sqlite3.connect(MEMORY))
    create_tables(connection)
    connection.execute(
        "INSERT INTO sessions (id, name, kind, source, started_ns, kiebitz_version, continues,"
        " streams_before, games_before, messages_before, events_before)"
        " VALUES (1, 'made up', 'import', 'made up', 0, '0', 0, 0, 0, 0, 0)"
    )
    tables = [TableInfo(number, protocol, server) for number, server in enumerate(servers, 1)]
    games: dict[tuple[int, int], Game] = {}
    found: list[Event] = []
    counts = [0] * len(tables)
    for number, told in enumerate(events, 1):
        if told.game:
            game = Game(len(games) + 1, told.table + 1, protocol, f"game {told.game}", number * 10**6)
            games.setdefault((told.table, told.game), game)
        counts[told.table] += 1
        found.append(
            Event(
                number,
                told.table + 1,
                games[told.table, told.game].id if told.game else None,
                counts[told.table],
                number * 10**6,
                told.kind,
                told.actor,
                told.data,
                [],
            )
        )
    rows = empty_rows()
    gather(Findings(tables=tables, games=[*games.values()], events=found), 1, {}, rows)
    for table, statement in INSERTS.items():
        connection.executemany(statement, rows[table])
    return Timeline(connection, sessions(connection)[0])
