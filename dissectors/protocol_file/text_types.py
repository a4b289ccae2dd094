"""Field types of protocol files for values that are sent as text."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from kiebitz.dissectors.grammar.field_type import FieldType, IdentifierKind, Mismatch
from kiebitz.dissectors.grammar.fields import Text, Word, unknown_word
from kiebitz.dissectors.grammar.grammar import shortened
from kiebitz.dissectors.grammar.invalid_values import OF_ANY, OF_NUMBERS, OF_WORDS, UNKNOWN_WORD, Wrong
from kiebitz.dissectors.protocol_file.patterns import matcher
from kiebitz.dissectors.protocol_file.specification import (
    AnyType,
    BinaryType,
    BooleanType,
    ChoiceType,
    FieldTypeSpec,
    Format,
    IdentifierType,
    ListType,
    NumberType,
    ObjectType,
    TextType,
)

MAX_QUOTED = 40
"""Maximum length of a quoted invalid value, in characters."""

SMALLEST, LARGEST = -(2**63), 2**64 - 1
"""Limits of numbers."""

_NULL_VALUES = ("", -1, "-1")
"""Values that identify nothing."""

OF_WHOLE_FIELDS = ("empty", "too-long", "control", "markup", "outside-ascii")
"""Kinds of invalid values that are tried for a whole field, not for its parts."""

_WHOLE = re.compile(r"-?[0-9]{1,20}")
_NUMBER = re.compile(r"-?[0-9]{1,40}(?:\.[0-9]{1,40})?(?:[eE][-+]?[0-9]{1,3})?")
_BOOLEANS = {"true": True, "false": False}


@lru_cache(maxsize=1000)
def identifier_kind(kind: str) -> IdentifierKind:
    """Return the kind of identifier of this name: `player` and `id` identify players."""
    if kind == "player":
        return IdentifierKind("player", of_player=True, null_values=("",))
    if kind == "id":
        return IdentifierKind("player's id", of_player=True, null_values=_NULL_VALUES)
    return IdentifierKind(kind, null_values=_NULL_VALUES)


def text_type(spec: FieldTypeSpec, of: Format) -> FieldType:
    """Return the field type for a type of a protocol file in a text format."""
    match spec:
        case TextType(pattern, rest):
            if pattern is not None:
                return PatternText(pattern)
            return Rest() if rest else Text()
        case NumberType():
            return NumberText(spec)
        case BooleanType():
            return BooleanText()
        case ChoiceType(values):
            return ChoiceText(values)
        case IdentifierType(kind, inner):
            return with_identifier(text_type(inner, of), kind)
        case ListType(item, separator):
            return ListText(text_type(item, of), separator)
        case ObjectType(fields, separator):
            if not fields:
                return AnyText()
            return ObjectText(
                {each.name: text_type(each.type, of) for each in fields},
                separator,
                frozenset(each.name for each in fields if each.optional),
            )
        case BinaryType():
            return _binary_as_text(spec)
        case AnyType():
            return AnyText()


def _binary_as_text(spec: BinaryType) -> FieldType:
    """Return the type of a number or text that is sent as text, though its type is a binary one."""
    if spec.kind in ("text", "bytes"):
        return Text()
    return BooleanText() if spec.kind == "bool8" else NumberText(number_of(spec))


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


def quoted(text: str) -> str:
    """Return a text as it is quoted in a sentence."""
    return f'"{shortened(text, MAX_QUOTED)}"'


def limits_title(spec: NumberType) -> str:
    """Return the description of a number's limits."""
    noun = "whole number" if spec.whole else "number"
    if spec.minimum is not None and spec.maximum is not None:
        return f"{noun} from {spec.minimum:.15g} to {spec.maximum:.15g}"
    if spec.minimum is not None:
        return f"{noun} from {spec.minimum:.15g}"
    return f"{noun} up to {spec.maximum:.15g}" if spec.maximum is not None else noun


