"""Opening a database to read it, to record into it, or to change it.

A file may come from anyone. Reading writes nothing, and uses only plain tables with the columns of the
schema. Writing requires that each object of the file's schema is one of Kiebitz's.

A database has a write-ahead log during a recording; afterwards everything is in the one file.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal
from weakref import WeakSet

from kiebitz.dissectors.registry import ProtocolClashError
from kiebitz.storage.database.integrity import schema_defect, schema_difference
from kiebitz.storage.database.path_checks import (
    check_to_read,
    check_to_write,
    has_wal,
    make,
    rollback_error,
)
from kiebitz.storage.database.protocol_files import add_stored_files
from kiebitz.storage.database.schema import (
    FIRST_VERSION,
    MEMORY,
    OPTIONAL_TABLES,
    SCHEMA_VERSION,
    TABLES,
    StorageError,
    create_indexes,
    create_optional_table,
    create_tables,
    execute_schema,
    format_of,
    optional_tables,
    sentence,
)

LOCK_TIMEOUT_S = 5.0
"""Timeout in seconds for a database that another program is writing to."""

_OPENING_TIMEOUT_S = 1.0
_JOURNAL_TIMEOUT_S = 0.1
_RETRY_INTERVAL_S = 0.02

_CHECKPOINT_TIMEOUT_MS = 200
"""Timeout in milliseconds for readers when a recording ends."""

_NOT_A_DATABASE = "this is not a database, and only those can be recorded into: use another file with -w"

_MAX_VALUE_BYTES = 64 << 20
"""Maximum size of a value in bytes. A frame has at most 1 MiB; its JSON may be several times as long."""

_STEP_INTERVAL = 1 << 20
"""Steps of SQLite's virtual machine, some milliseconds, between two checks of the limit."""

_MIN_STEPS = 50_000_000
_STEPS_PER_BYTE = 1000
"""Maximum steps of a statement. Our own take less than one per byte, or some hundred without an index."""

_STEPS_PER_CALL = 500
"""Number of steps for which a call of a function of ours counts: it takes as long as some hundred."""


def never() -> bool:
    """Return False."""
    return False


