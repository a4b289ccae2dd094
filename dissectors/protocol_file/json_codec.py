"""The codec of protocol files for JSON: types, places of names and fields, and the framing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from kiebitz.dissectors.grammar.envelope import Envelope
from kiebitz.dissectors.grammar.field_type import Wrong
from kiebitz.dissectors.grammar.fields import beyond_limits, limits_title
from kiebitz.dissectors.grammar.grammar import Field, Grammar
from kiebitz.dissectors.grammar.json.codec import JsonCodec
from kiebitz.dissectors.grammar.json.containers import JsonBag, JsonList, JsonMap, JsonObject
from kiebitz.dissectors.grammar.json.framer import JsonFraming
from kiebitz.dissectors.grammar.json.layouts import JsonRow, Layout, PathLayout
from kiebitz.dissectors.grammar.json.types import (
    JsonAny,
    JsonBoolean,
    JsonChoice,
    JsonEither,
    JsonNumber,
    JsonText,
    JsonType,
)
from kiebitz.dissectors.protocol_file.envelope import FileEnvelope
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
    parts_of,
)
from kiebitz.dissectors.protocol_file.text_types import (
    bounded_matcher,
    fields_of,
    identifier_kind,
    kept,
    keys_of,
    matches_names,
    number_of,
    text_type,
)


class JsonTypes:
    """The types of one grammar: each type of the file has one, however often it is used.

    Args:
        of: The format, with other spellings of words and attributes.
    """

    def __init__(self, of: Format) -> None:
        self._spellings, self._python, self._is_lenient = of.spellings, of.python, not of.is_strict
        self._matcher = bounded_matcher if of.python is None else _trusted
        self._made: dict[int, tuple[FieldTypeSpec, JsonType]] = {}

    def type(self, spec: FieldTypeSpec) -> JsonType:
        """Return the field type for a type of a protocol file."""
        found = self._made.get(id(spec))
        if found is not None:
            return found[1]
        kind = self._make(spec)
        if spec.title and not isinstance(spec, PythonType):
            kind.title = spec.title
        if spec.wrong:
            kind.more_wrong = (*kind.more_wrong, *spec.wrong)
        # The type of the file is kept, as another one could get its id.
        self._made[id(spec)] = spec, kind
        return kind

    def _make(self, spec: FieldTypeSpec) -> JsonType:
        match spec:
            case TextType():
                return self._text(spec)
            case NumberType(least, most, whole):
                number = JsonNumber(least, most, whole, spec.usual, limits_title(spec))
                # The file of a package has its own.
                beyond = beyond_limits(spec) if self._is_lenient else ()
                number.more_wrong = tuple(Wrong(kind, title, str(value)) for kind, title, value in beyond)
                return number
            case BooleanType():
                return JsonBoolean()
            case ChoiceType():
                return JsonChoice(spec.plain, self._spellings.with_words(spec.spelled), spec.odd)
            case IdentifierType():
                return self._identifier(spec)
            case ListType(item, _, least, most):
                title = "list" if item == AnyType() else ""
                return JsonList(self.type(item), least, most, noun=spec.noun or "values", title=title)
            case ObjectType():
                return self._object(spec)
            case EitherType(options):
                return JsonEither(*map(self.type, options), noun=spec.noun)
            case BagType(names):
                return JsonBag(
                    names,
                    f"numbers of {', '.join(names)}",
                    spec.hidden or None,
                    spec.owes,
                    spec.noun or "things",
                    self._spellings,
                )
            case MapType(key, value):
                return JsonMap(text_type(key, Format(kind="words")), self.type(value))
            case BinaryType(("text" | "bytes"), _):
                return JsonText()
            case BinaryType("bool8", _):
                return JsonBoolean()
            case BinaryType():
                return self._make(number_of(spec))
            case PythonType(name):
                kind = (self._python or {})[name]
                assert isinstance(kind, JsonType), name
                return kind
            case _:
                return JsonAny()

    def _text(self, spec: TextType) -> JsonText:
        matches: Callable[[str], bool] | None = None
        title, personal = None, spec.keep is not True
        if spec.pattern is not None:
            matches = self._matcher(spec.pattern)
            title = f"text like /{spec.pattern}/"
            personal = personal and matches_names(matches)
        words, keeps = kept(spec, self._matcher)
        return JsonText(matches, words, spec.usual, spec.note or None, title, personal, keeps)

    def _object(self, spec: ObjectType) -> JsonType:
        fields = fields_of(spec.fields, lambda field: self.type(field.type))
        return JsonObject(
            *fields,
            spellings=self._spellings,
            title="" if fields else "object",
            noun=spec.noun or "an object",
            compact=spec.compact,
            sizes=spec.sizes,
            is_open=self._is_lenient or not fields,
            is_lenient=self._is_lenient,
        )

    def _identifier(self, spec: IdentifierType) -> JsonType:
        kind = identifier_kind(spec.kind)
        value = self._make(spec.of)
        if spec.kind != "player" and spec.of == TextType():
            # A free identifier may be a number or a token.
            value = JsonEither(JsonNumber(), JsonText(), noun="a number or a text")
        value.identifier, value.title = kind, kind.title
        value.is_free_text = isinstance(value, JsonText) and kind.of_player
        return value


def json_row(row: MessageSpec, fields: tuple[Field, ...]) -> JsonRow:
    """Return the row of a grammar for JSON."""
    return JsonRow(
        row.name, row.direction, fields, **keys_of(row), form=row.form, beside=row.beside, sizes=row.sizes
    )


def _trusted(pattern: str) -> Callable[[str], bool]:
    fits = re.compile(pattern).fullmatch
    return lambda text: fits(text) is not None


def json_codec(specification: Specification, grammar: Grammar, make: type[JsonCodec] | None) -> JsonCodec:
    """Return the codec of a protocol file for JSON."""
    framing = json_framing(specification) if specification.framing.kind == "json" else None
    # A line end after each message is noted if it is another one.
    has_lines = framing is not None and not framing.ends_at_bracket
    envelope = Envelope() if has_lines else FileEnvelope(specification.framing, specification.format)
    return (make or JsonCodec)(
        layout_of(specification, grammar),
        envelope,
        framing=framing,
        clause=specification.clause,
        productions=lambda: _productions(specification),
    )


def layout_of(specification: Specification, grammar: Grammar) -> Layout:
    """Return where the messages of a protocol file have their names and fields."""
    of, codes = specification.format, specification.codes
    if of.name == "*":
        return Layout(grammar, of.spellings, not of.is_strict)
    sent = {key: codes.get(key, key[1]) for key in {(row.direction, row.name): None for row in grammar.rows}}
    name, fields = (tuple(path.split(".")) if path else () for path in (of.name, of.fields))
    return PathLayout(grammar, sent, name, fields, spellings=of.spellings, is_lenient=not of.is_strict)


def json_framing(specification: Specification | None) -> JsonFraming:
    """Return how the objects of a protocol file's messages are found, without a file those of any object."""
    if specification is None:
        return JsonFraming((), ends_at_bracket=True)
    of = specification.format
    names = {path.split(".")[0] for path in (of.name, of.fields) if path}
    if of.name == "*":
        names = {*of.spellings.of(message.name for message in specification.messages)}
    keys = None
    if of.is_strict:
        # Only known attributes are in an object.
        fields = (each for message in specification.messages for each in message.fields)
        keys = of.spellings.of({name for field in fields for name in _names_in(field)})
    return JsonFraming(names, keys, ends_at_bracket=not specification.framing.end)


def _names_in(field: FieldSpec) -> Iterator[str]:
    yield field.name
    yield from _names_of(field.type)


def _names_of(kind: FieldTypeSpec) -> Iterator[str]:
    """Yield the names of attributes in values of a type."""
    if isinstance(kind, BagType):
        yield from filter(None, (*kind.names, kind.hidden))
    elif isinstance(kind, ObjectType):
        for field in kind.fields:
            yield from _names_in(field)
    else:
        for part in parts_of(kind):
            yield from _names_of(part)


def _productions(specification: Specification) -> Mapping[str, JsonObject]:
    """Return the objects that the reference describes, by name: those that are not compact."""
    types = JsonTypes(specification.format)
    return {
        name: kind
        for name, spec in specification.types.items()
        if isinstance(spec, ObjectType) and not spec.compact
        if isinstance(kind := types.type(spec), JsonObject) and kind.fields
    }
