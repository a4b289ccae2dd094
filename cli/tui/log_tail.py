"""What the program says that records, while the table is shown where it would have said it.

It writes into a file without a name; nobody waits for anybody, and a file takes what nobody reads.
"""

from __future__ import annotations

import os

_MOST = 10_000
"""So many lines are remembered; the oldest are let go."""

_PIECE = 1 << 16


class Said:
    """Its lines, read from the file that is open as `descriptor`."""

    def __init__(self, descriptor: int) -> None:
        self.lines: list[str] = []
        self._descriptor = descriptor
        self._at = 0
        self._rest = b""
        self._parent = os.getppid()

    @property
    def is_left_alone(self) -> bool:
        """Whether the program that records is gone."""
        return os.getppid() != self._parent

    def read(self) -> bool:
        """Whether there are more lines than before."""
        data = os.pread(self._descriptor, _PIECE, self._at)
        self._at += len(data)
        *whole, self._rest = (self._rest + data).split(b"\n")
        self.lines += (line.decode(errors="replace") for line in whole)
        del self.lines[:-_MOST]
        return bool(whole)
