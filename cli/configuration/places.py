"""Location of keys and values in TOML text, which tomllib does not report."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from kiebitz.cli.configuration.errors import Place

_ABSENT = object()


def place_of_key(text: str, path: Sequence[str]) -> Place | None:
    """Return the location of the last key of `path`, which exists in `text`; None if it is not found."""
    found = _line_of(text, path)
    return None if found is None else Place(*found, *_key_in(found[1], path[-1]))


def place_of_value(text: str, path: Sequence[str]) -> Place | None:
    """Return the location of the value at `path`, or of its first line; see `place_of_key`."""
    found = _line_of(text, path)
    if found is None:
        return None
    _, line = found
    position, length = _key_in(line, path[-1])
    equals = line.find("=", position + length)
    if equals < 0:
        # A table with a header.
        return Place(*found, position, length)
    start = equals + 1
    while line[start : start + 1] in (" ", "\t"):
        start += 1
    rest = line[start:].rstrip()
    value = repr(_at(tomllib.loads(text), path))
    # Find the shortest prefix with the same value, as a comment or another key may follow.
    pieces = (end for end in range(1, len(rest)) if repr(_at(_loaded(f"x = {rest[:end]}"), "x")) == value)
    return Place(*found, start, next(pieces, len(rest)))


def _line_of(text: str, path: Sequence[str]) -> tuple[int, str] | None:
    """Return number and text of the line that introduces a path: the text before it lacks the path."""
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if path[-1] not in line:
            continue
        before, after = _loaded("\n".join(lines[:number])), _loaded("\n".join(lines[: number + 1]))
        is_new = before is not None and _at(before, path) is _ABSENT
        # A multi-line value is only valid TOML with its last line.
        if is_new and (after is None or _at(after, path) is not _ABSENT):
            return number + 1, line
    return None


def _key_in(line: str, key: str) -> tuple[int, int]:
    """Return position and length of a key in its line, with its quotation marks."""
    position = line.index(key)
    is_quoted = line[position - 1 : position] in ('"', "'")
    return (position - 1, len(key) + 2) if is_quoted else (position, len(key))


def _loaded(text: str) -> dict[str, Any] | None:
    """Parse a text; None if it is not TOML."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


def _at(document: Mapping[str, Any] | None, path: Sequence[str]) -> Any:
    value: Any = document
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return _ABSENT
        value = value[key]
    return value
