"""Checks of rows: counted lists, ends of binary messages, and what only text has."""

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
    IdentifierType,
    ListType,
    NumberType,
    ObjectType,
    TextType,
    parts_of,
)
from kiebitz.dissectors.protocol_file.text_types import has_tokens, is_on_lines, takes_tokens

_HAS_TOKENS = ("words", "delimited")
"""Formats whose fields are tokens of the message."""

_HAS_LINES = (*_HAS_TOKENS, "lines")
"""Formats with lists that have a number of lines."""


def problems_of(
    fields: Sequence[FieldSpec], format: Format, framing: Framing, takes_all: Sequence[bool]
) -> Iterator[tuple[FieldSpec, str]]:
    """Yield fields of a row and what is wrong with them; some of them take all that remains."""
    for number, field in enumerate(fields):
        problem = _problem_of_count(field, fields[:number], format) or next(
            _problems_of_text(field, format, is_part=False), None
        )
        if problem is None and format.kind in _HAS_TOKENS:
            problem = _problem_of_lines(field, fields[:number], format, framing)
        is_open = format.kind == "struct" and framing.kind in ("fields", "size")
        if problem is None and is_open and takes_all[number]:
            problem = f"nothing shows where {field.name} ends: use text8, text:20 or [item]*n"
        if problem is None and is_open and field.optional:
            problem = f"nothing shows whether {field.name} is absent: it needs a row of its own"
        if problem is not None:
            yield field, problem


def _problem_of_lines(
    field: FieldSpec, before: Sequence[FieldSpec], format: Format, framing: Framing
) -> str | None:
    """Return what is wrong with the lines of a field."""
    if not is_on_lines(field):
        if "\n" in field.before + field.after:
            return "a line end is the first character of a fixed text before a value"
        first = next((each.name for each in before if is_on_lines(each)), None)
        return f"{first} is on a line of its own: {field.name} must be before it" if first else None
    if format.pads:
        return "with pad, a message is one line"
    if field.optional:
        return f"nothing shows whether the line of {field.name} is absent: it needs a row of its own"
    kind = field.type
    is_open = isinstance(kind, ListType) and not (kind.count or kind.until) and kind.least != kind.most
    if is_open and framing.kind == "lines":
        return f"nothing shows how many lines {field.name} has: write *n, a number, or ..'END' after the list"
    return None


def _problem_of_count(field: FieldSpec, before: Sequence[FieldSpec], format: Format) -> str | None:
    kind = field.type
    if isinstance(kind, ObjectType):
        if has_tokens(kind, format) and any(each.optional for each in kind.fields):
            return "of values that are words of the message, none can be absent: ? is not possible"
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
    if format.kind not in (*_HAS_LINES, "struct") or format.pads:
        return f'[…]*{kind.count} belongs to format = "struct", "words", "delimited" or "lines"'
    numbers = [each.name for each in before if _is_number(each.type)]
    if kind.count not in numbers:
        return f"no number {kind.count} is before the list{near(kind.count, numbers)}"
    return None


def _is_number(kind: FieldTypeSpec) -> bool:
    return isinstance(kind, NumberType) or (isinstance(kind, BinaryType) and kind.kind in notation.INTEGERS)


def _problems_of_text(field: FieldSpec, format: Format, is_part: bool) -> Iterator[str]:
    """Yield what is wrong with a field of a message, or with one inside it."""
    has_tokens = format.kind in _HAS_TOKENS and not format.pads
    fixed = field.before + field.after
    if has_tokens and not is_part and field.before.startswith("\n"):
        yield from _problems_of_type(field.type, format, is_part=True)
        return
    kind = field.type.of if isinstance(field.type, IdentifierType) else field.type
    if fixed and format.kind not in (*_HAS_TOKENS, "pairs"):
        yield f'fixed text belongs to format = "words" or "delimited", not to {format.kind}'
    elif fixed and isinstance(kind, TextType) and kind.rest:
        yield "fixed text is around a value that ends before the message does"
    elif format.delimiter in fixed and (is_part or not has_tokens):
        yield "a fixed text with the delimiter in it belongs to a field of the message"
    if _has_delimiter(field.type, format, is_part):
        yield f'"{format.delimiter}" is between fields of the message: choose another, as in {{x y,}}'
    yield from _problems_of_type(field.type, format, is_part or not (has_tokens or format.kind == "lines"))


def _has_delimiter(kind: FieldTypeSpec, format: Format, is_part: bool) -> bool:
    """Return True if a value has the message's delimiter in it where that ends the field."""
    if isinstance(kind, ObjectType) and len(kind.fields) > 1:
        is_one = (
            kind.separator == format.delimiter and format.kind in (*_HAS_TOKENS, "pairs") and not format.pads
        )
        return is_one and (is_part or format.kind == "pairs")
    if isinstance(kind, ListType):
        is_spread = takes_tokens(kind, format) or bool(kind.count or kind.until)
        is_ended = format.kind == "pairs" and kind.separator == format.delimiter and not kind.is_cut
        return is_ended or _has_delimiter(kind.item, format, is_part or not is_spread)
    return False


def _problems_of_type(kind: FieldTypeSpec, format: Format, is_part: bool) -> Iterator[str]:
    if isinstance(kind, ListType):
        if kind.until and is_part:
            yield f"a list up to {kind.until} belongs to a field of a message of words or lines"
        if (kind.is_cut or kind.pattern) and format.kind not in (*_HAS_TOKENS, "pairs", "lines"):
            yield f"values without anything between them belong to text, not to {format.kind}"
        is_part = is_part or not (kind.count or kind.until)
    if isinstance(kind, ObjectType):
        for each in kind.fields:
            yield from _problems_of_text(each, format, is_part=is_part)
    else:
        for part in parts_of(kind):
            yield from _problems_of_type(part, format, is_part)


def same_separators(kind: FieldTypeSpec, format: Format) -> str | None:
    """Return the separator of a list in text that its items have in them, too, so that they never fit."""
    if format.kind not in (*_HAS_TOKENS, "pairs") or format.pads:
        return None
    if isinstance(kind, ListType) and not (kind.count or kind.until or kind.is_cut):
        between = kind.separator or ","
        if isinstance(kind.item, ObjectType) and len(kind.item.fields) > 1:
            is_spread = has_tokens(kind.item, format) and between == format.delimiter
            if between == (kind.item.separator or ":") and not is_spread:
                return between
        elif (
            isinstance(kind.item, ListType)
            and not kind.item.is_cut
            and between == (kind.item.separator or ",")
        ):
            return between
    return next(filter(None, (same_separators(part, format) for part in parts_of(kind))), None)
