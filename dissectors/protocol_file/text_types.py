"""Field types of protocol files for values that are sent as text; fields and rows of messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.field_type import UNKNOWN_WORD, FieldType, IdentifierKind, Mismatch, WireType
from kiebitz.dissectors.grammar.fields import (
    AnyText,
    ListText,
    Number,
    ObjectText,
    PartsText,
    Rest,
    SpelledWord,
    Text,
    Word,
    quoted,
    wire_type_of,
)
from kiebitz.dissectors.grammar.grammar import Field
from kiebitz.dissectors.grammar.inner_text import Cutter, FixedText, FixedWords
from kiebitz.dissectors.grammar.tokens import PaddedQuotes, Splitter, Tokenizer
from kiebitz.dissectors.protocol_file.specification import (
    AnyType,
    BagType,
    BinaryType,
    BooleanType,
    ChoiceType,
    EitherType,
    FieldSpec,
    FieldTypeSpec,
    Format,
    IdentifierType,
    ListType,
    MapType,
    MessageSpec,
    NumberType,
    ObjectType,
    PythonType,
    Specification,
    TextType,
)

_NULL_VALUES = ("", -1, "-1")
"""Values that identify nothing."""

_LONGEST_ITEM = 16
"""Greatest number of characters of an item that is cut from a text."""

BOOLEANS = {"true": True, "false": False}


@lru_cache(maxsize=1000)
def identifier_kind(kind: str) -> IdentifierKind:
    """Return the kind of identifier of this name: `player` and `id` identify players."""
    if kind == "player":
        return IdentifierKind("player", of_player=True, null_values=("",))
    if kind == "id":
        return IdentifierKind("player's id", of_player=True, null_values=_NULL_VALUES)
    return IdentifierKind(kind, null_values=_NULL_VALUES)


def text_type(spec: FieldTypeSpec, of: Format, *, is_part: bool = False) -> FieldType:
    """Return the field type for a type of a protocol file in a text format."""
    if isinstance(spec, PythonType):
        assert of.python is not None, spec.name
        return of.python[spec.name]
    kind = _text_type(spec, of, is_part)
    if spec.title:
        kind.title = spec.title
    return kind


def _text_type(spec: FieldTypeSpec, of: Format, is_part: bool) -> FieldType:
    match spec:
        case TextType(pattern, rest):
            text = PatternText(pattern) if pattern is not None else Rest() if rest else Text()
            text.words, text.keeps = kept(spec)
            text.is_free_text = text.is_free_text and spec.keep is not True
            return text
        case NumberType():
            return Number(limits=spec)
        case BooleanType():
            return boolean_text()
        case ChoiceType():
            return _word(spec, of)
        case IdentifierType(kind, inner):
            return with_identifier(text_type(inner, of), kind)
        case ListType() if spec.count or spec.until:
            return _counted_list(spec, of)
        case ListType() | ObjectType() if spec.is_cut or spec.pattern:
            return _cut_value(spec, of)
        case ListType():
            is_spread = takes_tokens(spec, of) and (not is_part or spec.separator == "\n")
            return _list_text(spec, of, is_spread=is_spread)
        case ObjectType(fields, separator):
            if not fields:
                return AnyText()
            if has_counts(spec) or (not is_part and has_tokens(spec, of)):
                return _spread_object(spec, of)
            kinds = {each.name: field_type(each, of, is_part=True) for each in fields}
            if separator == "\n" and of.kind == "lines":
                return ObjectText(kinds, Splitter("\n"), is_spread=True, title=" and ".join(kinds))
            tokenizer = tokenizer_of(separator.strip() or (" " if of.pads else ":"), of)
            last = fields[-1]
            if of.kind != "lines" and isinstance(last.type, ListType) and _has_words(last.type, tokenizer):
                # A last list with the object's separator has all that remain.
                kinds[last.name] = _list_text(last.type, of, is_spread=True)
            optional = frozenset(each.name for each in fields if each.optional)
            return ObjectText(kinds, tokenizer, optional)
        case BinaryType():
            return _binary_as_text(spec)
        case AnyType() | EitherType() | BagType() | MapType() | PythonType():
            # Alternatives, bags and maps belong to JSON.
            return AnyText()


def _has_words(spec: ListType, tokenizer: Tokenizer) -> bool:
    """Return True if the items of a list in an object are divided as the object's values are."""
    return not (spec.is_cut or spec.until) and (spec.separator or ",") == tokenizer.separator


