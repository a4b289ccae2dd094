"""Field types of protocol files for values of JSON, which are typed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.field_type import FieldType, Mismatch, Rename, Replace
from kiebitz.dissectors.grammar.fields import (
    LARGEST,
    MAX_QUOTED,
    OF_WHOLE_FIELDS,
    SMALLEST,
    beyond_limits,
    limits_title,
)
from kiebitz.dissectors.grammar.grammar import nearest_word, shortened, to_json
from kiebitz.dissectors.grammar.invalid_values import LONG, UNKNOWN_WORD, Wrong
from kiebitz.dissectors.grammar.patching import Path
from kiebitz.dissectors.protocol_file.patterns import matcher
from kiebitz.dissectors.protocol_file.specification import (
    AnyType,
    BinaryType,
    BooleanType,
    ChoiceType,
    FieldSpec,
    FieldTypeSpec,
    IdentifierType,
    ListType,
    NumberType,
    ObjectType,
    TextType,
)
from kiebitz.dissectors.protocol_file.text_types import identifier_kind, matches_names, number_of
from kiebitz.dissectors.suggestions import with_suggestion

_WRONG = (
    Wrong("null", "null in its place", "null"),
    Wrong("unknown", "an unknown word", f'"{UNKNOWN_WORD}"'),
    Wrong("other-type", "a list in its place", "[[]]"),
    Wrong("negative", "a number below zero", "-1"),
    Wrong("too-large", "a number of 32 bits", "4294967295", odd=True),
    Wrong("fraction", "a number with a fraction", "1.5"),
    Wrong("empty", "an empty text", '""', odd=True),
    Wrong("too-long", f"a text of {LONG} characters", f'"{"x" * LONG}"', odd=True),
    Wrong("control", "control characters, escaped", f'"{UNKNOWN_WORD}\\u0000\\u001b[31m"', odd=True),
    Wrong(
        "markup", "characters that are markup in other formats", f'"<b>&\\"{UNKNOWN_WORD}\\"</b>"', odd=True
    ),
    Wrong("outside-ascii", "letters of two and four bytes", '"Größe🎲"', odd=True),
)
_NOT_IN_PARTS = (*OF_WHOLE_FIELDS, "fraction", "too-large")


class Misfit(Mismatch):
    """Raised for a value at `path` of a field, or a key that is its last step, that is not valid."""

    def __init__(self, problem: str, expected: str, code: str = "bad-value", of_key: bool = False) -> None:
        super().__init__(0, 0, problem, expected, code)
        self.path: Path = ()
        self.of_key = of_key

    def inside(self, step: str | int) -> Misfit:
        """Prepend the step to the enclosing value to the path."""
        self.path = (step, *self.path)
        return self


def json_quoted(value: Any) -> str:
    """Return a value as it is quoted in a sentence."""
    return shortened(to_json(value), MAX_QUOTED)


def json_type(spec: FieldTypeSpec) -> JsonType:
    """Return the field type for a type of a protocol file."""
    match spec:
        case TextType(pattern, _):
            return JsonText() if pattern is None else JsonPattern(pattern)
        case NumberType():
            return JsonNumber(spec)
        case BooleanType():
            return JsonBoolean()
        case ChoiceType(values):
            return JsonChoice(values)
        case IdentifierType(kind, inner):
            # An id may be a number or a token.
            value = JsonToken() if kind != "player" and inner == TextType() else json_type(inner)
            value.identifier = identifier_kind(kind)
            value.is_free_text = isinstance(value, JsonText) and value.identifier.of_player
            value.title = value.identifier.title
            return value
        case ListType(item, _):
            return JsonList(json_type(item))
        case ObjectType(fields, _):
            return JsonObject(fields)
        case AnyType():
            return JsonAny()
        case BinaryType():
            return _binary_as_json(spec)


def _binary_as_json(spec: BinaryType) -> JsonType:
    if spec.kind in ("text", "bytes"):
        return JsonText()
    return JsonBoolean() if spec.kind == "bool8" else JsonNumber(number_of(spec))


class JsonType(FieldType):
    """A type of JSON value; its `decode` and `encode` use JSON text."""

    wrong_texts: Sequence[Wrong] = _WRONG

    @abstractmethod
    def read(self, value: Any) -> Any:
        """Return the value of a field; raise Misfit if it is not valid."""

    def inner(self, step: str | int) -> JsonType | None:
        """Return the type of a part, None if there is none of this step."""
        return None

    def decode(self, text: str) -> Any:
        try:
            return self.read(msgspec.json.decode(text))
        except Misfit:
            raise
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise Mismatch(0, len(text), str(error), "JSON", "broken-json") from error

    def encode(self, value: Any) -> str:
        return to_json(value)


def _wrong_inside(part: FieldType, name: str, around: Callable[[Wrong, Any], str]) -> Iterator[Wrong]:
    for wrong in part.wrong_values():
        if wrong.kind not in _NOT_IN_PARTS:
            yield wrong.inside(name, partial(around, wrong))


class JsonText(JsonType):
    """A string."""

    title = "text"
    is_free_text = True

    def read(self, value: Any) -> Any:
        if type(value) is not str:
            raise Misfit(f"{json_quoted(value)} is not a text", self.title)
        return value

    def wire_type(self) -> Mapping[str, Any] | None:
        return {"kind": "json_text"}


class JsonToken(JsonType):
    """An identifier: a number or a string."""

    title = "number or text"

    def read(self, value: Any) -> Any:
        if type(value) is not str and (type(value) is not int or not SMALLEST <= value <= LARGEST):
            raise Misfit(f"{json_quoted(value)} is neither a number nor a text", self.title)
        return value

    def wire_type(self) -> Mapping[str, Any] | None:
        return {"kind": "json_token"}


class JsonPattern(JsonText):
    """A string that matches a regular expression."""

    def __init__(self, pattern: str) -> None:
        self.title = f"text like /{pattern}/"
        self.matches = matcher(pattern)
        self.is_free_text = matches_names(self.matches)

    def read(self, value: Any) -> Any:
        if type(value) is not str or not self.matches(value):
            raise Misfit(f"{json_quoted(value)} has another form", self.title)
        return value

    def wire_type(self) -> Mapping[str, Any] | None:
        return {"kind": "json_text", "limit": "its pattern is not checked"}


class JsonNumber(JsonType):
    """A number within limits."""

    def __init__(self, spec: NumberType) -> None:
        self.spec = spec
        self.title = limits_title(spec)
        self._is_whole = spec.whole
        self._smallest = SMALLEST if spec.minimum is None else spec.minimum
        self._largest = LARGEST if spec.maximum is None else spec.maximum

    def read(self, value: Any) -> Any:
        if type(value) is not int and (self._is_whole or type(value) is not float):
            noun = "a whole number" if self._is_whole else "a number"
            raise Misfit(f"{json_quoted(value)} is not {noun}", self.title)
        if not self._smallest <= value <= self._largest and self._is_limited(value):
            raise Misfit(f"{json_quoted(value)} is out of range", self.title)
        return value

    def _is_limited(self, value: Any) -> bool:
        """Return True unless it is a large float without a limit."""
        limit = self.spec.minimum if value < self._smallest else self.spec.maximum
        return limit is not None or type(value) is int

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        for kind, title, value in beyond_limits(self.spec):
            yield Wrong(kind, title, str(value))

    def wire_type(self) -> Mapping[str, Any] | None:
        return {
            "kind": "json_number",
            "whole": self._is_whole,
            "min": self._smallest if self._is_whole else self.spec.minimum,
            "max": self._largest if self._is_whole else self.spec.maximum,
        }


class JsonBoolean(JsonType):
    """A Boolean."""

    title = "true or false"

    def read(self, value: Any) -> Any:
        if type(value) is not bool:
            raise Misfit(f"{json_quoted(value)} is neither true nor false", self.title)
        return value

    def wire_type(self) -> Mapping[str, Any] | None:
        return {"kind": "json_boolean"}


class JsonChoice(JsonType):
    """One of a few words or numbers."""

    def __init__(self, values: Sequence[str | int]) -> None:
        self.words = tuple(value for value in values if isinstance(value, str))
        self._ordered = tuple((type(value), value) for value in values)
        self._values = frozenset(self._ordered)
        shown = ", ".join(map(to_json, values))
        self.title = f"one of {shown}" if len(values) > 1 else shown

    def read(self, value: Any) -> Any:
        kind = type(value)
        if (kind is not str and kind is not int) or (kind, value) not in self._values:
            near = nearest_word(value, self.words) if isinstance(value, str) else None
            problem = with_suggestion(f"{json_quoted(value)} is not known here", near)
            raise Misfit(problem, self.title)
        return value

    def wire_type(self) -> Mapping[str, Any] | None:
        return {
            "kind": "json_choice",
            "values": {
                f"{'s' if kind is str else 'i'}:{value}": ("s" if kind is str else "i", str(value))
                for kind, value in self._ordered
            },
        }


class JsonAny(JsonType):
    """Any value."""

    title = "any value"
    is_free_text = True

    def read(self, value: Any) -> Any:
        return value

    def inner(self, step: str | int) -> JsonType:
        return self

    def anonymized(self, value: Any, replace: Replace, rename: Rename) -> Any:
        return _texts_replaced(value, replace)

    def wire_type(self) -> Mapping[str, Any] | None:
        return {"kind": "json_any"}


def _texts_replaced(value: Any, replace: Replace) -> Any:
    """Return a value with each text in it replaced; keys stay."""
    if isinstance(value, str):
        return replace(value)
    if isinstance(value, list):
        return [_texts_replaced(part, replace) for part in value]
    if isinstance(value, dict):
        return {key: _texts_replaced(part, replace) for key, part in value.items()}
    return value


class JsonList(JsonType):
    """A list of values of one type."""

    def __init__(self, item: JsonType) -> None:
        self.item = item
        self.is_any = type(item) is JsonAny
        self.parts = (item,)
        self.title = "list" if self.is_any else f"list: {item.title}"

    def read(self, value: Any) -> Any:
        if type(value) is not list:
            raise Misfit(f"{json_quoted(value)} is not a list", self.title)
        if self.is_any:
            return value
        read = self.item.read
        done = 0
        try:
            for part in value:
                read(part)
                done += 1
        except Misfit as error:
            raise error.inside(done) from None
        return value

    def inner(self, step: str | int) -> JsonType | None:
        return self.item if isinstance(step, int) else None

    def with_parts(self, value: Any, change: Callable[[FieldType, Any], Any]) -> Any:
        return [change(self.item, part) for part in value] if isinstance(value, list) else value

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        yield from _wrong_inside(self.item, "0", self._with_first)

    def _with_first(self, wrong: Wrong, value: Sequence[Any]) -> str:
        return f"[{','.join((wrong.of(value[0]), *map(to_json, value[1:])))}]"

    def wire_type(self) -> Mapping[str, Any] | None:
        return {"kind": "json_list", "item": self.item.wire_type()}


class JsonObject(JsonType):
    """An object with known fields; without any, its fields are not known."""

    def __init__(self, fields: Sequence[FieldSpec]) -> None:
        self.fields = {field.name: json_type(field.type) for field in fields}
        self.words = (*self.fields,)
        self.parts = (*self.fields.values(),) if fields else (JsonAny(),)
        self._readers = [(field.name, self.fields[field.name].read, field.optional) for field in fields]
        self.title = f"object: {', '.join(self.fields)}" if fields else "object"

    def read(self, value: Any) -> Any:
        if type(value) is not dict:
            raise Misfit(f"{json_quoted(value)} is not an object", self.title)
        for name, read, optional in self._readers:
            if name in value:
                part = value[name]
                if part is None and optional:
                    continue
                try:
                    read(part)
                except Misfit as error:
                    raise error.inside(name) from None
            elif not optional:
                raise Misfit(f"there is no {name} here", self.title, "missing-field")
        return value

    def inner(self, step: str | int) -> JsonType | None:
        return self.fields.get(str(step)) if self.fields else JsonAny()

    def with_parts(self, value: Any, change: Callable[[FieldType, Any], Any]) -> Any:
        if not isinstance(value, dict):
            return value
        others = JsonAny()
        return {name: change(self.fields.get(name, others), part) for name, part in value.items()}

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        for name, kind in self.fields.items():
            yield from _wrong_inside(kind, name, partial(self._with_part, name))

    def _with_part(self, name: str, wrong: Wrong, value: Any) -> str:
        parts = {key: to_json(part) for key, part in value.items()}
        parts[name] = wrong.of(value[name])
        return "{" + ",".join(f"{to_json(key)}:{text}" for key, text in parts.items()) + "}"

    def wire_type(self) -> Mapping[str, Any] | None:
        if not self.fields:
            return {"kind": "json_any", "limit": "any value is accepted, not only an object"}
        return {
            "kind": "json_object",
            "fields": [
                {"name": name, "type": self.fields[name].wire_type(), "optional": optional or None}
                for name, _, optional in self._readers
            ],
        }
