"""The order in which the workers of a test run take its cases, with the limits on time and rate."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable

from kiebitz.dissectors.probing.case import Case


class CaseSchedule:
    """The cases still to be tried, shared by all workers.

    The first case of each message shows if any route leads to it. Its other cases wait for that, so that no
    unreachable message is looked for twice.
    """

    def __init__(self, cases: Iterable[Case], rate: float, ends: float) -> None:
        """Create a schedule.

        Args:
            cases: The cases, in order.
            rate: Maximum number of cases to start per second.
            ends: The time of the monotonic clock after which no case starts.
        """
        self._pending = [*cases]
        self._interval_s = 1 / rate
        self._ends = ends
        self._next_start = time.monotonic()
        self._begun: set[object] = set()
        """The messages of which a case was started."""
        self._tried: set[object] = set()
        """The messages of which a case was finished."""
        self._is_stopped = False
        self._changed = threading.Condition()

    @property
    def left(self) -> int:
        """Number of cases that no worker has taken."""
        return len(self._pending)

    @property
    def left_s(self) -> float:
        """Seconds until no more case starts."""
        return self._ends - time.monotonic()

    def take(self) -> Case | None:
        """Wait for the next case and return it; None if there is none, or no time for it."""
        with self._changed:
            while (case := self._next_case()) is None:
                if self._is_stopped or not self._pending:
                    return None
                self._changed.wait()
            start = self._next_start = max(self._next_start, time.monotonic())
            if start >= self._ends or self._is_stopped:
                return None
            self._next_start += self._interval_s
            self._pending.remove(case)
            self._begun.add(case.of)
            self._changed.wait_for(lambda: self._is_stopped, start - time.monotonic())
        return case

    def _next_case(self) -> Case | None:
        return next(
            (
                case
                for case in self._pending
                if case.of is None or case.of in self._tried or case.of not in self._begun
            ),
            None,
        )

    def finish(self, case: Case) -> None:
        """Note that a case was tried."""
        with self._changed:
            self._tried.add(case.of)
            self._changed.notify_all()

    def stop(self) -> None:
        """Let no more case start."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
