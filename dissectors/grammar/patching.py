"""Changes of fields in a frame: differences between two messages' fields, and replacement of bytes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Path = tuple[str | int, ...]
"""The path of a part of a JSON value, of keys and list indexes; () is the whole."""

Place = tuple[int, int]
"""A place in a frame: offset and length in bytes."""


def differences(before: Any, after: Any, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of the smallest values that differ between two JSON values of one shape.

    An object with other keys, or a list of another length, differs as a whole.
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


def value_at(fields: Any, path: Path) -> Any:
    """Return the value at a path."""
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
    """Return a text with each character spelt as the one in its place was, with or without an escape.

    `character` finds each character in the sent text, `read` decodes it, and `write` encodes another one
    alike. Returns None if the texts differ in length; raises ValueError if `read` does.
    """
    spelt = character.findall(old)
    if len(spelt) != len(new):
        return None
    return "".join(
        one if read(one) == char else write(one, char) for one, char in zip(spelt, new, strict=True)
    )


def replaced(frame: bytes, pieces: Mapping[Place, bytes]) -> bytes:
    """Return the frame with other bytes in these places, which must not overlap."""
    parts: list[bytes] = []
    at = 0
    for (start, length), piece in sorted(pieces.items()):
        parts += frame[at:start], piece
        at = start + length
    return b"".join((*parts, frame[at:]))
