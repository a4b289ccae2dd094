"""Small sessions for the tests of the filters: the same rows stored and live, and both asked the same."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field
from typing import Any

import duckdb
import msgspec
from cleanup import close_after_test
from duckdb import DuckDBPyConnection

from kiebitz.dissectors.filters import Filter, Row, Target
from kiebitz.dissectors.model import Diagnostic, Event, Message, Stream, TableInfo
from kiebitz.dissectors.session_numbering import FROM_ONE
from kiebitz.storage.corpus.engine import TYPES, FilterFunctions
from kiebitz.storage.corpus.layout import COLUMNS
from kiebitz.storage.database import schema
from kiebitz.storage.database.opening import open_for_writing
from kiebitz.storage.filters.sql import DUCKDB, register_functions, to_sql


@dataclass
class Session:
    """The rows of a session; a diagnostic's id is its index, counted from `first_diagnostic`."""

    id: int
    started_ns: int
    streams: list[Stream] = field(default_factory=list)
    tables: list[TableInfo] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    first_diagnostic: int = 1

    def rows(self, target: Target) -> list[tuple[int, Row]]:
        """Return each live row of a kind with its id."""
        if target == "messages":
            return [(message.id, self._message_row(message)) for message in self.messages]
        if target == "events":
            return [(event.id, self._event_row(event)) for event in self.events]
        return [(number, self._diagnostic_row(one)) for number, one in self._numbered_diagnostics()]

    def _message_row(self, message: Message) -> Row:
        about = [one for one in self.diagnostics if one.message_id == message.id]
        return self._row(messages=[message], event=self._event(message), diagnostics=about)

    def _event_row(self, event: Event) -> Row:
        messages = [message for message in self.messages if message.event_id == event.id]
        ids = {message.id for message in messages}
        about = [one for one in self.diagnostics if one.message_id in ids]
        table = next((table for table in self.tables if table.id == event.table_id), None)
        return self._row(messages=messages, event=event, diagnostics=about, table=table)

    def _diagnostic_row(self, diagnostic: Diagnostic) -> Row:
        messages = [message for message in self.messages if message.id == diagnostic.message_id]
        event = self._event(messages[0]) if messages else None
        return self._row(messages=messages, event=event, diagnostics=[diagnostic])

    def _row(self, **parts: Any) -> Row:
        return Row(self.started_ns, **parts, session_id=self.id)

    def _event(self, message: Message) -> Event | None:
        return next((event for event in self.events if event.id == message.event_id), None)

    def _numbered_diagnostics(self) -> list[tuple[int, Diagnostic]]:
        return list(enumerate(self.diagnostics, self.first_diagnostic))

    def store(self, connection: sqlite3.Connection) -> None:
        """Write everything into a database that has the schema."""
        diagnostics = self._numbered_diagnostics()
        insert(connection, "sessions", [{"id": self.id, "started_ns": self.started_ns}])
        told = "id protocol transport client server opened_ns player"
        insert(connection, "streams", [{"session_id": self.id, **_some(one, told)} for one in self.streams])
        insert(
            connection, "tables", [{"session_id": self.id, **msgspec.structs.asdict(t)} for t in self.tables]
        )
        insert(connection, "messages", [_message(message) for message in self.messages])
        altered = [
            {"stream_id": one.stream.id, "action": one.altered, **_some(one, "direction offset length")}
            for one in self.messages
            if one.altered is not None
        ]
        insert(connection, "alterations", altered)
        insert(connection, "events", [_event(self.id, event) for event in self.events])
        insert(connection, "diagnostics", [_diagnostic(number, one) for number, one in diagnostics])


def database(*sessions: Session) -> sqlite3.Connection:
    """Return a database in memory that holds these sessions and knows the filters' functions."""
    connection = close_after_test(open_for_writing(schema.MEMORY))
    schema.create_indexes(connection)
    register_functions(connection)
    for session in sessions:
        session.store(connection)
    return connection


