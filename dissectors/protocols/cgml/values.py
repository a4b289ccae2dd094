"""The types of texts in CGML's elements and attributes, and of nested elements."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any
from xml.etree.ElementTree import Element, fromstring

import msgspec

from kiebitz.dissectors.grammar.field_type import FieldType, IdentifierKind, Mismatch
from kiebitz.dissectors.grammar.fields import Number, unknown_word
from kiebitz.dissectors.grammar.grammar import Field, nearest_word
from kiebitz.dissectors.grammar.invalid_values import OF_WORDS, Wrong, other_case
from kiebitz.dissectors.grammar.xml.markup import BLANK_TEXT
from kiebitz.dissectors.protocols.cgml.cards import PACK
from kiebitz.dissectors.suggestions import with_suggestion

MAX_CHILDREN = 32
"""Maximum number of elements inside another; there are 32 cards."""

_MAX_QUOTED = 40
_MARK = "\ue000"
"""Placeholder for a text that its type would not encode."""
# xml.sax.saxutils has this, too, but imports an HTTP client, which would slow down each start.
_ENTITIES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;", "\n": "&#10;", "\t": "&#9;", '"': "&quot;"}
)
_NO_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def as_xml(text: str) -> str:
    """Return a text as it is written in an element or attribute. Raises ValueError for invalid characters."""
    if _NO_CHARACTERS.search(text):
        raise ValueError("XML has no such characters")
    return escaped(text)


def escaped(text: str) -> str:
    """Return the text with XML's escapes, without rejecting invalid characters."""
    return text.translate(_ENTITIES)


class Range(Number):
    """An integer from `least` to `most`."""

    def __init__(self, least: int, most: int) -> None:
        super().__init__(title=f"a whole number from {least} to {most}")
        self.least, self.most = least, most

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        yield Wrong("out-of-range", f"a number above {self.most}", str(self.most + 1))

    def decode(self, text: str) -> int:
        number = int(super().decode(text))
        if not self.least <= number <= self.most:
            problem = f"{number} is not from {self.least} to {self.most}"
            raise Mismatch(0, len(text), problem, self.title, "out-of-range")
        return number

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "number", "whole": True, "digits": 15, "min": self.least, "max": self.most}


class Choice(FieldType):
    """One of a few words; None is the empty one, if that is allowed."""

    wrong_texts = OF_WORDS

    def __init__(self, *words: str, title: str | None = None, empty: bool = False) -> None:
        self.words = words
        self._known = frozenset(words)
        self.empty = empty
        self.title = title or "one of " + ", ".join(words)

    def decode(self, text: str) -> str | None:
        if text in self._known:
            return text
        if self.empty and not text:
            return None
        raise unknown_word(text, self.words, self.title)

    def encode(self, value: Any) -> str:
        return "" if value is None else str(value)

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        if any(word != word.swapcase() for word in self.words):
            yield other_case(self.encode)

    def wire_type(self) -> Mapping[str, Any]:
        values: dict[str, Any] = {word: ("s", word) for word in self.words}
        return {"kind": "choice", "values": values | ({"": ("null",)} if self.empty else {})}


class Card(Choice):
    """A card's code, clause 5; None if it is hidden."""

    def __init__(self, hidden: bool) -> None:
        title = "a card: R, B, G or A and 07, 08, 09, 10, 0J, 0Q, 0K or 0A"
        super().__init__(*PACK, title=title + (", or none" if hidden else ""), empty=hidden)

    def decode(self, text: str) -> str | None:
        try:
            return super().decode(text)
        except Mismatch as error:
            if re.fullmatch("T(0[1-9]|1[0-9]|2[0-2])|J00", text):
                problem = f"{text} is a card, but not one of this game"
            elif not text:
                problem = "the card is missing"
            else:
                # Suggest only other case or a missing zero, as all codes look alike.
                short = text.upper() if len(text) == 3 else f"{text[:1]}0{text[1:]}"
                problem = with_suggestion(
                    f'"{text[:_MAX_QUOTED]}" is not a card', short if short in PACK else None
                )
            raise Mismatch(0, len(text), problem, self.title, "bad-card") from error

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        yield Wrong("other-pack", "a card of another game, a tarock", "T18")
        yield Wrong("no-height", "a card without a height", "R")


