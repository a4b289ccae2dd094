"""The disk space that a recording may use: at most its limit, and never the disk's reserve.

A full disk harms all programs that write to it, so a reserve stays free in any case.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from kiebitz.storage.database.schema import MEMORY, StorageError

if TYPE_CHECKING:
    from kiebitz.storage.recording.recorder import Recorder

RESERVE_FRACTION = 0.05
RESERVE_BYTES = 10**9
"""The reserve: this fraction of the disk or this many bytes, whichever is smaller."""

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


class DiskNearlyFullError(StorageError):
    """Only the disk's reserve is left."""


class SpaceLimit:
    """The space that one recording may use: `max_bytes` (None: only the disk's) for all its files.

    `others` are its further files, without the open database, or folders of them.
    """

    def __init__(self, max_bytes: int | None, others: Iterable[str] = ()) -> None:
        self._max_bytes = max_bytes
        self._others = list(others)

    def add(self, path: str) -> None:
        """Add a file to the recording."""
        self._others.append(path)

    def is_used_up(self, recorder: Recorder) -> bool:
        """Return True if the recording has reached its limit."""
        return (
            self._max_bytes is not None and recorder.size + sum(map(_size, self._others)) >= self._max_bytes
        )

    def stop_reason(self, recorder: Recorder) -> str | None:
        """Return a clause that says why recording must stop; None if it need not."""
        if self.is_used_up(recorder):
            return self.says
        try:
            check_reserve(recorder.path)
        except DiskNearlyFullError as error:
            return str(error)
        return None

    @property
    def says(self) -> str:
        """A clause that says which limit was reached and what to do."""
        return f"--max-size {size_text(self._max_bytes or 0)} is reached: allow more, or use another database"


def check_reserve(path: str, waiting: str | None = None) -> None:
    """Raise DiskLow if only the reserve is left on a database's disk.

    The folder `waiting` does not count, as its space becomes free once its contents are in the database.
    """
    free, spared = _free(path)
    if free < spared and free + (0 if waiting is None else _size(waiting)) < spared:
        raise DiskNearlyFullError(
            f"{path}: the disk is nearly full: {size_text(free)} are free, and {size_text(spared)} are "
            "reserved for other programs: free some space, or write to another disk with -w"
        )


def has_journal_space(path: str) -> bool:
    """Return True if unrecorded data may be kept on a database's disk: down to half of the reserve."""
    free, spared = _free(path)
    return free >= spared / 2


def size_text(size: int) -> str:
    """Format a size, as in 1.5 GB; units are powers of 1,000."""
    number, unit = float(size), 0
    while number >= 1000 and unit < len(_UNITS) - 1:
        number /= 1000
        unit += 1
    return f"{number:.3g} {_UNITS[unit]}"


def _free(path: str) -> tuple[int, int]:
    """Return the free bytes of a disk, and the size of its reserve."""
    if path == MEMORY:
        return 0, 0
    try:
        disk = os.statvfs(os.path.dirname(os.path.abspath(path)))
    except OSError:
        # The writer will see the error.
        return 0, 0
    part = int(disk.f_blocks * disk.f_frsize * RESERVE_FRACTION)
    return disk.f_bavail * disk.f_frsize, min(part, RESERVE_BYTES)


def _size(path: str) -> int:
    """Return the size of a file, or of all files in a folder; files that disappear meanwhile count as 0."""
    with suppress(OSError):
        if not os.path.isdir(path):
            return os.path.getsize(path)
        with os.scandir(path) as entries:
            return sum(_size(entry.path) for entry in entries)
    return 0
