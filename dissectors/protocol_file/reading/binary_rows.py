"""Checks of rows of binary messages: counted lists, and fields that show where the message ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kiebitz.dissectors.protocol_file.reading import notation
from kiebitz.dissectors.protocol_file.reading.notation import near
from kiebitz.dissectors.protocol_file.specification import (
    BinaryType,
    FieldSpec,
    FieldTypeSpec,
    Format,
    Framing,
    ListType,
    NumberType,
    ObjectType,
)


def problems_of(
    fields: Sequence[FieldSpec], format: Format, framing: Framing, takes_all: Sequence[bool]
) -> Iterator[tuple[FieldSpec, str]]:
    """Yield fields of a row and what is wrong with them; some of them take all that remains."""
    for number, field in enumerate(fields):
        problem = _problem_of_count(field, fields[:number], format)
        is_open = format.kind == "struct" and framing.kind in ("fields", "size")
        if problem is None and is_open and takes_all[number]:
            problem = f"nothing shows where {field.name} ends: use text8, text:20 or [item]*n"
        if problem is None and is_open and field.optional:
            problem = f"nothing shows whether {field.name} is absent: it needs a row of its own"
        if problem is not None:
            yield field, problem


def _problem_of_count(field: FieldSpec, before: Sequence[FieldSpec], format: Format) -> str | None:
    kind = field.type
    if isinstance(kind, ObjectType):
        inner = (_problem_of_count(each, kind.fields[:at], format) for at, each in enumerate(kind.fields))
        return next(filter(None, inner), None)
    if not isinstance(kind, ListType):
        return None
    if isinstance(kind.item, ObjectType | ListType):
        inner_problem = _problem_of_count(FieldSpec(field.name, kind.item, ""), (), format)
        if inner_problem is not None:
            return inner_problem
    if not kind.count:
        return None
    if format.kind != "struct":
        return f'[…]*{kind.count} belongs to format = "struct"'
    numbers = [each.name for each in before if _is_number(each.type)]
    if kind.count not in numbers:
        return f"no number {kind.count} is before the list{near(kind.count, numbers)}"
    return None


def _is_number(kind: FieldTypeSpec) -> bool:
    return isinstance(kind, NumberType) or (isinstance(kind, BinaryType) and kind.kind in notation.INTEGERS)
