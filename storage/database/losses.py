"""The losses of captures: what a session lacks because its capture does."""

from __future__ import annotations

import sqlite3

from kiebitz.storage.database.schema import create_optional_table, optional_tables

_TABLE = "losses"


def stored_losses(connection: sqlite3.Connection) -> dict[int, str]:
    """Return the losses of each session that has any, in clauses, by session. Raises sqlite3.Error."""
    if _TABLE not in optional_tables(connection):
        return {}
    return dict(connection.execute(f"SELECT session_id, text FROM {_TABLE} WHERE typeof(text) = 'text'"))


def store_losses(connection: sqlite3.Connection, session_id: int, text: str) -> None:
    """Write the losses of a session in the current transaction. Raises sqlite3.Error."""
    create_optional_table(connection, _TABLE)
    connection.execute(f"INSERT OR REPLACE INTO {_TABLE} VALUES (?,?)", (session_id, text))


def delete_losses(connection: sqlite3.Connection, session_id: int) -> None:
    """Delete the losses of a session, if it has any, in the current transaction. Raises sqlite3.Error."""
    if _TABLE in optional_tables(connection):
        connection.execute(f"DELETE FROM {_TABLE} WHERE session_id = ?", (session_id,))
