"""A clock for the deadlines of another program, which excludes the time it waited for a processor.

On a busy machine a program answers late without being at fault. Linux reports for each thread how long it was
ready to run and did not; elsewhere this is an ordinary monotonic clock.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache
from threading import get_native_id

_UPDATE_INTERVAL_S = 0.1

_SEARCH_INTERVAL_S = 1.0
"""Seconds between two searches for new processes of the programs."""

_MIN_RATE = 0.1
"""Lowest rate of the clock, so that every deadline passes: threads of one program may wait side by side."""


class FairClock:
    """A clock in seconds that slows down while this thread, or a process of `group()`, waits for a processor.

    `group` returns the number of the program's process group, None if Kiebitz has not started the program.
    """

    is_patient = False
    """If true, it also slows down while other threads of this process wait.

    On an overloaded machine a thread of these may hold the interpreter all that time.
    """

    def __init__(self, group: Callable[[], int | None] = lambda: None) -> None:
        self._group = group
        self._now = self._latest = self._updated = time.monotonic()
        self._waited = self._waits()

    def time(self) -> float:
        """Return the current time, which never decreases and never runs ahead of the monotonic clock."""
        now = time.monotonic()
        passed_s = now - self._updated
        if passed_s < _UPDATE_INTERVAL_S:
            self._latest = max(self._latest, self._now + passed_s)
            return self._latest
        waited = self._waits()
        # Threads that have begun since may have waited before.
        waited_s = sum(waited[file] - before for file, before in self._waited.items() if file in waited)
        self._now += max(passed_s - waited_s, passed_s * _MIN_RATE)
        self._updated, self._waited = now, waited
        self._latest = max(self._latest, self._now)
        return self._latest

    def _waits(self) -> dict[str, float]:
        """Return the number of seconds that each thread has waited for a processor so far."""
        found = {}
        for file in (*self._own_threads(), *self._program_threads()):
            # A thread may end at any time, and other systems have no such files.
            with suppress(OSError, ValueError, IndexError):
                found[file] = int(_read(file).split()[1]) / 1e9
        return found

    def _own_threads(self) -> Iterator[str]:
        if self.is_patient:
            return _threads_of(os.getpid())
        # By its number: in another thread, the waits of this one are none.
        return iter((f"/proc/{os.getpid()}/task/{get_native_id()}/schedstat",))

    def _program_threads(self) -> Iterator[str]:
        group = self._group()
        if group is None:
            return
        # All processes of a program that has just been started are its first one.
        for process in _recent_groups(int(time.monotonic() / _SEARCH_INTERVAL_S)).get(group, (group,)):
            yield from _threads_of(process)


def _threads_of(process: int) -> Iterator[str]:
    """Yield the files with the waiting times of a process's threads; none if it has ended."""
    folder = f"/proc/{process}/task"
    with suppress(OSError):
        yield from (f"{folder}/{thread}/schedstat" for thread in os.listdir(folder))


def processes_by_group() -> dict[int, tuple[int, ...]]:
    """Return the process numbers of each process group; nothing where the system does not tell."""
    groups: defaultdict[int, list[int]] = defaultdict(list)
    with suppress(OSError):
        for name in filter(str.isdigit, os.listdir("/proc")):
            # A process may end at any time.
            with suppress(OSError, ValueError):
                # The name of the program may contain blanks and parentheses.
                _, _, group, *_ = _read(f"/proc/{name}/stat").rpartition(b")")[2].split()
                groups[int(group)].append(int(name))
    return {group: tuple(processes) for group, processes in groups.items()}


@lru_cache(maxsize=1)
def _recent_groups(_interval: int) -> dict[int, tuple[int, ...]]:
    """Return all processes as they were at a moment of a search interval; all clocks share a search."""
    return processes_by_group()


def _read(path: str) -> bytes:
    """Read a small file of /proc, for which pathlib takes five times as long."""
    with open(path, "rb", buffering=0) as file:
        return file.read(4096)
