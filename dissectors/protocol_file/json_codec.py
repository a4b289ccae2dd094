"""The codec of protocol files for JSON: the places of names and fields, and the framing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kiebitz.dissectors.grammar.envelope import Envelope
from kiebitz.dissectors.grammar.grammar import Grammar
from kiebitz.dissectors.grammar.json.codec import JsonCodec
from kiebitz.dissectors.grammar.json.containers import JsonObject
from kiebitz.dissectors.grammar.json.framer import JsonFraming
from kiebitz.dissectors.grammar.json.layouts import KeyLayout, Layout, PathLayout
from kiebitz.dissectors.protocol_file.envelope import FileEnvelope
from kiebitz.dissectors.protocol_file.json_types import JsonTypes
from kiebitz.dissectors.protocol_file.specification import (
    BagType,
    FieldSpec,
    FieldTypeSpec,
    ObjectType,
    Specification,
    parts_of,
)


def json_codec(
    specification: Specification, grammar: Grammar, make: type[JsonCodec] | None = None
) -> JsonCodec:
    """Return the codec of a protocol file for JSON."""
    framing = json_framing(specification) if specification.framing.kind == "json" else None
    # A line end after each message is noted if it is another one.
    has_lines = framing is not None and not framing.ends_at_bracket
    envelope = Envelope() if has_lines else FileEnvelope(specification.framing, specification.format)
    return (make or JsonCodec)(
        layout_of(specification, grammar),
        envelope,
        framing=framing,
        clause=specification.clause,
        productions=lambda: _productions(specification),
    )


def layout_of(specification: Specification, grammar: Grammar) -> Layout:
    """Return where the messages of a protocol file have their names and fields."""
    of, codes = specification.format, specification.codes
    if of.name == "*":
        return KeyLayout(grammar, of.spellings, not of.is_strict, allows_others=not of.is_strict)
    sent = {key: codes.get(key, key[1]) for key in {(row.direction, row.name): None for row in grammar.rows}}
    name, fields = (tuple(path.split(".")) if path else () for path in (of.name, of.fields))
    return PathLayout(grammar, sent, name, fields, spellings=of.spellings, is_lenient=not of.is_strict)


def json_framing(specification: Specification | None) -> JsonFraming:
    """Return how the objects of a protocol file's messages are found, without a file those of any object."""
    if specification is None:
        return JsonFraming((), ends_at_bracket=True)
    of = specification.format
    names = {path.split(".")[0] for path in (of.name, of.fields) if path}
    if of.name == "*":
        names = {*of.spellings.of(message.name for message in specification.messages)}
    keys = None
    if of.is_strict:
        # Only known attributes are in an object.
        fields = (each for message in specification.messages for each in message.fields)
        keys = of.spellings.of({name for field in fields for name in _names_in(field)})
    return JsonFraming(names, keys, ends_at_bracket=not specification.framing.end)


def _names_in(field: FieldSpec) -> Iterator[str]:
    yield field.name
    yield from _names_of(field.type)


def _names_of(kind: FieldTypeSpec) -> Iterator[str]:
    """Yield the names of attributes in values of a type."""
    if isinstance(kind, BagType):
        yield from filter(None, (*kind.names, kind.hidden))
    elif isinstance(kind, ObjectType):
        for field in kind.fields:
            yield from _names_in(field)
    else:
        for part in parts_of(kind):
            yield from _names_of(part)


def _productions(specification: Specification) -> Mapping[str, JsonObject]:
    """Return the objects that the reference describes, by name: those that are not compact."""
    types = JsonTypes(specification.format)
    return {
        name: kind
        for name, spec in specification.types.items()
        if isinstance(spec, ObjectType) and not spec.compact
        if isinstance(kind := types.type(spec), JsonObject) and kind.fields
    }
