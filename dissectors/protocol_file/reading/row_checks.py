"""Checks of rows: counted lists, ends of binary messages, what only text has, and numbers of lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from kiebitz.dissectors.grammar.fields import INTEGER
from kiebitz.dissectors.protocol_file.reading import notation
from kiebitz.dissectors.protocol_file.reading.notation import near
from kiebitz.dissectors.protocol_file.reading.source import Path, Source
from kiebitz.dissectors.protocol_file.specification import (
    AnyType,
    BagType,
    BinaryType,
    ChoiceType,
    EitherType,
    FieldSpec,
    FieldTypeSpec,
    Format,
    Framing,
    FramingKind,
    IdentifierType,
    ListType,
    MapType,
    NumberType,
    ObjectType,
    TextType,
    parts_of,
    value_type,
)
from kiebitz.dissectors.protocol_file.text_types import (
    has_tokens,
    is_counted,
    is_on_lines,
    lines_of,
    takes_tokens,
)

_HAS_TOKENS = ("words", "delimited")
"""Formats whose fields are tokens of the message."""

_HAS_LINES = (*_HAS_TOKENS, "lines")
"""Formats with lists that have a number of lines."""


_ONLY_JSON = {BagType: "bag", EitherType: "or", MapType: "an object with any keys"}
"""The types that only JSON has, in words."""


def types_in(kind: FieldTypeSpec) -> Iterator[FieldTypeSpec]:
    """Yield a type and the types in it."""
    yield kind
    for part in parts_of(kind):
        yield from types_in(part)


def problems_of(
    fields: Sequence[FieldSpec], format: Format, framing: Framing
) -> Iterator[tuple[FieldSpec, str]]:
    """Yield fields of a row and what is wrong with them."""
    is_open = format.kind == "struct" and framing.kind in ("fields", "size")
    for number, field in enumerate(fields):
        before = fields[:number]
        yield from ((field, problem) for problem in _problems_of_format(field, format))
        problem = _problem_of_count(field, before, format) or next(
            _problems_of_text(field, format, is_part=False), None
        )
        if problem is None and format.kind in _HAS_TOKENS:
            problem = _problem_of_lines(field, before, format, framing)
        if problem is None and is_open and _takes_all(field.type, format):
            problem = f"nothing shows where {field.name} ends: use text8, text:20 or [item]*n"
        if problem is None and is_open and field.optional:
            problem = f"nothing shows whether {field.name} is absent: it needs a row of its own"
        if problem is not None:
            yield field, problem
    for field, following in pairwise(fields if format.kind in (*_HAS_TOKENS, "struct") else ()):
        if _takes_all(field.type, format):
            yield field, f"{field.name} takes all that remains: it must be the last field"
        elif format.kind == "struct" and field.optional and not following.optional:
            yield field, f"{field.name} may be absent: so must be {following.name} after it"


def _problems_of_format(field: FieldSpec, format: Format) -> Iterator[str]:
    """Yield the parts of a field's type that other formats have."""
    kinds = [*types_in(field.type)]
    lists = [kind for kind in kinds if isinstance(kind, ListType)]
    is_xml, is_strict_xml = format.kind == "xml", format.kind == "xml" and format.is_strict
    words = [word for kind in kinds if isinstance(kind, ChoiceType) for word in kind.words]
    has_counts = format.kind == "json" or is_strict_xml
    only_json = [_ONLY_JSON[type(kind)] for kind in kinds if type(kind) in _ONLY_JSON]
    if only_json and format.kind != "json":
        yield f"{only_json[0]} belongs to format = json"
    if format.kind == "json" and words:
        yield "other words for values belong to text that is no json"
    elif format.kind == "struct" and not all(map(INTEGER.fullmatch, words)):
        yield "words of a binary message have numbers: 0=red|1=blue"
    if format.kind in ("json", "xml", "struct") and any(
        kind.nulls
        or (
            (kind.least or kind.most)
            # The number may be the same in all binary messages.
            and not (has_counts or (format.kind == "struct" and kind.least == kind.most))
        )
        for kind in lists
    ):
        written = "? for an item" if has_counts else "a number of items, or ?,"
        yield f"{written} belongs to text that is no {format.kind}"
    if is_xml and not is_strict_xml and _has_attributes(field):
        yield "@ belongs to strict = true"
    if is_strict_xml and any(isinstance(kind.item, ListType) for kind in lists):
        yield "elements do not show to which of several lists they belong"


def _has_attributes(field: FieldSpec) -> bool:
    """Return True if a field, or one inside it, is an attribute."""
    kind = field.type
    while isinstance(kind, ListType):
        kind = kind.item
    inner = kind.fields if isinstance(kind, ObjectType) else ()
    return field.is_attribute or any(map(_has_attributes, inner))


def has_text_or_elements(name: str, fields: Sequence[FieldSpec]) -> bool:
    """Return True if an element of a name, and each in it, has a text or elements, but not both."""
    inside = [field for field in fields if not field.is_attribute]
    for field in inside:
        kind = field.type.item if isinstance(field.type, ListType) else field.type
        if field.name == name:
            if len(inside) > 1 or isinstance(kind, ObjectType):
                return False
        elif isinstance(kind, ObjectType) and not has_text_or_elements(field.name, kind.fields):
            return False
    return True


