"""What goes wrong without stopping a recording: told on stderr, and not a thousand times a second."""

from __future__ import annotations

import time

from kiebitz.services.standard_streams import warn

_NOTICE_EVERY_S = 5.0
"""A trouble that repeats itself is told of again after this time, with how often it came."""


class Notices:
    """Tells of troubles, each in a sentence; those of one `code` count as the same."""

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
