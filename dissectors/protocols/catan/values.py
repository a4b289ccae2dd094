"""The types of JSON values: how each is decoded, and which errors it reports, by path.

Decoding returns the value in the specification's spelling and form, whatever the dialect. Invalid values
raise `InvalidValue`; unusual ones are noted.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from kiebitz.dissectors.grammar.field_type import FieldType, IdentifierKind, Mismatch
from kiebitz.dissectors.grammar.grammar import Field, count_of_fields, nearest_word, shortened, to_json
from kiebitz.dissectors.grammar.invalid_values import LONG, UNKNOWN_WORD, Wrong, other_case
from kiebitz.dissectors.grammar.patching import Path
from kiebitz.dissectors.protocols.catan.words import HIDDEN, spellings
from kiebitz.dissectors.suggestions import with_suggestion

LARGEST = 2**31 - 1
"""Largest number: clause 6 has 31-bit numbers."""

_MAX_QUOTED = 40
"""Maximum number of characters quoted from an invalid value."""


class Remark(msgspec.Struct, frozen=True):
    """A harmless but unusual value at `path`, or key that is its last step.

    Keys are as they were sent.
    """

    code: str
    text: str
    path: Path
    of_key: bool = False


class InvalidValue(Exception):
    """The value at `path`, or the key that is its last step, is invalid."""

    def __init__(
        self,
        problem: str,
        expected: str,
        code: str = "bad-value",
        path: Path = (),
        of_key: bool = False,
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.expected = expected
        self.code = code
        self.path = path
        self.of_key = of_key

    def inside(self, step: str | int) -> InvalidValue:
        """Prepend the step to the enclosing value to the path."""
        self.path = (step, *self.path)
        return self


class Member(NamedTuple):
    """A part of a value: its step in the specification's form, and its type."""

    step: str | int
    kind: Value


class DecodingState:
    """The state of decoding one message: the current path, and the remarks."""

    __slots__ = ("path", "remarks", "surplus")

    def __init__(self) -> None:
        self.remarks: list[Remark] = []
        self.path: list[str | int] = []
        self.surplus = False
        """True if there was an attribute that the row does not know."""

    def note(self, code: str, text: str, *steps: str | int, of_key: bool = False) -> None:
        """Add a remark about the current value or a part of it."""
        self.remarks.append(Remark(code, text, (*self.path, *steps), of_key))


_WRONG_JSON = (
    Wrong("null", "null in its place", "null"),
    Wrong("unknown", "an unknown word", f'"{UNKNOWN_WORD}"'),
    Wrong("other-type", "a list in its place", "[[]]"),
    Wrong("negative", "a number below zero", "-1"),
    Wrong("too-large", "a number of 32 bits, where clause 6 has 31", "4294967295"),
    Wrong("fraction", "a number with a fraction", "1.5"),
    Wrong("empty", "an empty text", '""', odd=True),
    Wrong("too-long", f"a text of {LONG} characters", f'"{"x" * LONG}"', odd=True),
    Wrong("control", "control characters, escaped", f'"{UNKNOWN_WORD}\\u0000\\u001b[31m"', odd=True),
    Wrong("markup", "markup of other formats", f'"<b>&\\"{UNKNOWN_WORD}\\"</b>"', odd=True),
    Wrong("outside-ascii", "letters of two and four bytes", '"Größe🎲"', odd=True),
)
_NOT_IN_PARTS = ("empty", "too-long", "control", "markup", "outside-ascii", "fraction")
"""Invalid values to try in place of a whole attribute, but not of its parts."""


class Value(FieldType):
    """A type of JSON value; its `decode` and `encode` use JSON text."""

    wrong_texts = _WRONG_JSON

    @abstractmethod
    def read(self, value: Any, reading: DecodingState) -> Any:
        """Return the value in the specification's form. Raises Unfit."""

    def member(self, step: str | int) -> Member | None:
        """Return the part for a key as it was sent, or for an index of a list; None if there is none."""
        return None

    def decode(self, text: str) -> Any:
        try:
            return self.read(msgspec.json.decode(text), DecodingState())
        except InvalidValue as error:
            raise Mismatch(0, len(text), error.problem, error.expected, error.code) from error
        except msgspec.DecodeError as error:
            raise Mismatch(0, len(text), str(error), "JSON", "broken-json") from error

    def encode(self, value: Any) -> str:
        return to_json(value)

    def identifiers(self) -> Iterator[IdentifierKind]:
        # Without those of parts: probe replaces whole fields, and a list of identical identifiers is no test
        # case.
        if self.identifier is not None:
            yield self.identifier


