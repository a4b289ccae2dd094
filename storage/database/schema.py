"""The session database: its tables, indexes and error messages.

Times are integer nanoseconds since 1970 UTC; JSON columns are compact UTF-8 JSON. Raw bytes (`chunks`) and
`alterations` are the source of truth. All other tables can be derived from them, except `sessions`, and
`taps` and `tapped`, which record the origin of a collected session.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Mapping
from typing import Any, NamedTuple, Self, get_args

import msgspec

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import Action
from kiebitz.dissectors.session_numbering import NUMBERED, Before

SCHEMA_VERSION = 3
"""The format number, stored as user_version; a newer Kiebitz writes a higher one."""

FIRST_VERSION = 3
"""The oldest readable format."""

GREATEST_ID = (1 << 63) - 1
"""The greatest possible row id."""

MEMORY = ":memory:"

ANONYMIZED = "anonymized"
"""The source of anonymized sessions, and a word of their names."""

SCHEMA = os.path.join(os.path.dirname(__file__), "schema.sql")
"""The statements that create an empty database, made by `tests/support/make_schema.py`."""


class Column(NamedTuple):
    """A column: the type of its values, and what they may be. All that handles rows follows from this.

    Args:
        type: int, str or bytes.
        content: For texts: `address`, `word` of Kiebitz's own vocabulary, a JSON `object` or `array`, or the
            only allowed values. For numbers: `signed`, else they are not negative.
        is_free: True if it is derived from the traffic and so may hold any text of a peer.
        is_personal: True if it is a text that may tell who played; an anonymized session has none of these.
        is_optional: True if it may be NULL.
        refers_to: The table whose `id` it contains, which documents the schema for other programs. It is not
            enforced, as rows are written in batches, in no order among tables.
    """

    type: type
    content: str | tuple[str, ...] = ""
    is_free: bool = False
    is_personal: bool = False
    is_optional: bool = False
    refers_to: str | None = None

    @property
    def or_null(self) -> Column:
        """The same column, but it may be NULL."""
        return self._replace(is_optional=True)

    @property
    def free(self) -> Column:
        """The same column, but with texts of peers."""
        return self._replace(is_free=True)


Tables = Mapping[str, Mapping[str, Column]]
"""Table -> column -> its declaration."""

NUMBER = Column(int)
TEXT = Column(str)
PERSONAL = Column(str, is_personal=True)
WORD = Column(str, "word")
ADDRESS = Column(str, "address")
BYTES = Column(bytes)
OBJECT, ARRAY = Column(str, "object"), Column(str, "array")
DIRECTION = Column(str, ("c2s", "s2c"))


def _of(table: str) -> Column:
    return Column(int, refers_to=table)


Word = str
"""Annotation of a text from Kiebitz's own vocabulary."""

Personal = str
"""Annotation of a text that may tell who played."""

Losses = str | None
"""Annotation of the losses of a capture, which are in another table."""


class SessionRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table `sessions`, and the declaration of that table's columns.

    It `continues` if it began in another database (`kiebitz relay -b`). `lacks` are the losses of its
    capture, in clauses, which have a table of their own. `before` are the last ids assigned before it, a
    column each.
    """

    id: int
    name: Personal
    kind: Word
    source: Personal
    started_ns: int | None
    ended_ns: int | None = None
    kiebitz_version: str
    continues: bool = False
    note: Personal | None = None
    lacks: Losses = None
    before: Before

    @classmethod
    def from_columns(cls, values: Mapping[str, Any]) -> Self:
        """Return the row with these values of the table's columns, and of other fields."""
        fields = {name: value for name, value in values.items() if name in cls.__struct_fields__}
        before = {table: values[f"{table}_before"] for table in NUMBERED}
        return cls(**fields | {"continues": bool(values["continues"]), "before": before})

    def anonymized(self) -> Self:
        """Return the row without personal texts."""
        texts = {
            name: None if column.is_optional else ANONYMIZED
            for name, column in TABLES["sessions"].items()
            if column.is_personal
        }
        return msgspec.structs.replace(self, **texts | {"name": f"{ANONYMIZED} {self.id}"})

    def columns(self) -> tuple[Any, ...]:
        """Return the values of the table's columns."""
        before = {f"{table}_before": self.before[table] for table in NUMBERED}
        return tuple(before[name] if name in before else getattr(self, name) for name in TABLES["sessions"])


_COLUMN_OF = {
    "int": NUMBER,
    "int | None": NUMBER.or_null,
    "bool": NUMBER,
    "str": TEXT,
    "Personal": PERSONAL,
    "Personal | None": PERSONAL.or_null,
    "Word": WORD,
}
"""Annotation of a field in a record -> the column; other fields are in no column."""

