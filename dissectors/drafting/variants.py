"""Variants of messages whose fields have positions instead of names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from kiebitz.dissectors.drafting.fields import INTEGER
from kiebitz.dissectors.drafting.traffic import Message

_SENTENCE = 3
"""Number of equal words from which they are a sentence."""

_PROSE = re.compile(r"[a-z]+[.,!?]?")

MAX_POSITIONS = 20
"""Maximum number of fields of a message without names for them; more are a list."""


class Variant(NamedTuple):
    """Messages with the same fields in the same positions.

    Attributes:
        messages: The messages.
        required: Number of fields that all have.
        tail: Kind of what has all further words, if they vary: a list, a list whose number of items is the
            last required field, or text.
        item_size: Number of words of each item of a counted list.
    """

    messages: list[Message]
    required: int
    tail: Literal["", "list", "counted", "text"] = ""
    item_size: int = 1


def variants(messages: Sequence[Message], players: Collection[str], is_words: bool) -> Iterator[Variant]:
    """Yield the variants of positional messages.

    Trailing fields are optional if the fields before them are alike.
    """
    groups: dict[int, list[Message]] = {}
    for message in messages:
        groups.setdefault(len(message.values), []).append(message)
    counted = _counted(messages, players)
    if counted is not None:
        yield counted
        return
    usual = {
        count: found
        for count, found in sorted(groups.items())
        if len(found) >= 3 or len(found) > 0.02 * len(messages)
    } or groups
    counts = sorted(usual)
    is_list = len(counts) > 1 and _are_players(usual, players)
    is_prose = is_words and (_is_prose(usual) if len(counts) > 1 else _is_sentence(messages))
    if counts[-1] > MAX_POSITIONS or len(counts) > 3 or is_list or is_prose:
        tail = _tail_start(usual)
        own = [message for found in usual.values() for message in found]
        yield Variant(own, tail, "text" if is_prose and not is_list else "list")
        return
    while counts:
        first = counts.pop(0)
        alike = [first]
        while counts and _are_alike(usual[alike[-1]], usual[counts[0]], alike[-1]):
            alike.append(counts.pop(0))
        yield Variant([message for count in alike for message in usual[count]], first)


def _counted(messages: Sequence[Message], players: Collection[str]) -> Variant | None:
    """Return the variant of messages that end in a list after the number of its items, if they do."""
    rows = [[*message.values.values()] for message in messages]
    for at in range(min(map(len, rows))):
        numbers = [int(row[at]) if INTEGER.fullmatch(row[at]) else -1 for row in rows]
        rests = [len(row) - at - 1 for row in rows]
        if min(numbers) < 0 or not any(numbers):
            continue
        size = max(rest // number for number, rest in zip(numbers, rests, strict=True) if number)
        if not size or any(number * size != rest for number, rest in zip(numbers, rests, strict=True)):
            continue
        # A number of items that is always the same may be any number; not so before as many players.
        firsts = {word for row in rows for word in row[at + 1 :: size]}
        if len({*numbers}) > 1 or (numbers[0] > 1 and firsts <= {*players}):
            return Variant([*messages], at + 1, "counted", size)
    return None


def _are_players(groups: Mapping[int, Sequence[Message]], players: Collection[str]) -> bool:
    """Return True if the words after the shortest form are players, in lists of some length."""
    least = min(groups)
    words = {
        value for found in groups.values() for each in found for value in [*each.values.values()][least:]
    }
    return bool(words) and words <= {*players}


def _is_sentence(messages: Sequence[Message]) -> bool:
    """Return True if all messages end with the same words of three or more, as in a sentence."""
    rows = {(*message.values.values(),)[-_SENTENCE:] for message in messages}
    return len(rows) == 1 and all(map(_PROSE.fullmatch, row := rows.pop())) and len(row) == _SENTENCE


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
