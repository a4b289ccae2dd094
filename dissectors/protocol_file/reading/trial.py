"""The trial of a protocol file: sample messages are written and read, and properties are checked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from random import Random
from typing import Any

from kiebitz.dissectors.dissector import Dissector, recognise
from kiebitz.dissectors.grammar.field_type import Mismatch
from kiebitz.dissectors.grammar.grammar import to_json
from kiebitz.dissectors.protocol_file.reading.positions import Mistake
from kiebitz.dissectors.protocol_file.reading.reader import Reading
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


_SAMPLES = 6
"""Number of sample messages per row."""

_MAX_FRAMES = 200
"""Maximum number of sample messages with which properties are checked."""

_EXAMPLES = 6
"""Number of random conversations per property."""


class Trial:
    """The sample messages of a protocol file: their frames, and remarks on rows that do not fit them.

    `others` are protocols that may be confused with it.
    """

    def __init__(self, reading: Reading, dissector: Dissector, others: Iterable[Dissector] = ()) -> None:
        self._reading = reading
        self._dissector = dissector
        self._random = Random(0)
        self.frames: list[bytes] = []
        self.remarks: list[Mistake] = []
        for index in range(len(reading.specification.messages)):
            problem = self._problem(index)
            if problem is not None:
                self.remarks.append(Mistake(problem, reading.place_of_row(index)))
        self._alike = self._confused(others)
        if self._alike:
            names = ", ".join(self._alike)
            problem = f"its messages can be those of {names}, too: -d says which protocol a port has"
            self.remarks.append(Mistake(problem, reading.places.value(("protocol",))))

    def _confused(self, others: Iterable[Dissector]) -> list[str]:
        """Return the names of other protocols that sample messages certainly seem to be."""
        transport = self._reading.specification.transport
        dissectors = [other for other in others if other.protocol != self._dissector.protocol]
        found = {
            other.protocol: None
            for frame in self.frames[:_MAX_FRAMES]
            for other, _, likeness in recognise(dissectors, transport, frame)
            if likeness == "certain"
        }
        return [*found]

    def _problem(self, index: int) -> str | None:
        """Write and read samples of a row; return why no sample is read as it was written, or None."""
        specification = self._reading.specification
        message, row = specification.messages[index], self._dissector.grammar.rows[index]
        problem = None
        try:
            for fields in samples_of(
                message, specification.format_of(message.direction).kind, self._random, _SAMPLES
            ):
                try:
                    frame = self._dissector.codec.encode(row.name, row.direction, fields)
                except ValueError as error:
                    if len(self._dissector.grammar.rows_named(row.direction, row.name)) > 1:
                        problem = f"no message is read as this row of {row.name}: another row fits before it"
                    else:
                        shown = to_json(fields)
                        problem = problem or f"a sample of {row.name}, {shown}, cannot be written: {error}"
                    continue
                self.frames.append(frame)
                decoded = self._dissector.codec.decode(frame, row.direction)
                if not decoded.valid:
                    shown = ascii(frame)[1:]
                    found = "; ".join(violation.text for violation in decoded.violations) or "it is not valid"
                    problem = problem or f"the sample {shown} of {row.name} is not read as written: {found}"
                elif decoded.row is row and to_json(decoded.fields) == to_json(fields):
                    return None
                elif decoded.row is not row:
                    problem = f"no message is read as this row of {row.name}: another row fits before it"
                else:
                    problem = problem or (
                        f"the sample {to_json(fields)} of {row.name} is read as {to_json(decoded.fields)}"
                    )
        except Unsampled:
            return None
        return problem

    def failed_properties(self) -> Iterator[str]:
        """Yield a sentence for each property of all protocols that does not hold. Raises ImportError."""
        # Loads hypothesis, which only this needs.
        from hypothesis import Phase, settings

        from kiebitz.dissectors.testing import CHECKS, findings_are_consistent

        frames: Sequence[bytes] = self._random.sample(self.frames, min(len(self.frames), _MAX_FRAMES))
        settings.register_profile("before", settings())
        # It writes no files, and finds the same each time; the search for the smallest example takes minutes.
        settings.register_profile("trial", database=None, derandomize=True, phases=[Phase.generate])
        settings.load_profile("trial")
        try:
            for check in CHECKS:
                try:
                    check(self._dissector, frames, _EXAMPLES)
                # A defect may raise anything.
                except Exception as error:
                    if self._alike and check is findings_are_consistent:
                        # Other protocols report events of their own.
                        continue
                    title = getattr(check, "__name__", "a property").replace("_", " ")
                    reason = " ".join(str(error).split())[:300]
                    yield f"{title}: {reason or type(error).__name__}"
        finally:
            settings.load_profile("before")
