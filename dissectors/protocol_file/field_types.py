"""Field types of protocol files in each format."""

from __future__ import annotations

from kiebitz.dissectors.grammar.field_type import FieldType
from kiebitz.dissectors.protocol_file.binary_types import binary_type
from kiebitz.dissectors.protocol_file.json_types import json_type
from kiebitz.dissectors.protocol_file.specification import FieldTypeSpec, Format
from kiebitz.dissectors.protocol_file.text_types import text_type


def field_type(spec: FieldTypeSpec, of: Format) -> FieldType:
    """Return the field type for a type of a protocol file, in its format."""
    if of.kind == "json":
        return json_type(spec)
    if of.kind == "struct":
        return binary_type(spec, of)
    return text_type(spec, of)
