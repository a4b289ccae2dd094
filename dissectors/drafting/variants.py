"""Variants of messages whose fields have positions instead of names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kiebitz.dissectors.drafting.fields import INTEGER
from kiebitz.dissectors.drafting.traffic import Message

MAX_POSITIONS = 20
"""Maximum number of fields of a message without names for them; more are a list."""


def variants(messages: Sequence[Message], is_words: bool) -> Iterator[tuple[list[Message], int, bool]]:
    """Yield the variants of positional messages: messages, number of fields required, and if a tail follows.

    Trailing fields are optional if the fields before them are alike.
    """
    groups: dict[int, list[Message]] = {}
    for message in messages:
        groups.setdefault(len(message.values), []).append(message)
    usual = {
        count: found
        for count, found in sorted(groups.items())
        if len(found) >= 3 or len(found) > 0.02 * len(messages)
    } or groups
    counts = sorted(usual)
    if counts[-1] > MAX_POSITIONS or len(counts) > 3 or (len(counts) > 1 and is_words and _is_prose(usual)):
        tail = _tail_start(usual)
        yield [message for found in usual.values() for message in found], tail, True
        return
    while counts:
        first = counts.pop(0)
        alike = [first]
        while counts and _are_alike(usual[alike[-1]], usual[counts[0]], alike[-1]):
            alike.append(counts.pop(0))
        yield [message for count in alike for message in usual[count]], first, False


def _tail_start(groups: Mapping[int, Sequence[Message]]) -> int:
    """Return the number of leading fields that all messages have, before those that vary in number."""
    least = min(groups)
    messages = [message for found in groups.values() for message in found]
    # The tail begins where the last run of fields of one kind begins.
    kinds = [_coarse([message.values[str(index)] for message in messages]) for index in range(1, least + 1)]
    rest = [value for message in messages for key, value in message.values.items() if int(key) > least]
    kind = _coarse(rest)
    while least > 0 and kinds[least - 1] == kind:
        least -= 1
    return least


def _is_prose(groups: Mapping[int, Sequence[Message]]) -> bool:
    """Return True if the words after the shortest form are those of sentences."""
    least = min(groups)
    if len(groups) < 3:
        return False
    words = Counter(
        value
        for found in groups.values()
        for message in found
        for key, value in message.values.items()
        if int(key) > least
    )
    return sum(not INTEGER.fullmatch(word) for word in words) > 0.5 * len(words) and len(words) > 6


def _are_alike(shorter: Sequence[Message], longer: Sequence[Message], count: int) -> bool:
    """Return True if the first fields of two variants have values of the same kind."""
    return all(
        _coarse([message.values[str(index)] for message in shorter])
        == _coarse([message.values[str(index)] for message in longer])
        for index in range(1, count + 1)
    )


def _coarse(values: Sequence[Any]) -> str:
    if values and all(isinstance(value, str) and INTEGER.fullmatch(value) for value in values):
        return "integer"
    if values and all(
        isinstance(value, str) and len(value) >= 16 and re.fullmatch(r"[0-9a-fA-F-]+", value)
        for value in values
    ):
        return "token"
    return "text"