def field_type(field: FieldSpec, of: Format, *, is_part: bool = False) -> FieldType:
    """Return the type of a field in a text format, with the fixed texts around it."""
    if is_on_lines(field) and not is_part and of.kind in ("words", "delimited"):
        return _on_lines(field, of)
    kind = text_type(field.type, of, is_part=is_part)
    kind.is_on_lines = of.kind == "lines" and not is_part
    *words, before = field.before.split(of.delimiter)
    after, *more = field.after.split(of.delimiter)
    if isinstance(kind, Rest) and before:
        kind.before, kind.width = before, (1, None)
    elif before or after:
        kind = FixedText(before, kind, after)
    return FixedWords(words, kind, more, Splitter(of.delimiter)) if words or more else kind


def is_on_lines(field: FieldSpec) -> bool:
    """Return True if a field of words or delimited text is on lines of its own."""
    kind = field.type
    return field.before.startswith("\n") or (isinstance(kind, ListType) and kind.separator == "\n")


def is_counted(field: FieldSpec) -> bool:
    """Return True if a field is a list whose number of items the message shows."""
    return isinstance(field.type, ListType) and bool(field.type.count or field.type.until)


def _on_lines(field: FieldSpec, of: Format) -> FieldType:
    """Return the type of a field on lines of its own."""
    spec = field.type
    if isinstance(spec, ListType) and spec.separator == "\n":
        kind: FieldType = _list_of(_of_line(spec.item, of), spec, Splitter("\n"), is_spread=True)
    else:
        kind = _of_line(spec, of)
        if (before := field.before[1:]) or field.after:
            kind = FixedText(before, kind, field.after)
    kind.is_on_lines = True
    return kind


def _of_line(spec: FieldTypeSpec, of: Format) -> FieldType:
    """Return the type of a value that is a whole line; the last value of an object has all that remains."""
    if isinstance(spec, TextType) and spec.rest:
        spec = msgspec.structs.replace(spec, rest=False)
    if isinstance(spec, IdentifierType):
        return with_identifier(_of_line(spec.of, of), spec.kind)
    if isinstance(spec, ObjectType) and spec.fields:
        kinds = {each.name: field_type(each, of, is_part=True) for each in spec.fields}
        last = spec.fields[-1]
        if not (last.before or last.after):
            kinds[last.name] = _of_line(last.type, of)
        optional = frozenset(each.name for each in spec.fields if each.optional)
        tokenizer = Splitter(spec.separator or of.delimiter, limit=len(spec.fields) - 1)
        return ObjectText(kinds, tokenizer, optional)
    return text_type(spec, of, is_part=True)


def _counted_list(spec: ListType, of: Format) -> ListText:
    """Return the type of a list whose items are tokens of the message, as many as another one says."""
    item, delimiter = spec.item, "\n" if of.kind == "lines" else of.delimiter
    is_spread = isinstance(item, ObjectType) and item.separator in ("", delimiter) and of.kind != "lines"
    kind = _spread_object(item, of) if is_spread else text_type(item, of, is_part=True)
    return _list_of(kind, spec, Splitter(delimiter), is_spread=True)


def _spread_object(spec: FieldTypeSpec, of: Format) -> ObjectText:
    assert isinstance(spec, ObjectType)
    kinds = {each.name: field_type(each, of, is_part=True) for each in spec.fields}
    return ObjectText(kinds, Splitter(of.delimiter), is_spread=True)


