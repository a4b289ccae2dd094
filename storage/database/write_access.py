"""Exclusive write access to a database: no other program records into it meanwhile."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from kiebitz.storage.database.opening import open_to_change
from kiebitz.storage.database.recorder_lock import lock
from kiebitz.storage.database.schema import StorageError, sentence


@contextmanager
def exclusive_connection(path: str) -> Iterator[sqlite3.Connection]:
    """Provide a connection to the database at `path` that may change it. Raises StorageError."""
    connection = open_to_change(path)
    held = None
    try:
        held = lock(path)
        yield connection
    except sqlite3.Error as error:
        raise StorageError(sentence(path, error)) from error
    finally:
        # Close it first: closing the other descriptor releases SQLite's locks on the file.
        connection.close()
        if held is not None:
            os.close(held)