TABLES: Tables = {
    "sessions": {
        **{name: _COLUMN_OF[kind] for name, kind in SessionRow.__annotations__.items() if kind in _COLUMN_OF},
        **{f"{table}_before": NUMBER for table in NUMBERED},
    },
    "streams": {
        "id": NUMBER,
        "session_id": _of("sessions"),
        "protocol": WORD.or_null,
        "transport": Column(str, ("tcp", "udp")),
        "client": ADDRESS,
        "server": ADDRESS,
        "opened_ns": NUMBER,
        "closed_ns": NUMBER.or_null,
        "close_reason": TEXT.or_null,
        "player": TEXT.free.or_null,
    },
    "chunks": {
        "id": NUMBER,
        "stream_id": _of("streams"),
        "direction": DIRECTION,
        "ts_ns": NUMBER,
        "offset": NUMBER,
        "length": NUMBER.or_null,
        "data": BYTES.or_null,
    },
    "alterations": {
        "id": NUMBER,
        "stream_id": _of("streams"),
        "direction": DIRECTION,
        "ts_ns": NUMBER,
        "chunk_id": NUMBER,
        "offset": NUMBER,
        "length": NUMBER,
        "action": Column(str, get_args(Action)),
        "rule": TEXT,
        "sent_ns": NUMBER.or_null,
        "name": TEXT.or_null,
        "fields": OBJECT.or_null,
        "original": BYTES.or_null,
    },
    "tables": {
        "id": NUMBER,
        "session_id": _of("sessions"),
        "protocol": WORD,
        "server": ADDRESS,
    },
    "games": {
        "id": NUMBER,
        "table_id": _of("tables"),
        "session_id": _of("sessions"),
        "protocol": WORD,
        "label": TEXT.free,
        "started_ns": NUMBER,
        "ended_ns": NUMBER.or_null,
        "result": OBJECT.free.or_null,
    },
    "events": {
        "id": NUMBER,
        "table_id": _of("tables"),
        "game_id": _of("games").or_null,
        "session_id": _of("sessions"),
        "seq": NUMBER,
        "ts_ns": NUMBER,
        "kind": WORD.free,
        "actor": TEXT.free.or_null,
        "data": OBJECT.free,
        "changes": ARRAY.free,
        "sentence": TEXT.free.or_null,
    },
    "messages": {
        "id": NUMBER,
        "stream_id": _of("streams"),
        "direction": DIRECTION,
        "ts_ns": NUMBER,
        "name": TEXT,
        "fields": OBJECT.free,
        "offset": NUMBER,
        "length": NUMBER,
        "game_id": _of("games").or_null,
        "event_id": _of("events").or_null,
    },
    "diagnostics": {
        "id": NUMBER,
        "stream_id": _of("streams"),
        "direction": DIRECTION,
        "message_id": _of("messages").or_null,
        "ts_ns": NUMBER,
        "severity": Column(str, ("note", "warning", "error")),
        "grp": WORD,
        "code": WORD,
        "text": TEXT.free,
        "offset": NUMBER,
        "length": NUMBER,
        "expected": TEXT.free.or_null,
        "clause": TEXT.free.or_null,
        "blame": WORD,
    },
    "snapshots": {
        "table_id": _of("tables"),
        "seq": NUMBER,
        "ts_ns": NUMBER,
        "state": OBJECT.free,
    },
    "taps": {
        "id": NUMBER,
        "session_id": _of("sessions"),
        "name": TEXT,
        "run": TEXT,
        "items": NUMBER,
        "clock_ns": Column(int, "signed"),
        "origin_ns": NUMBER,
        "sequence": NUMBER,
    },
    "tapped": {
        "id": _of("streams"),
        "tap_id": _of("taps"),
        "number": NUMBER,
    },
}

OPTIONAL_TABLES: Tables = {
    "protocol_files": {"name": TEXT, "text": TEXT, "sha256": TEXT, "added_ns": NUMBER},
    "losses": {"session_id": _of("sessions"), "text": TEXT},
    "marks": {
        "session_id": _of("sessions"),
        "kind": Column(str, ("message", "event")),
        "number": NUMBER,
        "ts_ns": NUMBER,
        "note": TEXT,
    },
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
    "marks": (
        'CREATE TABLE IF NOT EXISTS "marks" (\n'
        '   "session_id" INTEGER REFERENCES "sessions"("id"),\n'
        '   "kind" TEXT,\n'
        '   "number" INTEGER,\n'
        '   "ts_ns" INTEGER,\n'
        '   "note" TEXT,\n'
        '   PRIMARY KEY ("session_id", "kind", "number")\n'
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

OF_SESSION = "EXISTS (SELECT 1 FROM streams WHERE id = {}.stream_id AND session_id = ?)"
"""Condition for the rows of a session, with the table's alias, for queries by id.

In place of `SESSION_CONDITIONS`, whose list of streams SQLite would make for each query, or sort by.
"""


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
    return int(scalar(connection, "PRAGMA user_version"))


def scalar(connection: sqlite3.Connection, query: str, *parameters: Any) -> Any:
    """Return the first value that a query finds, None if it finds no row."""
    row = connection.execute(query, parameters).fetchone()
    return None if row is None else row[0]


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


def create_indexes(connection: sqlite3.Connection) -> None:
    """Create the missing indexes. Raises sqlite3.Error."""
    for name, several in INDEXES.items():
        for columns in several:
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
