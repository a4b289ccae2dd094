"""The names of messages, without garbled forms of other names."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from kiebitz.dissectors.drafting.fields import Row
from kiebitz.dissectors.drafting.format_choice import MAX_NAME, MAX_NAMES
from kiebitz.dissectors.drafting.traffic import Message

_MANY_CODES = 6
"""Number of names with the same fields from which they may be values."""

_NAME_LIKE = re.compile(r"[^\w\s]{0,2}[^\W\d][\w .+!?*#/-]*")


def known_names(messages: Iterable[Message]) -> set[tuple[str, str]]:
    """Return the names, with directions, that are no garbled forms of others."""
    counts: Counter[tuple[str, str]] = Counter((message.direction, message.name) for message in messages)
    folded: dict[tuple[str, str], int] = {}
    for (direction, name), number in counts.items():
        key = direction, _fold(name)
        folded[key] = max(folded.get(key, 0), number)
    found: list[tuple[str, str]] = []
    style = _usual_style(counts)
    for (direction, name), number in counts.most_common():
        if not name or len(name) > MAX_NAME or not name.isprintable():
            continue
        if number < folded[direction, _fold(name)] / 5 and number < 5:
            continue
        if number < 3 and style is not None and not style.fullmatch(name):
            continue
        found.append((direction, name))
    return {*found[:MAX_NAMES]}


def values_in(messages: Iterable[Message]) -> list[str]:
    """Return names with values in them: they differ from others in their digits only, and hardly recur."""
    counts: Counter[tuple[str, str]] = Counter((message.direction, message.name) for message in messages)
    alike: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (direction, name), number in counts.items():
        if number < 3:
            alike[direction, re.sub(r"\d+", "0", name)].append(name)
    return [name for names in alike.values() if len(names) > 1 for name in names]


def codes_in(rows: Iterable[Row]) -> list[str]:
    """Return numbers that are rather values than names: many have the same fields, and hardly recur."""
    alike: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row.columns:
            alike[row.direction, *(column.type for column in row.columns)].append(row)
    return [
        row.name
        for found in alike.values()
        if len(found) >= _MANY_CODES and sum(len(row.messages) for row in found) <= 3 * len(found)
        for row in found
    ]


def _fold(name: str) -> str:
    return re.sub(r"\W", "", name).casefold() or name


def _usual_style(counts: Mapping[tuple[str, str], int]) -> re.Pattern[str] | None:
    """Return the pattern of nearly all frequent names, or None."""
    names = {name for (_, name), number in counts.items() if number >= 3}
    for pattern in (
        r"[^\w\s]{0,2} ?[A-Z][A-Z0-9_ -]*",
        r"[^\w\s]{0,2}[a-z][a-z0-9_ .-]*",
        _NAME_LIKE.pattern,
    ):
        style = re.compile(pattern)
        if len(names) >= 4 and sum(bool(style.fullmatch(name)) for name in names) >= 0.95 * len(names):
            return style
    return None