def _wrong_inside(part: Value, name: str, around: Callable[[Wrong, Any], str]) -> Iterator[Wrong]:
    for wrong in part.wrong_values():
        if wrong.kind not in _NOT_IN_PARTS:
            yield wrong.inside(name, partial(around, wrong))


def quoted(value: Any) -> str:
    """Return a value as it is quoted in a sentence."""
    text = to_json(value)
    return shortened(text, _MAX_QUOTED)


class Text(Value):
    """A string; with an `identifier` it is a name. `words` are usual values."""

    title = "text"
    is_free_text = True

    def __init__(self, identifier: IdentifierKind | None = None, words: tuple[str, ...] = ()) -> None:
        self.words = words
        self.identifier = identifier

    def read(self, value: Any, reading: DecodingState) -> str:
        if type(value) is not str:
            raise InvalidValue(f"{quoted(value)} is not a text", self.title)
        return value

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "json_text"}


class Integer(Value):
    """An integer from `least` to `most`; `usual` is the minimum in the specification.

    With an `identifier` it is the number of something.
    """

    def __init__(
        self,
        least: int = 0,
        most: int = LARGEST,
        usual: int | None = None,
        title: str = "a whole number",
        identifier: IdentifierKind | None = None,
    ) -> None:
        self.identifier = identifier
        self.least, self.most, self.title = least, most, title
        self.usual = least if usual is None else usual

    def read(self, value: Any, reading: DecodingState) -> int:
        if type(value) is not int:
            raise InvalidValue(f"{quoted(value)} is not a whole number", self.title)
        if not self.least <= value <= self.most:
            raise InvalidValue(f"{quoted(value)} is not from {self.least} to {self.most}", self.title)
        if value < self.usual:
            reading.note("unusual-value", f"{value} is below {self.usual}, the least that is specified")
        return value

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "json_number", "whole": True, "min": self.least, "max": self.most}


class Boolean(Value):
    """A Boolean."""

    title = "true or false"

    def read(self, value: Any, reading: DecodingState) -> bool:
        if type(value) is not bool:
            raise InvalidValue(f"{quoted(value)} is neither true nor false", self.title)
        return value

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "json_boolean"}


class OneOf(Value):
    """One of a few words, in any known spelling; `also` adds spellings."""

    def __init__(self, *words: str, title: str | None = None, also: Mapping[str, str] | None = None) -> None:
        self.words = words
        self.title = title or "one of " + ", ".join(f'"{word}"' for word in words)
        self._spelt = spellings(words) | dict(also or {})

    def read(self, value: Any, reading: DecodingState) -> str:
        if type(value) is str:
            word = self._spelt.get(value)
            if word is not None:
                if word != value:
                    _note_spelling(reading, value, word)
                return word
        raise InvalidValue(_unknown(value, self._spelt), self.title)

    def all_words(self) -> Iterator[str]:
        yield from self._spelt

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        yield other_case(self.encode)

    def wire_type(self) -> Mapping[str, Any]:
        return {
            "kind": "json_choice",
            "values": {f"s:{spelt}": ("s", word) for spelt, word in self._spelt.items()},
        }


class Coordinates(Value):
    """The coordinates of a field, clause 7.1: `{"x":…,"y":…}`; or a letter, if it `may_be_letter`."""

    title = '{"x":…,"y":…}'
    words = ("x", "y")

    def __init__(self, may_be_letter: bool = False) -> None:
        self.may_be_letter = may_be_letter

    def read(self, value: Any, reading: DecodingState) -> Any:
        if type(value) is dict:
            if len(value) == 2:
                x, y = value.get("x"), value.get("y")
                if type(x) is int and type(y) is int and -_FARTHEST <= x <= _FARTHEST >= abs(y):
                    return value
            return _PLACE.read(value, reading)
        if self.may_be_letter and type(value) is str and re.fullmatch("[A-Za-z]{1,2}", value):
            reading.note("unusual-value", f'"{value}" is the name of a field, not its place')
            return value
        raise InvalidValue(f"{quoted(value)} is not a place", self.title)

    def member(self, step: str | int) -> Member | None:
        return _PLACE.member(step)

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        yield Wrong("half", "a place without a y", '{"x":0}')
        yield Wrong("text", "a place whose x is a word", f'{{"x":"{UNKNOWN_WORD}","y":0}}')
        yield Wrong("far-away", "coordinates far from the island", '{"x":999,"y":-999}', allowed=True)

    def wire_type(self) -> Mapping[str, Any]:
        place = _PLACE.wire_type()
        return (
            {"kind": "json_either", "either": [place, {"kind": "json_text"}]} if self.may_be_letter else place
        )


