"""Windows of long lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TypeVar

import msgspec

Row = TypeVar("Row")

MAX_ROWS = 1000


class RowRange(msgspec.Struct, frozen=True):
    """The requested rows: up to `limit`, after, before or around a number.

    Without a number they are the last rows.
    """

    limit: int
    after: int | None = None
    before: int | None = None
    around: int | None = None


Rows = Callable[[int | None, int | None], Iterator[Row]]
"""Reads rows lazily: ascending after a number, or descending before one; the other number is None."""


def read_window(
    rows: Rows[Row], number: Callable[[Row], int], place: RowRange
) -> tuple[list[Row], bool, bool]:
    """Return the requested rows, ascending, and whether they include the first and the last row."""
    if place.around is not None:
        half = place.limit // 2
        before, is_first = _before(rows, place.around + 1, place.limit - half)
        after, is_last = _after(rows, place.around, half)
        return before + after, is_first, is_last
    if place.after is not None:
        found, is_last = _after(rows, place.after, place.limit)
        begin = number(found[0]) if found else place.after + 1
        return found, next(rows(None, begin), None) is None, is_last
    if place.before is not None:
        found, is_first = _before(rows, place.before, place.limit)
        end = number(found[-1]) if found else place.before - 1
        return found, is_first, next(rows(end, None), None) is None
    found, is_first = _before(rows, None, place.limit)
    return found, is_first, True


def _after(rows: Rows[Row], after: int, limit: int) -> tuple[list[Row], bool]:
    found = list(islice(rows(after, None), limit + 1))
    return found[:limit], len(found) <= limit


def _before(rows: Rows[Row], before: int | None, limit: int) -> tuple[list[Row], bool]:
    found = list(islice(rows(None, before), limit + 1))
    is_first = len(found) <= limit
    return found[:limit][::-1], is_first
