"""The framer for XML elements one after another, with or without white space between them.

Declarations, comments and white space before an element belong to its frame. An element without its end tag
extends to the next XML declaration, or to the next element of its name at the beginning of a line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from kiebitz.dissectors.grammar.framing import FRAME_LIMIT, INCOMPLETE, Frame, StructuredFramer
from kiebitz.dissectors.model import Direction

_SPECIAL = ((b"<!--", b"-->"), (b"<![CDATA[", b"]]>"), (b"<?", b"?>"))
"""Beginnings and ends of markup that is not a tag."""

_TAG = re.compile(rb"""</?([^\s<>/"'=]++)[^<>"']*+(?>(?:(?:"[^"<]*+"|'[^'<]*+')[^<>"']*+)*)>""")
_DECLARATION = re.compile(rb"""<![A-Za-z](?>(?:[^<>"'\[]++|"[^"]*+"|'[^']*+'|\[[^\]]*+\])*)>""")
_WHOLE = re.compile(rb"\s*+<([A-Za-z_][\w.:-]*+)(\s[^<>]*+|/)?(?:(?<=/)>|(?<!/)>[^<]*+</\1\s*>)")
"""An element without others in it: a fast path; all others are processed tag by tag."""

_TAG_BEGUN = re.compile(rb"""<([^\s<>/"'=]{1,64})[\s/>]""")
_MAX_NAME = 66
"""Maximum length in bytes of a match of it."""

_MAX_OPEN = 256
"""Maximum number of elements inside each other; others are not counted, and no codec accepts them."""

_MAX_ROOTS = 1000
"""Maximum number of known names of outermost elements."""

_MAX_TAG = 1 << 16
"""Maximum length of a tag in bytes; a longer one is no tag."""

_State = Literal["inside", "skipping"]
"""Before or in an element, or in bytes before the next possible beginning."""


class ElementFramer(StructuredFramer):
    """The framer for one direction."""

    def __init__(self, direction: Direction) -> None:
        super().__init__(direction)
        self._state: _State = "inside"
        self._at = 0
        """Offset in `_held` of the next byte to examine."""
        self._searched = 0
        """Offset up to which the end of the markup at `_at` was searched."""
        self._open: list[bytes] = []
        """The names of the open elements."""
        self._roots: set[bytes] = set()
        """Names of the outermost elements so far: only these begin a message after missing bytes."""
        self._last = b""
        """The byte before `_at`, while skipping."""

    @property
    def is_unfinished(self) -> bool:
        # White space after the last element is not the beginning of another.
        return bool(self._dropped or self._held.strip())

    def _whole(self, data: bytes) -> Sequence[int]:
        if self._state != "inside" or self._cut is not None:
            return ()
        ends: list[int] = []
        at = 0
        while (found := _WHOLE.match(data, at)) is not None and found.end() - at <= FRAME_LIMIT:
            attributes = found[2] or b""
            if attributes.count(b'"') % 2 or b"'" in attributes:
                # A bracket may be quoted.
                break
            self._add_root(found[1])
            at = found.end()
            ends.append(at)
        return ends

    def _overflow(self) -> None:
        self._state = "skipping"
        self._place = 0
        self._at = self._searched = FRAME_LIMIT
        self._last = b"<"

    def _seek(self) -> None:
        self._state = "skipping"

    def _frame_end(self) -> int:
        """Process new data; return the offset in `_held` of the frame's end, if known."""
        held = self._held
        if self._state == "skipping":
            return self._next_beginning()
        # Bytes beyond the limit are ignored, as they may arrive now or later.
        limit = min(len(held), FRAME_LIMIT)
        while True:
            at = held.find(b"<", self._at, limit)
            if at < 0:
                self._at = self._searched = limit
                return INCOMPLETE
            if at > self._at:
                self._at = self._searched = at
            end = self._markup_end(at, limit)
            if end == INCOMPLETE:
                return INCOMPLETE
            before = self._at
            self._at = self._searched = end
            if self._begins_message(before, end):
                return before
            if self._is_end(before, end):
                return end

    def _markup_end(self, at: int, limit: int) -> int:
        """Return the end of the markup at `at`; of a `<` that begins none, the byte after it."""
        held = self._held
        for begin, end in _SPECIAL:
            if held.startswith(begin, at, limit):
                found = held.find(end, max(at + len(begin), self._searched - len(end)), limit)
                self._searched = limit
                return found + len(end) if found >= 0 else INCOMPLETE
            if begin.startswith(held[at:limit]):
                return INCOMPLETE
        pattern = _DECLARATION if held.startswith(b"<!", at, limit) else _TAG
        # The pattern is tried again only when there is a bracket that may end it.
        if held.find(b">", max(at, self._searched), limit) >= 0:
            found_tag = pattern.match(held, at, min(limit, at + _MAX_TAG))
            if found_tag is not None:
                return found_tag.end()
        self._searched = limit
        following = held.find(b"<", at + 1, limit)
        if following >= 0 and pattern is _TAG:
            return following
        return at + 1 if limit - at > _MAX_TAG else INCOMPLETE

    def _begins_message(self, at: int, end: int) -> bool:
        """Return True if the markup at `at` shows that the message before it has no end."""
        held = self._held
        if not self._open:
            return False
        if held.startswith(b"<?xml", at) and held[at + 5 : at + 6].isspace():
            return True
        tag = _TAG.match(held, at, end)
        is_start = tag is not None and held[at + 1] != ord("/")
        return is_start and tag is not None and tag[1] == self._open[0] and held[at - 1 : at] == b"\n"

    def _is_end(self, at: int, end: int) -> bool:
        """Take the markup into account; return True if it ends the message."""
        held = self._held
        tag = _TAG.fullmatch(held, at, end)
        if tag is None or held[at + 1] in b"?!":
            return False
        name = tag[1]
        if held[at + 1] != ord("/"):
            if not self._open:
                self._add_root(name)
            if held[end - 2] == ord("/"):
                return not self._open
            if len(self._open) < _MAX_OPEN:
                self._open.append(name)
            return False
        if name in self._open:
            # An element in it may lack its end tag.
            del self._open[len(self._open) - 1 - self._open[::-1].index(name) :]
            return not self._open
        # An end tag without a beginning is all that is left of a message.
        return not self._open

    def _add_root(self, name: bytes) -> None:
        if len(self._roots) < _MAX_ROOTS:
            self._roots.add(bytes(name))

    def _next_beginning(self) -> int:
        """Return the offset of the next possible beginning.

        It is an XML declaration or a known outermost element. If none is known, it is any element right after
        the missing bytes, a line end or another tag.
        """
        held = self._held
        while (at := held.find(b"<", self._at)) >= 0:
            if at > self._at:
                self._last = bytes(held[at - 1 : at])
                self._at = at
            tag = _TAG_BEGUN.match(held, at)
            if tag is None and len(held) - at <= _MAX_NAME and held.find(b"<", at + 1) < 0:
                # The name may be incomplete.
                return INCOMPLETE
            if tag is not None:
                is_known = tag[1] in self._roots or tag[1] == b"?xml"
                is_likely = not self._roots and self._last in (b"", b"\n", b">") and tag[1][:1] not in b"!?"
                if is_known or is_likely:
                    return at
            self._at = at + 1
            self._last = b"<"
        if self._at < len(held):
            self._last = bytes(held[-1:])
            self._at = len(held)
        return INCOMPLETE

    def _release(self, upto: int, frames: list[Frame]) -> None:
        super()._release(upto, frames)
        self._at = self._searched = 0
        self._open.clear()
        self._last = b""
        self._state = "inside"

    def _drop(self) -> None:
        del self._held[: self._at]
        self._dropped += self._at
        self._at = self._searched = 0
