"""The session database: its tables, indexes and error messages.

Times are integer nanoseconds since 1970 UTC; JSON columns are compact UTF-8 JSON. Raw bytes (`chunks`) and
`alterations` are the source of truth. All other tables can be derived from them, except `sessions`, and
`taps` and `tapped`, which record the origin of a collected session.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Collection, Mapping

from kiebitz.dissectors.errors import KiebitzError

SCHEMA_VERSION = 3
"""The format number, stored as user_version; a newer Kiebitz writes a higher one."""

FIRST_VERSION = 3
"""The oldest readable format."""

GREATEST_ID = (1 << 63) - 1
"""The greatest possible row id."""

Tables = Mapping[str, Mapping[str, type]]
"""Table -> column -> type of its values."""

MEMORY = ":memory:"

SCHEMA = os.path.join(os.path.dirname(__file__), "schema.sql")
"""The statements that create an empty database, made by `tests/support/make_schema.py`."""

TABLES: Tables = {
    "sessions": {
        "id": int,
        "name": str,
        "kind": str,
        "source": str,
        "started_ns": int,
        "ended_ns": int,
        "kiebitz_version": str,
        "continues": int,
        "note": str,
        "streams_before": int,
        "games_before": int,
        "messages_before": int,
        "events_before": int,
    },
    "streams": {
        "id": int,
        "session_id": int,
        "protocol": str,
        "transport": str,
        "client": str,
        "server": str,
        "opened_ns": int,
        "closed_ns": int,
        "close_reason": str,
        "player": str,
    },
    "chunks": {
        "id": int,
        "stream_id": int,
        "direction": str,
        "ts_ns": int,
        "offset": int,
        "length": int,
        "data": bytes,
    },
    "alterations": {
        "id": int,
        "stream_id": int,
        "direction": str,
        "ts_ns": int,
        "chunk_id": int,
        "offset": int,
        "length": int,
        "action": str,
        "rule": str,
        "sent_ns": int,
        "name": str,
        "fields": str,
        "original": bytes,
    },
    "tables": {"id": int, "session_id": int, "protocol": str, "server": str},
    "games": {
        "id": int,
        "table_id": int,
        "session_id": int,
        "protocol": str,
        "label": str,
        "started_ns": int,
        "ended_ns": int,
        "result": str,
    },
    "events": {
        "id": int,
        "table_id": int,
        "game_id": int,
        "session_id": int,
        "seq": int,
        "ts_ns": int,
        "kind": str,
        "actor": str,
        "data": str,
        "changes": str,
        "sentence": str,
    },
    "messages": {
        "id": int,
        "stream_id": int,
        "direction": str,
        "ts_ns": int,
        "name": str,
        "fields": str,
        "offset": int,
        "length": int,
        "game_id": int,
        "event_id": int,
    },
    "diagnostics": {
        "id": int,
        "stream_id": int,
        "direction": str,
        "message_id": int,
        "ts_ns": int,
        "severity": str,
        "grp": str,
        "code": str,
        "text": str,
        "offset": int,
        "length": int,
        "expected": str,
        "clause": str,
        "blame": str,
    },
    "snapshots": {"table_id": int, "seq": int, "ts_ns": int, "state": str},
    "taps": {
        "id": int,
        "session_id": int,
        "name": str,
        "run": str,
        "items": int,
        "clock_ns": int,
        "origin_ns": int,
        "sequence": int,
    },
    "tapped": {"id": int, "tap_id": int, "number": int},
}

OPTIONAL_TABLES: Tables = {
    "protocol_files": {"name": str, "text": str, "sha256": str, "added_ns": int},
    "losses": {"session_id": int, "text": str},
}
"""The tables that only some databases have; they were added without another format."""

_CREATE_OPTIONAL = {
    "protocol_files": (
        'CREATE TABLE IF NOT EXISTS "protocol_files" (\n'
        '   "name" TEXT PRIMARY KEY,\n'
        '   "text" TEXT,\n'
        '   "sha256" TEXT,\n'
        '   "added_ns" INTEGER\n'
        ")"
    ),
    "losses": (
        'CREATE TABLE IF NOT EXISTS "losses" (\n'
        '   "session_id" INTEGER PRIMARY KEY REFERENCES "sessions"("id"),\n'
        '   "text" TEXT\n'
        ")"
    ),
}

# Each index takes a twentieth of the file, so there is none where one scan of the table is as good: the
# messages of a stream, for example.
INDEXES: dict[str, list[tuple[str, ...]]] = {
    "streams": [("session_id",)],
    "chunks": [("stream_id",)],
    "alterations": [("stream_id", "direction", "offset")],
    "messages": [("name",), ("event_id",)],
    "diagnostics": [("stream_id",), ("message_id",)],
    "tables": [("session_id",)],
    "games": [("session_id",)],
    "events": [("session_id", "ts_ns"), ("table_id", "seq"), ("game_id",)],
}


_OF_ITS_STREAMS = "stream_id IN (SELECT id FROM streams WHERE session_id = ?)"
SESSION_CONDITIONS = {
    "snapshots": "table_id IN (SELECT id FROM tables WHERE session_id = ?)",
    "diagnostics": _OF_ITS_STREAMS,
    "messages": _OF_ITS_STREAMS,
    "events": "session_id = ?",
    "games": "session_id = ?",
    "tables": "session_id = ?",
    "chunks": _OF_ITS_STREAMS,
    "alterations": _OF_ITS_STREAMS,
    "tapped": "id IN (SELECT id FROM streams WHERE session_id = ?)",
    "taps": "session_id = ?",
    "streams": "session_id = ?",
}
"""Table -> SQL condition for the rows of a session; referring tables come before the tables they refer to."""


_FAILED_WRITES = (
    sqlite3.SQLITE_IOERR_WRITE,
    sqlite3.SQLITE_IOERR_TRUNCATE,
    sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_FSYNC,
)


class StorageError(KiebitzError):
    """An unusable database; the message says which, why, and what to do."""


def create_tables(connection: sqlite3.Connection) -> None:
    """Create all tables and views in an empty database, in one transaction. Raises sqlite3.Error."""
    with connection:
        connection.execute("BEGIN")
        execute_schema(connection)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def format_of(connection: sqlite3.Connection) -> int:
    """Return the format of a database; 0 if it is empty. Raises sqlite3.Error."""
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def execute_schema(connection: sqlite3.Connection) -> None:
    """Create all tables and views in the current transaction. Raises sqlite3.Error."""
    with open(SCHEMA, encoding="utf-8") as file:
        for statement in file.read().split(";\n"):
            connection.execute(statement)


def create_optional_table(connection: sqlite3.Connection, table: str) -> None:
    """Create one of `OPTIONAL_TABLES` if it is missing. Raises sqlite3.Error."""
    connection.execute(_CREATE_OPTIONAL[table])


def optional_tables(connection: sqlite3.Connection) -> list[str]:
    """Return the names of those `OPTIONAL_TABLES` that a database has. Raises sqlite3.Error."""
    found = {name for (name,) in connection.execute("SELECT lower(name) FROM sqlite_master")}
    return [table for table in OPTIONAL_TABLES if table in found]


def create_indexes(connection: sqlite3.Connection, tables: Collection[str] = TABLES) -> None:
    """Create the missing indexes of these tables. Raises sqlite3.Error."""
    for name in tables:
        for columns in INDEXES.get(name, ()):
            index = "_".join(("idx", name, *columns))
            quoted = ", ".join(f'"{column}"' for column in columns)
            connection.execute(f'CREATE INDEX IF NOT EXISTS "{index}" ON "{name}" ({quoted})')


def sentence(path: str, error: Exception) -> str:
    """Return a message about an error of the system or of SQLite: where it occurred, and what to do."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    limit = _file_size_limit(error)
    if limit is not None:
        return (
            f"{path}: it cannot be written, as files are limited to {limit:,} bytes here (ulimit -f): "
            "raise that limit"
        )
    if reason.startswith("Could not decode to UTF-8"):
        reason = "Could not decode to UTF-8"
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_READONLY_ROLLBACK:
        return f"{path}: a program was killed while it wrote to it: kiebitz redissect undoes that"
    advice = {
        "database is locked": "another program is writing to it: close that program, or use another file",
        # The message of statements that `storage.database.opening.LimitedConnection` interrupts.
        "interrupted": "this database is damaged: reading it takes more steps than its size explains",
        "database disk image is malformed": "this database is damaged: it is not a complete SQLite file",
        "Could not decode to UTF-8": "this database is damaged: a text in it is not UTF-8",
        "string or blob too big": "this database is damaged: it has a larger value than Kiebitz writes",
        "database or disk is full": "the disk is full: free some space, or write to another disk with -w",
        "file is not a database": "it is neither a session database nor a capture file",
        "attempt to write a readonly database": "it is read-only: use another file with -w",
        "unable to open database file": "it cannot be opened: is its folder there, and may you write in it?",
        "No such file or directory": "there is no such file",
        "Permission denied": "permission denied: change its permissions, or use another file",
        "No space left on device": "the disk is full: free some space, or write to another disk",
        "Disk quota exceeded": "your disk quota is used up: free some space, or write to another disk",
        "Bad file descriptor": "it is closed",
        "Is a directory": "this is a folder: name a file in it",
    }.get(reason, reason)
    return f"{path}: {advice}"


def _file_size_limit(error: Exception) -> int | None:
    """Return the process' limit for file sizes in bytes if it caused an error, else None.

    SQLite does not report why a write failed.
    """
    is_failed_write = getattr(error, "sqlite_errorcode", None) in _FAILED_WRITES
    if not is_failed_write and getattr(error, "errno", None) != errno.EFBIG:
        return None
    try:
        import resource
    except ImportError:
        # Browsers have no such limits.
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    return None if limit == resource.RLIM_INFINITY else limit


ALTERATION_OF_MESSAGE = (
    "a.id = (SELECT n.id FROM alterations AS n WHERE n.stream_id = m.stream_id AND n.direction = m.direction"
    " AND n.offset <= m.offset AND n.length > 0 ORDER BY n.offset DESC LIMIT 1)"
    " AND m.offset < a.offset + a.length"
)
"""SQL condition: an alteration (alias a) changed a message (alias m)."""
