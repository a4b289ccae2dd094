"""The contents of elements: attributes, texts and nested elements; reading and writing them.

A *closed* shape says where each field is, and anything else is an error. In an *open* one, a field may be an
attribute, one or several elements, or the text, and other parts are noted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, fromstring

import msgspec

from kiebitz.dissectors.grammar.field_type import Fields, FieldType, Mismatch, WireType, Wrong
from kiebitz.dissectors.grammar.fields import AnyText, ListText, ObjectText
from kiebitz.dissectors.grammar.grammar import Field, MessageType, nearest_word
from kiebitz.dissectors.grammar.xml.markup import BLANK_TEXT, as_xml, escaped
from kiebitz.dissectors.suggestions import with_suggestion

MAX_CHILDREN = 32
"""Maximum number of elements inside another, unless its lists may have more."""

MAX_ITEMS = 100_000
"""Maximum number of elements in a list that may have any number."""

MAX_DEPTH = 32
"""Maximum nesting depth of elements."""

TEXT = "text"
"""Name of the field that may be the text of an element with an open shape."""

_MAX_QUOTED = 40
_SHORT = 20
"""Maximum length of a text whose value is kept."""

_MANY = 500
"""Maximum number of such texts of a field."""

_MARK = "\ue000"
"""Placeholder for a text that its type would not encode."""


class Shape(msgspec.Struct, frozen=True, dict=True):
    """The contents of an element: attributes, a text, nested elements."""

    attributes: tuple[Field, ...] = ()
    text: Field | None = None
    children: tuple[Field, ...] = ()
    outer: tuple[Field, ...] = ()
    """Attributes of the envelope, which the element may have if there is none."""
    anywhere: Mapping[str, FieldType] | None = None
    """The fields of an open shape by name."""
    optional: Collection[str] = ()
    """Those of them that may be absent."""

    @cached_property
    def limit(self) -> int:
        """Maximum number of elements."""
        return max(MAX_CHILDREN, sum(child.most for child in self.elements.values()))

    @cached_property
    def needs_text(self) -> bool:
        """True if an open shape has a text that must not be absent."""
        return self.anywhere is not None and TEXT in self.anywhere and TEXT not in self.optional

    @cached_property
    def by_attribute(self) -> dict[str, tuple[Field, Texts]]:
        """The fields that are attributes, by name."""
        return {field.name: (field, Texts(field.type)) for field in (*self.attributes, *self.outer)}

    @cached_property
    def elements(self) -> dict[str, Child]:
        """The nested elements by name."""
        return {field.name: Child.of(field) for field in self.children}

    def nested(self) -> Iterator[tuple[str, bool]]:
        """Yield the names of all elements inside, each with True if it may contain elements.

        Raises LookupError if there may be any.
        """
        for name, child in self.elements.items():
            yield name, bool(child.shape and child.shape.children)
            yield from child.shape.nested() if child.shape else ()
        yield from _nested(self.anywhere or {})

    @property
    def fields(self) -> Iterator[Field]:
        """All fields in the order of the specification."""
        yield from self.attributes
        if self.text is not None:
            yield self.text
        yield from self.children
        yield from self.outer


def _nested(kinds: Mapping[str, FieldType]) -> Iterator[tuple[str, bool]]:
    for name, kind in kinds.items():
        if isinstance(kind, AnyText):
            raise LookupError(f"{name} may contain any elements")
        yield name, True
        if isinstance(kind, ListText):
            yield from _nested({"item": kind.item})
        elif isinstance(kind, ObjectText):
            yield from _nested(kind.fields)


class Child(NamedTuple):
    """An element inside another: its texts, or its shape, and how often it occurs."""

    field: Field
    texts: Texts
    shape: Shape | None
    is_list: bool
    least: int
    most: int

    @classmethod
    def of(cls, field: Field) -> Child:
        """Return the element of a field."""
        kind = field.type
        is_list = isinstance(kind, ElementList)
        least, most = (kind.least, kind.most) if isinstance(kind, ElementList) else (1, 1)
        item = kind.item if isinstance(kind, ElementList) else kind
        shape = item.shape if isinstance(item, Compound) else None
        return cls(field, Texts(item), shape, is_list, 0 if field.optional else least, most)


class Texts(dict[str, Any]):
    """The values of texts of a type; those of short ones are kept."""

    def __init__(self, kind: FieldType) -> None:
        self._kind = kind

    def __missing__(self, text: str) -> Any:
        kind = self._kind
        if kind.is_free_text:
            return kind.decode(text)
        value = kind.decode(text.strip(BLANK_TEXT))
        if len(text) <= _SHORT and len(self) < _MANY and not isinstance(value, list | dict):
            self[text] = value
        return value


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
        self.field = ""
        """Name of the field of an open shape."""
        self.mismatch: Mismatch | None = None
        """The error in the text of a field."""
        self.row: ElementType | None = None
        """The row that the element does not fit."""

    def inside(self, place: int) -> InvalidElement:
        """Prepend an element's index to the path."""
        self.path = (place, *self.path)
        return self


