"""What frames with other values are made of: where two messages' fields differ, and bytes put in place of
others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Path = tuple[str | int, ...]
"""The steps to a part of a JSON value, keys and places in lists; () is the whole."""

Place = tuple[int, int]
"""Where something stands in a frame: its first byte, and how many bytes it takes."""


def differences(before: Any, after: Any, path: Path = ()) -> Iterator[Path]:
    """The paths of the smallest values that differ between two JSON values of one shape.

    Where an object has other keys, or a list another length, it differs as a whole.
    """
    if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
        for key in before:
            yield from differences(before[key], after[key], (*path, key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from differences(old, new, (*path, number))
    elif type(before) is not type(after) or before != after:
        # 1 and true are equal in Python.
        yield path


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> set[str]:
    """The names of the fields that differ. Raises ValueError where there are other fields."""
    if before.keys() != after.keys():
        raise ValueError("a field is new, or gone")
    return {name for name in before if next(differences(before[name], after[name]), None) is not None}


def value_at(fields: Any, path: Path) -> Any:
    """The value at a path."""
    for step in path:
        fields = fields[step]
    return fields


def spelt_alike(
    old: str,
    new: str,
    character: re.Pattern[str],
    read: Callable[[str], str],
    write: Callable[[str, str], str],
) -> str | None:
    """A text in which each character is spelt as the one in its place was, with an escape or without one.

    `character` finds each in what was sent, `read` says which it is, and `write` has another one in the same
    manner. None where the texts have not as many of them. Raises ValueError where `read` does.
    """
    spelt = character.findall(old)
    if len(spelt) != len(new):
        return None
    return "".join(
        one if read(one) == char else write(one, char) for one, char in zip(spelt, new, strict=True)
    )


def replaced(frame: bytes, pieces: Mapping[Place, bytes]) -> bytes:
    """The frame with other bytes in these places, of which no two overlap."""
    parts: list[bytes] = []
    at = 0
    for (start, length), piece in sorted(pieces.items()):
        parts += frame[at:start], piece
        at = start + length
    return b"".join((*parts, frame[at:]))