class AdjacentFields(Value):
    """The fields around a road (two) or around a village or city (three), clause 7.2."""

    words = Coordinates.words

    def __init__(self, *counts: int) -> None:
        self.counts = counts
        self.title = " or ".join({2: "two places", 3: "three places"}[count] for count in counts)

    def read(self, value: Any, reading: DecodingState) -> list[Any]:
        if type(value) is not list:
            raise InvalidValue(f"{quoted(value)} is not a list", self.title)
        if len(value) not in self.counts:
            raise InvalidValue(f"there are {len(value)} places", self.title)
        return read_each(_PLAIN_PLACE, value, reading)

    def member(self, step: str | int) -> Member | None:
        return Member(step, _PLAIN_PLACE) if isinstance(step, int) else None

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        yield Wrong("too-few", "one place alone", '[{"x":0,"y":0}]')
        yield Wrong("too-many", "four places", to_json([{"x": 0, "y": y} for y in range(4)]))
        yield Wrong("apart", "places that do not touch", self._apart, allowed=True)

    def _apart(self, value: Sequence[Any]) -> str:
        return to_json([{"x": 2 * number, "y": -3 * number} for number, _ in enumerate(value)])

    def wire_type(self) -> Mapping[str, Any]:
        return {
            "kind": "json_list",
            "item": _PLAIN_PLACE.wire_type(),
            "least": min(self.counts),
            "most": max(self.counts),
        }


class ListOf(Value):
    """A list of `least` to `most` values of one type."""

    def __init__(self, part: Value, title: str, least: int = 0, most: int = 1000) -> None:
        self.part, self.title, self.least, self.most = part, title, least, most
        self.parts = (part,)

    def read(self, value: Any, reading: DecodingState) -> list[Any]:
        if type(value) is not list:
            raise InvalidValue(f"{quoted(value)} is not a list", self.title)
        if not self.least <= len(value) <= self.most:
            raise InvalidValue(f"there are {len(value)} values", self.title)
        return read_each(self.part, value, reading)

    def member(self, step: str | int) -> Member | None:
        return Member(step, self.part) if isinstance(step, int) else None

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        if self.least:
            yield Wrong("too-few", "a list that is empty", "[]")
        yield from _wrong_inside(self.part, "0", self._with_first)

    def _with_first(self, wrong: Wrong, value: Sequence[Any]) -> str:
        return f"[{','.join((wrong.of(value[0]), *map(to_json, value[1:])))}]"

    def with_parts(self, value: Any, change: Callable[[FieldType, Any], Any]) -> list[Any]:
        return [change(self.part, part) for part in value]

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "json_list", "item": self.part.wire_type(), "least": self.least, "most": self.most}


def read_each(part: Value, values: Sequence[Any], reading: DecodingState) -> list[Any]:
    """Return the decoded values of a list."""
    found = []
    path = reading.path
    for number, value in enumerate(values):
        path.append(number)
        try:
            found.append(part.read(value, reading))
        except InvalidValue as error:
            raise error.inside(number) from None
        path.pop()
    return found


