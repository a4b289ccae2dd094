"""Rows of a draft: the messages of one name and direction, with fields by key or position, relations."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, Literal, NamedTuple, cast

from kiebitz.dissectors.drafting.binary import ITEM_KEYS, BinaryKind, ItemTypes
from kiebitz.dissectors.drafting.fields import (
    MAX_FIELDS,
    Column,
    Identify,
    Row,
    TypeInference,
    field_names,
    quoted_name,
)
from kiebitz.dissectors.drafting.identifiers import Identifiers
from kiebitz.dissectors.drafting.relations import Broadcast
from kiebitz.dissectors.drafting.traffic import FormatChoice, Kind, Message
from kiebitz.dissectors.grammar.fields import INTEGER
from kiebitz.dissectors.grammar.grammar import NAMELESS
from kiebitz.dissectors.model import Direction

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


_MAX_VALUES = 5000
"""Number of values of a field by which its type is inferred."""


def rows_of(
    messages: Sequence[Message],
    forms: Mapping[Direction, FormatChoice],
    identifiers: Identifiers,
    binary: Mapping[Kind, Sequence[BinaryKind]],
) -> tuple[list[Row], dict[str, str]]:
    """Return all rows in the order of their first messages, and the types that they use."""
    groups: dict[Kind, list[Message]] = defaultdict(list)
    for message in messages:
        groups[message.kind].append(message)
    named: dict[str, str] = {}
    types = {each: TypeInference(form.format, identifiers.players, named) for each, form in forms.items()}
    for (direction, _), own in groups.items():
        if not forms[direction].is_positional:
            for message in own[:_MAX_VALUES]:
                _learn(types[direction], message.values)
    rows: list[Row] = []
    for kind, own in groups.items():
        form = forms[kind[0]]
        if kind in binary:
            rows.append(_binary_row(kind, own, binary[kind], identifiers))
        elif form.is_positional:
            rows += _positional_rows(kind, own, form, types[kind[0]], identifiers)
        else:
            rows.append(_keyed_row(kind, own, types[kind[0]], identifiers))
    return rows, named


def _learn(types: TypeInference, value: Any, depth: int = 0) -> None:
    if depth > 5:
        return
    if isinstance(value, dict):
        for key, part in value.items():
            if isinstance(part, str):
                types.learn(key, [part])
            elif isinstance(part, list):
                types.learn(key, [item for item in part[:50] if isinstance(item, str)])
                for item in part[:50]:
                    _learn(types, item, depth + 1)
            else:
                _learn(types, part, depth + 1)


def _keyed_row(kind: Kind, messages: list[Message], types: TypeInference, identifiers: Identifiers) -> Row:
    direction, name = kind
    columns: list[Column] = []
    keys = Counter(key for message in messages for key in message.values)
    # In the order of the fullest message.
    order = dict.fromkeys(max(messages, key=lambda message: len(message.values)).values)
    for key in list(dict.fromkeys((*order, *keys)))[:MAX_FIELDS]:
        if quoted_name(key) is None:
            continue
        found = [message.values[key] for message in messages if message.values.get(key) is not None]
        kind_of = (
            types.type_of(
                key,
                found[:_MAX_VALUES],
                lambda path: identifiers.types.get((direction, name, path)),
            )
            if found
            else "any"
        )
        columns.append(
            Column(
                key,
                kind_of,
                optional=len(found) < len(messages),
                generated=(direction, name, (key,)) in identifiers.generated,
                key=key,
            )
        )
    return Row(name, direction, messages, columns)


def _always(kind: str | None) -> Identify:
    """Return a function that gives each part of a value the same kind of identifier."""
    return lambda path: kind


def _positional_rows(
    kind: Kind, messages: list[Message], form: FormatChoice, types: TypeInference, identifiers: Identifiers
) -> Iterator[Row]:
    direction, name = kind
    delimiter = " " if form.format.kind == "words" else form.format.delimiter
    for own, slots in variants(messages, identifiers.players, form.format.kind == "words"):
        rows = [(words_of(message), 0) for message in own[:_MAX_VALUES]]
        columns: list[Column] = []
        has_lists = False
        for slot in slots[:MAX_FIELDS]:
            key = str(len(columns) + 1)
            ends = [(words, slot.end(words, at)) for words, at in rows]
            taken = [words[at:end] for (words, at), (_, end) in zip(rows, ends, strict=True)]
            rows, column = ends, Column("", "rest", key=key)
            if slot.kind in ("word", "optional"):
                place = direction, name, (key,)
                identifier = None if has_lists else identifiers.types.get(place)
                found = [words[0] for words in taken if words]
                column.type = _whole(name, types.framed_type_of(name, found, _always(identifier)))
                column.optional = slot.kind == "optional"
                column.generated = place in identifiers.generated
            elif slot.kind == "counted":
                numbers = [(len(words) - 1) // slot.size for words in taken]
                columns.append(Column("", types.type_of(name, numbers, _always(None)), key=key))
                column.key = str(len(columns) + 1)
                column.type = _items(name, [words[1:] for words in taken], types, slot.size)
            elif slot.kind == "until":
                column.type = f"[{_item(name, [words[:-1] for words in taken], types)}]..'{slot.word}'"
            else:
                column.optional = any(not words for words in taken)
                item = _item(name, taken, types)
                if slot.kind == "list" and (item not in ("text", "rest") or delimiter != " "):
                    column.type = f"[{item}{'' if delimiter == ',' else delimiter}]"
            has_lists |= slot.kind not in ("word", "optional")
            columns.append(column)
        yield Row(name, direction, own, _with_names(columns))


def _whole(name: str, kind: str) -> str:
    """Return the type of the only value of a message without a name, else of a field."""
    return "rest" if name == NAMELESS and kind == "text" else kind


def _item(name: str, lists: Sequence[Sequence[str]], types: TypeInference) -> str:
    """Return the type of the items of lists."""
    items = [item for words in lists for item in words]
    return types.type_of(name, items, _always(None)) if items else "text"


def _items(name: str, lists: Sequence[Sequence[str]], types: TypeInference, size: int) -> str:
    """Return the type of a list with items of several words, after the number of its items."""
    kinds = (_item(name, [words[place::size] for words in lists], types) for place in range(size))
    parts = tuple("text" if kind[0] in "[{" else kind for kind in kinds)
    return ItemTypes(parts).notation(field_names(parts))


def _binary_row(
    kind: Kind, messages: list[Message], types: Sequence[BinaryKind], identifiers: Identifiers
) -> Row:
    direction, name = kind

    def typed(base: str, path: tuple[str, ...], values: Sequence[Any]) -> str:
        identifier = identifiers.types.get((direction, name, path), "").partition(" ")[0]
        known = sum(value in identifiers.players for value in values)
        if base.startswith(("text", "rest")) and known and known >= 0.8 * len(values):
            return "rest" if base == "rest" else f"player {base}"
        return f"{identifier} {base}" if identifier and base[0] in "uit" else base

    columns: list[Column] = []
    for index, base in enumerate(types, 1):
        key = str(index)
        values = [message.values.get(key) for message in messages[:_MAX_VALUES]]
        if isinstance(base, str):
            is_count = isinstance((*types, "")[index], ItemTypes)
            kind_of = base if is_count or base[0] == "[" else typed(base, (key,), values)
        else:
            items = [item for value in values for item in cast(list[Any], value)]
            is_single = len(base.types) == 1
            parts = [
                typed(
                    part,
                    (f"{key}[]",) if is_single else (f"{key}[]", place),
                    items if is_single else [item[place] for item in items],
                )
                for place, part in zip(ITEM_KEYS, base.types, strict=False)
            ]
            kind_of = ItemTypes(tuple(parts)).notation(field_names(parts))
        place = direction, name, (key,)
        columns.append(Column("", kind_of, generated=place in identifiers.generated, key=key))
    return Row(name, direction, messages, _with_names(columns))


def _with_names(columns: list[Column]) -> list[Column]:
    """Return fields that had no names with names; a counted list follows the number of its items."""
    former = ""
    for column, field in zip(columns, field_names([column.type for column in columns]), strict=True):
        column.name = field
        if column.type.endswith("*"):
            column.type += former
        former = field
    return columns


def relate(
    row: Row,
    heartbeats: Collection[Kind],
    broadcasts: Mapping[str, Broadcast],
    answers: Mapping[Kind, Sequence[tuple[str, int]]],
    pulses: Mapping[Kind, str],
) -> None:
    """Set the relations of a row, and note their evidence."""
    kind = row.direction, row.name
    conversations = len({message.conversation for message in row.messages})
    plural = "s" if conversations != 1 else ""
    row.notes.append(f"seen {_times(len(row.messages))} on {conversations} connection{plural}")
    row.heartbeat = kind in heartbeats
    copies = broadcasts.get(row.name) if row.direction == "s2c" else None
    if copies is not None and not row.heartbeat:
        row.broadcast = True
        row.notes.append(
            f"{copies.copies / copies.messages:.0%} as copies to {copies.coverage:.0%} of connections"
        )
    for name, number in answers.get(kind, ()):
        row.answers.append(name)
        row.notes.append(f"follows {name} {_times(number)}")
    if kind in pulses:
        row.answers.append(pulses[kind])
    for column in row.columns:
        if column.type.startswith("id:token") and row.direction == "c2s":
            row.notes.append(f"{column.name} is repeated from the server")


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"