def corpus(database: sqlite3.Connection) -> DuckDBPyConnection:
    """Return the same rows in the tables of a corpus, in which each session has its own capture."""
    engine = duckdb.connect(":memory:")
    FilterFunctions(engine)
    for table, columns in COLUMNS.items():
        by, whose = _PARTED[table]
        typed = ", ".join(f"{name} VARCHAR" for name in by) + "".join(
            f', "{name}" {TYPES[kind]}' for name, kind in columns.items()
        )
        engine.execute(f"CREATE TABLE {table} ({typed})")
        known = [f'r."{name}"' if name in schema.TABLES[table] else "NULL" for name in columns]
        rows = database.execute(f"SELECT {', '.join([*by.values(), *known])} FROM {table} AS r {whose}")
        if found := rows.fetchall():
            engine.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(found[0]))})", found)
    return engine


_OF_SESSION = {"capture": "'c' || r.session_id", "protocol": "r.protocol"}
_OF_STREAM = (
    {"capture": "'c' || s.session_id", "protocol": "s.protocol"},
    "JOIN streams AS s ON s.id = r.stream_id",
)
_PARTED: dict[str, tuple[dict[str, str], str]] = {
    "sessions": ({"capture": "'c' || r.id"}, ""),
    "streams": (_OF_SESSION, ""),
    "tables": (_OF_SESSION, ""),
    "games": (_OF_SESSION, ""),
    "events": (
        {"capture": "'c' || r.session_id", "protocol": "t.protocol"},
        "JOIN tables AS t ON t.id = r.table_id",
    ),
    "messages": _OF_STREAM,
    "diagnostics": _OF_STREAM,
}
"""Table -> its partition columns with their source, and its join."""


def gathered(compiled: Filter, target: Target, engine: DuckDBPyConnection) -> list[int]:
    """Return the ids of the rows of a corpus that pass."""
    condition, parameters = to_sql(compiled, target, FROM_ONE, DUCKDB)
    alias = target[0]
    query = f"SELECT {alias}.id FROM {target} AS {alias} WHERE {condition} ORDER BY {alias}.id"
    return [row[0] for row in engine.execute(query, parameters).fetchall()]


def stored(compiled: Filter, target: Target, connection: sqlite3.Connection) -> list[int]:
    """Return the ids of the stored rows that pass."""
    condition, parameters = to_sql(compiled, target, FROM_ONE)
    alias = target[0]
    query = f"SELECT {alias}.id FROM {target} AS {alias} WHERE {condition} ORDER BY {alias}.id"
    return [row[0] for row in connection.execute(query, parameters)]


def live(compiled: Filter, target: Target, *sessions: Session) -> list[int]:
    """Return the ids of the live rows that pass."""
    passes = compiled.predicate(target, FROM_ONE)
    return sorted(number for session in sessions for number, row in session.rows(target) if passes(row))


def insert(connection: sqlite3.Connection, table: str, rows: list[dict[str, object]]) -> None:
    """Write rows of equal keys."""
    if rows:
        columns, marks = ", ".join(rows[0]), ", ".join("?" * len(rows[0]))
        values = [tuple(row.values()) for row in rows]
        connection.executemany(f"INSERT INTO {table} ({columns}) VALUES ({marks})", values)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _some(record: object, names: str) -> dict[str, object]:
    return {name: getattr(record, name) for name in names.split()}


def _message(message: Message) -> dict[str, object]:
    row = _some(message, "id direction ts_ns name offset length game_id event_id")
    return row | {"stream_id": message.stream.id, "fields": message.fields_json}


def _event(session_id: int, event: Event) -> dict[str, object]:
    row = msgspec.structs.asdict(event)
    return row | {"session_id": session_id, "data": _json(event.data), "changes": _json(event.changes)}


def _diagnostic(number: int, diagnostic: Diagnostic) -> dict[str, object]:
    row = msgspec.structs.asdict(diagnostic)
    del row["stream"]
    return row | {"id": number, "stream_id": diagnostic.stream.id, "grp": row.pop("group")}
