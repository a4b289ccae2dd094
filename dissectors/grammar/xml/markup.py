"""Tags in bytes that may not be XML, where each begins and ends, and the elements of a message with places.

The framer needs them to find the end of a message in any bytes, and the diagnostics to locate errors. Valid
messages are decoded by a real parser (`codec.py`); the places of their elements are found only if they are
shown, changed, or reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

from kiebitz.dissectors.grammar.grammar import BLANKS, Place, Violation, trimmed

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Prefix that some editors write before UTF-8."""

BLANK_TEXT = BLANKS.decode()

_NEXT_END = rb"[ \t]{0,64}+(?:\r\n?+|\n)"
BLANK_LINE = rb"(?:\r(?!\n)[ \t]{0,64}+[\r\n]|\r\n%s|\n%s)" % (_NEXT_END, _NEXT_END)
"""A line end followed by an empty line, with a bounded number of blanks.

Each alternative begins with one of two bytes, so that a search skips all others quickly. If lines end in CR
alone, the second CR ends it, though it might be the first half of CR LF.
"""

ATTRIBUTES = rb"""[^<>"']*+(?>(?:(?:"[^"<\r\n]*+"|'[^'<\r\n]*+')[^<>"']*+)*)"""
"""The contents of a tag. A value in quotes may contain ">", but no line end, as its end may be missing."""

_NAME = re.compile(rb"<(/?)([A-Za-z_:\x80-\xff][^\s<>/]*+)")
_ANY_ATTRIBUTES = ATTRIBUTES.replace(rb"<\r\n]", b"<]")
"""Likewise, with line ends in values, as XML has them: then the next tag is not in a value."""
_TAG = re.compile(
    rb"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<%s>|<%s>|<[^<>]*+>?" % (_ANY_ATTRIBUTES, ATTRIBUTES),
    re.DOTALL,
)

# xml.sax.saxutils has this, too, but imports an HTTP client, which would slow down each start.
_ENTITIES = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;", "\n": "&#10;", "\t": "&#9;", '"': "&quot;"}
)
_NO_CHARACTERS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

Kind = Literal["start", "end", "empty", "comment", "cdata", "declaration", "text"]
"""The kind of a tag; `empty` is a start tag that is its own end, `text` is no tag at all."""


class Tag(msgspec.Struct, frozen=True):
    """A tag and its offsets; `name` is in lower case."""

    kind: Kind
    name: str
    start: int
    end: int

    @property
    def place(self) -> Place:
        """Offset and length in bytes."""
        return self.start, self.end - self.start

    def written_in(self, frame: bytes) -> str:
        """Return the name as it is written."""
        start = self.start + (2 if self.kind == "end" else 1)
        return frame[start : start + len(self.name.encode("latin-1", "replace"))].decode("utf-8", "replace")


def kind_of(tag: bytes) -> tuple[Kind, str]:
    """Return the kind and the name of the tag in the bytes from `<` to `>`."""
    if tag.startswith((b"<!", b"<?")):
        if tag.startswith(b"<!--"):
            return "comment", ""
        return ("cdata" if tag.startswith(b"<![CDATA[") else "declaration"), ""
    found = _NAME.match(tag)
    if found is None or not tag.endswith(b">"):
        return "text", ""
    name = found[2].decode("latin-1").lower()
    if found[1]:
        return "end", name
    return ("empty" if tag.endswith(b"/>") else "start"), name


def tags(frame: bytes, start: int = 0, end: int | None = None) -> Iterator[Tag]:
    """Yield all tags in a range of a frame, in order."""
    for found in _TAG.finditer(frame, start, len(frame) if end is None else end):
        kind, name = kind_of(found[0])
        yield Tag(kind, name, found.start(), found.end())


def as_xml(text: str) -> str:
    """Return a text as it is written in an element or attribute. Raises ValueError for invalid characters."""
    if _NO_CHARACTERS.search(text):
        raise ValueError("XML has no such characters")
    return escaped(text)


def escaped(text: str) -> str:
    """Return the text with XML's escapes, without rejecting invalid characters."""
    return text.translate(_ENTITIES)


_ATTRIBUTE = re.compile(rb"""([^\s<>"'=/]++)(\s*+=\s*+)("[^"<]*+"|'[^'<]*+'|[^\s<>"'/]++)""")


def note_at(code: str, text: str, place: Place, expected: str | None) -> Violation:
    """Return a note on something harmless, reported once per direction."""
    return Violation("note", "malformed", code, text, *place, expected, habit=True)


class Element(msgspec.Struct):
    """An element: its start tag, the offset of its end tag, and the offset after it.

    Without an end tag, both are the end of an empty tag, or of the frame.
    """

    tag: Tag
    close: int
    end: int
    children: list[Element]


def tree(frame: bytes, envelope: str = "") -> Element | None:
    """Return the message's element, which may be inside an envelope; None if there is none."""
    root: Element | None = None
    opened: list[Element] = []
    for tag in tags(frame):
        if tag.name == envelope and envelope and not opened:
            continue
        if tag.kind in ("start", "empty"):
            element = Element(tag, tag.end, tag.end, [])
            if opened:
                opened[-1].children.append(element)
            root = root or element
            if tag.kind == "start":
                element.close = element.end = len(frame)
                opened.append(element)
        elif tag.kind == "end" and opened:
            element = opened.pop()
            element.close, element.end = tag.start, tag.end
    return root


def location_of(frame: bytes, part: str = "tag", path: tuple[int, ...] = (), envelope: str = "") -> Place:
    """Return the offset and length in bytes of a part of an element, named as in `InvalidElement`."""
    element = tree(frame, envelope)
    for number in path:
        element = element.children[number] if element and number < len(element.children) else None
    if element is None:
        return 0, len(frame)
    tag = element.tag
    if part.startswith(("@", "=")):
        place = attribute_place(frame, tag, part[1:], part[0] == "=")
        if place is not None:
            return place
    elif part == "name":
        return tag.start + 1, len(tag.name.encode("latin-1"))
    elif part in ("text", "text-inside"):
        at, children = tag.end, element.children if part == "text-inside" else ()
        for until, after in [*((each.tag.start, each.end) for each in children), (element.close, 0)]:
            place = trimmed(frame, at, until)
            if place[1]:
                return place
            at = after
    elif part.startswith("same "):
        one, other = (element.children[int(place)] for place in part.split()[1:])
        return one.tag.start, other.end - one.tag.start
    return tag.place


def attribute_place(frame: bytes, tag: Tag, name: str, of_value: bool) -> Place | None:
    """Return the offset and length of a tag's attribute, or of its value without quotes."""
    for found, whole, value in attributes(frame[tag.start : tag.end]):
        if found.lower() == name.lower():
            first, last = value if of_value else whole
            return tag.start + first, last - first
    return None


def attributes(tag: bytes) -> Iterator[tuple[str, Place, Place]]:
    """Yield the attributes of a tag: name, offsets of the whole, and of the value without quotes."""
    for found in _ATTRIBUTE.finditer(tag, 1):
        start, end = found.span(3)
        if tag[start] in b"\"'":
            start, end = start + 1, end - 1
        yield found[1].decode("utf-8", "replace"), found.span(), (start, end)