class Pattern(FieldType):
    """A text that matches a pattern; with an `identifier` it is a name."""

    def __init__(self, pattern: str, title: str, identifier: IdentifierKind | None = None) -> None:
        self.identifier = identifier
        self.pattern = re.compile(pattern, re.ASCII)
        self.title = title

    def decode(self, text: str) -> str:
        if not self.pattern.fullmatch(text):
            problem = f'"{text[:_MAX_QUOTED]}" is not {self.title}' if text else "the text is empty"
            raise Mismatch(0, len(text), problem, self.title)
        return text

    def encode(self, value: Any) -> str:
        return str(value)

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "text", "limit": "its pattern is not checked"}


class Child(msgspec.Struct, frozen=True, dict=True):
    """An element inside another: a list of `least` to `most` elements; if `most` is None, a single one."""

    field: Field
    least: int = 1
    most: int | None = None

    @cached_property
    def is_list(self) -> bool:
        """True if it may occur several times."""
        return self.most is not None


class Shape(msgspec.Struct, frozen=True, dict=True):
    """The contents of an element: attributes, a text, nested elements."""

    attributes: tuple[Field, ...] = ()
    text: Field | None = None
    children: tuple[Child, ...] = ()

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of its attributes."""
        return frozenset(field.name for field in self.attributes)

    @cached_property
    def elements(self) -> dict[str, Child]:
        """The nested elements by name."""
        return {child.field.name: child for child in self.children}

    @property
    def nested(self) -> Iterator[tuple[str, bool]]:
        """The names of all elements inside, each with True if it may contain elements."""
        for child in self.children:
            inner = child.field.type.shape if isinstance(child.field.type, Compound) else Shape()
            yield child.field.name, bool(inner.children)
            yield from inner.nested

    @property
    def fields(self) -> Iterator[Field]:
        """All fields in the order of the specification."""
        yield from self.attributes
        if self.text is not None:
            yield self.text
        for child in self.children:
            yield child.field


class InvalidElement(Exception):
    """A part of an element is invalid.

    `path` has the indices of nested elements from the root on. `part` names the invalid part: the start
    `tag`, the `text`, a misplaced `text-inside`, an attribute `@name` or its value `=name`, or the indices of
    two children that are the `same`.
    """

    def __init__(self, code: str, problem: str, expected: str, part: str = "tag") -> None:
        super().__init__(problem)
        self.code, self.problem, self.expected, self.part = code, problem, expected, part
        self.path: tuple[int, ...] = ()

    def inside(self, place: int) -> InvalidElement:
        """Prepend an element's index to the path."""
        self.path = (place, *self.path)
        return self


class Compound(FieldType):
    """An element of a shape, as a JSON object; its text is XML."""

    def __init__(self, name: str, shape: Shape) -> None:
        self.name = name
        self.shape = shape
        self.title = f"<{name}> with " + ", ".join(field.name for field in shape.fields)
        self.parts = tuple(field.type for field in shape.fields)

    def decode(self, text: str) -> dict[str, Any]:
        try:
            return read(self.shape, fromstring(text))
        except (SyntaxError, InvalidElement) as error:
            raise Mismatch(0, len(text), str(error), self.title) from error

    def encode(self, value: Any) -> str:
        return "".join(element_xml(self.name, self.shape, value))

    def with_parts(self, value: Any, change: Callable[[FieldType, Any], Any]) -> dict[str, Any]:
        return with_each(self.shape, value, change)

    def all_words(self) -> Iterator[str]:
        yield self.name
        yield from (field.name for field in self.shape.fields)
        yield from super().all_words()

    def wrong_values(self) -> Iterator[Wrong]:
        yield Wrong("empty", f"an empty <{self.name}>", f"<{self.name}/>", allowed=not self._needs_something)
        yield Wrong(
            "text", f"a word in place of the contents of <{self.name}>", f"<{self.name}>x</{self.name}>"
        )
        for field in self.shape.fields:
            if isinstance(field.type, Compound):
                continue
            if not field.optional:
                yield Wrong("left-out", "it is left out", partial(self._without, field), part=field.name)
            for wrong in field.type.wrong_values():
                yield wrong.inside(field.name, partial(self._spoilt, field, wrong))

    @property
    def _needs_something(self) -> bool:
        return any(not field.optional for field in self.shape.fields)

    def _without(self, field: Field, value: Mapping[str, Any]) -> str:
        fields = tuple(each for each in self.shape.attributes if each is not field)
        children = tuple(each for each in self.shape.children if each.field is not field)
        text = None if self.shape.text is field else self.shape.text
        return "".join(element_xml(self.name, Shape(fields, text, children), dict(value)))

    def _spoilt(self, field: Field, wrong: Wrong, value: Mapping[str, Any]) -> str:
        part = value.get(field.name)
        stood, marked = (part[0], [_MARK, *part[1:]]) if isinstance(part, list) else (part, _MARK)
        return self.encode({**value, field.name: marked}).replace(_MARK, escaped(wrong.of(stood)), 1)

    def wire_type(self) -> Mapping[str, Any]:
        return {"kind": "element", "fields": [wire_field(field) for field in self.shape.fields]}


