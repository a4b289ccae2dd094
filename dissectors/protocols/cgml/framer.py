"""The framer for CGML: finds where a message, one element and what surrounds it, begins and ends.

A message ends at the empty line after its element. Several elements may share one empty line or one envelope:
each is a message of its own, and the envelope's tags belong to the first and the last. An empty line inside
an element does not end it. A broken element extends to the next start tag of a message. So an error covers
only its own bytes, and the next message is complete.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

from kiebitz.dissectors.grammar.framing import (
    CACHE_SIZE,
    FRAME_LIMIT,
    INCOMPLETE,
    MAX_CACHED_LENGTH,
    Frame,
    StructuredFramer,
)
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocols.cgml.markup import (
    BLANK_LINE,
    BLANKS,
    BYTE_ORDER_MARK,
    ENVELOPE,
    ROOTS,
    begins_message,
    kind_of,
)

_ROOTS = "|".join(sorted(ROOTS)).encode()
_ONLY_ROOTS = "|".join(sorted({*ROOTS, ENVELOPE} - {"licite", "flek", "round"})).encode()

_BLANK_LINE = re.compile(BLANK_LINE)
_BLANKS = re.compile(rb"[ \t\r\n]*+")
_WORD = re.compile(rb"[^ \t\r\n<]++")
_BEGINNING = re.compile(
    rb"%s|<(?:%s|(?:licite|flek)(?=\s{1,8}[a-z]))(?=[\s/>])" % (BLANK_LINE, _ONLY_ROOTS), re.I
)
"""Possible beginnings of the next message after a gap or an oversized message, including those after an
empty line.
"""
_TAIL = 160
"""Maximum length in bytes of the beginning of such a match."""

_NO_TAGS = {b"<!--": b"-->", b"<![CDATA[": b"]]>"}
_NO_TAG_ENDS = {
    begin: re.compile(rb"%s|(%s\s{0,64}<(?:%s)[\s/>])" % (re.escape(end), BLANK_LINE, _ROOTS), re.I)
    for begin, end in _NO_TAGS.items()
}
"""Ends of comments and CDATA sections; an unterminated one extends to an empty line before a message."""

_TEXT = rb"[^<]*+"
_END_TAG = rb"</(?!(?i:cgml))[A-Za-z][^<>]*+>"


def _element(names: bytes, inside: bytes) -> bytes:
    """Return the pattern of an element with one of these names, empty or with these contents."""
    return rb"<(?:%s)(?:[\s/][^<>]*+)?(?:(?<=/)>|(?<!/)>%s%s%s)" % (names, inside, _TEXT, _END_TAG)


_LEAF = _element(rb"card|name|race|game|url|message|money|trumf|numplayers", b"")
_BRANCH = _element(rb"player|winer|loser", rb"(?>(?:%s%s)*)" % (_TEXT, _LEAF))
_TRICK = _element(rb"round", rb"(?>(?:%s%s)*)" % (_TEXT, _LEAF))
_SIMPLE = rb"<(?:licite|flek)>%s%s" % (_TEXT, _END_TAG)
_START = rb"<(?:%s)(?:\s[^<>]*+)?"
_WHOLE = re.compile(
    rb"(?>(?:<cgml(?:\s[^<>]*+)?>[ \t\r\n]*+)?)"
    + rb"(?:%s(?<!/)>" % (_START % b"result|gametype")
    + rb"(?>(?:%s(?:%s))*)" % (_TEXT, b"|".join((_LEAF, _BRANCH, _TRICK, _SIMPLE)))
    + rb"|%s(?<!/)>" % (_START % _ROOTS)
    + rb"(?>(?:%s(?:%s|%s))*))" % (_TEXT, _LEAF, _BRANCH)
    + _TEXT
    + _END_TAG
    + rb"(?:(?>(?:\r\n</cgml>)?)\r\n\r\n|\r\n[ \t]*+(?=%s>))" % (_START % _ROOTS)
)
"""A fast path for usual messages; all others are processed tag by tag."""

_State = Literal["before", "inside", "after", "broken", "skipping", "seeking"]
"""Position of the next byte: before, inside or after an element, in a broken or an oversized message, or
after a gap, before the first possible beginning of a message.
"""


class CgmlFramer(StructuredFramer):
    """The framer for one direction; both directions are framed alike."""

    def __init__(self, direction: Direction) -> None:
        super().__init__(direction)
        self._state: _State = "before"
        self._at = 0
        """Offset in `_held` of the next byte to examine."""
        self._looked = 0
        """Offset from which to search for the end of the tag at `_at`."""
        self._depth = 0
        self._root = ""
        self._begun: int | None = None
        """Offset in `_held` at which the message begins, after any blanks."""

    def _whole(self, data: bytes) -> Sequence[int]:
        if self._state != "before":
            return ()
        return _short_ends(data) if len(data) <= MAX_CACHED_LENGTH <= FRAME_LIMIT else _ends(data)

    def _overflow(self) -> None:
        self._state = "skipping"
        self._at = FRAME_LIMIT - _TAIL
        self._place = self._begun or 0

    def _seek(self) -> None:
        self._state = "seeking"

    def _frame_end(self) -> int:
        """Process new data; return the offset in `_held` of the frame's end, if known."""
        held = self._held
        if self._state in ("skipping", "seeking"):
            return self._next_beginning()
        # No frame is longer. Bytes beyond the limit are ignored, as they may arrive now or later.
        limit = min(len(held), FRAME_LIMIT)
        while True:
            if self._state == "inside":
                at = held.find(b"<", self._at, limit)
                if at < 0:
                    self._at = limit
                    return INCOMPLETE
            else:
                blanks = _BLANKS.match(held, self._at, limit)
                assert blanks is not None
                at = blanks.end()
                if self._state == "after":
                    end = self._blank_line(self._at, at, limit)
                    if end is not None:
                        return end
                elif at == limit:
                    self._at = limit
                    return INCOMPLETE
                if held[at] != ord("<"):
                    word = _WORD.match(held, at, limit)
                    assert word is not None
                    self._at = word.end()
                    if self._begun is None:
                        # Text after a document type's tags still belongs to it.
                        self._begun = at
                        self._state = "broken"
                    continue
                if self._begun is None:
                    self._begun = at
            end = self._tag_end(at, limit)
            if end == INCOMPLETE:
                self._at = at
                return INCOMPLETE
            self._looked = 0
            if self._take(at, end):
                return at

    def _blank_line(self, start: int, end: int, limit: int) -> int | None:
        """Return the frame's end in the blanks after an element, or that it is not known yet."""
        found = _BLANK_LINE.search(self._held, start, end)
        if found is None:
            if end < limit:
                return None
            # A line end may be the first half of an empty line, so keep the last one.
            self._at = max(start, limit - _TAIL)
            return INCOMPLETE
        if found.end() == limit < FRAME_LIMIT and _may_go_on(found[0]):
            self._at = start
            return INCOMPLETE
        return found.end()

    def _tag_end(self, at: int, limit: int) -> int:
        """Return the end of the tag at `at`; an unterminated one extends to the next."""
        held = self._held
        for begin, pattern in _NO_TAG_ENDS.items():
            if held.startswith(begin, at, limit):
                start = max(self._looked, at + len(begin))
                found = pattern.search(held, start, limit)
                if found is None:
                    self._looked = max(start, limit - _TAIL)
                    return INCOMPLETE
                if found[1] is None:
                    return found.end()
                # It is unterminated: the tag at the end of the match begins the next message.
                return held.rfind(b"<", at, found.end())
            if limit - at < len(begin) and begin.startswith(held[at:limit]):
                return INCOMPLETE
        start = max(self._looked, at + 1)
        end = held.find(b">", start, limit)
        next_tag = held.find(b"<", start, limit if end < 0 else end)
        if next_tag >= 0:
            return next_tag
        if end >= 0:
            return end + 1
        self._looked = limit
        return INCOMPLETE

    def _take(self, at: int, end: int) -> bool:
        """Process the tag at `at`; return True if it begins the next message instead."""
        tag = bytes(self._held[at:end])
        kind, name = kind_of(tag)
        opens = kind in ("start", "empty")
        state = self._state
        if state == "inside":
            if opens and begins_message(name, tag, self._root):
                return True
            if kind == "start":
                self._depth += 1
            elif kind == "end":
                self._depth -= 1
                if not self._depth or name == ENVELOPE:
                    self._state = "after"
        elif state == "after":
            if opens or kind == "declaration":
                return True
        elif state == "broken":
            if opens and (name in ROOTS or name == ENVELOPE):
                if self._held[:at].strip(BLANKS) != BYTE_ORDER_MARK:
                    return True
                self._state = "before"
                return self._take(at, end)
        elif opens and name != ENVELOPE:
            self._depth = 1
            self._root = name
            self._state = "inside" if kind == "start" else "after"
        elif kind == "end":
            self._state = "after" if name == ENVELOPE else "broken"
        elif kind == "text":
            self._state = "broken"
        if tag[:2] == b"<!" and state != "after" and not tag.endswith(_NO_TAGS.get(_begin_of(tag), b"")):
            # An unterminated comment.
            self._state = "broken"
        self._at = at + 1 if kind == "text" else end
        return False

    def _next_beginning(self) -> int:
        held = self._held
        certain = max(self._at, len(held) - _TAIL)
        found = _BEGINNING.search(held, self._at)
        if found is None:
            self._at = certain
            return INCOMPLETE
        if found[0].startswith(b"<"):
            return found.start()
        if found.end() == len(held) and _may_go_on(found[0]):
            self._at = found.start()
            return INCOMPLETE
        return found.end()

    def _release(self, upto: int, frames: list[Frame]) -> None:
        super()._release(upto, frames)
        self._at = self._looked = 0
        self._begun = None
        self._state = "before"

    def _drop(self) -> None:
        del self._held[: self._at]
        self._dropped += self._at
        self._at = 0


def _ends(data: bytes) -> tuple[int, ...]:
    """Return the ends of the leading messages that the fast path finds."""
    ends = []
    at = 0
    while (found := _WHOLE.match(data, at, at + FRAME_LIMIT)) is not None:
        at = found.end()
        ends.append(at)
    return tuple(ends)


_short_ends = lru_cache(CACHE_SIZE)(_ends)


def _may_go_on(blank_line: bytes) -> bool:
    """Return True if a following line feed would still belong to an empty line."""
    return blank_line.endswith(b"\r") and b"\n" in blank_line


def _begin_of(tag: bytes) -> bytes:
    return next((begin for begin in _NO_TAGS if tag.startswith(begin)), b"")