def _cut_value(spec: ListType | ObjectType, of: Format) -> PartsText:
    """Return the type of a list or object whose parts are cut from a text, or that has such parts."""
    if isinstance(spec, ListType):
        kinds = {"": text_type(spec.item, of, is_part=True)}
    else:
        kinds = {each.name: field_type(each, of, is_part=True) for each in spec.fields}
    if spec.is_cut:
        parts = [(kind.accepts, max(map(len, kind.words), default=_LONGEST_ITEM)) for kind in kinds.values()]
        tokenizer: Tokenizer = Cutter(parts)
    else:
        tokenizer = Splitter(spec.separator)
    if isinstance(spec, ListType):
        found: _CutText = CutList(kinds[""], tokenizer, least=spec.least, most=spec.most)
    else:
        found = CutObject(kinds, tokenizer, frozenset(each.name for each in spec.fields if each.optional))
    if spec.pattern:
        found.pattern = PatternText(spec.pattern)
        found.title = found.pattern.title
    return found


def _list_of(item: FieldType, spec: ListType, tokenizer: Tokenizer, *, is_spread: bool = False) -> ListText:
    """Return the type of a list of these items."""
    return ListText(
        item,
        tokenizer,
        least=spec.least,
        most=spec.most,
        nulls=spec.nulls,
        is_spread=is_spread,
        count=spec.count,
        until=spec.until,
    )


def bounded_matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that matches whole texts in bounded time."""
    # Most protocols do without.
    from kiebitz.dissectors.protocol_file.patterns import matcher

    return matcher(pattern)


def kept(
    spec: TextType, make: Callable[[str], Callable[[str], bool]] = bounded_matcher
) -> tuple[tuple[str, ...], Callable[[str], bool] | None]:
    """Return the words that an anonymized copy keeps, and a condition for texts that it keeps."""
    if isinstance(spec.keep, str):
        return (), make(spec.keep)
    return (() if isinstance(spec.keep, bool) else spec.keep), None


def has_counts(spec: ObjectType) -> bool:
    """Return True if an object has counted lists, so that its values are tokens of the message."""
    return any(isinstance(each.type, ListType) and bool(each.type.count) for each in spec.fields)


def has_tokens(spec: FieldTypeSpec, of: Format) -> bool:
    """Return True if the message's delimiter is between the values of an object."""
    is_object = isinstance(spec, ObjectType) and bool(spec.fields) and spec.separator == of.delimiter
    return is_object and of.kind in ("words", "delimited") and not of.pads


def _list_text(spec: ListType, of: Format, *, is_spread: bool) -> ListText:
    item = spec.item
    is_object = is_spread and has_tokens(item, of)
    kind = _spread_object(item, of) if is_object else text_type(item, of, is_part=True)
    separator = "\n" if is_spread and of.kind == "lines" else spec.separator or ","
    return _list_of(kind, spec, tokenizer_of(separator, of), is_spread=is_spread)


def takes_tokens(spec: ListType, of: Format) -> bool:
    """Return True if the items of a list are fields of the message: they have its delimiter between them."""
    if spec.count or spec.until or spec.is_cut:
        return False
    if of.kind == "lines":
        return spec.separator in ("", "\n")
    if spec.separator == "\n" and of.kind in ("words", "delimited"):
        return True
    return of.kind in ("words", "delimited") and (spec.separator or ",") == of.delimiter and not of.pads


def lines_of(spec: FieldTypeSpec, of: Format) -> tuple[int, int | None]:
    """Return the least and the greatest number of lines of a value in the format `lines`."""
    match spec:
        case TextType(_, True):
            return 0, None
        case IdentifierType(_, inner):
            return lines_of(inner, of)
        case ListType() if takes_tokens(spec, of):
            size = lines_of(spec.item, of)[0]
            return spec.least * size, None if spec.most is None else spec.most * size
        case ObjectType(fields, "\n"):
            sizes = [lines_of(field.type, of) for field in fields]
            most = [size[1] for size in sizes]
            return sum(size[0] for size in sizes), None if None in most else sum(filter(None, most))
    return 1, 1


