"""Rate-limited warnings about problems that do not stop a recording."""

from __future__ import annotations

import time

from kiebitz.services.standard_streams import warn

_NOTICE_EVERY_S = 5.0
"""Minimum time (seconds) between two warnings about the same problem."""


class Notices:
    """Prints problems as sentences; those with one `code` count as the same."""

    def __init__(self) -> None:
        self._told: dict[str, tuple[float, int]] = {}

    def __call__(self, code: str, sentence: str) -> None:
        last, missed = self._told.get(code, (0.0, 0))
        now = time.monotonic()
        if last and now - last < _NOTICE_EVERY_S:
            self._told[code] = (last, missed + 1)
            return
        more = f" (and {missed} more like it)" if missed else ""
        warn(f"{sentence}{more}")
        self._told[code] = (now, 0)
