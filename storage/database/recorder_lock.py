"""The lock that allows one recorder per database, and write access without a recorder."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager

from kiebitz.storage.database.opening import open_to_change
from kiebitz.storage.database.schema import MEMORY, StorageError, sentence

_RETRY_S = 0.05
"""Longer than a `RecorderWatch` holds its lock."""


def lock(path: str) -> int | None:
    """Lock a database against other recorders, as ids are assigned before rows are written.

    flock is independent of SQLite's own locks, but closing any descriptor of the file releases SQLite's. So
    the returned descriptor must be closed last.
    """
    if path == MEMORY:
        return None
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        # A RecorderWatch may hold its lock for this moment.
        time.sleep(_RETRY_S)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise StorageError(
                f"{path}: another kiebitz is recording into it; use another file with -w"
            ) from error
    return descriptor


class RecorderWatch:
    """A check for a recorder of the database at `path`; keep it as long as a connection to that database.

    Closing it would release the SQLite locks of this process (see `lock`), so it keeps the file open.
    """

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def is_recording(self) -> bool:
        """Return True if a recorder holds the lock now."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        return False


@contextmanager
def lock_with(path: str, connection: sqlite3.Connection) -> Iterator[int | None]:
    """Lock a database beside its connection; if the block fails, both are closed. Raises StorageError."""
    held = None
    try:
        held = lock(path)
        yield held
    except BaseException as error:
        # The connection first: closing the other descriptor releases SQLite's locks on the file.
        connection.close()
        if held is not None:
            os.close(held)
        if isinstance(error, sqlite3.Error):
            raise StorageError(sentence(path, error)) from error
        raise


@contextmanager
def exclusive_connection(path: str) -> Iterator[sqlite3.Connection]:
    """Provide a connection to the database at `path` that may change it. Raises StorageError."""
    connection = open_to_change(path)
    with lock_with(path, connection) as held:
        yield connection
    connection.close()
    if held is not None:
        os.close(held)