def has_line_fields(specification: Specification) -> bool:
    """Return True if messages have fields on lines of their own; see `line_fields`."""
    of = specification.format
    fields = [field for row in specification.messages for field in row.fields]
    if of.kind == "lines":
        has_last_lines = bool(of.end) or any(row.end for row in specification.messages)
        return specification.framing.kind == "lines" and not has_last_lines and any(map(is_counted, fields))
    return of.kind in ("words", "delimited") and any(map(is_on_lines, fields))


def tokenizer_of(separator: str, of: Format) -> Tokenizer:
    """Return what divides a list or an object: with a padding, words are quoted once more."""
    return PaddedQuotes(of.quote, of.pads) if of.pads and separator == " " else Splitter(separator)


def _word(spec: ChoiceType, of: Format) -> Word:
    values = dict(zip(spec.words or map(str, spec.values), spec.values, strict=True))
    spelled = {**of.spelled, **spec.spelled}
    return SpelledWord(values, spelled) if spelled.keys() & values.keys() else Word(values=values)


def boolean_text() -> Word:
    """Return the type of `true` and `false`."""
    return Word(title="true or false", values=BOOLEANS)


def _binary_as_text(spec: BinaryType) -> FieldType:
    """Return the type of a number or text that is sent as text, though its type is a binary one."""
    if spec.kind in ("text", "bytes"):
        return Text()
    return boolean_text() if spec.kind == "bool8" else Number(limits=number_of(spec))


def number_of(spec: BinaryType) -> NumberType:
    """Return the type of number that a binary type of a number has."""
    if spec.kind in ("f32", "f64"):
        return NumberType(whole=False)
    return NumberType(*integer_limits(spec.kind))


def integer_limits(kind: str) -> tuple[int, int]:
    """Return the smallest and the largest value of an integer of a binary type."""
    if kind == "varint":
        return 0, 2**64 - 1
    bits = int(kind[1:])
    return (0, 2**bits - 1) if kind[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def with_identifier(kind: FieldType, name: str) -> FieldType:
    """Return a type whose values are identifiers of this kind."""
    kind.identifier = identifier_kind(name)
    if isinstance(kind, Text):
        # A player's name is text of its player's choice; others are tokens.
        kind.is_free_text = kind.identifier.of_player
    kind.title = kind.identifier.title
    return kind


def matches_names(matches: Callable[[str], bool]) -> bool:
    """Return True if a pattern matches any word, so that its values may be personal."""
    return any(map(matches, (UNKNOWN_WORD, UNKNOWN_WORD.lower(), UNKNOWN_WORD.upper(), "Jo")))


class PatternText(Text):
    """A text that matches a regular expression."""

    def __init__(self, pattern: str) -> None:
        super().__init__()
        self.title = f"text like /{pattern}/"
        self.matches = bounded_matcher(pattern)
        self.is_free_text = matches_names(self.matches)

    def decode(self, text: str) -> str:
        if not self.matches(text):
            raise Mismatch(0, len(text), f"{quoted(text)} has another form", self.title)
        return text

    def wire_type(self) -> WireType | None:
        return {"kind": "text", "limit": "its pattern is not checked"}


class _CutText(PartsText):
    """A value whose parts are cut from a text that matches a `pattern`, if there is one."""

    pattern: PatternText | None = None

    def decode(self, text: str) -> Any:
        return super().decode(text if self.pattern is None else self.pattern.decode(text))

    def wire_type(self) -> WireType | None:
        found = super().wire_type()
        limits = [] if self.pattern is None else ["its pattern is not checked"]
        if not self.tokenizer.separator and any(map(_has_limit, map(wire_type_of, self.parts))):
            # Where such a part ends is not known there.
            return {"kind": "text", "limit": limits[0] if limits else "its parts are not checked"}
        return found and {**found, "limit": limits[0] if limits else None}


def _has_limit(kind: Mapping[str, Any]) -> bool:
    parts = [kind.get("item"), *(field["type"] for field in kind.get("fields", ()))]
    return bool(kind.get("limit")) or any(_has_limit(part) for part in parts if part is not None)


class CutList(_CutText, ListText):
    """A list whose items have nothing between them, or have such items."""


class CutObject(_CutText, ObjectText):
    """An object whose values have nothing between them, or have such values."""


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
