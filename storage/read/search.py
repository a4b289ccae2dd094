"""Incremental search for rows that pass a filter; it yields control to the caller between steps.

A step examines a range of ids, sized so that it takes a few milliseconds, whatever the filter.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Sequence

_STEP_S = 0.005
"""Target duration of a step in seconds."""

_INITIAL_ROWS = 500
_MAX_ROWS = 100_000
"""Rows that a step examines: initial and maximum number."""

Lookup = Callable[[int, int], Sequence[int]]
"""Function that returns the matching ids above the first argument and up to the second."""


class Search:
    """An incremental search; all rows up to id `reached` have been examined."""

    def __init__(self, lookup: Lookup, reached: int) -> None:
        self._found = array("q")
        self.reached = reached
        self._lookup = lookup
        self._step_rows = _INITIAL_ROWS

    @property
    def found(self) -> Sequence[int]:
        """The matching ids, ascending."""
        return self._found

    def go_on(self, last: int, seconds: float) -> bool:
        """Examine rows up to id `last` for about this many seconds; return True if some are left.

        Raises sqlite3.Error; `storage.filters.sql.original_error` returns a filter's own exception.
        """
        end = time.monotonic() + seconds
        while self.reached < last:
            upto = min(self.reached + self._step_rows, last)
            begun = time.monotonic()
            self._found.extend(self._lookup(self.reached, upto))
            self.reached = upto
            now = time.monotonic()
            if now - begun < _STEP_S / 2:
                self._step_rows = min(2 * self._step_rows, _MAX_ROWS)
            elif now - begun > _STEP_S:
                self._step_rows = max(self._step_rows // 2, 1)
            if now >= end:
                break
        return self.reached < last


class MatchAll(Search):
    """A search that matches every row without reading any: the ids of a single session are contiguous."""

    def __init__(self, first: int) -> None:
        super().__init__(lambda after, upto: (), first - 1)
        self._first = first

    @property
    def found(self) -> Sequence[int]:
        return range(self._first, self.reached + 1)

    def go_on(self, last: int, seconds: float) -> bool:
        self.reached = max(last, self.reached)
        return False
