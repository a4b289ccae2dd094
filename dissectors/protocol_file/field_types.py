"""Field types of protocol files in each format."""

from __future__ import annotations

from collections.abc import Callable

from kiebitz.dissectors.grammar.field_type import FieldType
from kiebitz.dissectors.protocol_file.binary_types import binary_type
from kiebitz.dissectors.protocol_file.json_types import JsonTypes, spellings_of
from kiebitz.dissectors.protocol_file.specification import FieldTypeSpec, Format
from kiebitz.dissectors.protocol_file.text_types import text_type

MakeType = Callable[[FieldTypeSpec], FieldType]


def types_of(of: Format) -> MakeType:
    """Return a function for the field types of a format."""
    if of.kind == "json":
        return JsonTypes(spellings_of(of)).type
    make = binary_type if of.kind == "struct" else text_type
    return lambda spec: make(spec, of)
