"""The codec of protocol files for XML: rows with the shapes of their elements, and the notation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.field_type import FieldType
from kiebitz.dissectors.grammar.grammar import Field, Grammar
from kiebitz.dissectors.grammar.xml import shapes
from kiebitz.dissectors.grammar.xml.codec import XmlCodec
from kiebitz.dissectors.grammar.xml.notes import XmlFormat
from kiebitz.dissectors.grammar.xml.shapes import Compound, ElementField, ElementType, Shape, closed_shape
from kiebitz.dissectors.model import DIRECTIONS, Direction
from kiebitz.dissectors.protocol_file.envelope import FileEnvelope
from kiebitz.dissectors.protocol_file.specification import (
    AnyType,
    FieldSpec,
    FieldTypeSpec,
    Format,
    ListType,
    MessageSpec,
    ObjectType,
    Specification,
)
from kiebitz.dissectors.protocol_file.text_types import text_type


def element_row(
    message: MessageSpec,
    of: Format,
    name: str,
    direction: Direction,
    fields: tuple[Field, ...],
    description: str,
    **more: Any,
) -> ElementType:
    """Return a row with the shape of its element."""
    specs = [spec for spec in message.fields if spec not in of.outer]
    if of.is_strict:
        entries = [_element_field(spec, of, field) for spec, field in zip(specs, fields, strict=False)]
        fields = (*(entry.field for entry in entries), *fields[len(specs) :])
        shape = closed_shape(name, entries, fields[len(specs) :])
    else:
        shape = _open_shape(message.fields, of)
    return ElementType(name, direction, fields, description, shape=shape, repeats=message.repeats, **more)


def _element_type(name: str, spec: FieldTypeSpec, of: Format) -> FieldType:
    """Return the type of an element, or of the elements of a list, which may have others in them."""
    match spec:
        case ListType(item):
            return _element_type(name, item, of)
        case ObjectType((_, *_) as fields):
            entries = (_element_field(each, of, _field(each, of)) for each in fields)
            return Compound(name, closed_shape(name, entries))
    return text_type(spec, of)


def _field(spec: FieldSpec, of: Format) -> Field:
    kind = text_type(spec.type, of)
    return Field(spec.name, kind, spec.title, generated=spec.generated, optional=spec.optional)


def _element_field(spec: FieldSpec, of: Format, field: Field) -> ElementField:
    kind, least = spec.type, int(not spec.optional)
    if spec.is_attribute:
        return ElementField(field, True, least)
    field = msgspec.structs.replace(field, type=_element_type(spec.name, kind, of))
    if not isinstance(kind, ListType):
        return ElementField(field, False, least)
    # A list without elements is not there.
    return ElementField(field, False, kind.least * least, kind.most or shapes.MAX_ITEMS)


def _open_shape(fields: Iterable[FieldSpec], of: Format) -> Shape:
    return Shape(anywhere={field.name: _part(field.name, field.type, of, field.optional) for field in fields})


def _part(name: str, spec: FieldTypeSpec, of: Format, optional: bool = False) -> shapes.Part:
    field = Field(name, text_type(spec, of), "", optional=optional)
    match spec:
        case AnyType() | ObjectType(()):
            return shapes.Part(field, is_any=True)
        case ListType(item):
            return shapes.Part(field, item=_part(name, item, of))
        case ObjectType(fields):
            return shapes.Part(field, shape=_open_shape(fields, of))
    return shapes.Part(field)


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


def xml_codec(specification: Specification, grammar: Grammar) -> XmlCodec:
    """Return the codec of a protocol file for XML."""
    of, lenient = specification.format, specification.lenient
    *path, mark = of.name.split("/")
    return XmlCodec(
        grammar,
        FileEnvelope(specification.framing, of),
        XmlFormat(
            mark=mark[1:] if mark.startswith("@") else None,
            path=tuple(path),
            envelope=of.envelope,
            stays_open=of.stays_open,
            outer=tuple(_field(field, of) for field in of.outer),
            blank_line=bool(specification.framing.kind == "xml" and specification.framing.end),
            charset=lenient.charset,
            misprints=lenient.misprints,
            is_strict=of.is_strict,
        ),
        encoding=of.encoding,
        codes=specification.codes,
    )
