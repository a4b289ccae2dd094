"""How a database is opened: to read it, to record into it, or to change what is in it.

It may come from anybody. Reading writes nothing. It takes plain tables with our columns, and whatever else is
in the file is not looked at. Nothing is written into a file whose schema is not ours, object for object.

A database that is recorded into has a write-ahead log; once the recording is over all is in the one file.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from storage.schema import (
    MEMORY,
    SCHEMA_VERSION,
    TABLES,
    StorageError,
    create_indexes,
    create_tables,
    sentence,
)
from storage.soundness import strange_objects, unreadable
from storage.surroundings import check_to_read, check_to_write, has_wal, make

LOCK_PATIENCE_S = 5.0
"""How long a database that another program is writing to is waited for."""

_SETTLE_MS = 200
"""So long who reads is waited for when a recording is over."""

_LONGEST_VALUE = 64 << 20
"""Bytes. A frame has at most 1 MiB; what is told of it in JSON may be several times as long."""

_LOOK_EVERY = 1 << 20
"""Steps of SQLite's machine, some milliseconds, between two looks at what is left."""

_LEAST_STEPS = 50_000_000
_STEPS_PER_BYTE = 1000
"""So many a statement may take. Ours take less than one, where a table lacks its index some hundred."""


class Bounded(sqlite3.Connection):
    """A connection none of whose statements goes on for ever, whatever the file's pages refer to.

    One that takes more steps than a file of its size can need is interrupted, which is an OperationalError;
    `has_run_out` is true then. Ctrl-C interrupts a statement, too.
    """

    has_run_out = False
    """Of any connection of this process."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._paths: tuple[str, ...] = ()
        self._left = 0

    def bound(self, path: str) -> None:
        """From here on, bound statements by the size of the file at `path`."""
        self._paths = (path, f"{path}-wal")
        self.set_progress_handler(self._step, _LOOK_EVERY)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """As ever; each statement begins with all its steps."""
        size = 0
        for path in self._paths:
            with suppress(OSError):
                size += os.stat(path).st_size
        self._left = _LEAST_STEPS + size * _STEPS_PER_BYTE
        return super().execute(sql, parameters)

    def _step(self) -> bool:
        self._left -= _LOOK_EVERY
        if self._left < 0:
            Bounded.has_run_out = True
        return self._left < 0


def open_existing(path: str) -> sqlite3.Connection:
    """Open a session database to read it. Raises StorageError."""
    try:
        check_to_read(path)
        connection = _connected(path, "mode=ro")
        try:
            _check_version(connection, path)
        except sqlite3.OperationalError as error:
            connection.close()
            if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                raise
            connection = _connected_without_log(path, error)
        try:
            _check_readable(connection, path)
        except BaseException:
            connection.close()
            raise
    except (OSError, sqlite3.Error) as error:
        raise StorageError(sentence(path, error)) from error
    return connection


def open_for_writing(path: str) -> sqlite3.Connection:
    """Open the database at `path` (or `MEMORY`) to record into it; it is made if there is none.

    A new one has no indexes yet: see `create_indexes`. Raises StorageError.
    """
    try:
        if path == MEMORY:
            connection = sqlite3.connect(path)
            create_tables(connection)
            return connection
        if not check_to_write(path):
            make(path)
        is_new = os.stat(path).st_size == 0
        connection = _connected(path, "mode=rw")
        try:
            if not is_new:
                _check_ours(connection, path)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            if is_new:
                create_tables(connection)
        except BaseException:
            connection.close()
            raise
    except (OSError, sqlite3.Error) as error:
        raise StorageError(sentence(path, error)) from error
    return connection


def open_to_change(path: str) -> sqlite3.Connection:
    """Open a database of ours to change what is in it; nothing is written yet. Raises StorageError."""
    try:
        if not check_to_write(path):
            raise StorageError(f"{path}: there is no such file")
        connection = _connected(path, "mode=rw")
        try:
            _check_ours(connection, path)
        except BaseException:
            connection.close()
            raise
    except (OSError, sqlite3.Error) as error:
        raise StorageError(sentence(path, error)) from error
    return connection


def settle(connection: sqlite3.Connection) -> None:
    """Put all that was written into the one file, so that nothing beside it is needed, if nobody hinders it.

    Who reads it meanwhile may: then as much as can be is there, and the log stays beside it.
    """
    with suppress(sqlite3.Error):
        connection.execute(f"PRAGMA busy_timeout = {_SETTLE_MS}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")


def _connected(path: str, how: Literal["mode=ro", "mode=rw", "immutable=1"]) -> Bounded:
    address = f"{Path(path).absolute().as_uri()}?{how}"
    connection = sqlite3.connect(address, uri=True, timeout=LOCK_PATIENCE_S, factory=Bounded)
    connection.bound(path)
    _distrust(connection)
    return connection


def _connected_without_log(path: str, error: sqlite3.OperationalError) -> Bounded:
    """A database whose log can neither be read nor made here, as it is where nothing may be written.

    Without a log nobody records into it. So it is read as a file that does not change (`immutable`): without
    locks, which would need the log's files. Where there is a log, part of the game is in it, and `error` is
    raised as a StorageError that says what to do.
    """
    if has_wal(path):
        raise StorageError(
            f"{path}: some of it is in {path}-wal, which cannot be read where you may not write: copy both "
            "into a folder of your own"
        ) from error
    connection = _connected(path, "immutable=1")
    _check_version(connection, path)
    return connection


def _distrust(connection: sqlite3.Connection) -> None:
    """Let nothing in a file's schema run, and nothing in its pages pass unchecked. Raises sqlite3.Error."""
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute("PRAGMA mmap_size = 0")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.set_authorizer(_authorize)
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER, False)
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, False)


def _authorize(
    action: int, _first: str | None, _second: str | None, _database: str | None, source: str | None
) -> int:
    """Deny whatever a trigger or a view would do: `source` is its name."""
    return sqlite3.SQLITE_OK if source is None else sqlite3.SQLITE_DENY


def _check_version(connection: sqlite3.Connection, path: str) -> None:
    """Raise StorageError unless this is a format that is known."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > SCHEMA_VERSION:
        raise StorageError(
            f"{path}: written by a newer Kiebitz (format {version}); update Kiebitz to read it"
        )
    names: Sequence[tuple[str]] = connection.execute("SELECT lower(name) FROM sqlite_master").fetchall()
    if not {name for (name,) in names} >= set(TABLES):
        raise StorageError(f"{path}: a database, but no session database of Kiebitz")


def _check_readable(connection: sqlite3.Connection, path: str) -> None:
    """Raise StorageError unless plain selects of our columns do nothing but read tables."""
    strange = unreadable(connection, TABLES)
    if strange is not None:
        raise StorageError(f"{path}: no database that Kiebitz has made: {strange}")


def _check_ours(connection: sqlite3.Connection, path: str) -> None:
    """Raise StorageError unless there is nothing in this schema but our tables and indexes."""
    _check_version(connection, path)
    _check_readable(connection, path)
    reference = sqlite3.connect(MEMORY)
    create_tables(reference)
    create_indexes(reference)
    strange = strange_objects(connection, reference)
    reference.close()
    if strange is not None:
        raise StorageError(
            f"{path}: nothing is written to it, since Kiebitz has not made all that is in it: {strange}. "
            f"Take another file; kiebitz import {path} -w new.db reads its recorded bytes into a new one"
        )
