"""The codec of protocol files for XML: fields are attributes, elements, and the text of the message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element

from kiebitz.dissectors.grammar.field_type import Mismatch
from kiebitz.dissectors.grammar.grammar import Field, Grammar, MessageType, Violation
from kiebitz.dissectors.grammar.xml import shapes
from kiebitz.dissectors.grammar.xml.codec import XmlCodec
from kiebitz.dissectors.grammar.xml.notes import XmlFormat
from kiebitz.dissectors.grammar.xml.shapes import TEXT, ElementType, InvalidElement, Shape
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.envelope import FileEnvelope
from kiebitz.dissectors.protocol_file.specification import (
    AnyType,
    FieldSpec,
    FieldTypeSpec,
    Format,
    ListType,
    ObjectType,
    Specification,
)
from kiebitz.dissectors.protocol_file.text_types import text_type


def shape_of(fields: Sequence[FieldSpec], of: Format) -> Shape:
    """Return the shape of an element with these fields."""
    return Shape(anywhere={field.name: _part(field.name, field.type, of, field.optional) for field in fields})


def _part(name: str, spec: FieldTypeSpec, of: Format, optional: bool = False) -> shapes.Part:
    field = Field(name, text_type(spec, of), "", optional=optional)
    match spec:
        case AnyType() | ObjectType(()):
            return shapes.Part(field, is_any=True)
        case ListType(item):
            return shapes.Part(field, item=_part(name, item, of))
        case ObjectType(fields):
            return shapes.Part(field, shape=shape_of(fields, of))
    return shapes.Part(field)


class XmlFileCodec(XmlCodec):
    """The codec of XML elements, whose name is the tag or an attribute."""

    def __init__(self, specification: Specification, grammar: Grammar) -> None:
        of = specification.format
        super().__init__(
            grammar,
            FileEnvelope(specification.framing, of),
            XmlFormat(mark=of.name[1:] if of.name.startswith("@") else None),
            encoding=of.encoding,
            codes=specification.codes,
        )

    def characters(self, frame: bytes) -> tuple[str, Violation | None]:
        try:
            return frame.decode(self.encoding), None
        except UnicodeDecodeError as error:
            return "", self.not_text(frame, error, 0)

    # Diagnostics.

    def invalid(self, frame: bytes, row: ElementType, error: InvalidElement) -> Violation:
        place = self._place(frame, error)
        if error.code == "missing-field" and not error.path:
            return self.missing_error(row, error.field, place)
        problem = error.problem if error.mismatch is None else error.mismatch.problem
        return self.field_error(row, error.field, Mismatch(0, 0, problem, error.expected, error.code), place)

    def unknown_element(
        self, frame: bytes, element: Element, sent: str | None, direction: Direction
    ) -> Violation:
        mark = self.format.mark
        if mark is None:
            return self.unknown_message(
                sent, direction, self._place(frame, InvalidElement("", "", "", "name"))
            )
        if sent is None:
            text = f"there is no attribute {mark}"
            return self.error("unknown-message", text, self._place(frame), f"{mark}=")
        place = self._place(frame, InvalidElement("", "", "", f"={mark}"))
        return self.unknown_message(sent, direction, place)

    # Descriptions.

    def notation(self, row: MessageType) -> str:
        sent = str(self.sent_name(row))
        head = sent if self.format.mark is None else f'… {self.format.mark}="{sent}"'
        names = [f' {field.name}="…"' for field in row.fields if field.name != TEXT]
        if any(field.name == TEXT for field in row.fields):
            return f"<{head}{''.join(names)}>…</{head.split()[0]}>"
        return f"<{head}{''.join(names)}/>"

    def wire_format(self) -> Mapping[str, Any]:
        described = super().wire_format()
        roots = self.framing.wire_roots
        if described["framing"]["kind"] != "xml" or not roots:
            return described
        return {**described, "framing": {**described["framing"], "roots": roots}}

    def wire_parts(self) -> Sequence[str]:
        return (*super().wire_parts(), "json", "pairs", "xml")