class ElementList(FieldType):
    """`least` to `most` elements of one name, as a JSON list; a text is that of one of them."""

    item: FieldType

    def __init__(self, item: FieldType, least: int = 0, most: int = MAX_ITEMS) -> None:
        self.item, self.least, self.most = item, least, most
        self.parts, self.title, self.occurs_once = (item,), item.title, item.occurs_once

    def decode(self, text: str) -> Any:
        return self.item.decode(text)

    def encode(self, value: Any) -> str:
        return self.item.encode(value)

    def wrong_values(self) -> Iterator[Wrong]:
        return self.item.wrong_values()

    def wire_type(self) -> WireType | None:
        return self.item.wire_type()


class Compound(FieldType):
    """An element of a shape, as a JSON object; its text is XML."""

    def __init__(self, name: str, shape: Shape) -> None:
        self.name = name
        self.shape = shape
        self.title = f"<{name}> with " + ", ".join(field.name for field in shape.fields)
        self.members = {field.name: field.type for field in shape.fields}
        self.parts = (*self.members.values(),)

    def decode(self, text: str) -> dict[str, Any]:
        try:
            return read(self.shape, fromstring(text))
        except (SyntaxError, InvalidElement) as error:
            raise Mismatch(0, len(text), str(error), self.title) from error

    def encode(self, value: Any) -> str:
        return "".join(element_xml(self.name, self.shape, value))

    def all_words(self) -> Iterator[str]:
        yield self.name
        yield from (field.name for field in self.shape.fields)
        yield from super().all_words()

    def wrong_values(self) -> Iterator[Wrong]:
        may_be_empty = all(field.optional for field in self.shape.fields)
        yield Wrong("empty", f"an empty <{self.name}>", f"<{self.name}/>", allowed=may_be_empty)
        yield Wrong(
            "text", f"a word in place of the contents of <{self.name}>", f"<{self.name}>x</{self.name}>"
        )
        for field in self.shape.fields:
            if any(isinstance(kind, Compound) for kind in (field.type, *field.type.parts)):
                continue
            if not field.optional:
                yield Wrong("left-out", "it is left out", partial(self._without, field), part=field.name)
            for wrong in field.type.wrong_values():
                yield wrong.inside(field.name, partial(self._spoilt, field, wrong))

    def _without(self, field: Field, value: Mapping[str, Any]) -> str:
        fields = tuple(each for each in self.shape.attributes if each is not field)
        children = tuple(each for each in self.shape.children if each is not field)
        text = None if self.shape.text is field else self.shape.text
        return "".join(element_xml(self.name, Shape(fields, text, children), dict(value)))

    def _spoilt(self, field: Field, wrong: Wrong, value: Mapping[str, Any]) -> str:
        part = value.get(field.name)
        stood, marked = (part[0], [_MARK, *part[1:]]) if isinstance(part, list) else (part, _MARK)
        return self.encode({**value, field.name: marked}).replace(_MARK, escaped(wrong.of(stood)), 1)

    def wire_type(self) -> WireType:
        return {"kind": "element", "fields": [wire_field(field) for field in self.shape.fields]}


def decoded(name: str, kind: FieldType, text: str | None, part: str) -> Any:
    """Return the value of a text; `part` is its place, as in `InvalidElement`. Raises InvalidElement."""
    text = text or ""
    try:
        return kind.decode(text if kind.is_free_text else text.strip(BLANK_TEXT))
    except Mismatch as error:
        raise _mismatched(name, error, part) from None


def _mismatched(name: str, error: Mismatch, part: str) -> InvalidElement:
    invalid = InvalidElement(error.code, f"{name}: {error}", error.expected, part)
    invalid.mismatch = error
    return invalid


