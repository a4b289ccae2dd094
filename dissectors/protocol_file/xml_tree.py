"""XML elements with their places in the bytes, read by expat without entities and document types."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from xml.parsers import expat

import msgspec

from kiebitz.dissectors.grammar.patching import Place

DEPTH_LIMIT = 64
"""Maximum nesting depth of elements."""

TEXT = "text"
"""Name of the field that is the text of an element."""

_ENCODINGS = {"utf-8": "utf-8", "latin-1": "iso-8859-1", "ascii": "us-ascii"}
_OPEN = re.compile(rb"""<[^\s<>/"'=]+(?:[^<>"']|"[^"]*"|'[^']*')*>""")
_ATTRIBUTE = re.compile(rb"""([^\s<>/"'=]+)\s*=\s*("[^"]*"|'[^']*')""")
_ESCAPED = str.maketrans(
    {
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        '"': "&quot;",
        "'": "&apos;",
        "\n": "&#10;",
        "\r": "&#13;",
        "\t": "&#9;",
    }
)


class XmlMismatch(Exception):
    """The first error of a text: `length` bytes at `offset`."""

    def __init__(self, problem: str, offset: int, length: int, code: str = "broken-xml") -> None:
        super().__init__(problem)
        self.offset = offset
        self.length = length
        self.code = code


class Attribute(NamedTuple):
    """An attribute in the bytes: the range of all of it and of its value within the quotes."""

    name: str
    start: int
    end: int
    value: Place


class Element(msgspec.Struct):
    """An element: where its start tag begins, and where its end tag does (at `start` if it has none)."""

    tag: str
    attributes: dict[str, str]
    start: int
    close: int = 0
    children: list[Element] = []
    texts: list[str] = []

    @property
    def text(self) -> str:
        """All text directly in it; without the blanks around it if there are elements, too."""
        text = "".join(self.texts)
        return text.strip() if self.children else text

    @property
    def is_leaf(self) -> bool:
        """True if it has only text."""
        return not self.children and not self.attributes

    def open_end(self, data: bytes) -> int:
        """Return the offset after its start tag."""
        found = _OPEN.match(data, self.start)
        return self.start if found is None else found.end()

    def end(self, data: bytes) -> int:
        """Return the offset after its end tag."""
        if self.close == self.start:
            return self.open_end(data)
        return data.find(b">", self.close) + 1

    def inside(self, data: bytes) -> Place | None:
        """Return the place of what is between its tags, None if it has one tag only."""
        if self.close == self.start:
            return None
        start = self.open_end(data)
        return start, self.close - start

    def attribute_places(self, data: bytes) -> Iterator[Attribute]:
        """Yield its attributes in the order of their bytes."""
        upto = self.open_end(data)
        at = self.start + 1 + len(self.tag.encode())
        for found in _ATTRIBUTE.finditer(data, at, upto):
            value = found.start(2) + 1, len(found[2]) - 2
            yield Attribute(found[1].decode("utf-8", "replace"), *found.span(), value)

    def value(self) -> Any:
        """Return its text, or an object with its attributes, its elements and its text."""
        if self.is_leaf:
            return self.text
        values: dict[str, Any] = dict(self.attributes)
        add_children(values, self)
        text = self.text
        if text.strip():
            values.setdefault(TEXT, text)
        return values


class Repeated(list[Any]):
    """The values of several elements of one name."""


def add_children(values: dict[str, Any], element: Element) -> None:
    """Add the elements in an element to its values; those of one name are a list."""
    for child in element.children:
        value: Any = child
        if child.tag in values:
            known = values[child.tag]
            value = known if type(known) is Repeated else Repeated([known])
            value.append(child)
        values[child.tag] = value


def escaped(text: str) -> str:
    """Return a text as it is written between tags and in attributes."""
    return text.translate(_ESCAPED)


def parse(data: bytes, start: int, end: int, encoding: str) -> Element:
    """Return the element in a range of bytes. Raises XmlMismatch with offsets in `data`."""
    parser = expat.ParserCreate(_ENCODINGS[encoding])
    parser.buffer_text = True
    open_elements: list[Element] = []
    found: list[Element] = []

    def begin(tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes, start + parser.CurrentByteIndex, 0, [], [])
        if open_elements:
            if len(open_elements) == DEPTH_LIMIT:
                raise XmlMismatch("elements are nested too deeply", element.start, 1)
            open_elements[-1].children.append(element)
        else:
            found.append(element)
        open_elements.append(element)

    def finish(_: str) -> None:
        open_elements.pop().close = start + parser.CurrentByteIndex

    def add_text(text: str) -> None:
        open_elements[-1].texts.append(text)

    def refuse(*_: Any) -> None:
        # The parser is at the end of the declaration's beginning.
        at = max(start, data.rfind(b"<!DOCTYPE", start, start + parser.CurrentByteIndex + 9))
        raise XmlMismatch("document types and entities are refused", at, min(9, end - at), "doctype")

    parser.StartElementHandler = begin
    parser.EndElementHandler = finish
    parser.CharacterDataHandler = add_text
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(data[start:end], True)
    except expat.ExpatError as error:
        at = min(start + max(parser.ErrorByteIndex, 0), end)
        problem = expat.ErrorString(error.code) or "not well-formed"
        raise XmlMismatch(problem, at, min(1, end - at)) from None
    return found[0]
