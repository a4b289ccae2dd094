"""Reads a state that a server has told: only what is of the kind that belongs there, the rest is not told.

So a drawing need not ask of each value whether it may be trusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from kiebitz.cli.render.text.scene import Scene
from kiebitz.dissectors.model import Event

Kinds = Mapping[str, Any]
"""By key the type that a value has, as msgspec knows types."""

Number = Annotated[int, msgspec.Meta(ge=-(10**15), le=10**15)]
"""A number that can be written."""

Key = Annotated[str, msgspec.Meta(pattern="^[0-9]{1,15}$")]
"""A number that is a key."""

_UNSOUND = (msgspec.ValidationError, UnicodeEncodeError)
"""The other is for half a character, which msgspec looks for patterns in."""


def sound(told: object, kinds: Kinds) -> dict[str, Any]:
    """The values of an object that are of their kinds; one that has no kind is left out, too."""
    if not isinstance(told, dict):
        return {}
    found = {}
    for key, kind in kinds.items():
        if key in told:
            try:
                found[key] = msgspec.convert(told[key], kind)
            except _UNSOUND:
                continue
    return found


def sound_items(told: object, kind: Any, key: Any = str) -> dict[str, Any]:
    """The items of an object whose keys and values are of these kinds."""
    if not isinstance(told, dict):
        return {}
    found = {}
    for name, value in told.items():
        try:
            found[msgspec.convert(name, key)] = msgspec.convert(value, kind)
        except _UNSOUND:
            continue
    return found


def sound_events(events: list[Event], kinds: Mapping[str, Kinds]) -> list[Event]:
    """The events whose data have what their kind of event must have; of other kinds nothing is asked."""
    return [
        event for event in events if len(sound(event.data, must := kinds.get(event.kind, {}))) == len(must)
    ]


def drawn_game(
    scene: Scene, kinds: Kinds, data: Mapping[str, Kinds]
) -> tuple[str, dict[str, Any], list[Event]]:
    """The game that is drawn: its number, its part, and its latest events; all empty where none is on."""
    games = sound_items(scene.state.get("games"), dict[str, Any], Key)
    number, part = Scene({"games": games}, scene.events).game()
    events = [event for event in scene.events if str(event.game_id) == number]
    return number, sound(part, kinds), sound_events(events, data)
