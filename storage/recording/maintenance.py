"""Maintenance of a database: renaming, annotating and deleting sessions."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

from kiebitz.storage.database.opening import settle
from kiebitz.storage.database.schema import OF_SESSION, StorageError
from kiebitz.storage.database.write_access import changing


def rename(path: str, number: int, name: str) -> None:
    """Rename a session. Raises StorageError."""
    with changing(path) as connection, connection:
        connection.execute("UPDATE sessions SET name = ? WHERE id = ?", (name, number))


def annotate(path: str, number: int, note: str | None) -> None:
    """Set the note of a session, or remove it with None. Raises StorageError."""
    with changing(path) as connection, connection:
        connection.execute("UPDATE sessions SET note = ? WHERE id = ?", (note, number))


def delete(path: str, numbers: Collection[int]) -> None:
    """Delete sessions with all their rows. Raises StorageError.

    Afterwards nothing of them is left in the file, which is rewritten for that, or in files beside it.
    """
    with changing(path) as connection:
        settle(connection)
        if connection.execute("PRAGMA journal_mode").fetchone() != ("delete",):
            raise StorageError(
                f"{path}: another program reads it, and what is deleted would stay in its log: close that"
            )
        # If there is no space for rewriting it, at least the deleted rows are overwritten.
        connection.execute("PRAGMA secure_delete = ON")
        with connection:
            for number in numbers:
                for table, condition in OF_SESSION.items():
                    connection.execute(f"DELETE FROM {table} WHERE {condition}", (number,))
                connection.execute("DELETE FROM sessions WHERE id = ?", (number,))
        # Earlier deletions and updates left bytes in the file, too. VACUUM attaches a database of its own.
        before = connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 1)
        try:
            connection.execute("VACUUM")
        finally:
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, before)