class Counts(Value):
    """Number of cards of each kind, clauses 7.6 and 7.7: an object; absent kinds may be left out.

    Hidden cards are a number, the total.

    Args:
        kinds: Names of the kinds.
        title: Description of the type.
        is_open: True if cards cannot be hidden.
        may_owe: True if real servers send negative counts.
    """

    def __init__(
        self, kinds: Sequence[str], title: str, is_open: bool = False, may_owe: bool = False
    ) -> None:
        self.title = title
        self.kinds = tuple(kinds)
        self.words = (HIDDEN, *spellings(kinds))
        self.is_open, self.may_owe = is_open, may_owe
        self._spelt = spellings(kinds)

    def read(self, value: Any, reading: DecodingState) -> Any:
        if type(value) is int and not self.is_open:
            return self._count(value, reading)
        if type(value) is not dict:
            raise InvalidValue(
                f"{quoted(value)} is {'not an object' if self.is_open else 'not a count'}", self.title
            )
        counts: dict[str, int] = {}
        spelt = self._spelt
        hidden = 0
        for key, count in value.items():
            kind = spelt.get(key)
            if kind is None and not (key == HIDDEN and not self.is_open):
                raise InvalidValue(_unknown(key, spelt), self.title, "unknown-kind", (key,), of_key=True)
            if type(count) is not int or not 0 <= count <= LARGEST:
                reading.path.append(key)
                try:
                    self._count(count, reading)
                except InvalidValue as error:
                    raise error.inside(key) from None
                reading.path.pop()
            if kind is None:
                reading.note("unusual-value", f'"{HIDDEN}" is used for hidden cards', key, of_key=True)
                hidden = count
                continue
            if kind != key:
                _note_spelling(reading, key, kind, key)
            if kind in counts:
                raise InvalidValue(f'"{kind}" is given twice', self.title, "twice", (key,), of_key=True)
            counts[kind] = count
        if HIDDEN not in value:
            return counts
        if not any(counts.values()):
            return hidden
        if hidden not in (0, sum(counts.values())):
            raise InvalidValue("some cards are hidden and some are not", self.title, path=(HIDDEN,))
        return counts

    def member(self, step: str | int) -> Member | None:
        kind = self._spelt.get(step) if isinstance(step, str) else None
        return None if kind is None else Member(kind, _COUNT)

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        yield Wrong("unknown-kind", "an unknown kind", f'{{"{UNKNOWN_WORD}":1}}')
        for wrong in (*_COUNT.wrong_values(), Wrong("huge", "more than exist", "1000", allowed=True)):
            if wrong.kind not in _NOT_IN_PARTS and not (self.may_owe and wrong.kind == "negative"):
                yield wrong.inside("count", partial(self._with_count, wrong))

    def _with_count(self, wrong: Wrong, value: Any) -> str:
        return f"{{{to_json(self.kinds[0])}:{wrong.of(0)}}}"

    def _count(self, value: Any, reading: DecodingState) -> int:
        if type(value) is not int:
            raise InvalidValue(f"{quoted(value)} is not a whole number", "a whole number")
        least = -LARGEST if self.may_owe else 0
        if not least <= value <= LARGEST:
            raise InvalidValue(f"{quoted(value)} is not from {least} to {LARGEST}", "a count")
        if value < 0:
            reading.note("below-zero", f"{value} is below zero")
        return value

    def wire_type(self) -> Mapping[str, Any]:
        return {
            "kind": "json_counts",
            "counts": self._spelt,
            "hidden": HIDDEN,
            "open": self.is_open,
            "min": -LARGEST if self.may_owe else 0,
            "max": LARGEST,
        }


class Object(Value):
    """An object with attributes, in any order; unknown ones are noted and ignored."""

    def __init__(self, *fields: Field) -> None:
        self.fields = fields
        self.title = "{" + ",".join(f'"{field.name}":…' for field in fields) + "}"
        self._spelt = spellings(field.name for field in fields)
        self._types: dict[str, tuple[str, Value, bool]] = {}
        for key, name in self._spelt.items():
            field = next(field for field in fields if field.name == name)
            self._types[key] = (name, _value_type(field), field.optional)
        self._required = [field for field in fields if not field.optional]
        self.parts = tuple(_value_type(field) for field in fields)

    def read(self, value: Any, reading: DecodingState) -> dict[str, Any]:
        if type(value) is not dict:
            raise InvalidValue(f"{quoted(value)} is not an object", self.title)
        found: dict[str, Any] = {}
        types, path = self._types, reading.path
        unfit: InvalidValue | None = None
        for key, part in value.items():
            known = types.get(key)
            if known is None:
                self._unknown_key(key, value, reading)
                continue
            name, kind, optional = known
            if name != key:
                _note_spelling(reading, key, name, key)
            if name in found:
                raise InvalidValue(f'"{name}" is given twice', self.title, "twice", (key,), of_key=True)
            if part is None and optional:
                continue
            path.append(key)
            try:
                found[name] = kind.read(part, reading)
            except InvalidValue as error:
                # Of several errors report the first in the specification's order: an attribute can
                # determine the allowed values of others.
                if unfit is None or self._place(name) < self._place(self._spelt[str(unfit.path[0])]):
                    unfit = error.inside(key)
            path.pop()
        if unfit is not None:
            raise unfit
        for field in self._required:
            if field.name not in found:
                among = f" among {count_of_fields(len(value)).replace('field', 'attribute')}" if value else ""
                raise InvalidValue(
                    f'there is no "{field.name}"{among}', f'"{field.name}":…', "missing-attribute"
                )
        self.check(found, value)
        return found

    def member(self, step: str | int) -> Member | None:
        known = self._types.get(step) if isinstance(step, str) else None
        return None if known is None else Member(*known[:2])

    def with_parts(self, value: Any, change: Callable[[FieldType, Any], Any]) -> dict[str, Any]:
        return {name: change(self._types[name][1], part) for name, part in value.items()}

    def all_words(self) -> Iterator[str]:
        yield from self._spelt
        yield from super().all_words()

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        for field in self.fields:
            if not field.optional:
                yield Wrong("left-out", "it is left out", partial(self._without, field.name), part=field.name)
            for wrong in _wrong_inside(_value_type(field), field.name, partial(self._spoilt, field.name)):
                if not (field.optional and wrong.kind == "null"):
                    yield wrong

    def _without(self, name: str, value: Mapping[str, Any]) -> str:
        return to_json({key: part for key, part in value.items() if key != name})

    def _spoilt(self, name: str, wrong: Wrong, value: Mapping[str, Any]) -> str:
        """Return the object with one invalid attribute. Raises KeyError if it is missing."""
        texts = {key: to_json(part) for key, part in value.items()} | {name: wrong.of(value[name])}
        return "{" + ",".join(f"{to_json(key)}:{text}" for key, text in texts.items()) + "}"

    def check(self, found: dict[str, Any], value: Mapping[str, Any]) -> None:
        """Raise Unfit if the attributes contradict each other; paths have the keys of `value`."""

    def key_of(self, name: str, value: Mapping[str, Any]) -> str:
        """Return the spelling of an attribute in `value`."""
        return next(key for key in value if self._spelt.get(key) == name)

    def _place(self, name: str) -> int:
        return next(number for number, field in enumerate(self.fields) if field.name == name)

    def _unknown_key(self, key: str, value: Mapping[str, Any], reading: DecodingState) -> None:
        """Ignore an unknown attribute; raise Unfit if it looks like a missing one, misspelt."""
        near = nearest_word(key, self._spelt)
        if near is not None and all(self._spelt.get(other) != self._spelt[near] for other in value):
            meant = f'"{self._spelt[near]}"'
            problem = with_suggestion(f'"{key[:_MAX_QUOTED]}" is not an attribute here', meant)
            raise InvalidValue(problem, f"{meant}:…", "unknown-attribute", (key,), of_key=True)
        reading.surplus = True
        reading.note("surplus-attribute", f'"{key[:_MAX_QUOTED]}" is not specified here', key, of_key=True)

    def wire_type(self) -> Mapping[str, Any]:
        return {
            "kind": "json_object",
            "spelt": self._spelt,
            "fields": [
                {
                    "name": field.name,
                    "type": _value_type(field).wire_type(),
                    "optional": field.optional or None,
                }
                for field in self.fields
            ],
        }


