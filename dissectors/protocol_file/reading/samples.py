"""Sample messages of a protocol file: random values of its types."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from random import Random
from typing import Any

from kiebitz.dissectors.grammar.field_type import Mismatch
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
    FormatKind,
    IdentifierType,
    ListType,
    MapType,
    MessageSpec,
    NumberType,
    ObjectType,
    PythonType,
    TextType,
)
from kiebitz.dissectors.protocol_file.text_types import integer_limits, text_type

_PLAYERS = ("ann", "bob", "eve", "zoe")
_WORDS = ("alpha", "beta", "gamma", "delta")

_LARGE = 1_000
"""Bound of numbers without limits."""

_MOST_REPEATED = 3
"""Maximum number of repetitions beyond the minimum in a text like a pattern."""

_MOST_ITEMS = 4
"""Maximum number of items of a list with a field for their number, plus one."""

_PARSER: Any = import_module("re._parser")
"""The standard library's reader of patterns."""


class Unsampled(Exception):
    """No value of a type is known, such as a text like a pattern that looks ahead."""


def samples_of(
    message: MessageSpec, format: FormatKind, random: Random, count: int
) -> Iterator[dict[str, Any]]:
    """Yield the fields of sample messages, with and without optional ones. Raises Unsampled."""
    for number in range(count):
        yield _fields(message.fields, format, random, has_optional=number % 2 == 0)


def _fields(
    fields: tuple[FieldSpec, ...], format: FormatKind, random: Random, *, has_optional: bool
) -> dict[str, Any]:
    found = {
        field.name: value_of(field.type, format, random)
        for field in fields
        if has_optional or not field.optional
    }
    for field in fields:
        if isinstance(field.type, ListType) and field.type.count:
            kinds = {each.name: each.type for each in fields}
            count, number = found[field.type.count], kinds[field.type.count]
            if not 0 <= count < _MOST_ITEMS:
                least = number.minimum if isinstance(number, NumberType) else None
                count = found[field.type.count] = max(int(least or 0), abs(count) % _MOST_ITEMS)
            found[field.name] = [value_of(field.type.item, format, random) for _ in range(count)]
    return found


def value_of(kind: FieldTypeSpec, format: FormatKind, random: Random) -> Any:
    """Return a value of a type. Raises Unsampled."""
    if isinstance(kind, ListType | ObjectType) and kind.pattern:
        # Its own pattern may be less precise than those of its parts.
        with suppress(Mismatch):
            return text_type(kind, Format(kind=format)).decode(_text_like(kind.pattern, random))
    match kind:
        case TextType(pattern, rest):
            if pattern is not None:
                return _text_like(pattern, random)
            return " ".join(random.sample(_WORDS, 2)) if rest else random.choice(_WORDS)
        case NumberType(minimum, maximum, whole):
            return _number(minimum, maximum, whole, random)
        case BooleanType():
            return random.random() < 0.5
        case ChoiceType(values):
            return random.choice(values)
        case IdentifierType("player", TextType(None)):
            return random.choice(_PLAYERS)
        case IdentifierType(_, of):
            return value_of(of, format, random)
        case ListType(item, _, least, most):
            largest = min(max(least, 3), most or 3)
            count = random.randint(max(least, 1), max(least, largest))
            return [value_of(item, format, random) for _ in range(count)]
        case EitherType(options):
            return value_of(random.choice(options), format, random)
        case BagType(names):
            return {name: random.randint(0, 3) for name in names}
        case MapType(key, value):
            keys = (str(value_of(key, "words", random)) for _ in range(2))
            return {each: value_of(value, format, random) for each in keys}
        case ObjectType(fields, _):
            return _fields(fields, format, random, has_optional=True)
        case AnyType():
            if format == "struct":
                return random.randbytes(3).hex()
            return (
                random.choice((1, "alpha", [1, 2], {"x": 1})) if format == "json" else random.choice(_WORDS)
            )
        case BinaryType(binary, size):
            return _binary(binary, size, random)
        case PythonType():
            raise Unsampled


def _number(minimum: float | None, maximum: float | None, whole: bool, random: Random) -> float:
    low = minimum if minimum is not None else (maximum or 0) - _LARGE
    high = maximum if maximum is not None else max(low, 0) + _LARGE
    return random.randint(math.ceil(low), math.floor(high)) if whole else round(random.uniform(low, high), 2)


def _binary(kind: str, size: int | str | None, random: Random) -> Any:
    match kind:
        case "text":
            text = random.choice(_WORDS)
            return text[:size] if isinstance(size, int) else text
        case "bytes":
            return random.randbytes(size if isinstance(size, int) else random.randint(0, 4)).hex()
        case "bool8":
            return random.random() < 0.5
        case "f32" | "f64":
            return random.randint(-_LARGE, _LARGE) / 4
    low, high = integer_limits(kind)
    return random.randint(max(low, -_LARGE), min(high, _LARGE))


def _text_like(pattern: str, random: Random) -> str:
    """Return a text that matches a pattern, at least in most cases. Raises Unsampled."""
    return "".join(_piece(str(kind), value, random) for kind, value in _PARSER.parse(pattern))


def _piece(kind: str, value: Any, random: Random) -> str:
    """Return a text for a node of a parsed pattern."""
    if kind == "LITERAL":
        return chr(value)
    if kind == "ANY":
        return random.choice("abc")
    if kind == "IN":
        return _one_of([(str(name), of) for name, of in value], random)
    if kind == "AT":
        return ""
    if kind == "BRANCH":
        value = random.choice(value[1])
    elif kind == "SUBPATTERN":
        value = value[3]
    elif kind.endswith("_REPEAT"):
        least, most, repeated = value
        count = random.randint(int(least), min(int(most), int(least) + _MOST_REPEATED))
        value = [node for _ in range(min(count, 100)) for node in repeated]
    else:
        raise Unsampled
    return "".join(_piece(str(name), of, random) for name, of in value)


def _one_of(members: list[tuple[str, Any]], random: Random) -> str:
    """Return a character of a class."""
    kind, value = random.choice(members)
    if members[0][0] == "NEGATE":
        excluded = [(kind, value) for kind, value in members[1:] if kind in ("LITERAL", "RANGE")]
        letters = [
            letter
            for letter in "abcxyzABC0123456789_-+"
            if not any(
                value == ord(letter) if kind == "LITERAL" else value[0] <= ord(letter) <= value[1]
                for kind, value in excluded
            )
        ]
        if not letters:
            raise Unsampled
        return random.choice(letters)
    if kind == "LITERAL":
        return chr(value)
    if kind == "RANGE":
        return chr(random.randint(*value))
    known = {"CATEGORY_DIGIT": "0123456789", "CATEGORY_WORD": "abcxyz_09", "CATEGORY_SPACE": " "}
    if str(value) not in known:
        raise Unsampled
    return random.choice(known[str(value)])
