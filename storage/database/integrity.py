"""Validation that Kiebitz wrote a database: a file may come from anyone and contain anything.

The schema is checked whenever a database is opened. Checking each row would cost as much as a command, so
rows are checked only after a command failed.
"""

from __future__ import annotations

import re
import sqlite3
from typing import get_args

from kiebitz.dissectors.model import Action
from kiebitz.storage.database.schema import Tables

_TYPES = {int: "integer", str: "text", bytes: "blob"}
"""Python type -> SQLite's name for it."""

_JSON = {"result": "object", "fields": "object", "data": "object", "changes": "array", "state": "object"}
"""Column -> kind of its JSON value, except in columns of type bytes."""

_CREATE_TABLE = re.compile(r"create table\b")
"""The start of a table's SQL in a schema, in lower case; excludes views and virtual tables."""

_BRACKETED = re.compile(r"\[(\w+)\]")

_MAX_NUMBER = 1 << 62
"""Upper limit for times, numbers and positions."""

_MAX_DIGITS = 400
"""Numbers in JSON text have fewer digits."""

_ALLOWED_WORDS = {
    "direction": ("c2s", "s2c"),
    "transport": ("tcp", "udp"),
    "severity": ("note", "warning", "error"),
    "action": get_args(Action),
}
"""Column -> allowed values, in any table."""

_ADDRESSES = {"client", "server"}
_NAMES = {"protocol", "kind", "code", "grp", "blame"}
"""Columns that hold names from Kiebitz's own vocabulary."""

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+(%[\w.-]+)?\]|[^\s:\[\]@/]+):\d{1,5}", re.A)
_NAME = re.compile(r"[\w.-]{1,100}")

_SIGNED = {"clock_ns"}
"""Columns that allow negative numbers."""

_OPTIONAL = {
    *(
        ("sessions", "started_ns"),
        ("sessions", "ended_ns"),
        ("sessions", "note"),
        ("streams", "player"),
        ("streams", "protocol"),
        ("streams", "closed_ns"),
    ),
    *(("streams", "close_reason"), ("chunks", "length"), ("chunks", "data"), ("messages", "game_id")),
    *(("messages", "event_id"), ("diagnostics", "message_id"), ("diagnostics", "expected")),
    *(("diagnostics", "clause"), ("games", "ended_ns"), ("games", "result"), ("events", "game_id")),
    ("events", "actor"),
    ("events", "sentence"),
    *(("alterations", column) for column in ("sent_ns", "name", "fields", "original")),
}
"""Columns that may be NULL."""


def schema_defect(connection: sqlite3.Connection, tables: Tables) -> str | None:
    """Return a clause that says why plain SELECTs cannot read a session database; None if they can.

    Each of our tables must be an ordinary one with at least our columns and no computed ones. A SELECT runs
    nothing else of a schema (triggers, views, constraints). Raises sqlite3.Error.
    """
    for table, columns in tables.items():
        rows = connection.execute(
            "SELECT lower(type), rootpage, lower(sql) FROM sqlite_master WHERE lower(name) = ?", (table,)
        ).fetchall()
        if (
            len(rows) != 1
            or rows[0][0] != "table"
            or not rows[0][1]
            or not _CREATE_TABLE.match(rows[0][2] or "")
        ):
            return f"its {table} is not a table"
        found = {row[1]: row[6] for row in connection.execute(f"PRAGMA table_xinfo({table})")}
        lacking = columns.keys() - found
        if lacking:
            return f"its table {table} has no {', '.join(sorted(lacking))}"
        if any(found.values()):
            return f"its table {table} has computed columns"
    return None


def schema_difference(connection: sqlite3.Connection, reference: sqlite3.Connection) -> str | None:
    """Return a clause that says how a schema differs from our own, `reference`; None if it does not.

    Indexes may be missing, as they are made at the end of a recording. Every row of the schema is compared
    with its SQL, so that no object can pass for another. Raises sqlite3.Error.
    """
    found, ours = _objects(connection), _objects(reference)
    for strange in found - ours:
        kind, name = strange[:2]
        return f"it contains the unknown {kind} {name}"
    for kind, name, _, _ in ours - found:
        if kind == "table":
            return f"its table {name} has another definition"
    shared = connection.execute(
        "SELECT name FROM sqlite_master WHERE rootpage > 0 GROUP BY rootpage HAVING count(*) > 1"
    ).fetchone()
    return f"{shared[0]} shares the pages of another table" if shared is not None else None


def _objects(connection: sqlite3.Connection) -> set[tuple[str, str, str, str]]:
    """Return type, name, table and normalized SQL of all objects in a schema."""
    rows = connection.execute("SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master")
    return {(kind, name, table, _normalized_sql(sql)) for kind, name, table, sql in rows}


def _normalized_sql(sql: str) -> str:
    """Normalize a statement's quotes and spaces: older sqlite-utils wrote names in brackets."""
    return " ".join(_BRACKETED.sub(r'"\1"', sql).split())


def find_damage(connection: sqlite3.Connection, tables: Tables) -> str | None:
    """Return a clause about the first value that Kiebitz never writes; None if there is none.

    Reads all rows of each table. Raises sqlite3.Error.
    """
    connection.create_function("kiebitz_is_address", 1, _is_address, deterministic=True)
    connection.create_function("kiebitz_is_name", 1, _is_name, deterministic=True)
    for table, columns in tables.items():
        if (again := _first_unordered_row(connection, table)) is not None:
            return f"row {again} of {table} is repeated"
        for column, kind in columns.items():
            query = f"SELECT rowid FROM {table} WHERE {_invalid_condition(table, column, kind)} LIMIT 1"
            row = connection.execute(query).fetchone()
            if row is not None:
                return f"{column} in row {row[0]} of {table} has a value that Kiebitz never writes"
    return None


def _first_unordered_row(connection: sqlite3.Connection, table: str) -> int | None:
    """Return the first row whose successor has no greater id, as in a page cycle; None if there is none."""
    last: int | None = None
    for (number,) in connection.execute(f"SELECT rowid FROM {table} NOT INDEXED"):
        if last is not None and number <= last:
            return last
        last = number
    return None


def _is_address(value: object) -> bool:
    return isinstance(value, str) and _ADDRESS.fullmatch(value) is not None


def _is_name(value: object) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _invalid_condition(table: str, column: str, kind: type) -> str:
    """Return an SQL condition that is true of values that a column cannot have; all names are our own."""
    value = f'"{column}"'
    conditions = [f"typeof({value}) <> '{_TYPES[kind]}'"]
    if kind is int and column not in _SIGNED:
        conditions.append(f"{value} NOT BETWEEN 0 AND {_MAX_NUMBER}")
    if column in _JSON and kind is str:
        conditions.append(f"{value} GLOB '*{'[0-9]' * _MAX_DIGITS}*'")
        # json_type raises for invalid JSON.
        conditions.append(
            f"CASE json_valid({value}) WHEN 1 THEN json_type({value}) <> '{_JSON[column]}' ELSE 1 END"
        )
    for named, function in ((_ADDRESSES, "kiebitz_is_address"), (_NAMES, "kiebitz_is_name")):
        if column in named:
            conditions.append(f"NOT {function}({value})")
    if column in _ALLOWED_WORDS:
        words = ", ".join(f"'{word}'" for word in _ALLOWED_WORDS[column])
        conditions.append(f"{value} NOT IN ({words})")
    if column == "table_id":
        conditions.append(f"{value} NOT IN (SELECT id FROM tables)")
    strange = " OR ".join(conditions)
    return f"{value} IS NOT NULL AND ({strange})" if (table, column) in _OPTIONAL else strange
