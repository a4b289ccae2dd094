"""Field types of protocol files in each format."""

from __future__ import annotations

from collections.abc import Callable

from kiebitz.dissectors.grammar.field_type import FieldType
from kiebitz.dissectors.protocol_file.binary_types import binary_type
from kiebitz.dissectors.protocol_file.json_types import JsonTypes, spellings_of
from kiebitz.dissectors.protocol_file.specification import FieldSpec, Format
from kiebitz.dissectors.protocol_file.text_types import field_type

MakeType = Callable[[FieldSpec], FieldType]


def types_of(of: Format) -> MakeType:
    """Return a function for the types of a format's fields."""
    if of.kind == "json":
        types = JsonTypes(spellings_of(of))
        return lambda field: types.type(field.type)
    if of.kind == "struct":
        return lambda field: binary_type(field.type, of)
    return lambda field: field_type(field, of)
