"""Flaws at their places, and where something stands in a message: looked up only when a flaw is told."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dissectors.cgml.markup import BLANKS, ENVELOPE, Tag, tags
from dissectors.grammar import Flaw

STRUCTURE = "1 Základní struktura datové zprávy"
"""The clause of all that is about elements as such."""

_ATTRIBUTE = re.compile(rb"""([^\s<>"'=/]++)(\s*+=\s*+)("[^"<>]*+"|'[^'<>]*+'|[^\s<>"'/]++)""")


def wrong(code: str, text: str, place: tuple[int, int], expected: str, clause: str = STRUCTURE) -> Flaw:
    """An error at a place."""
    return Flaw("error", "malformed", code, text, *place, expected, clause)


def unusual(code: str, text: str, place: tuple[int, int], expected: str | None) -> Flaw:
    """A note on what is harmless, told once in a direction."""
    return Flaw("note", "malformed", code, text, *place, expected, STRUCTURE, habit=True)


def place_of(frame: bytes, part: str = "tag", path: tuple[int, ...] = ()) -> tuple[int, int]:
    """Where in the bytes a part of an element stands, named as in `Unfit`: offset and length."""
    element = _element_at(frame, path)
    if element is None:
        return 0, len(frame)
    tag, inner_end = element
    start, end = tag.start, tag.end
    if part.startswith(("@", "=")):
        for name, whole, value in _attributes(frame[start:end]):
            if name.lower() == part[1:].lower():
                first, last = whole if part[0] == "@" else value
                return start + first, last - first
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
    """The start tag of an element, and where its end tag begins."""
    found: Tag | None = None
    found_depth = 0
    steps: list[int] = []
    """The place of each open element among its siblings, the root's left out."""
    next_place = 0
    depth = 0
    for tag in tags(frame):
        if tag.name == ENVELOPE and depth == 0:
            continue
        if tag.kind in ("start", "empty"):
            here = (*steps[1:], next_place) if depth else ()
            if found is None and here == path:
                found = tag
                if tag.kind == "empty":
                    return tag, tag.end
                found_depth = depth
            if tag.kind == "start":
                steps.append(next_place if depth else 0)
                depth += 1
                next_place = 0
            else:
                next_place += 1
        elif tag.kind == "end" and depth:
            depth -= 1
            next_place = steps.pop() + 1
            if found is not None and depth == found_depth:
                return found, tag.start
    return (found, len(frame)) if found is not None else None


def _attributes(tag: bytes) -> Iterator[tuple[str, tuple[int, int], tuple[int, int]]]:
    """Of each attribute in a tag: its name, the place of the whole and that of its value without quotes."""
    for found in _ATTRIBUTE.finditer(tag, 1):
        start, end = found.span(3)
        if tag[start] in b"\"'":
            start, end = start + 1, end - 1
        yield found[1].decode("latin-1"), found.span(), (start, end)
