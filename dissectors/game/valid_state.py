"""Validation of a reported state: values of unexpected types are dropped.

A database may come from any source, so a view must not rely on its state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec

from kiebitz.dissectors.game.view import Scene
from kiebitz.dissectors.model import Event

Types = Mapping[str, Any]
"""The type of a value by key, as msgspec types."""

Number = Annotated[int, msgspec.Meta(ge=-(10**15), le=10**15)]
"""A number of at most 15 digits."""

Key = Annotated[str, msgspec.Meta(pattern="^[0-9]{1,15}$")]
"""A number as a key of an object."""

_INVALID = (msgspec.ValidationError, UnicodeEncodeError)
"""UnicodeEncodeError is raised by msgspec for half a surrogate pair in a text with a pattern."""


def valid(value: object, types: Types) -> dict[str, Any]:
    """Return the values of an object that have their types."""
    if not isinstance(value, dict):
        return {}
    found = {}
    for key, kind in types.items():
        if key in value:
            try:
                found[key] = msgspec.convert(value[key], kind)
            except _INVALID:
                continue
    return found


def valid_items(value: object, kind: Any, key: Any = str) -> dict[str, Any]:
    """Return the items of an object whose keys and values have these types."""
    if not isinstance(value, dict):
        return {}
    found = {}
    for name, item in value.items():
        try:
            found[msgspec.convert(name, key)] = msgspec.convert(item, kind)
        except _INVALID:
            continue
    return found


def valid_events(events: Sequence[Event], types: Mapping[str, Types]) -> list[Event]:
    """Return the events whose data has the types of their kind; kinds without types are not checked."""
    return [
        event
        for event in events
        if (must := types.get(event.kind)) is None or len(valid(event.data, must)) == len(must)
    ]


def valid_game(
    scene: Scene, types: Types, data: Mapping[str, Types]
) -> tuple[str, dict[str, Any], list[Event]]:
    """Return the number, the state and the latest events of the game to draw; empty ones if no game is on."""
    games = valid_items(scene.state.get("games"), dict[str, Any], Key)
    number, part = Scene({"games": games}, scene.events).game()
    events = [event for event in scene.events if str(event.game_id) == number]
    return number, valid(part, types), valid_events(events, data)
