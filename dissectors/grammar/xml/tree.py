"""The elements of a message with their places in its bytes, for diagnostics, changes and annotated bytes.

They are found only for messages that are shown, changed, or reported; valid ones are decoded by a parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from kiebitz.dissectors.grammar.grammar import Violation
from kiebitz.dissectors.grammar.patching import Place
from kiebitz.dissectors.grammar.xml.markup import BLANKS, Tag, tags

_ATTRIBUTE = re.compile(rb"""([^\s<>"'=/]++)(\s*+=\s*+)("[^"<]*+"|'[^'<]*+'|[^\s<>"'/]++)""")


def error_at(code: str, text: str, place: Place, expected: str, clause: str | None = None) -> Violation:
    """Return an error at a location."""
    return Violation("error", "malformed", code, text, *place, expected, clause)


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
    tag, inner_end = element.tag, element.close
    start, end = tag.start, tag.end
    if part.startswith(("@", "=")):
        place = attribute_place(frame, tag, part[1:], part[0] == "=")
        if place is not None:
            return place
    elif part == "name":
        return start + 1, len(tag.name.encode("latin-1"))
    elif part == "text":
        text = frame[end:inner_end]
        if text.strip(BLANKS):
            return end + len(text) - len(text.lstrip(BLANKS)), len(text.strip(BLANKS))
    elif part == "text-inside":
        at = end
        for until, after in [*((each.tag.start, each.end) for each in element.children), (inner_end, 0)]:
            text = frame[at:until]
            if text.strip(BLANKS):
                return at + len(text) - len(text.lstrip(BLANKS)), len(text.strip(BLANKS))
            at = after
    elif part.startswith("same "):
        one, other = (element.children[int(place)] for place in part.split()[1:])
        return one.tag.start, other.end - one.tag.start
    return start, end - start


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
