"""How much of a disk a recording may take: no more than it is told, and never the last of it.

A full disk harms all who write to it, so some of it is left alone whatever is asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from kiebitz.storage.database.schema import MEMORY, StorageError

if TYPE_CHECKING:
    from kiebitz.storage.recording.recorder import Recorder

SPARED_PART = 0.05
SPARED_BYTES = 10**9
"""So much of a disk stays free, the smaller of the two: this part of it, or so many bytes."""

_UNITS = ("bytes", "kB", "MB", "GB", "TB")


class DiskLow(StorageError):
    """There is room left on the disk, but that is for others."""


class Room:
    """What one recording may take: `max_bytes` (None: no limit but the disk's) with all its files.

    `others` are files that belong to it beside the database that is being written, or folders of them.
    """

    def __init__(self, max_bytes: int | None, others: Iterable[str] = ()) -> None:
        self._max_bytes = max_bytes
        self._others = list(others)

    def add(self, path: str) -> None:
        """One more file belongs to the recording."""
        self._others.append(path)

    def is_used_up(self, recorder: Recorder) -> bool:
        """Whether the recording has reached its size."""
        return (
            self._max_bytes is not None and recorder.size + sum(map(_size, self._others)) >= self._max_bytes
        )

    def why_full(self, recorder: Recorder) -> str | None:
        """Why nothing more is to be recorded, in a clause; None if it may go on."""
        if self.is_used_up(recorder):
            return self.says
        try:
            spare(recorder.path)
        except DiskLow as error:
            return str(error)
        return None

    @property
    def says(self) -> str:
        """What has been reached, in a clause that says what to do."""
        return (
            f"--max-size {size_text(self._max_bytes or 0)} is reached: allow more, or begin another database"
        )


def spare(path: str, waiting: str | None = None) -> None:
    """Raise DiskLow if what is free on the disk of a database is to be left alone.

    What is in the folder `waiting` makes room once it is in the database.
    """
    free, spared = _free(path)
    if free < spared and free + (0 if waiting is None else _size(waiting)) < spared:
        raise DiskLow(
            f"{path}: the disk is nearly full: {size_text(free)} are free, and {size_text(spared)} are left "
            "to others: make room, or write to another disk with -w"
        )


def may_wait_beside(path: str) -> bool:
    """Whether what is not in a database yet may wait on its disk; for a while also where that is low."""
    free, spared = _free(path)
    return free >= spared / 2


def size_text(size: int) -> str:
    """A size as it is said, as in 1.5 GB; units are of 1,000."""
    number, unit = float(size), 0
    while number >= 1000 and unit < len(_UNITS) - 1:
        number /= 1000
        unit += 1
    return f"{number:.3g} {_UNITS[unit]}"


def _free(path: str) -> tuple[int, int]:
    """How much is free on a disk (bytes), and how much of that is to be left alone."""
    if path == MEMORY:
        return 0, 0
    try:
        disk = os.statvfs(os.path.dirname(os.path.abspath(path)))
    except OSError:
        # Whoever writes will see what is wrong.
        return 0, 0
    part = int(disk.f_blocks * disk.f_frsize * SPARED_PART)
    return disk.f_bavail * disk.f_frsize, min(part, SPARED_BYTES)


def _size(path: str) -> int:
    """The size of a file, or of all the files in a folder; what goes away meanwhile has none."""
    with suppress(OSError):
        if not os.path.isdir(path):
            return os.path.getsize(path)
        with os.scandir(path) as entries:
            return sum(_size(entry.path) for entry in entries)
    return 0
