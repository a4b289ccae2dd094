"""Tags in bytes that may not be XML: where each begins and ends, and its kind.

The framer needs them to find the end of a message in any bytes, and the diagnostics to locate errors. Valid
messages are decoded by a real parser (`codec.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Prefix that some editors write before UTF-8."""

BLANKS = b" \t\r\n"
BLANK_TEXT = BLANKS.decode()
"""The blanks of XML: fewer characters than Python's."""

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
