"""Field types of protocol files in each format."""

from __future__ import annotations

from kiebitz.dissectors.protocol_file.rows import MakeType
from kiebitz.dissectors.protocol_file.specification import Format


def types_of(of: Format) -> MakeType:
    """Return a function for the field types of a format."""
    # A protocol has one format.
    if of.kind == "json":
        from kiebitz.dissectors.protocol_file.json_types import JsonTypes

        types = JsonTypes(of)
        return lambda field: types.type(field.type)
    if of.kind == "struct":
        from kiebitz.dissectors.protocol_file.binary_types import binary_type

        return lambda field: binary_type(field.type, of)
    from kiebitz.dissectors.protocol_file.text_types import field_type

    return lambda field: field_type(field, of)
