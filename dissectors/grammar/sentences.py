"""Rendering of an event's data as words: the parts of the sentences of `Dissector.describe`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from string import Formatter
from types import MappingProxyType
from typing import Any

from kiebitz.dissectors.grammar.field_type import IdentifierKind, KeysOf
from kiebitz.dissectors.model import LOST

CALLED = "called"
"""Key in an event's data: an object from the numbers of its players to their names at that time."""

UNKNOWN = "?"
"""Text for an unknown value."""

Phrase = Callable[[Any], str]
"""Renders the value of a field in a sentence; it must accept any JSON value, as databases can be damaged."""

ENDING_WORDS: Mapping[str, str] = MappingProxyType(
    {
        "closed": "connection closed",
        "reset": "connection reset",
        "refused": "connection refused",
        "idle": "no traffic",
        "evicted": "too many connections",
        "end": "the recording ends",
        LOST: LOST,
    }
)
"""Words for each reason for the end of a connection; the keys are those of `ENDINGS`."""


def coded(words: Mapping[str, str]) -> Phrase:
    """Return a phrase for a code that has words of its own; any other text is rendered as it is."""

    def phrase(value: Any) -> str:
        if isinstance(value, str):
            return words.get(value, value or '""')
        return UNKNOWN if value is None else str(value)

    return phrase


def each(phrase: Phrase, between: str = ", ", empty: str = "nothing") -> Phrase:
    """Return a phrase for a list of values; a value that is no list is rendered by `phrase` itself."""

    def phrase_of_all(value: Any) -> str:
        if isinstance(value, list):
            return between.join(map(phrase, value)) or empty
        return phrase(value)

    return phrase_of_all


def counted(count: int, thing: str) -> str:
    """Return `1 card` or `2 cards`."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def called(names: Any) -> Callable[[int | str], str]:
    """Return a function from a player's number to the name in an event's `CALLED`, or to `player 7`."""
    known = names if isinstance(names, dict) else {}

    def name_of(number: int | str) -> str:
        name = known.get(str(number))
        return name if isinstance(name, str) and name else f"player {number}"

    return name_of


def named(value: Any, identifier: IdentifierKind | KeysOf | None, name_of: Callable[[int | str], Any]) -> Any:
    """Return the value of a field with its players' numbers replaced by names."""
    if isinstance(identifier, KeysOf):
        if not (identifier.kind.of_player and isinstance(value, dict)):
            return value
        names = [name_of(key) for key in value]
        # Players with the same name are distinguished by their numbers.
        return {
            name if names.count(name) == 1 else f"{name} ({key})": inner
            for (key, inner), name in zip(value.items(), names, strict=True)
        }
    if identifier is None or not identifier.of_player:
        return value
    if isinstance(value, list):
        return [named(part, identifier, name_of) for part in value]
    return name_of(value) if isinstance(value, int) else value


@cache
def places(template: str) -> tuple[str | tuple[str, ...], ...]:
    """Return a template's texts and, between them, the path of each placeholder such as `{player[id]}`."""
    found: list[str | tuple[str, ...]] = []
    for text, place, _, _ in Formatter().parse(template):
        found.append(text)
        if place is not None:
            found.append(tuple(place.replace("]", "").split("[")))
    return tuple(found)


def value_at(values: Any, path: Iterable[str]) -> Any:
    """Return the value at a path, None if there is none."""
    try:
        for key in path:
            values = values[key]
    except (KeyError, TypeError):
        return None
    return values