def _decoded(field: Field, text: str | None, part: str) -> Any:
    text = text or ""
    kind = field.type
    try:
        return kind.decode(text if kind.is_free_text else text.strip(BLANK_TEXT))
    except Mismatch as error:
        raise InvalidElement(error.code, f"{field.name}: {error}", error.expected, part) from error


def read(shape: Shape, element: Element, version: Field | None = None) -> dict[str, Any]:
    """Return the fields of an element; a message's element may also have a `version`. Raises Unfit."""
    fields: dict[str, Any] = {}
    attributes = element.attrib
    for name in attributes:
        if name not in shape.names and (version is None or name != version.name):
            raise _unknown("attribute", name, [field.name for field in shape.attributes], f"@{name}")
    for field in shape.attributes:
        text = attributes.get(field.name)
        if text is not None:
            fields[field.name] = _decoded(field, text, f"={field.name}")
        elif not field.optional:
            problem = f"<{element.tag}> has no {field.name}"
            raise InvalidElement("missing-attribute", problem, f'{field.name}="…": {field.type.title}')
    if version is not None and version.name in attributes:
        fields[version.name] = _decoded(version, attributes[version.name], f"={version.name}")
    if shape.text is not None:
        if len(element):
            raise _unknown("element", element[0].tag, (), "tag").inside(0)
        if (element.text and element.text.strip(BLANK_TEXT)) or not shape.text.optional:
            fields[shape.text.name] = _decoded(shape.text, element.text, "text")
        return fields
    if element.text and element.text.strip(BLANK_TEXT):
        raise _stray_text(element.text)
    if shape.children or len(element):
        _read_children(shape, element, fields)
    return fields


def _read_children(shape: Shape, element: Element, fields: dict[str, Any]) -> None:
    known = shape.elements
    if len(element) > MAX_CHILDREN:
        raise InvalidElement(
            "too-many",
            f"<{element.tag}> contains {len(element)} elements",
            f"at most {MAX_CHILDREN} elements",
        )
    for place, inner in enumerate(element):
        name = inner.tag
        child = known.get(name)
        if child is None:
            raise _unknown("element", name, known, "tag").inside(place)
        field = child.field
        value: Any
        try:
            if type(field.type) is Compound:
                value = read(field.type.shape, inner)
            else:
                # `attrib` would create a dict for each element.
                for wrong, _ in inner.items():
                    raise _unknown("attribute", wrong, (), f"@{wrong}")
                if len(inner):
                    raise _unknown("element", inner[0].tag, (), "tag").inside(0)
                value = _decoded(field, inner.text, "text")
        except InvalidElement as error:
            raise error.inside(place) from None
        if not child.is_list:
            if name in fields:
                problem = f"<{element.tag}> contains <{name}> twice"
                raise InvalidElement("too-many", problem, f"one <{name}>").inside(place)
            fields[name] = value
        else:
            values = fields.setdefault(name, [])
            if type(value) is str and value in values:
                problem = f"<{element.tag}> contains <{name}>{value}</{name}> twice"
                raise InvalidElement(
                    "twice", problem, "each card once", f"same {values.index(value)} {place}"
                )
            values.append(value)
        tail = inner.tail
        if tail and tail.strip(BLANK_TEXT):
            raise _stray_text(tail)
    for name, child in known.items():
        count = len(fields.get(name, ())) if child.is_list else int(name in fields)
        if count < child.least:
            problem = f"<{name}> occurs {count} times" if count else f"<{element.tag}> has no <{name}>"
            raise InvalidElement("missing-element", problem, _count_words(child))
        if child.most is not None and count > child.most:
            surplus = [place for place, inner in enumerate(element) if inner.tag == name][child.most]
            problem = f"<{name}> occurs {count} times"
            raise InvalidElement("too-many", problem, _count_words(child)).inside(surplus)


