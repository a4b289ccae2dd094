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
from kiebitz.dissectors.drafting.format_choice import FormatChoice
from kiebitz.dissectors.drafting.identifiers import Identifiers
from kiebitz.dissectors.drafting.relations import Broadcast, Kind
from kiebitz.dissectors.drafting.traffic import Message
from kiebitz.dissectors.drafting.variants import variants
from kiebitz.dissectors.protocol_file.reading.notation import BUILT_IN

_MAX_VALUES = 5000
"""Number of values of a field by which its type is inferred."""


def rows_of(
    messages: Sequence[Message],
    form: FormatChoice,
    identifiers: Identifiers,
    binary: Mapping[tuple[str, str], Sequence[BinaryKind]] | None,
) -> tuple[list[Row], dict[str, str]]:
    """Return all rows in the order of their first messages, and the types that they use."""
    groups: dict[Kind, list[Message]] = defaultdict(list)
    for message in messages:
        groups[message.direction, message.name].append(message)
    is_text = form.format.kind != "json"
    delimiter = form.format.delimiter if form.format.kind in ("delimited", "pairs", "words") else "\0"
    types = TypeInference(
        is_text, identifiers.players, delimiter, BUILT_IN.keys(), has_elements=form.format.kind == "xml"
    )
    if not form.is_positional:
        for own in groups.values():
            for message in own[:_MAX_VALUES]:
                _learn(types, message.values)
    rows: list[Row] = []
    for kind, own in groups.items():
        if binary is not None:
            rows.append(_binary_row(kind, own, binary[kind], identifiers))
        elif form.is_positional:
            rows += _positional_rows(kind, own, form, types, identifiers)
        else:
            rows.append(_keyed_row(kind, own, types, identifiers))
    return rows, types.named


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
                lambda path: identifiers.type_at(direction, name, path),
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
    is_words = form.format.kind == "words"
    delimiter = " " if is_words else form.format.delimiter
    for own, required, has_tail in variants(messages, is_words):
        most = required if has_tail else max(len(message.values) for message in own)
        columns: list[Column] = []
        for index in range(1, min(most, MAX_FIELDS) + 1):
            key = str(index)
            found = [message.values[key] for message in own[:_MAX_VALUES] if key in message.values]
            place = direction, name, (key,)
            columns.append(
                Column(
                    "",
                    types.type_of(name, found, _always(identifiers.types.get(place))),
                    optional=index > required,
                    generated=place in identifiers.generated,
                    key=key,
                )
            )
        if has_tail:
            tails = [
                [value for key, value in message.values.items() if int(key) > required]
                for message in own[:_MAX_VALUES]
            ]
            columns.append(_tail(name, tails, types, delimiter, is_words))
        yield Row(name, direction, own, _with_names(columns))


def _tail(
    name: str, tails: Sequence[Sequence[str]], types: TypeInference, delimiter: str, is_words: bool
) -> Column:
    """Return the field that takes all remaining words: a list of one type, or free text."""
    items = [item for tail in tails for item in tail]
    if not items:
        return Column("", "rest", optional=True)
    item = types.type_of(name, items, _always(None))
    is_list = item not in ("text", "rest") or not is_words
    kind = f"[{item}{'' if delimiter == ',' else delimiter}]" if is_list else "rest"
    return Column("", kind, optional=any(not tail for tail in tails))


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
