"""The numbers that people see: streams, games, messages and events are counted within their session.

A recipe can be passed on so ("look at #31"), whatever else is in somebody's database. Inside there are only
row ids; the edges translate. A session's rows are numbered one after the other, so a number is the id less
the last id that its table had when the session began.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Numbered = Literal["streams", "games", "messages", "events"]
"""The tables whose rows people name by number."""


class Numbers:
    """Translates between row ids and the numbers within a session; `before` has what was given before it."""

    def __init__(self, before: Mapping[Numbered, int]) -> None:
        self._before = before

    def number(self, table: Numbered, row_id: int) -> int:
        """The number that people see."""
        return row_id - self._before.get(table, 0)

    def row_id(self, table: Numbered, number: int) -> int:
        """The row that a number means; whether there is such a row is not looked at."""
        return number + self._before.get(table, 0)
