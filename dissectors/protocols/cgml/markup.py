"""Tags in bytes that may not be XML: where each begins and ends, and its kind.

The framer needs them to find the end of a message in any bytes, and the diagnostics to locate errors. Valid
messages are decoded by a real parser (`codec.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

ENVELOPE = "cgml"
"""The outer element, whose name is missing in the transcript of the specification."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""Prefix that some editors write before UTF-8."""

ROOTS = frozenset(
    (
        *("connect", "newgroup", "newgame", "dial", "licite", "playcard", "gametype", "flek", "round"),
        *("result", "abort", "load", "disconnect", "pause", "cancelgame", "renonc"),
    )
)
"""The elements that are messages."""

ALSO_INSIDE = {
    "licite": frozenset(("gametype", "result")),
    "flek": frozenset(("gametype", "result")),
    "round": frozenset(("result",)),
}
"""Messages whose elements can also be inside these others."""

BLANKS = b" \t\r\n"
BLANK_TEXT = BLANKS.decode()
"""The blanks of XML: fewer characters than Python's."""

_NEXT_END = rb"[ \t]{0,64}+(?:\r\n?+|\n)"
BLANK_LINE = rb"(?:\r(?!\n)[ \t]{0,64}+[\r\n]|\r\n%s|\n%s)" % (_NEXT_END, _NEXT_END)
"""A line end followed by an empty line, with a bounded number of blanks.

Each alternative begins with one of two bytes, so that a search skips all others quickly. If lines end in CR
alone, the second CR ends it, though it might be the first half of CR LF.
"""

_NAME = re.compile(rb"[^\s<>/]*+")
_NAME_START = re.compile(rb"[A-Za-z_:\x80-\xff]")
_TAG = re.compile(rb"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<[^<>]*+>?", re.DOTALL)

Kind = Literal["start", "end", "empty", "comment", "cdata", "declaration", "text"]
"""The kind of a tag; `empty` is a start tag that is its own end, `text` is no tag at all."""


class Tag(msgspec.Struct, frozen=True):
    """A tag and its offsets; `name` is in lower case."""

    kind: Kind
    name: str
    start: int
    end: int


def kind_of(tag: bytes) -> tuple[Kind, str]:
    """Return the kind and the name of the tag in the bytes from `<` to `>`."""
    if tag.startswith(b"<!--"):
        return "comment", ""
    if tag.startswith(b"<![CDATA["):
        return "cdata", ""
    if tag.startswith((b"<!", b"<?")):
        return "declaration", ""
    closes = tag.startswith(b"</")
    if not tag.endswith(b">") or not _NAME_START.match(tag, 2 if closes else 1):
        return "text", ""
    found = _NAME.match(tag, 2 if closes else 1)
    assert found is not None
    name = found[0].decode("latin-1").lower()
    if closes:
        return "end", name
    return ("empty" if tag.endswith(b"/>") else "start"), name


def tags(frame: bytes) -> Iterator[Tag]:
    """Yield all tags of a frame, in order."""
    for found in _TAG.finditer(frame):
        kind, name = kind_of(found[0])
        yield Tag(kind, name, found.start(), found.end())


def begins_message(name: str, tag: bytes, root: str) -> bool:
    """Return True if a start tag inside an unclosed `root` begins the next message."""
    if name == ENVELOPE:
        return True
    if name not in ROOTS:
        return False
    # As messages, `licite` and `flek` have a type; inside other elements they have none.
    return root not in ALSO_INSIDE.get(name, ()) or (name != "round" and b"type" in tag)
