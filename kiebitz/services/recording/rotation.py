"""When a recording goes on in a new database, and what that is called: option -b, in dumpcap's notation.

Beside `-w game.db` come game_00001_20261122074829.db and so on, with the local time at which each is begun.
A file that is there already is never touched. Nor is a name taken beside which there is something that SQLite
would take for a part of the database: names can be guessed, and so be prepared by others.
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
"""So long a new database waits for a moment at which no message is unfinished; then it waits no longer."""

RETRY_S = 10.0
"""When a new database that could not be made is tried again."""

_BESIDE = ("", "-journal", "-wal", "-shm")
"""A database's own name, and those of what SQLite has beside it, by their ends."""

_NAMES = 1000
"""So many names are tried for one database."""


Made = TypeVar("Made")


class Limits(msgspec.Struct, frozen=True):
    """How long (s) one database is recorded into, and how big it gets (bytes); None for no limit."""

    duration_s: float | None
    size: int | None


class Rotation:
    """The databases of one recording, named after `database`; `number` of them there are already."""

    def __init__(self, database: str, limits: Limits, number: int = 0) -> None:
        self._stem, self._suffix = os.path.splitext(database)
        self._limits = limits
        self._number = number
        self._begun = time.monotonic()
        self._due_since: float | None = None
        self._postponed_to = 0.0

    def begin(self, make: Callable[[str], Made]) -> Made:
        """Let `make` make the next database. Raises StorageError, and then leaves nothing of it behind."""
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
        """Whether the next database should be begun as soon as that is well; not while this one is empty."""
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
        """Whether the next database, which is due, has waited long enough."""
        return self._due_since is not None and time.monotonic() - self._due_since >= SETTLE_S

    def postpone(self) -> bool:
        """Try again later; whether this is the first time that one could not be begun."""
        is_first = not self._postponed_to
        self._postponed_to = time.monotonic() + RETRY_S
        return is_first

    def _next_path(self) -> str:
        """Make an empty file for the next database, by a name that nothing has yet. Raises StorageError."""
        begun = time.strftime("%Y%m%d%H%M%S")
        for _ in range(_NAMES):
            self._number += 1
            path = f"{self._stem}_{self._number:05}_{begun}{self._suffix}"
            if any(os.path.lexists(path + ending) for ending in _BESIDE):
                continue
            try:
                # What was played is nobody else's business.
                make(path)
            except FileExistsError:
                continue
            except OSError as error:
                raise StorageError(sentence(path, error)) from error
            return path
        raise StorageError(
            f"{path}: this name and {_NAMES - 1} before it are taken: record in another folder"
        )
