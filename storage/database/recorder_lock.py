"""The lock that lets a database have one recorder at a time."""

from __future__ import annotations

import fcntl
import os
import time

from kiebitz.storage.database.schema import MEMORY, StorageError

_LOOK_S = 0.05
"""More than a `RecorderWatch` needs to look."""


def lock(path: str) -> int | None:
    """Keep other recorders out of this file: numbers are given before rows are written.

    flock and SQLite's own locks do not meet, but closing any descriptor of the file would end SQLite's: so
    this one is closed last.
    """
    if path == MEMORY:
        return None
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        # Perhaps only a RecorderWatch is looking right now.
        time.sleep(_LOOK_S)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise StorageError(
                f"{path}: another kiebitz is recording into it; use another file with -w"
            ) from error
    return descriptor


class RecorderWatch:
    """Tells whether somebody is recording into the database at `path`. Keep it as long as a connection to it.

    Closing it would end the SQLite locks of this process (see `lock`), so it holds the file open meanwhile.
    """

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)

    def is_recording(self) -> bool:
        """Whether a recorder holds the file now."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        return False