def beyond_limits(spec: NumberType) -> Iterator[tuple[str, str, int]]:
    """Yield whole numbers beyond the limits, as kinds, descriptions and values."""
    if spec.maximum is not None:
        yield "out-of-range", "a number above the largest", int(spec.maximum) + 1
    if spec.minimum is not None:
        kind = "out-of-range" if spec.maximum is None else "below-range"
        yield kind, "a number below the smallest", int(-(-spec.minimum // 1)) - 1


class Rest(Text):
    """All that remains of a message."""

    title = "the rest of the message"

    def wire_type(self) -> Mapping[str, Any] | None:
        return {"kind": "rest"}


class AnyText(Text):
    """Any text, of which nothing is known."""

    def wire_type(self) -> Mapping[str, Any] | None:
        return {"kind": "text", "any": True}


class PatternText(Text):
    """A text that matches a regular expression."""

    def __init__(self, pattern: str) -> None:
        super().__init__()
        self.title = f"text like /{pattern}/"
        self.matches = matcher(pattern)
        self.is_free_text = matches_names(self.matches)

    def decode(self, text: str) -> str:
        if not self.matches(text):
            raise Mismatch(0, len(text), f"{quoted(text)} has another form", self.title)
        return text

    def wire_type(self) -> Mapping[str, Any] | None:
        return {"kind": "text", "limit": "its pattern is not checked"}


class NumberText(FieldType):
    """A number within limits."""

    wrong_texts = OF_NUMBERS

    def __init__(self, spec: NumberType) -> None:
        self.spec = spec
        self.title = limits_title(spec)
        self._smallest = SMALLEST if spec.minimum is None else spec.minimum
        self._largest = LARGEST if spec.maximum is None else spec.maximum

    def decode(self, text: str) -> int | float:
        if self.spec.whole:
            # Short digits are the usual case.
            if not (text.isdigit() and text.isascii() and len(text) < 20) and _WHOLE.fullmatch(text) is None:
                raise self._mismatch(text, f"{quoted(text)} is not a whole number")
            value: int | float = int(text)
        else:
            if _NUMBER.fullmatch(text) is None:
                raise self._mismatch(text, f"{quoted(text)} is not a number")
            value = int(text) if _WHOLE.fullmatch(text) is not None else float(text)
        if not self._smallest <= value <= self._largest:
            raise self._mismatch(text, f"{quoted(text)} is out of range")
        return value

    def _mismatch(self, text: str, problem: str) -> Mismatch:
        problem = problem if text else "there is nothing here"
        return Mismatch(0, len(text), problem, self.title, "bad-number")

    def encode(self, value: Any) -> str:
        if type(value) not in (int, float):
            raise ValueError(f"{value!r} is not a number")
        return repr(value)

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        for kind, title, value in beyond_limits(self.spec):
            yield Wrong(kind, title, str(value))

    def wire_type(self) -> Mapping[str, Any] | None:
        return {
            "kind": "number",
            "whole": self.spec.whole,
            "digits": 20 if self.spec.whole else 40,
            "min": self._smallest,
            "max": self._largest,
        }


class BooleanText(Word):
    """`true` or `false`."""

    def __init__(self) -> None:
        super().__init__("true", "false", title="true or false")

    def decode(self, text: str) -> Any:
        return _BOOLEANS[super().decode(text)]

    def encode(self, value: Any) -> str:
        if type(value) is not bool:
            raise ValueError(f"{value!r} is neither true nor false")
        return "true" if value else "false"

    def wire_type(self) -> Mapping[str, Any] | None:
        return {"kind": "choice", "values": {"true": ("b", True), "false": ("b", False)}}


class ChoiceText(FieldType):
    """One of a few words or numbers."""

    wrong_texts = OF_WORDS

    def __init__(self, values: Sequence[str | int]) -> None:
        self._values = {str(value): value for value in values}
        self.words = (*self._values,)
        self.title = "one of " + ", ".join(self.words) if len(self.words) > 1 else self.words[0]

    def decode(self, text: str) -> Any:
        value = self._values.get(text)
        if value is None:
            raise unknown_word(text, self.words, self.title)
        return value

    def encode(self, value: Any) -> str:
        text = str(value)
        if type(value) is not type(self._values.get(text)):
            raise ValueError(f"{value!r} is not one of {', '.join(self.words)}")
        return text

    def wire_type(self) -> Mapping[str, Any] | None:
        return {
            "kind": "choice",
            "values": {
                text: ("s", text) if isinstance(value, str) else ("i", text)
                for text, value in self._values.items()
            },
        }


class PartsText(FieldType):
    """A text with parts and a separator between them."""

    wrong_texts = OF_ANY
    separator: str

    @abstractmethod
    def type_at(self, number: int) -> FieldType | None:
        """Return the type of a part, None if there is no such part."""

    @abstractmethod
    def step(self, number: int) -> str | int:
        """Return the step of the path to a part."""

    def split(self, text: str) -> list[str]:
        """Return the texts of the parts."""
        return text.split(self.separator)

    def part_places(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the range of characters of each part."""
        at = 0
        for part in self.split(text):
            yield at, at + len(part)
            at += len(part) + len(self.separator)

    def decode_parts(self, texts: Sequence[str]) -> Iterator[Any]:
        """Yield the decoded parts; raise Mismatch with the place in the joined text."""
        at = 0
        for number, text in enumerate(texts):
            kind = self.type_at(number)
            if kind is None:
                end = at + sum(map(len, texts[number:])) + (len(texts) - number - 1) * len(self.separator)
                raise Mismatch(at, end, "there is more than belongs here", self.title, "surplus-fields")
            try:
                yield kind.decode(text)
            except Mismatch as error:
                raise Mismatch(
                    at + error.start, at + error.end, error.problem, error.expected, error.code
                ) from None
            at += len(text) + len(self.separator)

    def _wrong_inside(self, kind: FieldType, name: str, number: int) -> Iterator[Wrong]:
        for wrong in kind.wrong_values():
            if wrong.kind not in OF_WHOLE_FIELDS:
                yield wrong.inside(name, partial(self._with_part, number, wrong))

    def _with_part(self, number: int, wrong: Wrong, value: Any) -> str:
        parts = self.split(self.encode(value))
        values = [*value.values()] if isinstance(value, dict) else value
        parts[number] = wrong.of(values[number])
        return self.separator.join(parts)

    def _joined(self, parts: Sequence[str]) -> str:
        if any(self.separator in part for part in parts):
            raise ValueError(f"a part contains {quoted(self.separator)}")
        return self.separator.join(parts)


class ListText(PartsText):
    """A list of values of one type."""

    def __init__(self, item: FieldType, separator: str) -> None:
        self.item, self.separator = item, separator
        self.parts = (item,)
        self.title = f"list: {item.title}"

    def type_at(self, number: int) -> FieldType:
        return self.item

    def step(self, number: int) -> int:
        return number

    def split(self, text: str) -> list[str]:
        return text.split(self.separator) if text else []

    def decode(self, text: str) -> list[Any]:
        return [*self.decode_parts(self.split(text))]

    def encode(self, value: Any) -> str:
        parts = self.encode_items(value)
        if parts == [""]:
            raise ValueError("a list of one empty text cannot be written")
        return self._joined(parts)

    def encode_items(self, value: Any) -> list[str]:
        """Return the texts of the items."""
        if not isinstance(value, list):
            raise ValueError(f"{value!r} is not a list")
        return [self.item.encode(part) for part in value]

    def with_parts(self, value: Any, change: Callable[[FieldType, Any], Any]) -> Any:
        return [change(self.item, part) for part in value] if isinstance(value, list) else value

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        yield from self._wrong_inside(self.item, "0", 0)

    def wire_type(self) -> Mapping[str, Any] | None:
        return {"kind": "list", "item": wire_type_of(self.item), "separator": self.separator}


class ObjectText(PartsText):
    """Named values; in text, only the last ones can be absent."""

    def __init__(
        self, fields: dict[str, FieldType], separator: str, optional: frozenset[str] = frozenset()
    ) -> None:
        self.fields, self.separator, self.optional = fields, separator, optional
        self.parts = (*fields.values(),)
        self._names = [*fields]
        self._least = max(
            (number for number, name in enumerate(fields, 1) if name not in optional), default=0
        )
        self.title = separator.join(fields)

    def type_at(self, number: int) -> FieldType | None:
        return self.parts[number] if number < len(self.parts) else None

    def step(self, number: int) -> str:
        return self._names[number]

    def decode(self, text: str) -> dict[str, Any]:
        texts = self.split(text)
        if len(texts) < self._least:
            raise Mismatch(
                len(text),
                len(text),
                f"there is no {self._names[len(texts)]} here",
                self.title,
                "missing-field",
            )
        return dict(zip(self._names, [*self.decode_parts(texts)], strict=False))

    def encode(self, value: Any) -> str:
        if not isinstance(value, dict) or {*value} != {*self._names[: max(len(value), self._least)]}:
            raise ValueError(f"{value!r} does not have the parts {self.title}")
        return self._joined([self.fields[name].encode(value[name]) for name in self._names[: len(value)]])

    def with_parts(self, value: Any, change: Callable[[FieldType, Any], Any]) -> Any:
        if not isinstance(value, dict):
            return value
        return {
            name: change(self.fields[name], part) if name in self.fields else part
            for name, part in value.items()
        }

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        for number, (name, kind) in enumerate(self.fields.items()):
            yield from self._wrong_inside(kind, name, number)

    def wire_type(self) -> Mapping[str, Any] | None:
        return {
            "kind": "object",
            "separator": self.separator,
            "least": self._least,
            "fields": [
                {"name": name, "type": wire_type_of(kind), "optional": name in self.optional or None}
                for name, kind in self.fields.items()
            ],
        }


def wire_type_of(kind: FieldType) -> Mapping[str, Any]:
    """Return the declarative description of a part's type."""
    return kind.wire_type() or {"kind": "text", "limit": f"{kind.title} is not checked"}