def _takes_all(kind: FieldTypeSpec, format: Format) -> bool:
    """Return True if a value extends to the end of the message."""
    match kind:
        case TextType(_, rest):
            return rest
        case ListType():
            if format.kind == "struct":
                return not (kind.count or kind.most)
            return kind.most is None and takes_tokens(kind, format)
        case BinaryType(("text" | "bytes"), None) | AnyType():
            return format.kind == "struct"
        case IdentifierType(_, of):
            return _takes_all(of, format)
    return False


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
    if framing.has_name and framing.kind == "lines":
        return "of a name in the header, nothing shows how many lines follow"
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
    kind = value_type(field.type)
    if fixed and format.kind not in (*_HAS_TOKENS, "pairs"):
        yield f'fixed text belongs to format = "words" or "delimited", not to {format.kind}'
    elif (
        isinstance(kind, TextType) and kind.rest and (field.after or (fixed and (is_part or not has_tokens)))
    ):
        yield "fixed text is around a value that ends before the message does"
    elif isinstance(kind, TextType) and kind.rest and format.delimiter in fixed:
        yield "a fixed text before all that remains is one word"
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
    is_text = format.kind in (*_HAS_TOKENS, "pairs", "lines")
    if isinstance(kind, ListType | ObjectType) and (kind.is_cut or kind.pattern) and not is_text:
        yield f"values without anything between them belong to text, not to {format.kind}"
    if isinstance(kind, ListType):
        if kind.until and is_part:
            yield f"a list up to {kind.until} belongs to a field of a message of words or lines"
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


MAX_LINES = 500
"""Maximum number of lines that a packet of lines must have."""


class PacketRows:
    """Checks the rows of a file; mistakes are added to the source."""

    def __init__(self, source: Source, format: Format, framing: FramingKind) -> None:
        self._source = source
        self._format = format
        self._is_packet = format.kind == "lines" and framing == "lines"
        self._ends: dict[str, str] = {}
        """Last lines by name."""
        self._lines: dict[tuple[str, str], int] = {}
        """Numbers of lines of packets without a last line, by direction and name."""

    def check(
        self,
        path: Path,
        name: str,
        direction: str,
        fields: Sequence[FieldSpec],
        end: str | None,
        report: Callable[[FieldSpec, str], None],
    ) -> int:
        """Check a row with a last line of its own, if `end` is not None; return its least number of lines.

        Mistakes of fields are reported with `report`.
        """
        if end is not None and not self._is_packet:
            self._source.wrong_key((*path, "end"), "end belongs to format = lines, with framing = lines")
        if self._format.kind != "lines":
            return 0
        if self._is_packet:
            end = self._format.end if end is None else end
            if self._ends.setdefault(name, end) != end:
                known = f'"{self._ends[name]}"' if self._ends[name] else "no last line"
                self._source.wrong(
                    (*path, "is"), f"all rows of {name} have the same end, and another has {known}"
                )
            if self._format.mark + name == end:
                self._source.wrong_key(("messages", name), f"{end} is the last line of its packets")
        lines = self._check_fields(fields, self._is_packet and not end, report)
        if any(map(is_counted, fields)):
            if self._is_packet and end:
                self._source.wrong(
                    (*path, "is"), "a list has a number of lines, or up to a word, if there is no end"
                )
        elif self._is_packet and not end and self._lines.setdefault((direction, name), lines) != lines:
            self._source.wrong(
                (*path, "is"), f"rows of {name} have different numbers of lines: this needs end"
            )
        return lines

    def _check_fields(
        self, fields: Sequence[FieldSpec], is_ended_by_fields: bool, report: Callable[[FieldSpec, str], None]
    ) -> int:
        """Check the lines of fields, with which a message may end; return their least number."""
        total = 0
        has_open = False
        for field in fields:
            least, most = lines_of(field.type, self._format)
            if is_counted(field):
                least = most = 0
            total += least
            problem = self._problem(field.type)
            if problem is None and has_open:
                problem = "the field before it takes all lines that remain"
            elif problem is None and is_ended_by_fields and (field.optional or least != most):
                problem = f"{field.name} has any number of lines: this needs a last line, end, or a count, *n"
            elif problem is None and total > MAX_LINES:
                problem = f"more than {MAX_LINES} lines"
            if problem is not None:
                report(field, problem)
                return 0
            has_open = most is None
        return total

    def _problem(self, kind: FieldTypeSpec, is_line: bool = False) -> str | None:
        """Return why a type's lines cannot be told apart; a type that `is_line` must be within one line."""
        parts: Sequence[tuple[FieldTypeSpec, bool]] = ()
        match kind:
            case IdentifierType(_, inner):
                parts = [(inner, is_line)]
            case ListType(item):
                has_tokens = takes_tokens(kind, self._format) or bool(kind.count or kind.until)
                has_lines = has_tokens and not (is_line and kind.separator == "")
                if has_lines and is_line:
                    return "lines cannot be within a line"
                least, most = lines_of(item, self._format)
                if has_lines and least != most:
                    return "an item of several lines has a fixed number of them"
                parts = [(item, not has_lines or least == 1)]
            case ObjectType(fields, separator):
                if separator == "\n" and is_line:
                    return "lines cannot be within a line"
                if separator == "\n" and any(each.optional for each in fields):
                    return "a value of several lines has a fixed number of them: ? is not possible"
                last = fields[-1] if fields else None
                parts = [(each.type, separator != "\n" or each is not last) for each in fields]
        problems = (self._problem(part, within) for part, within in parts)
        return next(filter(None, problems), None)
