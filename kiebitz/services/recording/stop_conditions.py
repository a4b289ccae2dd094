"""The end of a recording made by this process."""

from __future__ import annotations

import math
import signal
import time


class StopCondition:
    """The end of a recording: after `duration` seconds, or by SIGINT or SIGTERM.

    The first signal leaves `linger_s` seconds for data in transit; a second one ends at once.
    """

    def __init__(self, duration: float | None = None, linger_s: float = 0.0) -> None:
        self._at = math.inf if duration is None else time.monotonic() + duration
        self._linger_s = linger_s
        self.was_signal = False
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._note)

    @property
    def has_come(self) -> bool:
        """True if the recording must end now."""
        return time.monotonic() >= self._at

    def come(self) -> None:
        """End the recording now."""
        self._at = -math.inf

    def _note(self, _number: int, _frame: object) -> None:
        self.was_signal = True
        self._at = min(self._at, time.monotonic() + self._linger_s)
        self._linger_s = 0.0