class Tuple(Value):
    """Attributes without names, as a list in the order of the fields; the last ones may be left out."""

    def __init__(self, *fields: Field) -> None:
        self.fields = fields
        self.title = "[" + ",".join(field.description for field in fields) + "]"
        self._types = [(field.name, _value_type(field)) for field in fields]
        self._least = sum(not field.optional for field in fields)

    def read(self, value: Any, reading: DecodingState) -> dict[str, Any]:
        if type(value) is not list or not self._least <= len(value) <= len(self._types):
            raise InvalidValue(
                f"{quoted(value)} is not a list of {self._least} to {len(self._types)}", self.title
            )
        found = {}
        for number, ((name, kind), part) in enumerate(zip(self._types, value, strict=False)):
            reading.path.append(number)
            try:
                found[name] = kind.read(part, reading)
            except InvalidValue as error:
                raise error.inside(number) from None
            reading.path.pop()
        return found

    def member(self, step: str | int) -> Member | None:
        if isinstance(step, int) and step < len(self._types):
            return Member(*self._types[step])
        return None


class SingleValue(Value):
    """A single attribute without its name."""

    def __init__(self, field: Field) -> None:
        self.name, self._type = field.name, _value_type(field)
        self.title = self._type.title
        self.whole = Member(self.name, self._type)

    def read(self, value: Any, reading: DecodingState) -> dict[str, Any]:
        return {self.name: self._type.read(value, reading)}


def _value_type(field: Field) -> Value:
    assert isinstance(field.type, Value)
    return field.type


def _unknown(value: Any, words: Mapping[str, str]) -> str:
    problem = f"{quoted(value)} is not known here"
    near = nearest_word(value, words) if type(value) is str else None
    return with_suggestion(problem, None if near is None else f'"{words[near]}"')


def _note_spelling(reading: DecodingState, sent: str, word: str, *steps: str) -> None:
    text = f'"{sent}" is "{word}" in the specification'
    reading.note("spelling", text, *steps, of_key=bool(steps))


_FARTHEST = 1000
"""Maximum absolute value of a coordinate."""

_COUNT = Integer(title="a count")
_PLAIN_PLACE = Coordinates()
_COORDINATE = Integer(-_FARTHEST, _FARTHEST)
_PLACE = Object(Field("x", _COORDINATE, "to the right"), Field("y", _COORDINATE, "along the slanted axis"))
