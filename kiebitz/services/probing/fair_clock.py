"""A clock for the deadlines of another program, which excludes the time it waited for a processor.

On a busy machine a program answers late without being at fault. Linux reports for each thread how long it was
ready to run and did not; elsewhere this is an ordinary monotonic clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

_UPDATE_INTERVAL_S = 0.1

_SEARCH_INTERVAL_S = 1.0
"""Seconds between two searches for new processes of the program."""

_MIN_RATE = 0.1
"""Lowest rate of the clock, so that every deadline passes: threads of one program may wait side by side."""


class FairClock:
    """A clock in seconds that slows down while this thread, or a process of `group()`, waits for a processor.

    `group` returns the number of the program's process group, None if Kiebitz has not started the program.
    """

    def __init__(self, group: Callable[[], int | None]) -> None:
        self._group = group
        self._processes: tuple[Path, ...] = ()
        self._searched: float | None = None
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

    def _waits(self) -> dict[Path, float]:
        """Return the number of seconds that each thread has waited for a processor so far."""
        found = {}
        for file in (Path("/proc/thread-self/schedstat"), *self._threads()):
            # A thread may end at any time, and other systems have no such files.
            with suppress(OSError, ValueError, IndexError):
                found[file] = int(file.read_text().split()[1]) / 1e9
        return found

    def _threads(self) -> Iterator[Path]:
        group = self._group()
        now = time.monotonic()
        if self._searched is None or now - self._searched >= _SEARCH_INTERVAL_S:
            self._searched = now
            self._processes = () if group is None else tuple(processes_in(group))
        for process in self._processes:
            yield from process.glob("task/*/schedstat")


def processes_in(group: int) -> Iterator[Path]:
    """Yield the folders of the processes in a group."""
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            # The name of the program may contain blanks and parentheses.
            _, _, in_group, *_ = file.read_text().rpartition(")")[2].split()
            if int(in_group) == group:
                yield file.parent
