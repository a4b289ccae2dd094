"""Which core a process runs on that follows what another one forwards, where there are only two.

A follower with much to do keeps the second core busy. The system then wakes clients and servers on the first
one, where each datagram that the forwarder sends interrupts it; priorities change nothing about that.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from kiebitz.proxy.system.clock import now_ns

_BEHIND_NS = 50_000_000
"""A follower that is so far behind has more to do than a moment's work ..."""

_FAR_BEHIND_NS = 1_000_000_000
"""... and one that is so far behind no longer steps aside: a long flood must not fill the journal."""


class Aside:
    """Lets this process share the core of `pid`, the forwarder, while it is behind, but not far.

    It then has what the forwarder leaves of that core, and a tenth at the least. Measured with 32 clients who
    take all they can get: the median is about 0.6 of what it is else, and p99 half as much again.
    """

    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        # Only Linux lets a process choose.
        self._cores = os.sched_getaffinity(0) if sys.platform == "linux" else set()
        self._is_aside = False
        self._is_hurrying = False

    def look(self, latest_ns: int | None) -> None:
        """See how far behind one is who has read what came at `latest_ns`; None if nothing came."""
        if len(self._cores) != 2:
            return
        behind_ns = now_ns() - latest_ns if latest_ns is not None else 0
        # One that was far behind goes on until it has caught up.
        self._is_hurrying = behind_ns > (_BEHIND_NS if self._is_hurrying else _FAR_BEHIND_NS)
        was_aside = self._is_aside
        self._is_aside = behind_ns > _BEHIND_NS and not self._is_hurrying
        if self._is_aside or was_aside:
            # The forwarder may be gone, or the system may forbid it: then all is as it would be without.
            with suppress(OSError):
                os.sched_setaffinity(0, {_core_of(self._pid)} if self._is_aside else self._cores)


def _core_of(pid: int | None) -> int:
    """On which core a process runs, or ran last (proc(5), /proc/pid/stat, field 39)."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[36])
