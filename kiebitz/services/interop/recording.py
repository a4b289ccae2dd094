"""The recording of a cell, which a program under test may have replaced: it is opened as a stranger's."""

from __future__ import annotations

import os
import stat

from kiebitz.services.sessions import session_of
from kiebitz.storage.database.opening import open_existing
from kiebitz.storage.database.schema import StorageError
from kiebitz.storage.session.session import Session


def open_recording(path: str) -> Session:
    """Open the session of a recording. Raises StorageError, also for a link, a pipe or another database."""
    check_recording(path)
    connection = open_existing(path)
    try:
        timeline, _ = session_of(connection, path, None)
    except BaseException:
        connection.close()
        raise
    return Session(timeline, path)


def check_recording(path: str) -> None:
    """Raise StorageError unless a recording is a regular file."""
    try:
        is_regular = stat.S_ISREG(os.lstat(path).st_mode)
    except OSError as error:
        raise StorageError(f"{path}: {error.strerror}") from error
    if not is_regular:
        raise StorageError(f"{path}: this is no longer the recording, but a link, a pipe or a folder")
