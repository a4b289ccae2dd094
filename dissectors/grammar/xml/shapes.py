"""The contents of elements: attributes, texts and nested elements; reading and writing them.

A *closed* shape says where each field is, and anything else is an error. In an *open* one, a field may be an
attribute, one or several elements, or the text, and other parts are noted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, partial
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, fromstring

import msgspec

from kiebitz.dissectors.grammar.field_type import FieldType, Mismatch
from kiebitz.dissectors.grammar.grammar import Field, MessageType, nearest_word
from kiebitz.dissectors.grammar.invalid_values import Wrong
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
_MARK = "\ue000"
"""Placeholder for a text that its type would not encode."""


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
    anywhere: Mapping[str, Part] | None = None
    """The fields of an open shape by name."""
    outer: tuple[Field, ...] = ()
    """Attributes of the envelope, which the element may have if there is none."""

    @cached_property
    def limit(self) -> int:
        """Maximum number of elements."""
        return max(MAX_CHILDREN, sum(child.most or 1 for child in self.children))

    @cached_property
    def needs_text(self) -> bool:
        """True if an open shape has a text that must not be absent."""
        return self.anywhere is not None and TEXT in self.anywhere and not self.anywhere[TEXT].field.optional

    @cached_property
    def by_attribute(self) -> dict[str, Field]:
        """The fields that are attributes, by name."""
        return {field.name: field for field in (*self.attributes, *self.outer)}

    @cached_property
    def elements(self) -> dict[str, Child]:
        """The nested elements by name."""
        return {child.field.name: child for child in self.children}

    def nested(self) -> Iterator[tuple[str, bool]]:
        """Yield the names of all elements inside, each with True if it may contain elements.

        Raises LookupError if there may be any.
        """
        for child in self.children:
            inner = child.field.type.shape if isinstance(child.field.type, Compound) else Shape()
            yield child.field.name, bool(inner.children)
            yield from inner.nested()
        for part in (self.anywhere or {}).values():
            yield from part.nested()

    @property
    def fields(self) -> Iterator[Field]:
        """All fields in the order of the specification."""
        yield from self.attributes
        if self.text is not None:
            yield self.text
        for child in self.children:
            yield child.field
        yield from self.outer


class Part(NamedTuple):
    """A field of an open shape.

    Attributes:
        field: The field.
        shape: The shape of an element with other elements or attributes in it.
        item: The item of a list: each of several elements, or of the elements in one.
        is_any: True if any contents are valid.
    """

    field: Field
    shape: Shape | None = None
    item: Part | None = None
    is_any: bool = False

    def nested(self) -> Iterator[tuple[str, bool]]:
        """Yield its name and those of all elements inside, as in `Shape.nested`."""
        if self.is_any:
            raise LookupError(f"{self.field.name} may contain any elements")
        yield self.field.name, True
        if self.item is not None:
            yield "item", True
            yield from self.item.nested()
        if self.shape is not None:
            yield from self.shape.nested()


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


def decoded(field: Field, text: str | None, part: str) -> Any:
    """Return the value of a text; `part` is its place, as in `InvalidElement`. Raises InvalidElement."""
    text = text or ""
    kind = field.type
    try:
        return kind.decode(text if kind.is_free_text else text.strip(BLANK_TEXT))
    except Mismatch as error:
        invalid = InvalidElement(error.code, f"{field.name}: {error}", error.expected, part)
        invalid.mismatch = error
        raise invalid from None


def read(shape: Shape, element: Element) -> dict[str, Any]:
    """Return the fields of an element with a closed shape. Raises InvalidElement."""
    fields: dict[str, Any] = {}
    attributes = element.attrib
    for name in attributes:
        if name not in shape.by_attribute:
            raise _unknown("attribute", name, [field.name for field in shape.attributes], f"@{name}")
    for name, field in shape.by_attribute.items():
        text = attributes.get(name)
        if text is not None:
            fields[name] = decoded(field, text, f"={name}")
        elif not field.optional:
            problem = f"<{element.tag}> has no {name}"
            raise InvalidElement("missing-attribute", problem, f'{name}="…": {field.type.title}')
    if shape.text is not None:
        if len(element):
            raise _unknown("element", element[0].tag, (), "tag").inside(0)
        if (element.text and element.text.strip(BLANK_TEXT)) or not shape.text.optional:
            fields[shape.text.name] = decoded(shape.text, element.text, "text")
        return fields
    if element.text and element.text.strip(BLANK_TEXT):
        raise _stray_text(element.text)
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
                value = decoded(field, inner.text, "text")
        except InvalidElement as error:
            raise error.inside(place) from None
        if not child.is_list:
            if name in fields:
                problem = f"<{element.tag}> contains <{name}> twice"
                raise InvalidElement("too-many", problem, f"one <{name}>").inside(place)
            fields[name] = value
        else:
            values = fields.setdefault(name, [])
            if field.type.occurs_once and value in values and value is not None:
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
    """Yield an element as XML, with each nested element on its own line if there is an `indent`.

    Raises ValueError, KeyError.
    """
    yield f"<{name}"
    for field in shape.attributes:
        if field.name in fields or not field.optional:
            yield f' {field.name}="{as_xml(field.type.encode(fields[field.name]))}"'
    yield ">"
    if shape.text is not None and (shape.text.name in fields or not shape.text.optional):
        yield as_xml(shape.text.type.encode(fields[shape.text.name]))
    inner = indent and indent + "  "
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
        for name, part in shape.anywhere.items():
            found = sent.pop(name, None)
            if found is None and part.field.optional:
                continue
            try:
                if found is None:
                    raise InvalidElement("missing-field", f"there is no {name} here", part.field.type.title)
                self.fields[name] = _occurrences(part, found)
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


def _occurrences(part: Part, found: Any) -> Any:
    if type(found) is not list:
        return _occurrence(part, found)
    if part.item is None and not part.is_any:
        problem = f"there are {len(found)} of these"
        raise InvalidElement("surplus-fields", problem, part.field.type.title).inside(found[1][0])
    return [_occurrence(part.item or part, each) for each in found]


def _occurrence(part: Part, found: str | tuple[int, Element]) -> Any:
    """Return the value of an attribute, an element, or, in place -1, of the text of the element itself."""
    if isinstance(found, str):
        return decoded(part.field, found, f"={part.field.name}")
    place, element = found
    if place < 0:
        return decoded(part.field, _own_text(element), "text")
    try:
        return _value(part, element)
    except InvalidElement as error:
        raise error.inside(place) from None


def _value(part: Part, element: Element) -> Any:
    if part.is_any:
        return plain(element)
    if not len(element) and not element.attrib:
        return decoded(part.field, element.text, "text")
    if part.item is not None:
        inner = part.item
        if element.attrib or (inner.shape is not None and is_item(inner.shape, element)):
            return [_value(inner, element)]
        return [_occurrence(inner, each) for each in enumerate(element)]
    if part.shape is not None:
        reading = OpenReading(part.shape, element)
        if reading.wrong:
            raise reading.wrong[0]
        return reading.fields
    raise InvalidElement("bad-value", "this element has attributes or elements", part.field.type.title)


def is_item(shape: Shape, element: Iterable[Any]) -> bool:
    """Return True if an element is an item with this shape, rather than contains items."""
    return shape.anywhere is not None and all(inner.tag in shape.anywhere for inner in element)


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


def open_xml(tag: str, shape: Shape, values: Mapping[str, Any], head: str = "") -> str:
    """Return an element with an open shape: simple values are attributes. Raises ValueError, KeyError."""
    parts = shape.anywhere or {}
    inside = ""
    for name, value in values.items():
        part = parts.get(name)
        if isinstance(value, list):
            item = part.item if part is not None else None
            inside += "".join(_open_element(name, item, each) for each in value) or f"<{name}/>"
        elif isinstance(value, dict):
            inside += _open_element(name, part, value)
        else:
            text = escaped(value if part is None or part.is_any else part.field.type.encode(value))
            if name == TEXT:
                inside = text + inside
            else:
                head += f' {name}="{text}"'
    return f"<{tag}{head}>{inside}</{tag}>" if inside else f"<{tag}{head}/>"


def _open_element(name: str, part: Part | None, value: Any) -> str:
    if isinstance(value, dict):
        return open_xml(name, (part and part.shape) or Shape(), value)
    if isinstance(value, list):
        item = part.item if part is not None else None
        inside = "".join(_open_element("item", item, each) for each in value)
        return f"<{name}>{inside}</{name}>" if inside else f"<{name}/>"
    return f"<{name}>{escaped(value if part is None else part.field.type.encode(value))}</{name}>"


def wire_field(field: Field) -> Mapping[str, Any]:
    """Return the declarative description of a field."""
    kind = field.type.wire_type() or {"kind": "text"}
    return {"name": field.name, "type": kind, "optional": field.optional or None}


def wire_shape(shape: Shape) -> Mapping[str, Any]:
    """Return the declarative description of an element's contents."""
    return {
        "attributes": [wire_field(field) for field in shape.attributes],
        "text": wire_field(shape.text) if shape.text is not None else None,
        "children": [*map(_wire_child, shape.children)],
        "limit": shape.limit,
    }


