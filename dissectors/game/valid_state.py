"""Validation of a reported state: values of unexpected types are dropped.

A database may come from any source, so a view must not rely on its state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, TypedDict

import msgspec

from kiebitz.dissectors.game.view import Scene
from kiebitz.dissectors.model import Event

Number = Annotated[int, msgspec.Meta(ge=-(10**15), le=10**15)]
"""A number of at most 15 digits."""

Key = Annotated[str, msgspec.Meta(pattern="^[0-9]{1,15}$")]
"""A number as a key of an object."""

_INVALID = (msgspec.ValidationError, UnicodeEncodeError)
"""UnicodeEncodeError is raised by msgspec for half a surrogate pair in a text with a pattern."""


class Types:
    """The types of an object's values by key, as msgspec types."""

    def __init__(self, kinds: Mapping[str, Any]) -> None:
        self._kinds = kinds
        # A field of a struct, as msgspec keeps what it knows of a struct's types only.
        self._whole: Any = msgspec.defstruct("Whole", [("value", TypedDict("Value", {**kinds}, total=False))])  # type: ignore[operator]  # a dict is no literal

    def valid(self, value: object) -> dict[str, Any]:
        """Return the values of an object that have their types."""
        if not isinstance(value, dict):
            return {}
        try:
            found: dict[str, Any] = msgspec.convert({"value": value}, self._whole).value
        except _INVALID:
            found = {}
            for key, kind in self._kinds.items():
                if key in value:
                    with suppress(*_INVALID):
                        found[key] = msgspec.convert(value[key], kind)
        return found

    def has_all(self, value: object) -> bool:
        """Return True if an object has a value of each type."""
        return len(self.valid(value)) == len(self._kinds)


def valid_items(value: object, kind: Any, key: Any = str) -> dict[str, Any]:
    """Return the items of an object whose keys and values have these types."""
    if not isinstance(value, dict):
        return {}
    found: dict[str, Any]
    try:
        found = msgspec.convert({"items": value}, _items_type(kind, key)).items
    except _INVALID:
        found = {}
        for name, item in value.items():
            with suppress(*_INVALID):
                found[msgspec.convert(name, key)] = msgspec.convert(item, kind)
    return found


@cache
def _items_type(kind: Any, key: Any) -> Any:
    return msgspec.defstruct("Items", [("items", dict[key, kind])])


def valid_events(events: Sequence[Event], types: Mapping[str, Types]) -> list[Event]:
    """Return the events whose data has the types of their kind; kinds without types are not checked."""
    return [event for event in events if (must := types.get(event.kind)) is None or must.has_all(event.data)]


def valid_game(
    scene: Scene, types: Types, data: Mapping[str, Types]
) -> tuple[str, dict[str, Any], list[Event]]:
    """Return the number, the state and the latest events of the game to draw; empty ones if no game is on."""
    games = valid_items(scene.state.get("games"), dict[str, Any], Key)
    number, part = Scene({"games": games}, scene.events).game()
    game = int(number) if number else None
    events = [event for event in scene.events if event.game_id == game] if number else []
    return number, types.valid(part), valid_events(events, data)
