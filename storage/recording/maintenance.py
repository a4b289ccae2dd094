"""Keeping a database in order: its sessions are called otherwise, noted upon, and deleted for good."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection

from kiebitz.storage.database.opening import settle
from kiebitz.storage.database.schema import OF_SESSION, StorageError
from kiebitz.storage.database.write_access import changing


def rename(path: str, number: int, name: str) -> None:
    """Call a session something else. Raises StorageError."""
    with changing(path) as connection, connection:
        connection.execute("UPDATE sessions SET name = ? WHERE id = ?", (name, number))


def annotate(path: str, number: int, note: str | None) -> None:
    """Note something about a session, or with None take the note away. Raises StorageError."""
    with changing(path) as connection, connection:
        connection.execute("UPDATE sessions SET note = ? WHERE id = ?", (note, number))


def delete(path: str, numbers: Collection[int]) -> None:
    """Delete sessions with all that was recorded of them. Raises StorageError.

    Afterwards nothing of them is in the file, which is written anew for that, nor in any beside it.
    """
    with changing(path) as connection:
        settle(connection)
        if connection.execute("PRAGMA journal_mode").fetchone() != ("delete",):
            raise StorageError(
                f"{path}: another program reads it, and what is deleted would stay in its log: close that"
            )
        # Should there be no room to write it anew, the rows are blanked out at least.
        connection.execute("PRAGMA secure_delete = ON")
        with connection:
            for number in numbers:
                for table, condition in OF_SESSION.items():
                    connection.execute(f"DELETE FROM {table} WHERE {condition}", (number,))
                connection.execute("DELETE FROM sessions WHERE id = ?", (number,))
        # Rows that were deleted or changed before left their bytes in the file, too. SQLite writes into a
        # database of its own that it attaches.
        before = connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 1)
        try:
            connection.execute("VACUUM")
        finally:
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, before)
