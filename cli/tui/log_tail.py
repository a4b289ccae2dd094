"""The output of the recording process, while the table occupies its terminal.

The process writes into an unnamed file, so neither process waits for the other.
"""

from __future__ import annotations

import os

_MAX_LINES = 10_000
"""Maximum number of lines kept; the oldest are dropped."""

_READ_BYTES = 1 << 16


class LogTail:
    """The lines of the file open as `descriptor`."""

    def __init__(self, descriptor: int) -> None:
        self.lines: list[str] = []
        self._descriptor = descriptor
        self._at = 0
        self._rest = b""
        self._parent = os.getppid()

    @property
    def is_orphaned(self) -> bool:
        """True if the recording process is gone."""
        return os.getppid() != self._parent

    def read(self) -> bool:
        """Read more of the file; return True if there are new lines."""
        data = os.pread(self._descriptor, _READ_BYTES, self._at)
        self._at += len(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        self.lines += (line.decode(errors="replace") for line in whole)
        del self.lines[:-_MAX_LINES]
        return bool(whole)
