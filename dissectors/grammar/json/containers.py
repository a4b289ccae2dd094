"""The types of JSON objects and lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from types import GenericAlias
from typing import Annotated, Any, Literal, NotRequired, TypedDict

from msgspec import Meta

from kiebitz.dissectors.grammar.field_type import UNKNOWN_WORD, FieldType, Mismatch, WireType, Wrong
from kiebitz.dissectors.grammar.fields import INTEGER, MAX_QUOTED
from kiebitz.dissectors.grammar.grammar import Field, count_of_fields, nearest_word, to_json
from kiebitz.dissectors.grammar.json.forms import SizeRule
from kiebitz.dissectors.grammar.json.types import (
    Check,
    JsonAny,
    JsonNumber,
    JsonType,
    Misfit,
    Part,
    Reading,
    quoted,
    unknown_word,
    wrong_inside,
)
from kiebitz.dissectors.grammar.lenient import AS_WRITTEN, Spellings
from kiebitz.dissectors.suggestions import with_suggestion

_FEW = 100
"""Largest number of items for which a test case sends one too many."""

_MOST = 2**31 - 1
"""Largest number of things of one kind."""


class JsonList(JsonType):
    """A list of values of one type.

    Args:
        item: The type of its items.
        least: Smallest number of items.
        most: Largest number of items, None for no limit.
        noun: Word for its items.
        title: Its description.
    """

    kinds = (list,)

    item: JsonType

    def __init__(
        self,
        item: JsonType,
        least: int = 0,
        most: int | None = None,
        noun: str = "values",
        title: str = "",
    ) -> None:
        self.item, self.parts, self.noun, self.least, self.most = item, (item,), noun, least, most
        self.title = title or f"list: {item.title}"

    def read(self, value: Any, reading: Reading) -> Any:
        if type(value) is not list:
            raise Misfit(f"{quoted(value)} is not a list", self.title)
        if not (self.least <= len(value) and (self.most is None or len(value) <= self.most)):
            raise Misfit(f"there are {len(value)} {self.noun}", self.title)
        found: list[Any] = []
        path, read = reading.path, self.item.read
        path.append(0)
        for part in value:
            path[-1] = len(found)
            found.append(read(part, reading))
        path.pop()
        return found

    def strict(self) -> Any:
        item = self.item.strict()
        if item is None:
            return None
        return Annotated[GenericAlias(list, (item,)), Meta(min_length=self.least, max_length=self.most)]

    def check(self) -> Check | None:
        check = self.item.check()
        return None if check is None else lambda value: all(map(check, value))

    def part(self, step: str | int) -> Part | None:
        return Part(step, self.item) if isinstance(step, int) else None

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        if self.least:
            yield Wrong(
                "too-few", "a list with too few values", lambda value: to_json(value[: self.least - 1])
            )
        if self.most is not None and self.most <= _FEW:
            yield Wrong("too-many", "a list with too many values", self._too_many)
        yield from wrong_inside(self.item, "0", self._with_first)

    def _too_many(self, value: Sequence[Any]) -> str:
        assert self.most is not None
        return to_json([*value, *[value[-1]] * (self.most + 1 - len(value))])

    def _with_first(self, wrong: Wrong, value: Sequence[Any]) -> str:
        return f"[{','.join((wrong.of(value[0]), *map(to_json, value[1:])))}]"

    def wire_type(self) -> WireType:
        size = {"least": self.least, "most": self.most} if self.most is not None else {}
        return {"kind": "json_list", "item": self.item.wire_type(), **size}


class JsonBag(JsonType):
    """The number of things of each kind, an object; absent kinds may be left out.

    Args:
        names: Names of the kinds.
        title: Its description.
        hidden: Key under which programs send the total of hidden things, which the specification sends as a
            number; None if nothing can be hidden.
        owes: True if numbers may be below zero, which is noted.
        noun: Word for the things.
        spellings: Other spellings of the names.
    """

    def __init__(
        self,
        names: Sequence[str],
        title: str,
        hidden: str | None = None,
        owes: bool = False,
        noun: str = "things",
        spellings: Spellings = AS_WRITTEN,
    ) -> None:
        self.names, self.title, self.hidden, self.noun = tuple(names), title, hidden, noun
        self._spelt = spellings.of(names)
        self._least = -_MOST if owes else 0
        self._count = JsonNumber(0, _MOST, title="a count")
        self.kinds = (dict,) if hidden is None else (dict, int)
        self.words = (*(() if hidden is None else (hidden,)), *self._spelt)

    def read(self, value: Any, reading: Reading) -> Any:
        hidden = self.hidden
        if type(value) is int and hidden is not None:
            return self._number(value, reading)
        if type(value) is not dict:
            noun = "an object" if hidden is None else "a count"
            raise Misfit(f"{quoted(value)} is not {noun}", self.title)
        counts: dict[str, int] = {}
        for key, count in value.items():
            name = self._spelt.get(key)
            if name is None and (hidden is None or key != hidden):
                raise Misfit(unknown_word(key, self._spelt), self.title, "unknown-kind", (key,), of_key=True)
            if type(count) is not int or not 0 <= count <= _MOST:
                reading.path.append(key)
                self._number(count, reading)
                reading.path.pop()
            if name is None:
                reading.note("unusual-value", f'"{key}" is used for hidden {self.noun}', key, of_key=True)
                continue
            if name != key:
                reading.note_spelling(key, name, key)
            if name in counts:
                raise Misfit(f'"{name}" is given twice', self.title, "twice", (key,), of_key=True)
            counts[name] = count
        if hidden is None or hidden not in value:
            return counts
        total = value[hidden]
        if not any(counts.values()):
            return total
        if total not in (0, sum(counts.values())):
            raise Misfit(f"some {self.noun} are hidden and some are not", self.title, path=(hidden,))
        return counts

    def _number(self, value: Any, reading: Reading) -> int:
        if type(value) is not int:
            raise Misfit(f"{quoted(value)} is not a whole number", "a whole number")
        if not self._least <= value <= _MOST:
            raise Misfit(f"{quoted(value)} is not from {self._least} to {_MOST}", "a count")
        if value < 0:
            reading.note("below-zero", f"{value} is below zero")
        return value

    def strict(self) -> Any:
        number = self._count.strict()
        bag: Any = GenericAlias(dict, (Literal[self.names], number))
        return bag if self.hidden is None else bag | number

    def part(self, step: str | int) -> Part | None:
        name = self._spelt.get(step) if isinstance(step, str) else None
        return None if name is None else Part(name, self._count)

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        yield Wrong("unknown-kind", "an unknown kind", f'{{"{UNKNOWN_WORD}":1}}')
        yield Wrong("huge", "more than exist", self._with_count("1000"), allowed=True, part="count")
        for wrong in wrong_inside(self._count, "count", lambda wrong, _: self._with_count(wrong.of(0))):
            if not (self._least and wrong.kind == "negative"):
                yield wrong

    def _with_count(self, count: str) -> str:
        return f"{{{to_json(self.names[0])}:{count}}}"

    def wire_type(self) -> WireType:
        return {
            "kind": "json_counts",
            "counts": self._spelt,
            "hidden": self.hidden,
            "open": self.hidden is None,
            "min": self._least,
            "max": _MOST,
        }


class JsonObject(JsonType):
    """An object with attributes, in any order and any known spelling.

    Args:
        fields: The attributes.
        spellings: Other spellings of their names.
        title: Its description.
        noun: Word for it in sentences.
        compact: True if the byte tree has a valid object as one piece.
        sizes: Number of items of one attribute by the value of another.
        is_open: True if other attributes are kept; otherwise they are noted and left out.
        is_lenient: True if the table may be incomplete: null in place of an optional attribute is kept, and a
            misspelt optional attribute is only noted.
    """

    kinds = (dict,)
    is_body = False
    """True for the object with the fields of a message."""

    others: JsonType

    def __init__(
        self,
        *fields: Field,
        spellings: Spellings = AS_WRITTEN,
        title: str = "",
        noun: str = "an object",
        compact: bool = False,
        sizes: SizeRule | None = None,
        is_open: bool = False,
        is_lenient: bool = False,
    ) -> None:
        self.fields, self.noun, self.sizes, self.is_compact = fields, noun, sizes, compact
        self.is_open, self.is_lenient = is_open, is_lenient
        self.title = title or "{" + ",".join(f'"{field.name}":…' for field in fields) + "}"
        by_name = {field.name: field for field in fields}
        self._order = {name: number for number, name in enumerate(by_name)}
        self.spelt = spellings.of(by_name)
        """The attribute for each spelling of its name."""
        self._types = {
            key: (name, json_type_of(by_name[name]), by_name[name].optional)
            for key, name in self.spelt.items()
        }
        self._required = tuple(field.name for field in fields if not field.optional)
        self.members = {field.name: json_type_of(field) for field in fields}
        self.parts = (*self.members.values(),)
        self.others = JsonAny()
        # A program that sends an unknown attribute sends it again and again.
        self._meant = lru_cache(64)(self._nearest)

    def read(self, value: Any, reading: Reading) -> Any:
        if type(value) is not dict:
            raise Misfit(f"{quoted(value)} is not {self.noun}", self.title)
        found: dict[str, Any] = {}
        types, path, depth = self._types, reading.path, len(reading.path)
        unfit: Misfit | None = None
        for key, part in value.items():
            known = types.get(key)
            if known is None:
                if self.is_open:
                    found[key] = part
                else:
                    self._note_unknown(key, value, found, reading)
                continue
            name, kind, optional = known
            if name != key:
                reading.note_spelling(key, name, key)
            if name in found:
                raise Misfit(f'"{name}" is given twice', self.title, "twice", (key,), of_key=True)
            if part is None and optional:
                if self.is_lenient:
                    found[name] = None
                continue
            path.append(key)
            try:
                found[name] = kind.read(part, reading)
            except Misfit as error:
                # Of several errors, report the first in the specification's order: an attribute can
                # determine the allowed values of others.
                if unfit is None or self._order[name] < self._order[self.spelt[str(unfit.path[0])]]:
                    unfit = error.below(path[depth:])
                del path[depth + 1 :]
            path.pop()
        if unfit is None:
            for name in self._required:
                if name not in found:
                    unfit = self._missing(name, value)
                    break
            else:
                if self.sizes is None or self.sizes.fits(found):
                    return found
                unfit = self._wrong_size(self.sizes, found, value)
        if self.is_body:
            unfit.valid_fields = found
        raise unfit

    def _nearest(self, key: str) -> str | None:
        """Return the attribute whose name is probably meant."""
        near = nearest_word(key, self.spelt)
        return None if near is None else self.spelt[near]

    def _missing(self, name: str, value: Mapping[str, Any]) -> Misfit:
        among = f" among {count_of_fields(len(value)).replace('field', 'attribute')}" if value else ""
        return Misfit(f'there is no "{name}"{among}', f'"{name}":…', "missing-attribute")

    def _wrong_size(self, rule: SizeRule, found: Mapping[str, Any], value: Mapping[str, Any]) -> Misfit:
        key = next(key for key in value if self.spelt.get(key) == rule.of)
        kind = self._types[key][1]
        needed = f"{rule.size(found)} {kind.noun if isinstance(kind, JsonList) else 'values'}"
        return Misfit(f"{found[rule.by]} needs {needed}, not {len(found[rule.of])}", needed, path=(key,))

    def strict(self) -> Any:
        if self.is_open and not self.fields:
            return dict[str, Any]
        # msgspec leaves out other attributes, which the codec notices.
        kinds: dict[str, Any] = {}
        for field in self.fields:
            part = json_type_of(field)
            kind = part.strict()
            # Without the object with the fields, the number of colons would be another.
            is_optional = field.optional and not (isinstance(part, JsonObject) and part.is_body)
            if kind is None and not is_optional:
                return None
            if kind is not None and is_optional:
                kind = NotRequired[kind | None] if self.is_lenient else NotRequired[kind]
            if kind is not None:
                kinds[field.name] = kind
        return TypedDict(f"Object{id(self)}", kinds)  # type: ignore[operator]  # made at run time

    def check(self) -> Check | None:
        checks = [(field.name, check) for field in self.fields if (check := json_type_of(field).check())]
        rule = self.sizes
        if not checks:
            return None if rule is None else rule.fits
        return lambda value: (
            (rule is None or rule.fits(value))
            and all(value[name] is None or check(value[name]) for name, check in checks if name in value)
        )

    def part(self, step: str | int) -> Part | None:
        known = self._types.get(step) if isinstance(step, str) else None
        if known is None:
            return Part(step, self.others) if self.is_open else None
        return Part(*known[:2])

    def all_words(self) -> Iterator[str]:
        yield from self.spelt
        yield from super().all_words()

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        for field in self.fields:
            if not field.optional:
                yield Wrong("left-out", "it is left out", partial(self._without, field.name), part=field.name)
            for wrong in wrong_inside(json_type_of(field), field.name, partial(self._with, field.name)):
                if not (field.optional and wrong.kind == "null"):
                    yield wrong

    def _without(self, name: str, value: Mapping[str, Any]) -> str:
        return to_json({key: part for key, part in value.items() if key != name})

    def _with(self, name: str, wrong: Wrong, value: Mapping[str, Any]) -> str:
        texts = {key: to_json(part) for key, part in value.items()} | {name: wrong.of(value[name])}
        return "{" + ",".join(f"{to_json(key)}:{text}" for key, text in texts.items()) + "}"

    def _note_unknown(
        self, key: str, value: Mapping[str, Any], found: dict[str, Any], reading: Reading
    ) -> None:
        """Note an unknown attribute; raise Misfit if it looks like a missing one, misspelt."""
        meant = self._meant(key[:MAX_QUOTED])
        if meant is not None and any(self.spelt.get(other) == meant for other in value):
            meant = None
        suggestion = None if meant is None else f'"{meant}"'
        if meant is not None and (meant in self._required or not self.is_lenient):
            problem = with_suggestion(f'"{key[:MAX_QUOTED]}" is not an attribute here', suggestion)
            error = Misfit(problem, f"{suggestion}:…", "unknown-attribute", (key,), of_key=True)
            error.valid_fields = found if self.is_body else {}
            raise error
        reading.has_surplus = True
        problem = with_suggestion(f'"{key[:MAX_QUOTED]}" is not specified here', suggestion)
        reading.note("surplus-attribute", problem, key, of_key=True)

    def wire_type(self) -> WireType:
        if self.is_open and not self.fields:
            return {"kind": "json_any", "limit": "any value is accepted, not only an object"}
        limit = (
            {} if self.sizes is None else {"limit": f"the number of items of {self.sizes.of} is not checked"}
        )
        return {
            "kind": "json_object",
            "spelt": None if self.is_lenient else self.spelt,
            "fields": [
                {"name": field.name, "type": field.type.wire_type(), "optional": field.optional or None}
                for field in self.fields
            ],
            **limit,
        }


class JsonMap(JsonType):
    """An object with any keys of one type, a type of text, each with a value of another."""

    kinds = (dict,)

    others: JsonType

    def __init__(self, key: FieldType, value: JsonType) -> None:
        self.key, self.others = key, value
        self.parts = (key, value)
        self.title = f"{{{key.title}: {value.title}}}"

    def read(self, value: Any, reading: Reading) -> Any:
        if type(value) is not dict:
            raise Misfit(f"{quoted(value)} is not an object", self.title)
        found: dict[str, Any] = {}
        for key, part in value.items():
            try:
                self.key.decode(key)
            except Mismatch as error:
                raise Misfit(error.problem, error.expected, error.code, (key,), of_key=True) from None
            reading.path.append(key)
            found[key] = self.others.read(part, reading)
            reading.path.pop()
        return found

    def strict(self) -> Any:
        inner = self.others.strict()
        return None if inner is None else GenericAlias(dict, (str, inner))

    def check(self) -> Check | None:
        check = self.others.check()
        return lambda value: all(
            self.key.accepts(key) and (check is None or check(part)) for key, part in value.items()
        )

    def part(self, step: str | int) -> Part | None:
        return Part(step, self.others) if isinstance(step, str) else None

    def with_parts(self, value: Any, change: Callable[[FieldType, Any], Any]) -> Any:
        if not isinstance(value, dict):
            return value
        # A player's number is one as a key, too.
        keys = {key: change(self.key, int(key) if INTEGER.fullmatch(key) else key) for key in value}
        return {str(keys[key]): change(self.others, part) for key, part in value.items()}

    def wire_type(self) -> WireType:
        return {"kind": "json_any", "limit": "any value is accepted, not only such an object"}


class JsonTuple(JsonType):
    """Attributes without names, as a list in the order of the fields; the last ones may be left out."""

    kinds = (list,)

    def __init__(self, *fields: Field) -> None:
        self.fields = fields
        self.title = "[" + ",".join(field.description for field in fields) + "]"
        self._least = sum(not field.optional for field in fields)

    def read(self, value: Any, reading: Reading) -> Any:
        if type(value) is not list or not self._least <= len(value) <= len(self.fields):
            raise Misfit(f"{quoted(value)} is not a list of {self._least} to {len(self.fields)}", self.title)
        found = {}
        for number, (field, part) in enumerate(zip(self.fields, value, strict=False)):
            reading.path.append(number)
            found[field.name] = json_type_of(field).read(part, reading)
            reading.path.pop()
        return found

    def part(self, step: str | int) -> Part | None:
        if isinstance(step, int) and step < len(self.fields):
            return Part(self.fields[step].name, json_type_of(self.fields[step]))
        return None


class JsonAlone(JsonType):
    """A single attribute without its name."""

    def __init__(self, field: Field) -> None:
        self.field, self.type, self.title = field, json_type_of(field), field.type.title

    def read(self, value: Any, reading: Reading) -> Any:
        if value is None and self.field.optional:
            return {}
        return {self.field.name: self.type.read(value, reading)}


def json_type_of(field: Field) -> JsonType:
    """Return the type of a field of a JSON message."""
    assert isinstance(field.type, JsonType), field
    return field.type