def _count_words(child: Child) -> str:
    if child.most is None or child.least == child.most == 1:
        return f"one <{child.field.name}>"
    if child.least == child.most:
        return f"<{child.field.name}> {child.most} times"
    return f"<{child.field.name}> {child.least} to {child.most} times"


def _unknown(what: str, name: str, known: Any, part: str) -> InvalidElement:
    problem = with_suggestion(f'no {what} "{name[:_MAX_QUOTED]}" belongs here', nearest_word(name, known))
    return InvalidElement(f"unknown-{what}", problem, ", ".join(known) or f"no {what}", part)


def _stray_text(text: str) -> InvalidElement:
    return InvalidElement(
        "stray-text",
        f'"{text.strip(BLANK_TEXT)[:_MAX_QUOTED]}" is between elements',
        "no text",
        "text-inside",
    )


def with_each(
    shape: Shape, fields: Mapping[str, Any], change: Callable[[FieldType, Any], Any]
) -> dict[str, Any]:
    """Return the fields of an element with `change` applied to each; other keys stay."""
    other = dict(fields)
    for field in shape.fields:
        if field.name in fields:
            value = fields[field.name]
            other[field.name] = (
                [change(field.type, part) for part in value]
                if isinstance(value, list)
                else change(field.type, value)
            )
    return other


def element_xml(name: str, shape: Shape, fields: dict[str, Any], indent: str = "\r\n") -> Iterator[str]:
    """Yield an element as XML, with each nested element on its own line. Raises ValueError, KeyError."""
    yield f"<{name}"
    for field in shape.attributes:
        if field.name in fields or not field.optional:
            yield f' {field.name}="{as_xml(field.type.encode(fields[field.name]))}"'
    yield ">"
    if shape.text is not None and (shape.text.name in fields or not shape.text.optional):
        yield as_xml(shape.text.type.encode(fields[shape.text.name]))
    inner = indent + "  "
    some = False
    for child in shape.children:
        field = child.field
        if field.name not in fields:
            continue
        for value in fields[field.name] if child.is_list else (fields[field.name],):
            some = True
            yield inner
            if isinstance(field.type, Compound):
                yield from element_xml(field.name, field.type.shape, value, inner)
            else:
                yield f"<{field.name}>{as_xml(field.type.encode(value))}</{field.name}>"
    if some:
        yield indent
    yield f"</{name}>"


def wire_field(field: Field) -> Mapping[str, Any]:
    """Return the declarative description of a field."""
    kind = field.type.wire_type() or {"kind": "text"}
    return {"name": field.name, "type": kind, "optional": field.optional or None}


def wire_shape(shape: Shape) -> Mapping[str, Any]:
    """Return the declarative description of an element's contents."""
    return {
        "attributes": [wire_field(field) for field in shape.attributes],
        "text": wire_field(shape.text) if shape.text is not None else None,
        "children": [
            {"name": child.field.name, "least": child.least, "most": child.most, "shape": inner}
            if (inner := _inner_shape(child)) is not None
            else {**wire_field(child.field), "least": child.least, "most": child.most}
            for child in shape.children
        ],
    }


def _inner_shape(child: Child) -> Mapping[str, Any] | None:
    kind = child.field.type
    return wire_shape(kind.shape) if isinstance(kind, Compound) else None
