"""Diagnostics with locations, and the location of parts of a message in its bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from kiebitz.dissectors.grammar.grammar import Violation
from kiebitz.dissectors.grammar.xml.markup import BLANKS, Tag, tags
from kiebitz.dissectors.protocols.cgml.grammar import ENVELOPE

STRUCTURE = "1 Základní struktura datové zprávy"
"""The clause for everything about elements as such."""

_ATTRIBUTE = re.compile(rb"""([^\s<>"'=/]++)(\s*+=\s*+)("[^"<]*+"|'[^'<]*+'|[^\s<>"'/]++)""")


def error_at(
    code: str, text: str, place: tuple[int, int], expected: str, clause: str = STRUCTURE
) -> Violation:
    """Return an error at a location."""
    return Violation("error", "malformed", code, text, *place, expected, clause)


def note_at(code: str, text: str, place: tuple[int, int], expected: str | None) -> Violation:
    """Return a note on something harmless, reported once per direction."""
    return Violation("note", "malformed", code, text, *place, expected, STRUCTURE, habit=True)


def location_of(frame: bytes, part: str = "tag", path: tuple[int, ...] = ()) -> tuple[int, int]:
    """Return the offset and length in bytes of a part of an element, named as in `Unfit`."""
    element = _element_at(frame, path)
    if element is None:
        return 0, len(frame)
    tag, inner_end = element
    start, end = tag.start, tag.end
    if part.startswith(("@", "=")):
        place = attribute_place(frame, tag, part[1:], part[0] == "=")
        if place is not None:
            return place
    elif part == "text":
        text = frame[end:inner_end]
        if text.strip(BLANKS):
            return end + len(text) - len(text.lstrip(BLANKS)), len(text.strip(BLANKS))
    elif part == "text-inside":
        at, depth = end, 0
        for inner in [*tags(frame[end:inner_end]), Tag("text", "", inner_end - end, inner_end - end)]:
            text = frame[at : end + inner.start]
            if not depth and text.strip(BLANKS):
                return at + len(text) - len(text.lstrip(BLANKS)), len(text.strip(BLANKS))
            at = end + inner.end
            depth += {"start": 1, "end": -1}.get(inner.kind, 0)
    elif part.startswith("same "):
        one, other = (_element_at(frame, (*path, int(place))) for place in part.split()[1:])
        if one is not None and other is not None:
            close = frame.find(b">", other[1])
            return one[0].start, close + 1 - one[0].start
    return start, end - start


def _element_at(frame: bytes, path: tuple[int, ...]) -> tuple[Tag, int] | None:
    return next(((each.tag, each.end) for each in elements(frame) if each.path == path), None)


class ElementLocation(NamedTuple):
    """The location of an element.

    `path` has its index among its siblings, after those of the enclosing elements from the root on. `end` is
    the offset of its end tag, or the end of an empty tag.
    """

    path: tuple[int, ...]
    tag: Tag
    end: int


def elements(frame: bytes) -> Iterator[ElementLocation]:
    """Yield all elements of a message except its envelope; an unclosed one extends to the frame's end."""
    opened: list[tuple[tuple[int, ...], Tag]] = []
    next_place = 0
    for tag in tags(frame):
        if tag.name == ENVELOPE and not opened:
            continue
        if tag.kind in ("start", "empty"):
            path = (*opened[-1][0], next_place) if opened else ()
            if tag.kind == "empty":
                yield ElementLocation(path, tag, tag.end)
                next_place += 1
            else:
                opened.append((path, tag))
                next_place = 0
        elif tag.kind == "end" and opened:
            path, begun = opened.pop()
            yield ElementLocation(path, begun, tag.start)
            next_place = path[-1] + 1 if path else 0
    for path, begun in opened:
        yield ElementLocation(path, begun, len(frame))


def attribute_place(frame: bytes, tag: Tag, name: str, of_value: bool) -> tuple[int, int] | None:
    """Return the offset and length of a tag's attribute, or of its value without quotes."""
    for found, whole, value in attributes(frame[tag.start : tag.end]):
        if found.lower() == name.lower():
            first, last = value if of_value else whole
            return tag.start + first, last - first
    return None


def attributes(tag: bytes) -> Iterator[tuple[str, tuple[int, int], tuple[int, int]]]:
    """Yield the attributes of a tag: name, offsets of the whole, and of the value without quotes."""
    for found in _ATTRIBUTE.finditer(tag, 1):
        start, end = found.span(3)
        if tag[start] in b"\"'":
            start, end = start + 1, end - 1
        yield found[1].decode("latin-1"), found.span(), (start, end)
