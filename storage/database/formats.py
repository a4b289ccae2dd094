"""The formats of databases: an older one is read as it is, and brought up to date before it is written to.

1: no `alterations`, as nothing was altered. 2: in `sessions` no `continues`, no `note` and no numbers before,
in `streams` no `player`, in `events` no `sentence`, no references, no views, and no `taps` and `tapped`.
3: today's, as in `storage/database/schema.py`.
"""

from __future__ import annotations

import sqlite3

from kiebitz.dissectors.session_numbering import NUMBERED, Before, Numbered
from kiebitz.storage.database.schema import (
    OF_SESSION,
    SCHEMA_VERSION,
    TABLES,
    StorageError,
    Tables,
    create_indexes,
    make_all,
    make_tables,
    sentence,
)

_TABLES_SINCE = {"alterations": 2, "taps": 3, "tapped": 3}
_COLUMNS_SINCE = {
    ("sessions", "continues"): 3,
    ("sessions", "note"): 3,
    **{("sessions", f"{table}_before"): 3 for table in NUMBERED},
    ("streams", "player"): 3,
    ("events", "sentence"): 3,
}


def format_of(connection: sqlite3.Connection) -> int:
    """The format of a database; 0 where there is nothing in it. Raises sqlite3.Error."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def tables_of(version: int) -> Tables:
    """The tables that a database of a format has, with their columns."""
    return {
        table: {
            column: kind
            for column, kind in columns.items()
            if _COLUMNS_SINCE.get((table, column), 1) <= version
        }
        for table, columns in TABLES.items()
        if _TABLES_SINCE.get(table, 1) <= version
    }


def make_as_of(connection: sqlite3.Connection, version: int) -> None:
    """Make all that a database of a format has, but nothing in it. Raises sqlite3.Error."""
    tables = tables_of(version)
    if version == SCHEMA_VERSION:
        make_all(connection)
    else:
        # References and views came with format 3.
        make_tables(connection, tables, {})
    create_indexes(connection, tables)


def stand_in(connection: sqlite3.Connection) -> None:
    """Let the tables that an older file lacks be asked for, and be empty, without writing to the file.

    Raises sqlite3.Error.
    """
    for table in TABLES.keys() - tables_of(format_of(connection)).keys():
        columns = ", ".join(f'"{column}"' for column in TABLES[table])
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute(f"CREATE TEMP TABLE IF NOT EXISTS {table} ({columns})")


def bring_up_to_date(connection: sqlite3.Connection, path: str) -> None:
    """Give a database of an older format, which is open to be changed and locked, the format of today.

    All of it or, where it fails, nothing. Raises StorageError.
    """
    try:
        version = format_of(connection)
        if version >= SCHEMA_VERSION:
            return
        # It must be the file's own tables that are found from here on.
        for table in TABLES.keys() - tables_of(version).keys():
            connection.execute(f"DROP TABLE IF EXISTS temp.{table}")
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            _rebuild(connection, version)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    except sqlite3.Error as error:
        raise StorageError(
            f"{sentence(path, error)} (an older Kiebitz wrote it, and it could not be brought up to date)"
        ) from error


def _rebuild(connection: sqlite3.Connection, version: int) -> None:
    """Make all tables anew, and move the rows. Raises sqlite3.Error."""
    old = tables_of(version)
    sessions = connection.execute(f"SELECT id, {CONTINUES} FROM sessions AS x ORDER BY id").fetchall()
    known = [
        (number, continues, numbers_before(connection, number, continues)) for number, continues in sessions
    ]
    for table in old:
        connection.execute(f"ALTER TABLE {table} RENAME TO old_{table}")
    make_all(connection)
    for table, columns in old.items():
        names = ", ".join(f'"{column}"' for column in columns)
        connection.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM old_{table}")
        connection.execute(f"DROP TABLE old_{table}")
    settings = ", ".join(f"{table}_before = ?" for table in NUMBERED)
    connection.executemany(
        f"UPDATE sessions SET continues = ?, {settings} WHERE id = ?",
        [(continues, *(before[table] for table in NUMBERED), number) for number, continues, before in known],
    )
    create_indexes(connection, TABLES)


CONTINUES = "x.id > 1 AND NOT EXISTS (SELECT 1 FROM sessions AS y WHERE y.id = x.id - 1)"
"""Whether a session of an older format began in another database, as SQL: those are numbered on."""


def numbers_before(connection: sqlite3.Connection, session_id: int, continues: bool) -> Before:
    """What was given before a session of an older format, as its own rows show it. Raises sqlite3.Error."""
    if continues:
        return dict.fromkeys(NUMBERED, 0)
    before: dict[Numbered, int] = {}
    for table in NUMBERED:
        # The plus keeps SQLite from taking an index and sorting what it finds.
        first = connection.execute(
            f"SELECT id - 1 FROM {table} WHERE +{OF_SESSION[table]} ORDER BY id LIMIT 1", (session_id,)
        ).fetchone()
        last = connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()
        (before[table],) = first if first is not None else last
    return before
