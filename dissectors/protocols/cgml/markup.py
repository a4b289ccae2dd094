"""Tags in bytes that may be no XML: where each begins and ends, and whether it opens or closes.

This is for the framer, which must find the end of a message in any bytes, and for telling where a flaw
stands. What a valid message says is read by a real parser (`codec.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

import msgspec

ENVELOPE = "cgml"
"""The outer element, whose identifier the transcript of the specification has lost."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""What some editors put before UTF-8."""

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
"""Messages whose elements also stand inside these others."""

BLANKS = b" \t\r\n"
BLANK_TEXT = BLANKS.decode()
"""What XML takes for blanks: fewer characters than Python does."""

_NEXT_END = rb"[ \t]{0,64}+(?:\r\n?+|\n)"
BLANK_LINE = rb"(?:\r(?!\n)[ \t]{0,64}+[\r\n]|\r\n%s|\n%s)" % (_NEXT_END, _NEXT_END)
"""A line end, and a line with nothing on it; of blanks only so many, to tell it from few bytes.

Each of its forms begins with one byte of two, so that a search passes over all others quickly.
Where lines end in CR alone, the second CR ends it, though it might be the first half of CR LF.
"""

_NAME = re.compile(rb"[^\s<>/]*+")
_NAME_START = re.compile(rb"[A-Za-z_:\x80-\xff]")
_TAG = re.compile(rb"<!--.*?(?:-->|\Z)|<!\[CDATA\[.*?(?:\]\]>|\Z)|<[^<>]*+>?", re.DOTALL)

Kind = Literal["start", "end", "empty", "comment", "cdata", "declaration", "text"]
"""What stands between angle brackets; `empty` is a start tag that is its own end, `text` no tag at all."""


class Tag(msgspec.Struct, frozen=True):
    """A tag and its place in the bytes; `name` is in lower case, as it is looked up."""

    kind: Kind
    name: str
    start: int
    end: int


def kind_of(tag: bytes) -> tuple[Kind, str]:
    """What the bytes from `<` to `>` are, and what they name."""
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
    """All tags of a frame, in order."""
    for found in _TAG.finditer(frame):
        kind, name = kind_of(found[0])
        yield Tag(kind, name, found.start(), found.end())


def begins_message(name: str, tag: bytes, root: str) -> bool:
    """Whether a start tag inside an unclosed `root` rather begins the next message."""
    if name == ENVELOPE:
        return True
    if name not in ROOTS:
        return False
    # `licite` and `flek` have a type as messages, and none inside another.
    return root not in ALSO_INSIDE.get(name, ()) or (name != "round" and b"type" in tag)
