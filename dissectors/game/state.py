"""A table's state as plain JSON, its changes, and the games in it.

A change is a path and a value; the value None removes the path. Anything absent from the state is unknown. An
object `private` contains, by player, the values that only this player could know.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from kiebitz.dissectors.model import Game

if TYPE_CHECKING:
    from kiebitz.dissectors.game.context import GameContext

State = dict[str, Any]


def apply(state: State, changes: Iterable[tuple[list[str], Any]]) -> None:
    """Apply changes in place."""
    for path, value in changes:
        set_at(state, path, value)


def set_at(state: State, path: Sequence[str], value: Any) -> bool:
    """Apply one change in place; return True if it changed anything.

    Missing objects on the path are created, but not to remove a missing value. The path must not be empty.
    The state gets copies of objects, so that later changes alter neither this one nor the value's owner.
    """
    place = state
    for step in path[:-1]:
        inner = place.get(step)
        if not isinstance(inner, dict):
            if value is None:
                return False
            inner = place[step] = {}
        place = inner
    last = path[-1]
    if value is None:
        return place.pop(last, None) is not None
    if place.get(last) == value:
        return False
    place[last] = _copied(value) if isinstance(value, dict) else value
    return True


def _copied(value: State) -> State:
    """Return a copy with objects of its own; lists are only replaced as a whole."""
    return {key: _copied(part) if isinstance(part, dict) else part for key, part in value.items()}


def seen_by(state: Any, *names: str) -> Any:
    """Return the state as the player of these names sees it: each `private` object with its entries only."""
    if isinstance(state, dict):
        return {
            key: (
                {name: seen_by(part, *names) for name, part in value.items() if name in names}
                if key == "private" and isinstance(value, dict)
                else seen_by(value, *names)
            )
            for key, value in state.items()
        }
    if isinstance(state, list):
        return [seen_by(part, *names) for part in state]
    return state


def seen_change(path: Sequence[str], value: Any, *names: str) -> tuple[list[str], Any] | None:
    """Return a change as the player of these names sees it, None if it is private to others."""
    for step, name in pairwise(path):
        if step == "private" and name not in names:
            return None
    if path[-1] == "private" and isinstance(value, dict):
        value = {name: part for name, part in value.items() if name in names}
    return [*path], seen_by(value, *names)


class RunningGame(msgspec.Struct, eq=False):
    """A game and its part of the state; a protocol's games derive from it.

    The list `unknown` in the part names what is not known of the game.
    """

    context: GameContext
    game: Game
    place: tuple[str, str]
    """Path of its part in the state."""
    state: State
    """Its part of the state."""
    ended: bool = False
    has_left: bool = False
    """True if its part was removed from the state."""

    def set_state(self, value: Any, *path: str) -> None:
        """Set a value in its part of the state, or remove it if None; a game that has left has none."""
        if not self.has_left and set_at(self.state, path, value):
            self.context.record_change([*self.place, *path], value)

    def mark_known(self, *parts: str) -> None:
        """Remove names from the list of what is unknown."""
        unknown = self.state.get("unknown", ())
        if any(part in unknown for part in parts):
            self.set_state([other for other in unknown if other not in parts] or None, "unknown")

    def mark_unknown(self, *parts: str) -> None:
        """Add names to the list of what is unknown."""
        unknown = self.state.get("unknown", ())
        more = [part for part in parts if part not in unknown]
        if more:
            self.set_state([*unknown, *more], "unknown")

    def end(self, ts_ns: int, result: dict[str, Any] | None = None) -> None:
        """Report its end, with the result if it is new; only the first end counts."""
        if not self.ended:
            self.ended = True
            self.game.ended_ns = ts_ns
            self.game.result = result or self.game.result
            self.context.changed_game(self.game)

    def remove(self) -> None:
        """Remove its part from the state."""
        if not self.has_left:
            self.has_left = True
            self.context.set_state(None, *self.place)