class LimitedConnection(sqlite3.Connection):
    """A connection whose statements are limited, so that corrupt pages cannot cause endless loops.

    A statement that takes more steps than a file of its size can need is interrupted: it raises
    OperationalError, and `limit_reached` becomes True. Ctrl-C interrupts a statement, too, and so does
    `is_cancelled` once it returns True.
    """

    limit_reached = False
    """True once the limit was reached on any connection of this process."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._paths: tuple[str, ...] = ()
        self._steps = 0
        self.is_cancelled: Callable[[], bool] = never
        self.file: tuple[int, int] | None = None
        """Device and inode; None for a database in memory."""
        self.set_progress_handler(self._step, _STEP_INTERVAL)

    def limit_steps(self, path: str) -> None:
        """Limit all further statements by the size of the file at `path`."""
        self._paths = (path, f"{path}-wal")
        found = os.stat(path)
        self.file = (found.st_dev, found.st_ino)
        _open_connections.add(self)

    def close(self) -> None:
        _open_connections.discard(self)
        super().close()

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        self._steps = 0
        try:
            return super().execute(sql, parameters)
        except UnicodeDecodeError as error:
            # SQLite's message quotes a damaged schema.
            raise sqlite3.DatabaseError(error.object.decode("utf-8", "replace")) from error

    def create_function(
        self, name: str, narg: int, func: Callable[..., Any] | None, /, *, deterministic: bool = False
    ) -> None:
        def counted(*values: Any) -> Any:
            assert func is not None
            self._steps += _STEPS_PER_CALL
            return func(*values)

        # None removes the function.
        super().create_function(name, narg, func and counted, deterministic=deterministic)

    def _step(self) -> bool:
        self._steps += _STEP_INTERVAL
        if self._paths and self._steps > _MIN_STEPS and self._steps > self._max_steps():
            LimitedConnection.limit_reached = True
            return True
        return self.is_cancelled()

    def _max_steps(self) -> int:
        size = 0
        for path in self._paths:
            with suppress(OSError):
                size += os.stat(path).st_size
        return _MIN_STEPS + size * _STEPS_PER_BYTE


_open_connections: WeakSet[LimitedConnection] = WeakSet()


def is_open(path: str) -> bool:
    """Return True if this process has a connection to the database at `path`. Raises OSError without a file.

    In that case no other code may open that file: under POSIX, closing it would release SQLite's locks on it,
    and a read could see half of another program's write.
    """
    found = os.stat(path)
    return any(connection.file == (found.st_dev, found.st_ino) for connection in _open_connections)


def _add_stored_files(connection: sqlite3.Connection, path: str) -> None:
    """Register the protocol files of a database. Raises StorageError if another open one has other texts."""
    try:
        add_stored_files(connection, path, _is_still_open)
    except ProtocolClashError as error:
        raise StorageError(str(error)) from error


def _is_still_open(path: str) -> bool:
    try:
        return is_open(path)
    except OSError:
        return False


def open_existing(path: str) -> sqlite3.Connection:
    """Open a session database to read it. Raises StorageError."""
    with _as_storage_error(path):
        check_to_read(path)
        with _close_on_error(_connect_for_reading(path)) as connection:
            _check_version(connection, path)
            _check_readable(connection, path)
            _add_stored_files(connection, path)
    return connection


def open_for_writing(path: str) -> LimitedConnection:
    """Open the database at `path` (or `MEMORY`) to record into it; create it if there is none.

    A new one has no indexes yet: see `create_indexes`. Raises StorageError.
    """
    if path == MEMORY:
        in_memory = sqlite3.connect(path, factory=LimitedConnection)
        create_tables(in_memory)
        return in_memory
    with _as_storage_error(path, _NOT_A_DATABASE):
        if not check_to_write(path):
            make(path)
        with _close_on_error(_connect(path, "mode=rw")) as connection:
            # The process that made the file may have been killed before it made the tables.
            is_new = _is_empty(connection)
            if not is_new:
                _check_own_schema(connection, path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            if is_new:
                create_tables(connection)
    return connection


def open_to_change(path: str) -> LimitedConnection:
    """Open a database of ours to change its contents; nothing is written yet. Raises StorageError."""
    with _as_storage_error(path):
        if not check_to_write(path):
            raise StorageError(f"{path}: there is no such file")
        with _close_on_error(_connect(path, "mode=rw")) as connection:
            _check_own_schema(connection, path)
            _add_stored_files(connection, path)
    return connection


def recover(path: str) -> bool:
    """Roll back an unfinished transaction of a killed program; return True if the database has contents.

    Call it before a command reads a database that it will change. Raises StorageError.
    """
    with _as_storage_error(path):
        if not check_to_write(path):
            return False
        with closing(_connect(path, "mode=rw")) as connection:
            if _is_empty(connection):
                return False
            _check_own_schema(connection, path)
    return True


def merge_wal(connection: sqlite3.Connection) -> None:
    """Move the write-ahead log into the database file and remove the log, if no other connection prevents it.

    If it is being read meanwhile, as much as possible is moved, and the log stays.
    """
    with suppress(sqlite3.Error):
        connection.execute(f"PRAGMA busy_timeout = {_CHECKPOINT_TIMEOUT_MS}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")


@contextmanager
def _as_storage_error(path: str, no_database: str | None = None) -> Iterator[None]:
    """Convert errors into a StorageError about the database at `path`; `no_database` if it is none."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        if no_database is not None and getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
            raise StorageError(f"{path}: {no_database}") from error
        raise StorageError(sentence(path, error)) from error


@contextmanager
def _close_on_error(connection: LimitedConnection) -> Iterator[LimitedConnection]:
    """Yield a connection to a block that checks it; close it if the block fails."""
    try:
        yield connection
    except BaseException:
        connection.close()
        raise


def _connect(path: str, how: Literal["mode=ro", "mode=rw", "immutable=1"]) -> LimitedConnection:
    address = f"{Path(path).absolute().as_uri()}?{how}"
    connection = sqlite3.connect(address, uri=True, timeout=LOCK_TIMEOUT_S, factory=LimitedConnection)
    with _close_on_error(connection):
        connection.limit_steps(path)
        _harden(connection)
    return connection


