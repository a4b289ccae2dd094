"""Inference of where JSON messages have their name: the value that best predicts the other keys."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kiebitz.dissectors.drafting.format_choice import (
    MAX_NAME,
    MAX_NAMES,
    NAME_KEYS,
    FormatChoice,
    Parsed,
    Parser,
)
from kiebitz.dissectors.grammar.grammar import NAMELESS
from kiebitz.dissectors.protocol_file.specification import Format

_NAMED = 0.3
"""Least share of messages with a name."""


def json_object(content: bytes) -> dict[str, Any] | None:
    """Return the object that a message is, None if it is none."""
    try:
        found = msgspec.json.decode(content)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def json_format(contents: Sequence[bytes]) -> FormatChoice:
    """Return the format of JSON messages."""
    objects = [found for content in contents if (found := json_object(content)) is not None]
    keys = Counter(next(iter(found)) for found in objects if len(found) == 1)
    if keys.total() >= 0.9 * len(objects) and 1 < len(keys) <= MAX_NAMES:
        return FormatChoice(Format(kind="json", name="*"), _only_key_parser(keys))
    path = name_path(objects)
    if path is None:
        return FormatChoice(Format(kind="json", name="*"), _only_key_parser(keys))
    names = [_at(found, path) for found in objects]
    has_codes = all(isinstance(name, int) for name in names)
    # Such as answers that have only the number of their request.
    kinds = (int,) if has_codes else (str, type(None)) if None in names else (str,)
    body = _body(objects, path)

    def parse(content: bytes) -> Parsed | None:
        found = json_object(content)
        name = None if found is None else _at(found, path)
        if found is None or not isinstance(name, kinds) or isinstance(name, bool):
            return None
        fields = (
            found.get(body) or {} if body else {key: value for key, value in found.items() if key != path[0]}
        )
        return (NAMELESS if name is None else str(name), fields) if isinstance(fields, dict) else None

    return FormatChoice(Format(kind="json", name=".".join(path), fields=body), parse, has_codes=has_codes)


def _only_key_parser(known: Collection[str]) -> Parser:
    def parse(content: bytes) -> Parsed | None:
        found = json_object(content)
        if not found:
            return None
        name = next((key for key in found if key in known), next(iter(found)))
        value = found[name]
        return name, value if isinstance(value, dict) else {"value": value}

    return parse


def _at(found: Any, path: Sequence[str]) -> Any:
    for key in path:
        if not isinstance(found, dict):
            return None
        found = found.get(key)
    return found


def _scalars(found: Mapping[str, Any], depth: int = 0) -> Iterator[tuple[tuple[str, ...], str | int]]:
    for key, value in found.items():
        if isinstance(value, dict) and depth < 2:
            for path, scalar in _scalars(value, depth + 1):
                yield (key, *path), scalar
        elif isinstance(value, str | int) and not isinstance(value, bool):
            yield (key,), value


def name_path(objects: Sequence[Mapping[str, Any]]) -> tuple[str, ...] | None:
    """Return the path of the value that best predicts the other keys of a message."""
    values: dict[tuple[str, ...], Counter[str | int]] = defaultdict(Counter)
    shapes: dict[tuple[str, ...], dict[str | int, Counter[frozenset[str]]]] = defaultdict(
        lambda: defaultdict(Counter)
    )
    for found in objects:
        shape = frozenset(_key_paths(found))
        for path, scalar in _scalars(found):
            if len(values) < 200 or path in values:
                values[path][scalar] += 1
                if len(values[path]) <= MAX_NAMES:
                    shapes[path][scalar][shape] += 1
    best: tuple[float, tuple[str, ...]] | None = None
    for path, counts in values.items():
        is_usual = NAME_KEYS.fullmatch(path[-1]) is not None
        most = min(MAX_NAMES, len(objects) * (0.8 if is_usual else 0.5))
        if counts.total() < _NAMED * len(objects) or len(counts) > max(3, most):
            continue
        if counts.total() < len(objects) and (len(path) > 1 or not is_usual or len(counts) < 2):
            # Only a usual key tells that the others have no name.
            continue
        if any(isinstance(value, str) and (len(value) > MAX_NAME or "\n" in value) for value in counts):
            continue
        usual = sum(shape.most_common(1)[0][1] for shape in shapes[path].values()) / counts.total()
        usual -= 0.2 * (counts.total() < len(objects))
        score = usual - 0.05 * len(path) - 0.3 * len(counts) / len(objects)
        score += 0.3 * is_usual + 0.2 * (len(counts) > 2) - 0.3 * (len(counts) == 1)
        score -= 0.2 * all(isinstance(value, int) for value in counts)
        if best is None or score > best[0]:
            best = score, path
    return None if best is None else best[1]


def _key_paths(found: Mapping[str, Any], depth: int = 0) -> Iterator[str]:
    for key, value in found.items():
        yield key
        if isinstance(value, dict) and depth < 1:
            for path in _key_paths(value, depth + 1):
                yield f"{key}.{path}"


def _body(objects: Sequence[Mapping[str, Any]], path: tuple[str, ...]) -> str:
    """Return the key of the object that has all fields, or an empty text.

    Beside it and the name may be numbers that count the messages, and values that are always the same.
    """
    others = Counter(key for found in objects for key in found if key != path[0])
    bodies = [
        key
        for key, number in others.items()
        if number >= 0.5 * len(objects)
        and all(isinstance(found.get(key, {}) or {}, dict) for found in objects)
    ]
    if len(bodies) != 1 or any(not _is_around(objects, key) for key in others if key != bodies[0]):
        return ""
    return bodies[0]


def _is_around(objects: Sequence[Mapping[str, Any]], key: str) -> bool:
    """Return True if a value is always the same, or a number that only counts messages."""
    values = [found.get(key) for found in objects]
    if not all(isinstance(value, str | int) for value in values):
        return False
    kinds = len({*values})
    return kinds == 1 or (all(isinstance(value, int) for value in values) and kinds >= 0.7 * len(values))
