"""Fields and rows of messages for those of a specification."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kiebitz.dissectors.grammar.field_type import FieldType
from kiebitz.dissectors.grammar.grammar import Field
from kiebitz.dissectors.protocol_file.specification import FieldSpec, MessageSpec

MakeType = Callable[[FieldSpec], FieldType]


def fields_of(specs: Sequence[FieldSpec], make: MakeType) -> tuple[Field, ...]:
    """Return the fields of a row, whose types `make` makes."""
    return tuple(
        Field(
            field.name,
            make(field),
            field.description or field.title,
            generated=field.generated,
            optional=field.optional,
        )
        for field in specs
    )


def keys_of(row: MessageSpec) -> dict[str, Any]:
    """Return the attributes of a row besides its name, its direction and its fields."""
    return {
        "description": row.description or row.name,
        "clause": row.clause or f"messages.{row.name}",
        "answers": row.answers,
        "broadcast": row.broadcast,
        "deviation": row.dialect,
        "summary": row.summary,
        "heartbeat": row.heartbeat,
    }
