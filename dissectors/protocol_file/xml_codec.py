"""The codec of protocol files for XML: rows with the shapes of their elements, and the notation."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.envelope import Envelope
from kiebitz.dissectors.grammar.grammar import Field, Grammar
from kiebitz.dissectors.grammar.xml.codec import XmlCodec
from kiebitz.dissectors.grammar.xml.diagnostics import XmlFormat
from kiebitz.dissectors.grammar.xml.shapes import (
    MAX_ITEMS,
    Compound,
    ElementList,
    ElementType,
    Shape,
    closed_shape,
)
from kiebitz.dissectors.model import DIRECTIONS
from kiebitz.dissectors.protocol_file.envelope import FileEnvelope
from kiebitz.dissectors.protocol_file.specification import (
    FieldSpec,
    Format,
    ListType,
    MessageSpec,
    ObjectType,
    Specification,
)
from kiebitz.dissectors.protocol_file.text_types import keys_of, text_type


def element_row(
    message: MessageSpec,
    fields: tuple[Field, ...],
    of: Format,
) -> ElementType:
    """Return a row with the shape of its element."""
    count = sum(spec not in of.outer for spec in message.fields)
    if of.is_strict:
        fields = tuple(map(_strict_field, message.fields, fields, repeat(of)))
        are_attributes = (spec.is_attribute for spec in message.fields)
        shape = closed_shape(message.name, zip(fields[:count], are_attributes, strict=False), fields[count:])
    else:
        optional = frozenset(field.name for field in fields if field.optional)
        shape = Shape(anywhere={field.name: field.type for field in fields}, optional=optional)
    return ElementType(
        message.name, message.direction, fields, **keys_of(message), shape=shape, repeats=message.repeats
    )


def _strict_field(spec: FieldSpec, field: Field, of: Format) -> Field:
    """Return a field whose type is that of elements, unless it is an attribute."""
    if spec.is_attribute:
        return field
    kind, item = spec.type, spec.type.item if isinstance(spec.type, ListType) else spec.type
    element = text_type(item, of)
    if isinstance(item, ObjectType) and item.fields:
        inner = ((_strict_field(each, _field(each, of), of), each.is_attribute) for each in item.fields)
        element = Compound(spec.name, closed_shape(spec.name, inner))
    if isinstance(kind, ListType):
        element = ElementList(element, kind.least, kind.most or MAX_ITEMS)
    return msgspec.structs.replace(field, type=element)


def _field(spec: FieldSpec, of: Format) -> Field:
    kind = text_type(spec.type, of)
    return Field(spec.name, kind, spec.title, generated=spec.generated, optional=spec.optional)


def document_rows(specification: Specification) -> tuple[ElementType, ...]:
    """Return the rows for the tags of an element around all messages; none if there is none."""
    of = specification.format
    if not of.stays_open:
        return ()
    about = "the document begins or ends"
    return tuple(
        ElementType(of.envelope, direction, (), about, clause="root", heartbeat=True)
        for direction in DIRECTIONS
    )


def xml_codec(
    specification: Specification, grammar: Grammar, make: type[XmlCodec] | None, **more: Any
) -> XmlCodec:
    """Return the codec of a protocol file for XML."""
    of, lenient, framing = specification.format, specification.lenient, specification.framing
    has_blank_line = framing.kind == "xml" and bool(framing.end)
    *path, mark = of.name.split("/")
    return (make or XmlCodec)(
        grammar,
        # The empty line and the blanks around a message are noted.
        Envelope() if has_blank_line else FileEnvelope(framing, of),
        XmlFormat(
            mark=mark[1:] if mark.startswith("@") else None,
            path=tuple(path),
            envelope=of.envelope,
            stays_open=of.stays_open,
            outer=tuple(_field(field, of) for field in of.outer),
            blank_line=has_blank_line,
            charset=lenient.charset,
            misprints=lenient.misprints,
            is_strict=of.is_strict,
        ),
        **more,
    )
