"""Optional tables of a database: the protocol files of its sessions, and the losses of captures."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable

from kiebitz.dissectors.protocol_file import MAX_SIZE
from kiebitz.dissectors.registry import ProtocolClashError, ProtocolFile, add_file, file_of
from kiebitz.storage.database.schema import create_optional_table, optional_tables

_TABLE = "protocol_files"

MAX_FILES = 100
"""Maximum number of protocol files read from a database."""


def stored_files(connection: sqlite3.Connection, path: str) -> list[ProtocolFile]:
    """Return the protocol files in the database at `path`, without oversized ones. Raises sqlite3.Error."""
    if _TABLE not in optional_tables(connection):
        return []
    # As bytes, since a text may not be UTF-8.
    rows = connection.execute(
        "SELECT CAST(name AS BLOB), CAST(text AS BLOB) FROM protocol_files"
        " WHERE typeof(name) = 'text' AND typeof(text) = 'text'"
        " AND length(CAST(text AS BLOB)) BETWEEN 1 AND ? ORDER BY name LIMIT ?",
        (MAX_SIZE, MAX_FILES),
    )
    return [
        ProtocolFile(name.decode(errors="replace"), text.decode(errors="replace"), path, "copied")
        for name, text in rows
    ]


def add_stored_files(connection: sqlite3.Connection, path: str, is_open: Callable[[str], bool]) -> None:
    """Register the protocol files of a database; those that the user has named precede them.

    A copy from another database is replaced unless that `is_open`. Raises ProtocolClashError, sqlite3.Error.
    """
    for file in stored_files(connection, path):
        try:
            add_file(file)
        except ProtocolClashError:
            other = file_of(file.protocol)
            if other is not None and other.origin != path and is_open(other.origin):
                raise
            add_file(file, replaces=True)


_STORE = (
    "INSERT INTO protocol_files VALUES (?,?,?,?) ON CONFLICT (name) DO UPDATE SET text = excluded.text,"
    " sha256 = excluded.sha256, added_ns = excluded.added_ns WHERE sha256 <> excluded.sha256"
)


def store_files(connection: sqlite3.Connection, protocols: Iterable[str]) -> None:
    """Write the protocol files of these protocols in the current transaction, if they have any.

    The latest text of a protocol replaces earlier ones. Raises sqlite3.Error.
    """
    for protocol in dict.fromkeys(protocols):
        file = file_of(protocol)
        if file is not None:
            # Few databases have a protocol file.
            import hashlib

            create_optional_table(connection, _TABLE)
            digest = hashlib.sha256(file.text.encode()).hexdigest()
            connection.execute(_STORE, (protocol, file.text, digest, time.time_ns()))


_LOSSES = "losses"


def stored_losses(connection: sqlite3.Connection) -> dict[int, str]:
    """Return the losses of each session that has any, in clauses, by session. Raises sqlite3.Error."""
    if _LOSSES not in optional_tables(connection):
        return {}
    return dict(connection.execute(f"SELECT session_id, text FROM {_LOSSES} WHERE typeof(text) = 'text'"))


def store_losses(connection: sqlite3.Connection, session_id: int, text: str) -> None:
    """Write the losses of a session in the current transaction. Raises sqlite3.Error."""
    create_optional_table(connection, _LOSSES)
    connection.execute(f"INSERT OR REPLACE INTO {_LOSSES} VALUES (?,?)", (session_id, text))