def _wire_child(child: Child) -> Mapping[str, Any]:
    kind = child.field.type
    limits = {"least": child.least, "most": child.most}
    if isinstance(kind, Compound):
        return {"name": child.field.name, "shape": wire_shape(kind.shape), **limits}
    return {**wire_field(child.field), "once": kind.occurs_once or None, **limits}


class ElementField(NamedTuple):
    """A field of an element with a closed shape: an attribute, a text, one element, or a list of elements.

    The field with the name of its element is its text. `most` is None for a single element.
    """

    field: Field
    is_attribute: bool = False
    least: int = 1
    most: int | None = None


def closed_shape(name: str, fields: Iterable[ElementField], outer: tuple[Field, ...] = ()) -> Shape:
    """Return the shape of an element that has exactly these fields."""
    fields = (*fields,)
    return Shape(
        tuple(each.field for each in fields if each.is_attribute),
        next((each.field for each in fields if each.field.name == name and not each.is_attribute), None),
        tuple(
            Child(each.field, each.least, each.most)
            for each in fields
            if not each.is_attribute and each.field.name != name
        ),
        outer=outer,
    )


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

    def matches(self, fields: Mapping[str, Any]) -> bool:
        return super().matches(fields) and (self.mark is None or fields.get(self.mark[0]) == self.mark[1])

    def with_each(self, fields: Mapping[str, Any], change: Callable[[FieldType, Any], Any]) -> dict[str, Any]:
        if self.shape.anywhere is not None:
            return super().with_each(fields, change)
        return with_each(self.shape, fields, change)
