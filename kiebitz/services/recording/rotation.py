"""Rotation of a recording to new databases, and their names: option -b, in dumpcap's notation.

`-w game.db` yields game_00001_20261122074829.db and so on, with the local start time of each. Existing files
are never touched. A name is also skipped if a file exists that SQLite would use with such a database: names
can be guessed and prepared by others.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import msgspec

from kiebitz.storage.database.path_checks import make
from kiebitz.storage.database.schema import StorageError, sentence
from kiebitz.storage.recording.rotation import RotatingRecorder

SETTLE_S = 5.0
"""Longest time that a due rotation waits for a moment without an unfinished message."""

RETRY_S = 10.0
"""Time before creating a new database is retried."""

_SQLITE_SUFFIXES = ("", "-journal", "-wal", "-shm")
"""Suffixes of a database and of SQLite's files next to it."""

_MAX_NAMES = 1000
"""Maximum number of names tried for one database."""


Created = TypeVar("Created")


class Limits(msgspec.Struct, frozen=True):
    """Maximum duration (seconds) and size (bytes) of one database; None for no limit."""

    duration_s: float | None
    size: int | None


class Rotation:
    """The databases of one recording, named after `database`; `number` of them exist already."""

    def __init__(self, database: str, limits: Limits, number: int = 0) -> None:
        self._stem, self._suffix = os.path.splitext(database)
        self._limits = limits
        self._number = number
        self._begun = time.monotonic()
        self._due_since: float | None = None
        self._postponed_to = 0.0

    def begin(self, make: Callable[[str], Created]) -> Created:
        """Create the next database with `make`. Raises StorageError, and then leaves no file behind."""
        path = self._next_path()
        try:
            made = make(path)
        except StorageError:
            with suppress(OSError):
                os.unlink(path)
            raise
        self._begun = time.monotonic()
        self._due_since = None
        self._postponed_to = 0.0
        return made

    def is_due(self, recorder: RotatingRecorder) -> bool:
        """Return True if the next database should begin soon; never while this one is empty."""
        now = time.monotonic()
        if now < self._postponed_to:
            return False
        duration, size = self._limits.duration_s, self._limits.size
        is_over = duration is not None and now - self._begun >= duration
        if is_over and recorder.is_empty:
            self._begun = now
            return False
        if not is_over and (size is None or recorder.is_empty or recorder.size < size):
            return False
        if self._due_since is None:
            self._due_since = now
        return True

    @property
    def is_overdue(self) -> bool:
        """True if a due rotation has waited long enough."""
        return self._due_since is not None and time.monotonic() - self._due_since >= SETTLE_S

    def postpone(self) -> bool:
        """Retry later; return True for the first failure."""
        is_first = not self._postponed_to
        self._postponed_to = time.monotonic() + RETRY_S
        return is_first

    def _next_path(self) -> str:
        """Create an empty file for the next database, with an unused name. Raises StorageError."""
        begun = time.strftime("%Y%m%d%H%M%S")
        for _ in range(_MAX_NAMES):
            self._number += 1
            path = f"{self._stem}_{self._number:05}_{begun}{self._suffix}"
            if any(os.path.lexists(path + ending) for ending in _SQLITE_SUFFIXES):
                continue
            try:
                # Recordings are private: `make` sets the file's mode.
                make(path)
            except FileExistsError:
                continue
            except OSError as error:
                raise StorageError(sentence(path, error)) from error
            return path
        raise StorageError(
            f"{path}: this name and {_MAX_NAMES - 1} before it are taken: record in another folder"
        )
