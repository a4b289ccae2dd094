"""Rows of a draft: the messages of one name and direction, with their fields and relations."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, cast

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
from kiebitz.dissectors.drafting.positional import variants, words_of
from kiebitz.dissectors.drafting.relations import Broadcast, Kind
from kiebitz.dissectors.drafting.traffic import FormatChoice, Message
from kiebitz.dissectors.grammar.grammar import NAMELESS
from kiebitz.dissectors.model import Direction

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
        groups[message.direction, message.name].append(message)
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
