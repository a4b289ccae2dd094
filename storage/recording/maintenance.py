"""Maintenance of a database: renaming, annotating and deleting sessions."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

from kiebitz.storage.database.opening import merge_wal
from kiebitz.storage.database.recorder_lock import exclusive_connection
from kiebitz.storage.database.schema import (
    OPTIONAL_TABLES,
    SESSION_CONDITIONS,
    StorageError,
    optional_tables,
)


def update(path: str, number: int, values: dict[str, str | None]) -> None:
    """Set the `name` or the `note` of a session. Raises StorageError."""
    from sqlite_utils import Database
    from sqlite_utils.db import Table

    with exclusive_connection(path) as connection:
        Table(Database(connection), "sessions").update(number, values)


def delete(path: str, numbers: Collection[int]) -> None:
    """Delete sessions with all their rows. Raises StorageError.

    Afterwards nothing of them is left in the file, which is rewritten for this purpose, or in files next to
    it.
    """
    with exclusive_connection(path) as connection:
        merge_wal(connection)
        if connection.execute("PRAGMA journal_mode").fetchone() != ("delete",):
            raise StorageError(
                f"{path}: another program is reading it, and deleted data would stay in its log: close that"
            )
        # If there is no space for rewriting it, at least the deleted rows are overwritten.
        connection.execute("PRAGMA secure_delete = ON")
        with connection:
            for number in numbers:
                for table, condition in SESSION_CONDITIONS.items():
                    connection.execute(f"DELETE FROM {table} WHERE {condition}", (number,))
                for table in optional_tables(connection):
                    if "session_id" in OPTIONAL_TABLES[table]:
                        connection.execute(f"DELETE FROM {table} WHERE session_id = ?", (number,))
                connection.execute("DELETE FROM sessions WHERE id = ?", (number,))
        # Earlier deletions and updates left bytes in the file, too. VACUUM attaches a database of its own.
        before = connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 1)
        try:
            connection.execute("VACUUM")
        finally:
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, before)
