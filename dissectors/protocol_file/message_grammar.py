"""The grammar of a protocol file's messages: its rows, and the types of their fields.

A protocol has one format, so only its modules are loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from kiebitz.dissectors.grammar.grammar import Grammar, MessageType
from kiebitz.dissectors.protocol_file.specification import (
    FieldTypeSpec,
    Format,
    MessageSpec,
    ObjectType,
    Specification,
    parts_of,
)
from kiebitz.dissectors.protocol_file.text_types import MakeType, fields_of, keys_of

_NO_PATHS = ("first", "tag", "*")
"""Values of a format's `name` that are no words of the protocol."""


def grammar_with(specification: Specification, more_words: Iterable[str] = (), **more: Any) -> Grammar:
    """Return the grammar with the rows of a protocol file.

    Args:
        specification: The content of the file.
        more_words: Words of the protocol besides those of the file.
        more: Further arguments of `Grammar`.
    """
    of = specification.format
    return Grammar(
        specification.protocol,
        specification.title,
        lenient=specification.lenient,
        spellings=of.spellings.of,
        more_words=chain(filter(None, _more_words(specification)), more_words),
        transport_rows=_transport_rows(specification),
        python_types=of.python or {},
        **{
            "rows": rows_of(specification),
            "foreign": any(row.summary for row in specification.messages),
            **more,
        },
    )


def rows_of(specification: Specification) -> Iterator[MessageType]:
    """Yield the rows of the messages of a protocol file."""
    makers: dict[int, Callable[[MessageSpec], MessageType]] = {}
    for row in specification.messages:
        of = specification.format_of(row.direction)
        make = makers.get(id(of)) or makers.setdefault(id(of), _row_maker(specification, of))
        yield make(row)


def _row_maker(specification: Specification, of: Format) -> Callable[[MessageSpec], MessageType]:
    """Return a function that makes the rows of a format."""
    head, make = len(specification.framing.fields), types_of(of)
    if of.kind == "json" and not head:
        from kiebitz.dissectors.protocol_file.json_codec import json_row

        return lambda row: json_row(row, fields_of(row.fields, make))
    if of.kind == "xml" and not head:
        from kiebitz.dissectors.protocol_file.xml_codec import element_row

        return lambda row: element_row(row, fields_of(row.fields, make), of)
    # After a header, the codec has rows of its own.
    own = types_of_head(specification, of) if head else make

    def plain(row: MessageSpec) -> MessageType:
        fields = (*fields_of(row.fields[:head], own), *fields_of(row.fields[head:], make))
        return MessageType(row.name, row.direction, fields, **keys_of(row))

    return plain


def types_of(of: Format) -> MakeType:
    """Return a function for the field types of a format."""
    if of.kind == "json":
        from kiebitz.dissectors.protocol_file.json_codec import JsonTypes

        types = JsonTypes(of)
        return lambda field: types.type(field.type)
    if of.kind == "struct":
        from kiebitz.dissectors.protocol_file.binary_types import binary_type

        return lambda field: binary_type(field.type, of)
    from kiebitz.dissectors.protocol_file.text_types import field_type

    return lambda field: field_type(field, of)


def types_of_head(specification: Specification, of: Format) -> MakeType:
    """Return a function for the field types of a header, or of the text before a name."""
    if specification.framing.before:
        from kiebitz.dissectors.protocol_file.text_types import text_type

        return lambda field: text_type(field.type, of)
    from kiebitz.dissectors.protocol_file.binary_types import binary_type

    return lambda field: binary_type(field.type, of)


def _transport_rows(specification: Specification) -> Sequence[MessageType]:
    if specification.framing.kind == "websocket":
        from kiebitz.dissectors.websocket.control import ROWS

        return ROWS
    if specification.format.stays_open:
        from kiebitz.dissectors.protocol_file.xml_codec import document_rows

        return document_rows(specification)
    return ()


def _more_words(specification: Specification) -> Iterator[str]:
    """Yield the words of the protocol that are no names of messages and fields: around and within these."""
    of = specification.format
    for path in (of.name, of.fields) if of.name not in _NO_PATHS else ():
        yield from path.strip("@").split(".")
    yield of.envelope
    if of.kind == "lines":
        yield from (of.mark, of.end)
        yield from (row.end for row in specification.messages if row.end is not None)
    for row in specification.messages:
        for field in row.fields:
            yield from _names_in(field.type)


def _names_in(type: FieldTypeSpec) -> Iterator[str]:
    """Yield the names of the fields of objects in values of a type."""
    if isinstance(type, ObjectType):
        yield from (field.name for field in type.fields)
    for part in parts_of(type):
        yield from _names_in(part)
