"""Session-relative numbers: users see streams, games, messages and events numbered within their session.

So instructions ("look at #31") are valid in any database. Internally only row ids are used; they are
translated at the edges. A session's rows are numbered consecutively, so a number is the id less the last id
that its table had when the session began.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, get_args

Numbered = Literal["streams", "games", "messages", "events"]
"""The tables whose rows people name by number."""

N = TypeVar("N", int, float)

NUMBERED: tuple[Numbered, ...] = get_args(Numbered)

Before = Mapping[Numbered, int]
"""The last id that each table had when a session began."""


class Numbers:
    """Translator between row ids and the numbers within a session."""

    def __init__(self, before: Before) -> None:
        self.before = before

    def number(self, table: Numbered, row_id: int) -> int:
        """Return the number that users see."""
        return row_id - self.before.get(table, 0)

    def number_if_any(self, table: Numbered, row_id: int | None) -> int | None:
        """Return the number of a reference that may be absent."""
        return None if row_id is None else self.number(table, row_id)

    def row_id(self, table: Numbered, number: N) -> N:
        """Return the row id of a number; the row need not exist."""
        return number + self.before.get(table, 0)

    def row_id_if_any(self, table: Numbered, number: int | None) -> int | None:
        """Return the row id of a number that may be absent."""
        return None if number is None else self.row_id(table, number)

    def state(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return a table's state with its games by the numbers that users see."""
        games = state.get("games")
        if not games:
            return dict(state)
        return {**state, "games": {self._key(game): part for game, part in games.items()}}

    def path(self, path: Sequence[str]) -> tuple[str, ...]:
        """Return the path of a change of the state with the numbers that users see."""
        if len(path) > 1 and path[0] == "games":
            return ("games", self._key(path[1]), *path[2:])
        return tuple(path)

    def _key(self, game: str) -> str:
        return str(self.number("games", int(game))) if game.isdecimal() else game


FROM_ONE = Numbers({})
"""The numbers of rows in no database, which are counted from 1."""
