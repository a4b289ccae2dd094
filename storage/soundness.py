"""Whether a database is one that Kiebitz has made: a file may come from anybody, and hold anything.

Its schema is looked at whenever it is opened. Looking at each row would cost as much as a command, so that is
done only once one has failed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

Tables = Mapping[str, Mapping[str, type]]
"""Table -> column -> type of its values."""

_TYPES = {int: "integer", str: "text", bytes: "blob"}
"""How SQLite calls the type of a value."""

_JSON = {"result": "object", "fields": "object", "data": "object", "changes": "array", "state": "object"}
"""Column -> what its JSON text is. Those of type bytes are none."""

_MOST = 1 << 62
"""No time, number or place is greater."""

_MOST_DIGITS = 400
"""No number in JSON text has so many."""

_WORDS = {
    "direction": ("c2s", "s2c"),
    "transport": ("tcp", "udp"),
    "severity": ("note", "warning", "error"),
}
"""Column -> what may stand in it, in whatever table."""

_OPTIONAL = {
    *(
        ("sessions", "started_ns"),
        ("sessions", "ended_ns"),
        ("streams", "protocol"),
        ("streams", "closed_ns"),
    ),
    *(("streams", "close_reason"), ("chunks", "length"), ("chunks", "data"), ("messages", "game_id")),
    *(("messages", "event_id"), ("diagnostics", "message_id"), ("diagnostics", "expected")),
    *(("diagnostics", "clause"), ("games", "ended_ns"), ("games", "result"), ("events", "game_id")),
    ("events", "actor"),
}
"""The columns that may be empty."""


def distrust(connection: sqlite3.Connection) -> None:
    """Let nothing in a file's schema call functions, and nothing in its pages pass unchecked."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")


def strange_schema(connection: sqlite3.Connection, tables: Tables) -> str | None:
    """What is in the schema of a session database that Kiebitz has not put there and would run: a clause.

    Raises sqlite3.Error.
    """
    for table, columns in tables.items():
        found = {row[1]: row[6] for row in connection.execute(f"PRAGMA table_xinfo({table})")}
        lacking = columns.keys() - found
        if lacking:
            return f"its table {table} has no {', '.join(sorted(lacking))}"
        if any(found.values()):
            return f"its table {table} computes what it holds"
    for (table,) in connection.execute("SELECT tbl_name FROM sqlite_master WHERE type = 'trigger'"):
        if table.lower() in tables:
            return f"it has a trigger on {table.lower()}"
    return None


def damage(connection: sqlite3.Connection, tables: Tables) -> str | None:
    """The first value that Kiebitz never writes, as a clause; None if there is none. Reads the whole file.

    Raises sqlite3.Error.
    """
    for table, columns in tables.items():
        for column, kind in columns.items():
            query = f"SELECT rowid FROM {table} WHERE {_is_strange(table, column, kind)} LIMIT 1"
            row = connection.execute(query).fetchone()
            if row is not None:
                return f"{column} in row {row[0]} of {table} is nothing that Kiebitz writes"
    return None


def _is_strange(table: str, column: str, kind: type) -> str:
    """An SQL condition that is true of a value that cannot stand in a column; all names are our own."""
    value = f'"{column}"'
    conditions = [f"typeof({value}) <> '{_TYPES[kind]}'"]
    if kind is int:
        conditions.append(f"{value} NOT BETWEEN 0 AND {_MOST}")
    if column in _JSON and kind is str:
        conditions.append(f"{value} GLOB '*{'[0-9]' * _MOST_DIGITS}*'")
        # json_type raises where there is no JSON.
        conditions.append(
            f"CASE json_valid({value}) WHEN 1 THEN json_type({value}) <> '{_JSON[column]}' ELSE 1 END"
        )
    if column in _WORDS:
        words = ", ".join(f"'{word}'" for word in _WORDS[column])
        conditions.append(f"{value} NOT IN ({words})")
    if column == "table_id":
        conditions.append(f"{value} NOT IN (SELECT id FROM tables)")
    strange = " OR ".join(conditions)
    return f"{value} IS NOT NULL AND ({strange})" if (table, column) in _OPTIONAL else strange
