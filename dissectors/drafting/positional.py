"""Rows of messages whose fields have positions: words, lists of words, and free text."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Literal, NamedTuple

from kiebitz.dissectors.drafting.traffic import Message
from kiebitz.dissectors.grammar.fields import INTEGER

_SENTENCE = 3
"""Number of equal words from which they are a sentence."""

_PROSE = re.compile(r"[a-z]+[.,!?]?")
_KEYWORD = re.compile(r"[A-Z_.!#$*-]{1,20}")
_TOKEN = re.compile(r"[0-9a-fA-F-]{16,}")

_MAX_POSITIONS = 20
"""Maximum number of fields of a message without names for them; more are a list."""

_MAX_ITEM = 6
"""Maximum number of words of an item of a list."""

_MAX_WORDS = 400
_MAX_STATES = 500
_SAMPLE = 100
"""Number of messages by which lists are found."""

Rows = Sequence[Sequence[str]]


class Slot(NamedTuple):
    """The words that a field takes: one, which may be optional, or more.

    A list has items of `size` words. If it is `counted`, their number precedes it; `until` ends with `word`;
    a `list` and a `text` take all that remains.
    """

    kind: Literal["word", "optional", "counted", "until", "list", "text"]
    size: int = 1
    word: str = ""

    def end(self, words: Sequence[str], at: int) -> int:
        """Return the number of the first word after the field, -1 if it does not fit."""
        if self.kind == "optional":
            return min(at + 1, len(words))
        if self.kind == "until":
            return words.index(self.word, at) + 1 if self.word in words[at:] else -1
        if self.kind in ("list", "text"):
            return len(words)
        end = at + 1
        if self.kind == "counted" and end <= len(words):
            end += int(words[at]) * self.size if re.fullmatch(r"\d{1,4}", words[at]) else len(words)
        return end if end <= len(words) else -1


def variants(
    messages: Sequence[Message], players: Collection[str], is_words: bool
) -> Iterator[tuple[list[Message], list[Slot]]]:
    """Yield the variants of messages of one name with their fields.

    Trailing fields are optional if the fields before them are alike.
    """
    if (slots := _with_lists([words_of(message) for message in messages], players)) is not None:
        yield [*messages], slots
        return
    groups: dict[int, list[Message]] = {}
    for message in messages:
        groups.setdefault(len(message.values), []).append(message)
    usual = {
        count: found
        for count, found in sorted(groups.items())
        if len(found) >= 3 or len(found) > 0.02 * len(messages)
    } or groups
    own = [message for found in usual.values() for message in found]
    rows = [words_of(message) for message in own]
    counts = sorted(usual)
    least = counts[0]
    further = Counter(word for row in rows for word in row[least:])
    is_list = bool(further) and further.keys() <= {*players}
    is_prose = is_words and (_is_prose(further) and len(counts) > 2 if further else _is_sentence(rows))
    if counts[-1] > _MAX_POSITIONS or len(counts) > 3 or is_list or is_prose:
        # The tail begins where the last run of fields of one kind begins.
        kind = _coarse([*further])
        while least > 0 and _coarse([row[least - 1] for row in rows]) == kind:
            least -= 1
        yield own, [*[Slot("word")] * least, Slot("text" if is_prose and not is_list else "list")]
        return
    while counts:
        first = counts.pop(0)
        alike = [first]
        while counts and _are_alike(usual, alike[-1], counts[0]):
            alike.append(counts.pop(0))
        found = [message for count in alike for message in usual[count]]
        yield found, [*[Slot("word")] * first, *[Slot("optional")] * (alike[-1] - first)]


def words_of(message: Message) -> list[str]:
    """Return the words of a message after its name."""
    return [*message.values.values()]


def _with_lists(rows: Rows, players: Collection[str]) -> list[Slot] | None:
    """Return the fewest fields with lists that all rows have, None if there are none."""
    sample = sorted({tuple(row) for row in rows}, key=lambda row: (len(row), row))
    sample = sample[:: -(-len(sample) // _SAMPLE)]
    if any(len(row) > _MAX_WORDS for row in sample):
        return None
    keywords = [*filter(_KEYWORD.fullmatch, sorted(set[str].intersection(*map(set, sample))))]

    @cache
    def best(at: tuple[int, ...]) -> tuple[float, tuple[Slot, ...]]:
        if all(start == len(row) for row, start in zip(sample, at, strict=True)):
            return 0.0, ()
        found: tuple[float, tuple[Slot, ...]] = math.inf, ()
        if best.cache_info().currsize < _MAX_STATES and max(at) <= _MAX_POSITIONS * _MAX_ITEM:
            for cost, slot in _slots(sample, at, players, keywords):
                ends = tuple(slot.end(row, start) for row, start in zip(sample, at, strict=True))
                if min(ends) >= 0:
                    rest = best(ends)
                    found = min(found, (cost + rest[0], (slot, *rest[1])))
        return found

    _, slots = best((0,) * len(sample))
    is_usual = any(slot.kind in ("counted", "until") for slot in slots)
    return [*slots] if is_usual and all(_fits(slots, row) for row in rows) else None


def _slots(
    rows: Rows, at: Sequence[int], players: Collection[str], keywords: Sequence[str]
) -> Iterator[tuple[float, Slot]]:
    """Yield the possible fields at these positions with their costs."""
    firsts = [row[start] if start < len(row) else "" for row, start in zip(rows, at, strict=True)]
    if "" not in firsts:
        yield 1.0, Slot("word")
    if all(re.fullmatch(r"\d{1,4}", word) for word in firsts) and any(map(int, firsts)):
        for size in range(1, _MAX_ITEM + 1):
            items = (row[start + 1 :: size] for row, start in zip(rows, at, strict=True))
            # A number of items that is always the same may be any number; not so before as many players.
            if len({*firsts}) > 1 or (int(firsts[0]) > 1 and {*players} >= {*chain.from_iterable(items)}):
                yield 1.5 + 0.1 * size, Slot("counted", size)
    for word in keywords:
        slot = Slot("until", word=word)
        sizes = {slot.end(row, start) - start for row, start in zip(rows, at, strict=True)}
        if len(sizes) > 1 and min(sizes) > 0:
            yield 2.0, slot


def _fits(slots: Sequence[Slot], row: Sequence[str]) -> bool:
    at = 0
    for slot in slots:
        at = slot.end(row, at) if at >= 0 else at
    return at == len(row)


def _is_sentence(rows: Rows) -> bool:
    """Return True if all messages end with the same words of three or more, as in a sentence."""
    ends = {tuple(row[-_SENTENCE:]) for row in rows}
    return len(ends) == 1 and all(map(_PROSE.fullmatch, end := ends.pop())) and len(end) == _SENTENCE


def _is_prose(words: Collection[str]) -> bool:
    """Return True if words are those of sentences."""
    return sum(not INTEGER.fullmatch(word) for word in words) > 0.5 * len(words) and len(words) > 6


def _are_alike(groups: Mapping[int, Sequence[Message]], shorter: int, longer: int) -> bool:
    """Return True if the first fields of messages with so many fields have values of the same kind."""
    columns = ([*zip(*map(words_of, groups[count]), strict=True)][:shorter] for count in (shorter, longer))
    return [*map(_coarse, next(columns))] == [*map(_coarse, next(columns))]


def _coarse(values: Sequence[str]) -> str:
    if values and all(map(INTEGER.fullmatch, values)):
        return "integer"
    return "token" if values and all(map(_TOKEN.fullmatch, values)) else "text"
