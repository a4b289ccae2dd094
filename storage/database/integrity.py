"""Validation that Kiebitz wrote a database: a file may come from anyone and contain anything.

The schema is checked whenever a database is opened. Checking each row would cost as much as a command, so
rows are checked only after a command failed.
"""

from __future__ import annotations

import re
import sqlite3

from kiebitz.storage.database.schema import Column, Tables

_TYPES = {int: "integer", str: "text", bytes: "blob"}
"""Python type -> SQLite's name for it."""

_CREATE_TABLE = re.compile(r"create table\b")
"""The start of a table's SQL in a schema, in lower case; excludes views and virtual tables."""

_BRACKETED = re.compile(r"\[(\w+)\]")

_MAX_NUMBER = 1 << 62
"""Upper limit for times, numbers and positions."""

_MAX_DIGITS = 400
"""Numbers in JSON text have fewer digits."""

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+(%[\w.-]+)?\]|[^\s:\[\]@/]+):\d{1,5}", re.A)
_NAME = re.compile(r"[\w.-]{1,100}")

_SQL_TESTS = {"address": "kiebitz_is_address", "word": "kiebitz_is_name"}
"""Content of a column -> SQL function that is true of its values."""


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
    for strange in sorted(found - ours):
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
    # Older sqlite-utils wrote names in brackets.
    return {
        (kind, name, table, " ".join(_BRACKETED.sub(r'"\1"', sql).split())) for kind, name, table, sql in rows
    }


def find_damage(connection: sqlite3.Connection, tables: Tables) -> str | None:
    """Return a clause about the first value that Kiebitz never writes; None if there is none.

    Reads all rows of each table. Raises sqlite3.Error.
    """
    connection.create_function("kiebitz_is_address", 1, _is_address, deterministic=True)
    connection.create_function("kiebitz_is_name", 1, _is_name, deterministic=True)
    for table, columns in tables.items():
        if (again := _first_unordered_row(connection, table)) is not None:
            return f"row {again} of {table} is repeated"
        for name, column in columns.items():
            query = f"SELECT rowid FROM {table} WHERE {_invalid_condition(name, column)} LIMIT 1"
            row = connection.execute(query).fetchone()
            if row is not None:
                return f"{name} in row {row[0]} of {table} has a value that Kiebitz never writes"
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


def _invalid_condition(name: str, column: Column) -> str:
    """Return an SQL condition that is true of values that a column cannot have; all names are our own."""
    value, content = f'"{name}"', column.content
    conditions = [f"typeof({value}) <> '{_TYPES[column.type]}'"]
    if column.type is int and content != "signed":
        conditions.append(f"{value} NOT BETWEEN 0 AND {_MAX_NUMBER}")
    if content in ("object", "array"):
        conditions.append(f"{value} GLOB '*{'[0-9]' * _MAX_DIGITS}*'")
        # json_type raises for invalid JSON.
        conditions.append(
            f"CASE json_valid({value}) WHEN 1 THEN json_type({value}) <> '{content}' ELSE 1 END"
        )
    elif content in _SQL_TESTS:
        conditions.append(f"NOT {_SQL_TESTS[content]}({value})")
    elif isinstance(content, tuple):
        words = ", ".join(f"'{word}'" for word in content)
        conditions.append(f"{value} NOT IN ({words})")
    if column.refers_to == "tables":
        conditions.append(f"{value} NOT IN (SELECT id FROM tables)")
    strange = " OR ".join(conditions)
    return f"{value} IS NOT NULL AND ({strange})" if column.is_optional else strange