def _connect_for_reading(path: str) -> LimitedConnection:
    """Return a connection that has read something.

    SQLite reads a database with a log only where it can have the log's files, so not in a read-only folder.
    There a file without a log counts as one that does not change (`immutable`): its recorder would have made
    a log. `nolock` helps in no case of ours. Raises StorageError, sqlite3.Error.
    """
    begun = time.monotonic()
    while True:
        connection = _connect(path, "mode=ro")
        try:
            connection.execute("PRAGMA user_version").fetchone()
        except sqlite3.OperationalError as error:
            connection.close()
            if error.sqlite_errorcode == sqlite3.SQLITE_READONLY_ROLLBACK:
                # SQLite takes the journal of a transaction that is just beginning for an abandoned one.
                if time.monotonic() > begun + _JOURNAL_TIMEOUT_S:
                    raise rollback_error(path) from error
                time.sleep(_RETRY_INTERVAL_S)
                continue
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                raise
            if not os.access(os.path.dirname(os.path.realpath(path)), os.W_OK):
                if has_wal(path):
                    raise StorageError(
                        f"{path}: part of it is in {path}-wal, which cannot be read in a read-only folder: "
                        "copy both into a folder of your own"
                    ) from error
                return _connect(path, "immutable=1")
            # A recorder is starting or ending, and its log appears or disappears.
            if time.monotonic() > begun + _OPENING_TIMEOUT_S:
                raise
            time.sleep(_RETRY_INTERVAL_S)
        except BaseException:
            connection.close()
            raise
        else:
            return connection


def _harden(connection: sqlite3.Connection) -> None:
    """Disable everything in a file's schema that could run, and check its pages. Raises sqlite3.Error."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA mmap_size = 0")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.set_authorizer(_authorize)
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)


def _authorize(
    action: int, _first: str | None, _second: str | None, _database: str | None, source: str | None
) -> int:
    """Deny every action of a trigger or a view: `source` is its name."""
    return sqlite3.SQLITE_OK if source is None else sqlite3.SQLITE_DENY


def _object_names(connection: sqlite3.Connection) -> set[str]:
    """Return the names of a schema's objects in lower case. Raises sqlite3.Error."""
    found: Sequence[tuple[str]] = connection.execute("SELECT lower(name) FROM sqlite_master").fetchall()
    return {name for (name,) in found}


def _is_empty(connection: sqlite3.Connection) -> bool:
    """Return True if a database is empty or has only a header. Raises sqlite3.Error."""
    return format_of(connection) == 0 and not _object_names(connection)


def _check_version(connection: sqlite3.Connection, path: str) -> None:
    """Raise StorageError unless the format is supported."""
    if _is_empty(connection):
        raise StorageError(f"{path}: this database is still empty: kiebitz import records into it")
    version = format_of(connection)
    if version > SCHEMA_VERSION:
        raise StorageError(
            f"{path}: written by a newer Kiebitz (format {version}); update Kiebitz to read it"
        )
    if 0 < version < FIRST_VERSION:
        raise StorageError(
            f"{path}: written before the first release (format {version}): record or import its session again"
        )
    if version < FIRST_VERSION or not _object_names(connection) >= TABLES.keys():
        raise StorageError(f"{path}: a database, but not a session database of Kiebitz")


def _check_readable(connection: sqlite3.Connection, path: str) -> None:
    """Raise StorageError unless plain selects of our columns do nothing but read tables."""
    optional = {table: OPTIONAL_TABLES[table] for table in optional_tables(connection)}
    strange = schema_defect(connection, {**TABLES, **optional})
    if strange is not None:
        raise StorageError(f"{path}: not a database made by Kiebitz: {strange}")


def _check_own_schema(connection: sqlite3.Connection, path: str) -> None:
    """Raise StorageError unless the schema has only our tables, indexes and views."""
    _check_version(connection, path)
    _check_readable(connection, path)
    reference = sqlite3.connect(MEMORY)
    execute_schema(reference)
    create_indexes(reference)
    for table in optional_tables(connection):
        create_optional_table(reference, table)
    strange = schema_difference(connection, reference)
    reference.close()
    if strange is not None:
        raise StorageError(
            f"{path}: it is not changed, as Kiebitz has not made everything in it: {strange}. "
            f"Use another file; kiebitz import {path} -w new.db copies its recorded bytes into a new one"
        )