def read(shape: Shape, element: Element) -> dict[str, Any]:
    """Return the fields of an element with a closed shape. Raises InvalidElement."""
    fields: dict[str, Any] = {}
    sent, known = element.attrib, shape.by_attribute
    if not sent.keys() <= known.keys():
        name = next(name for name in sent if name not in known)
        raise _unknown("attribute", name, [field.name for field in shape.attributes], f"@{name}")
    for name, (field, texts) in known.items():
        if name in sent:
            try:
                fields[name] = texts[sent[name]]
            except Mismatch as error:
                raise _mismatched(name, error, f"={name}") from None
        elif not field.optional:
            problem = f"<{element.tag}> has no {name}"
            raise InvalidElement("missing-attribute", problem, f'{name}="…": {field.type.title}')
    text = element.text
    if shape.text is not None:
        if len(element):
            raise _unknown("element", element[0].tag, (), "tag").inside(0)
        if (text and text.strip(BLANK_TEXT)) or not shape.text.optional:
            fields[shape.text.name] = decoded(shape.text.name, shape.text.type, text, "text")
        return fields
    if text and text.strip(BLANK_TEXT):
        raise _stray_text(text)
    if shape.children or len(element):
        _read_children(shape, element, fields)
    return fields


def _read_children(shape: Shape, element: Element, fields: dict[str, Any]) -> None:
    known = shape.elements
    if len(element) > shape.limit:
        raise InvalidElement(
            "too-many",
            f"<{element.tag}> contains {len(element)} elements",
            f"at most {shape.limit} elements",
        )
    for place, inner in enumerate(element):
        name = inner.tag
        child = known.get(name)
        if child is None:
            raise _unknown("element", name, known, "tag").inside(place)
        value: Any
        try:
            if child.shape is not None:
                value = read(child.shape, inner)
            else:
                # `attrib` would create a dict for each element.
                for wrong, _ in inner.items():
                    raise _unknown("attribute", wrong, (), f"@{wrong}")
                if len(inner):
                    raise _unknown("element", inner[0].tag, (), "tag").inside(0)
                value = child.texts[inner.text or ""]
        except InvalidElement as error:
            raise error.inside(place) from None
        except Mismatch as error:
            raise _mismatched(name, error, "text").inside(place) from None
        if not child.is_list:
            if name in fields:
                problem = f"<{element.tag}> contains <{name}> twice"
                raise InvalidElement("too-many", problem, f"one <{name}>").inside(place)
            fields[name] = value
        elif name not in fields:
            fields[name] = [value]
        else:
            values = fields[name]
            if value in values and child.field.type.occurs_once and value is not None:
                problem = f"<{element.tag}> contains <{name}>{value}</{name}> twice"
                raise InvalidElement(
                    "twice", problem, f"each {name} once", f"same {values.index(value)} {place}"
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
        if count > child.most:
            surplus = [place for place, inner in enumerate(element) if inner.tag == name][child.most]
            problem = f"<{name}> occurs {count} times"
            raise InvalidElement("too-many", problem, _count_words(child)).inside(surplus)


def _count_words(child: Child) -> str:
    if not child.is_list or child.least == child.most == 1:
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


def element_xml(name: str, shape: Shape, fields: dict[str, Any], indent: str = "\r\n") -> Iterator[str]:
    """Yield an element as XML, with each nested element on its own line if there is an `indent`.

    Raises ValueError, KeyError.
    """
    yield f"<{name}"
    for field in shape.attributes:
        if field.name in fields or not field.optional:
            yield f' {field.name}="{as_xml(_text(field.type, fields[field.name]))}"'
    yield ">"
    if shape.text is not None and (shape.text.name in fields or not shape.text.optional):
        yield as_xml(_text(shape.text.type, fields[shape.text.name]))
    inner = indent and indent + "  "
    some = False
    for tag, child in shape.elements.items():
        if tag not in fields:
            continue
        for value in fields[tag] if child.is_list else (fields[tag],):
            some = True
            yield inner
            if child.shape is not None:
                yield from element_xml(tag, child.shape, value, inner)
            else:
                yield f"<{tag}>{as_xml(_text(child.field.type, value))}</{tag}>"
    if some:
        yield indent
    yield f"</{name}>"


def _text(kind: FieldType, value: Any) -> str:
    """Return the text of a value; the placeholder, of whatever type, is written as it is."""
    return _MARK if value is _MARK else kind.encode(value)


class OpenReading:
    """The fields of an element with an open shape, what is wrong in them, and what is not specified."""

    def __init__(
        self, shape: Shape, element: Element, mark: str | None = None, marked: str | None = None
    ) -> None:
        # The message's name is the attribute `mark`, or in the element `marked`.
        assert shape.anywhere is not None
        self.fields: dict[str, Any] = {}
        self.wrong: list[InvalidElement] = []
        self.unknown: list[tuple[str, InvalidElement]] = []
        sent: dict[str, Any] = dict(element.items())
        if mark is not None:
            sent.pop(mark, None)
        own = element.text
        for place, inner in enumerate(element):
            one = place, inner
            name = inner.tag
            own = inner.tail if not own else own + (inner.tail or "")
            if name not in sent:
                sent[name] = one
            elif type(sent[name]) is list:
                sent[name].append(one)
            else:
                sent[name] = [sent[name], one]
        if TEXT not in sent and (shape.needs_text or (own and own.strip(BLANK_TEXT))):
            sent[TEXT] = -1, element
        for name, kind in shape.anywhere.items():
            found = sent.pop(name, None)
            if found is None and name in shape.optional:
                continue
            try:
                if found is None:
                    raise InvalidElement("missing-field", f"there is no {name} here", kind.title)
                self.fields[name] = _occurrences(name, kind, found)
            except InvalidElement as error:
                error.field = name
                self.wrong.append(error)
        if marked is not None:
            sent.pop(marked, None)
        for name, found in sent.items():
            first = found[0] if type(found) is list else found
            if isinstance(first, str):
                unknown = InvalidElement("unknown-field", name, "", f"@{name}")
            elif first[0] < 0:
                unknown = InvalidElement("unknown-field", name, "", "text-inside")
            else:
                unknown = InvalidElement("unknown-field", name, "", "name").inside(first[0])
            self.unknown.append((name, unknown))


def _own_text(element: Element) -> str:
    """Return all text directly in an element; without the blanks around it if there are elements, too."""
    text = element.text or ""
    if len(element):
        return "".join((text, *(inner.tail or "" for inner in element))).strip(BLANK_TEXT)
    return text


def _occurrences(name: str, kind: FieldType, found: Any) -> Any:
    if type(found) is not list:
        return _occurrence(name, kind, found)
    if not isinstance(kind, ListText | AnyText):
        problem = f"there are {len(found)} of these"
        raise InvalidElement("surplus-fields", problem, kind.title).inside(found[1][0])
    item = kind.item if isinstance(kind, ListText) else kind
    return [_occurrence(name, item, each) for each in found]


def _occurrence(name: str, kind: FieldType, found: str | tuple[int, Element]) -> Any:
    """Return the value of an attribute, an element, or, in place -1, of the text of the element itself."""
    if isinstance(found, str):
        return decoded(name, kind, found, f"={name}")
    place, element = found
    if place < 0:
        return decoded(name, kind, _own_text(element), "text")
    try:
        return _value(name, kind, element)
    except InvalidElement as error:
        raise error.inside(place) from None


def _value(name: str, kind: FieldType, element: Element) -> Any:
    if isinstance(kind, AnyText):
        return plain(element)
    if not len(element) and not element.attrib:
        return decoded(name, kind, element.text, "text")
    if isinstance(kind, ListText):
        if element.attrib or is_item(kind.item, (inner.tag for inner in element)):
            return [_value(name, kind.item, element)]
        return [_occurrence(name, kind.item, each) for each in enumerate(element)]
    if isinstance(kind, ObjectText):
        reading = OpenReading(open_shape(kind), element)
        if reading.wrong:
            raise reading.wrong[0]
        return reading.fields
    raise InvalidElement("bad-value", "this element has attributes or elements", kind.title)


def is_item(kind: FieldType, names: Iterable[str]) -> bool:
    """Return True if an element with these in it is an item of this type, rather than contains items."""
    inner = [*names]
    return isinstance(kind, ObjectText) and (not inner or any(name in kind.fields for name in inner))


def open_shape(kind: FieldType | None) -> Shape:
    """Return the shape of an element that is an object."""
    return Shape(anywhere=kind.fields, optional=kind.optional) if isinstance(kind, ObjectText) else Shape()


def plain(element: Element, depth: int = 0) -> Any:
    """Return an element as a JSON value: its text, or an object of its attributes, elements and text."""
    if depth > MAX_DEPTH:
        raise InvalidElement("too-deep", f"elements are nested more than {MAX_DEPTH} deep", "a message")
    own = _own_text(element)
    if not len(element) and not element.attrib:
        return own
    values: dict[str, Any] = dict(element.attrib)
    counts = Counter(inner.tag for inner in element)
    for inner in element:
        value = plain(inner, depth + 1)
        if counts[inner.tag] == 1 and inner.tag not in values:
            values[inner.tag] = value
        elif isinstance(values.get(inner.tag), list):
            values[inner.tag].append(value)
        else:
            values[inner.tag] = [*([values[inner.tag]] if inner.tag in values else []), value]
    if own.strip(BLANK_TEXT):
        values.setdefault(TEXT, own)
    return values


def open_xml(tag: str, kinds: Mapping[str, FieldType], values: Mapping[str, Any], head: str = "") -> str:
    """Return an element with an open shape: simple values are attributes. Raises ValueError, KeyError."""
    inside = ""
    for name, value in values.items():
        kind = kinds.get(name)
        if isinstance(value, list):
            item = kind.item if isinstance(kind, ListText) else None
            inside += "".join(_open_element(name, item, each) for each in value) or f"<{name}/>"
        elif isinstance(value, dict):
            inside += _open_element(name, kind, value)
        else:
            text = escaped(value if kind is None or isinstance(kind, AnyText) else kind.encode(value))
            if name == TEXT:
                inside = text + inside
            else:
                head += f' {name}="{text}"'
    return f"<{tag}{head}>{inside}</{tag}>" if inside else f"<{tag}{head}/>"


def _open_element(name: str, kind: FieldType | None, value: Any) -> str:
    if isinstance(value, dict):
        return open_xml(name, kind.fields if isinstance(kind, ObjectText) else {}, value)
    if isinstance(value, list):
        item = kind.item if isinstance(kind, ListText) else None
        inside = "".join(_open_element("item", item, each) for each in value)
        return f"<{name}>{inside}</{name}>" if inside else f"<{name}/>"
    return f"<{name}>{escaped(value if kind is None else kind.encode(value))}</{name}>"


def wire_field(field: Field) -> WireType:
    """Return the declarative description of a field."""
    kind = field.type.wire_type() or {"kind": "text"}
    return {"name": field.name, "type": kind, "optional": field.optional or None}


def wire_shape(shape: Shape) -> WireType:
    """Return the declarative description of an element's contents."""
    return {
        "attributes": [wire_field(field) for field in shape.attributes],
        "text": wire_field(shape.text) if shape.text is not None else None,
        "children": [*map(_wire_child, shape.elements.values())],
        "limit": shape.limit,
    }


def _wire_child(child: Child) -> WireType:
    described = {"least": child.least, "most": child.most if child.is_list else None}
    if child.shape is not None:
        return {"name": child.field.name, "shape": wire_shape(child.shape), **described}
    return {**wire_field(child.field), "once": child.field.type.occurs_once or None, **described}


def closed_shape(name: str, fields: Iterable[tuple[Field, bool]], outer: tuple[Field, ...] = ()) -> Shape:
    """Return the shape of an element that has exactly these fields, of which some are attributes.

    Of the others, the one with the name of the element is its text.
    """
    attributes: list[Field] = []
    inside: list[Field] = []
    for field, is_attribute in fields:
        (attributes if is_attribute else inside).append(field)
    text = next((field for field in inside if field.name == name), None)
    return Shape(tuple(attributes), text, tuple(field for field in inside if field is not text), outer)


class ElementType(MessageType, frozen=True):
    """A message's row; it `repeats` if another message may follow it without an empty line."""

    shape: Shape = msgspec.field(default_factory=Shape)
    repeats: bool = False

    @cached_property
    def mark(self) -> tuple[str, str] | None:
        """The attribute of a single word, and the word, that distinguish it from others of its name."""
        attributes = (each for each in self.shape.attributes if not each.optional)
        return next(
            ((each.name, each.type.words[0]) for each in attributes if len(each.type.words) == 1), None
        )

    @cached_property
    def kind(self) -> str:
        """Its name, and the word that distinguishes it from others of that name."""
        return self.name if self.mark is None else f"{self.name} {self.mark[1]}"

    def matches(self, fields: Fields) -> bool:
        return super().matches(fields) and (self.mark is None or fields.get(self.mark[0]) == self.mark[1])
