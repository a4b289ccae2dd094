"""The names of messages, without garbled forms of other names."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from kiebitz.dissectors.drafting.fields import Row
from kiebitz.dissectors.drafting.identifiers import leaves
from kiebitz.dissectors.drafting.relations import CODED
from kiebitz.dissectors.drafting.traffic import MAX_NAME, MAX_NAMES, Message
from kiebitz.dissectors.grammar.fields import INTEGER
from kiebitz.dissectors.grammar.grammar import NAMELESS

_LEAST_VALUES = 3
_SINGLE = 0.9
_KNOWN = 0.6
"""Least number of words and share of single words, and of known ones, in messages that are values."""

_MANY_CODES = 6
"""Number of names with the same fields from which they may be values."""

_KEYWORD = re.compile(r"[A-Z][A-Z0-9_.-]*")


def known_names(messages: Iterable[Message]) -> set[tuple[str, str]]:
    """Return the names, with directions, that are no garbled forms of others."""
    counts: Counter[tuple[str, str]] = Counter((message.direction, message.name) for message in messages)
    folded: dict[tuple[str, str], int] = {}
    for (direction, name), number in counts.items():
        key = direction, _fold(name)
        folded[key] = max(folded.get(key, 0), number)
    found: list[tuple[str, str]] = []
    for (direction, name), number in counts.most_common():
        if not name or len(name) > MAX_NAME or not name.isprintable():
            continue
        if number < folded[direction, _fold(name)] / 5 and number < 5:
            continue
        found.append((direction, name))
    return {*found[:MAX_NAMES]}


def doubts_about(
    messages: Sequence[Message], rows: Iterable[Row], has_lines: bool
) -> Iterator[tuple[list[str], str]]:
    """Yield names that are rather values, with clauses about what they have in common."""
    if any(message.name.startswith(CODED) for message in messages):
        yield _codes_in(rows), "the first numbers of messages hardly recur"
        return
    yield _values_in(messages), "the first words of messages differ in their digits only"
    if has_lines:
        yield _continuations_in(messages), "lines that belong to the message before them"


def _values_in(messages: Iterable[Message]) -> list[str]:
    """Return names with values in them: they differ from others in their digits only, and hardly recur."""
    counts: Counter[tuple[str, str]] = Counter((message.direction, message.name) for message in messages)
    alike: dict[tuple[str, str], list[str]] = defaultdict(list)
    for (direction, name), number in counts.items():
        if number < 3 or re.search(r"\s\W?\d", name):
            alike[direction, re.sub(r"\d+", "0", name)].append(name)
    return [name for names in alike.values() if len(names) > 1 for name in names]


def forget_names(side: Sequence[Message], messages: Sequence[Message]) -> None:
    """Make messages of one side that are only values messages without a name.

    Each is a single word, which is a number, or which the other side sends, too.
    """
    words = {message.name for message in side if message.name}
    single = sum(not message.values for message in side)
    if len(words) < _LEAST_VALUES or single < _SINGLE * len(side):
        return
    direction = side[0].direction
    others = {
        value for message in messages if message.direction != direction for _, value in leaves(message.values)
    }
    known = sum(INTEGER.fullmatch(word) is not None or word in others for word in words)
    if known >= _KNOWN * len(words):
        for message in side:
            message.values = {"1": " ".join((message.name, *message.values.values()))}
            message.name = NAMELESS


def _continuations_in(messages: Sequence[Message]) -> list[str]:
    """Return names that are rather lines of the message before: they are values, and never sent alone."""
    begun = {(message.direction, message.name) for message in messages if message.begins}
    counts = Counter((message.direction, message.name) for message in messages)
    values = {value for message in messages for _, value in leaves(message.values)}
    found = [kind for kind in counts if kind not in begun]
    # Else, messages that are always sent with others hardly are that many.
    are_many = len(found) >= max(_LEAST_VALUES, 0.4 * len(counts))
    return [
        name
        for _, name in found
        if are_many or name in values or (re.search(r"\d", name) and not _KEYWORD.fullmatch(name))
    ]


def _codes_in(rows: Iterable[Row]) -> list[str]:
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
