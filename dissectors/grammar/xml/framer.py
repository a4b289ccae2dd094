"""The framer for XML elements: finds where a message, one element and what surrounds it, begins and ends.

A message ends with its element, or at the empty line after it. Several elements may share one empty line or
one envelope: each is a message of its own, and the envelope's tags belong to the first and the last. An empty
line inside an element does not end it. A broken element extends to the next start tag of a message. So an
error covers only its own bytes, and the next message is complete.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Literal, NamedTuple

import msgspec

from kiebitz.dissectors.grammar.framing import (
    FRAME_LIMIT,
    INCOMPLETE,
    CachedEnds,
    Frame,
    StructuredFramer,
)
from kiebitz.dissectors.grammar.grammar import BLANKS, MessageType
from kiebitz.dissectors.grammar.xml.diagnostics import XmlFormat
from kiebitz.dissectors.grammar.xml.markup import ATTRIBUTES, BLANK_LINE, BYTE_ORDER_MARK, kind_of
from kiebitz.dissectors.grammar.xml.shapes import ElementType
from kiebitz.dissectors.model import Direction

_BLANK_LINE = re.compile(BLANK_LINE)
_BLANKS = re.compile(rb"[ \t\r\n]*+")
_WORD = re.compile(rb"[^ \t\r\n<]++")
_BEGINNING = re.compile(rb"<([^\s<>/]{1,64}+)(?=(\s{0,8}+)([^\s]?))")
_LINE_OR_BEGINNING = re.compile(rb"%s|%s" % (BLANK_LINE, _BEGINNING.pattern))
"""Possible beginnings of the next message after a gap or an oversized message, including those after an
empty line.
"""
_TAIL = 160
"""Maximum length in bytes of the beginning of such a match."""

_WHOLE_TAG = re.compile(rb"<(?!!)%s>" % ATTRIBUTES)
_MARKS = re.compile(rb"[<>\"']")
_VALUE_ENDS = {ord(quote): re.compile(rb"[%s<\r\n]" % quote.encode()) for quote in "\"'"}
_NO_TAGS = {b"<!--": b"-->", b"<![CDATA[": b"]]>"}

_MAX_OPEN = 1000
"""Maximum number of elements inside each other; others are not counted, and no codec accepts them."""

_MAX_LEARNED = 1000
"""Maximum number of known names of outermost elements, where none are specified."""

_DEPTH = 2
"""Maximum number of branches inside each other in the fast path."""

_START = rb"<(?P<%s>%s)(?:[\s/]%s)?"
_TEXT = rb"[^<]*+"

_State = Literal["before", "inside", "after", "broken", "seeking"]
"""Position of the next byte: before, inside or after an element, in a broken message, or after a gap or an
oversized message, before the first possible beginning of a message.
"""


class Root(NamedTuple):
    """A kind of message: the name of its element, and the names of the elements that may be inside it.

    Attributes:
        name: Name of its element.
        mark: Attribute that it has, unlike elements of this name inside others; None if there is none.
        inside: Names of the elements at any depth inside it; None if there may be any.
        branches: Those of them that may contain elements.
    """

    name: str
    mark: str | None = None
    inside: frozenset[str] | None = frozenset()
    branches: frozenset[str] = frozenset()


class XmlFraming(msgspec.Struct, frozen=True, dict=True):
    """The elements that are messages.

    Attributes:
        of: How they are written, and what is around them.
        roots: All kinds of messages; none if their elements may have any names.
        inside: Without `roots`: names of elements inside messages; None if there may be any.
    """

    of: XmlFormat = XmlFormat()
    roots: tuple[Root, ...] = ()
    inside: frozenset[str] | None = None

    @cached_property
    def mark(self) -> bytes:
        """Without `roots`: the attribute that each of their elements has; empty if there is none."""
        return b"" if self.of.mark is None or self.of.path else self.of.mark.encode()

    @cached_property
    def envelope(self) -> str:
        """Name of an element around messages, in lower case; empty if there is none."""
        return self.of.envelope.lower()

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of elements that are messages, in lower case."""
        return frozenset(root.name.lower() for root in self.roots)

    @cached_property
    def _around(self) -> dict[str, frozenset[str]]:
        """Names of messages whose elements may contain that of a message, by its name."""
        return {
            name: frozenset(
                root.name.lower()
                for root in self.roots
                if root.inside is None or name in map(str.lower, root.inside)
            )
            for name in self.names
        }

    @cached_property
    def _marks(self) -> dict[str, bytes]:
        return {root.name.lower(): root.mark.encode() for root in self.roots if root.mark is not None}

    def begins_message(self, name: str, tag: bytes, inside: str) -> bool:
        """Return True if a start tag inside an unclosed element begins the next message."""
        if name == self.envelope:
            return True
        if name not in self.names:
            return False
        if inside not in self._around[name]:
            return True
        return name in self._marks and self._marks[name] in tag

    def begins_anywhere(self, name: str, has_more: bool) -> bool:
        """Return True if a start tag, which may have attributes, begins a message, whatever is before it."""
        if name == self.envelope:
            return True
        return name in self.names and (not self._around[name] or (has_more and name in self._marks))

    @property
    def wire_roots(self) -> Mapping[str, str]:
        """Names of elements that are messages, and those of them that may also be inside others."""
        return {name: "inner" if self._around[name] else "outer" for name in sorted(self.names)}

    @cached_property
    def no_tag_ends(self) -> dict[bytes, re.Pattern[bytes]]:
        """Ends of comments and CDATA sections; an unterminated one extends to a line before a message."""
        line = rb"%s\s{0,64}" % BLANK_LINE if self.of.blank_line else rb"\n"
        after = rb"|(%s<(?:%s)[\s/>])" % (line, _any_of(self.names)) if self.names else rb"|(?!)()"
        return {begin: re.compile(re.escape(end) + after, re.IGNORECASE) for begin, end in _NO_TAGS.items()}

    @cached_property
    def _whole(self) -> re.Pattern[bytes]:
        """A fast path for usual messages; all others are processed tag by tag."""
        number = iter(range(1000))

        def element(names: bytes, inside: bytes) -> bytes:
            group = b"e%d" % next(number)
            start = _START % (group, names, ATTRIBUTES)
            return rb"%s(?:(?<=/)>|(?<!/)>%s%s</(?P=%s)\s*+>)" % (start, inside, _TEXT, group)

        def inner(plain: set[str], marked: set[str], depth: int) -> bytes:
            parts = [element(_any_of(plain - branches), b"")] if plain - branches else []
            if depth and plain & branches:
                parts.append(element(_any_of(plain & branches), inner(plain, set(), depth - 1)))
            if marked:
                group = b"e%d" % next(number)
                parts.append(rb"<(?P<%s>%s)>%s</(?P=%s)\s*+>" % (group, _any_of(marked), _TEXT, group))
            return rb"(?>(?:%s(?:%s))*)" % (_TEXT, b"|".join(parts)) if parts else b""

        branches = {name for root in self.roots for name in root.branches}
        every: set[str] = set()
        groups: dict[frozenset[str], list[str]] = {}
        for root in self.roots:
            names = root.inside or frozenset()
            alike = frozenset(name for name in names if name.lower() in self.names)
            every |= names - alike
            groups.setdefault(alike, []).append(root.name)
        elements = []
        for alike, of in groups.items():
            # Elements that would have a mark as messages have no attributes inside others.
            marked = {name for name in alike if name.lower() in self._marks}
            elements.append(element(_any_of(of), inner(every | (alike - marked), marked, _DEPTH)))
        whole = b"|".join(elements or [element(rb"[A-Za-z_][\w.:-]*+", b"")])
        if not self.of.blank_line:
            # Within an envelope, a message does not end with its element.
            ends = not self.envelope or self.of.stays_open
            return re.compile(rb"%s(?:%s)" % (_BLANKS.pattern, whole if ends else rb"(?!)"))
        envelope, end = b"", b""
        if self.envelope:
            name = re.escape(self.envelope.encode())
            envelope = rb"(?>(?:<%s(?:\s%s)?(?<!/)>[ \t\r\n]*+)?)" % (name, ATTRIBUTES)
            end = rb"(?>(?:\r\n</%s>)?)" % name
        following = rb"(?=<(?:%s)(?:\s%s)?(?<!/)>)" % (_any_of(self.names), ATTRIBUTES)
        return re.compile(rb"%s(?:%s)(?:%s\r\n\r\n|\r\n[ \t]*+%s)" % (envelope, whole, end, following))

    def _ends(self, data: bytes) -> tuple[int, ...]:
        ends = []
        at = 0
        while (found := self._whole.match(data, at, at + FRAME_LIMIT)) is not None:
            at = found.end()
            ends.append(at)
        return tuple(ends)

    @cached_property
    def ends(self) -> CachedEnds:
        """The fast path."""
        return CachedEnds(self._ends)


class XmlFramer(StructuredFramer):
    """The framer for one direction; both directions are framed alike."""

    def __init__(self, direction: Direction, framing: XmlFraming) -> None:
        super().__init__(direction)
        self._framing = framing
        self._state: _State = "before"
        self._looked = 0
        """Offset from which to search for the end of the tag at `_at`."""
        self._quote_end = 0
        """Offset from which to search for the end of a value at `_looked`."""
        self._is_plain = False
        """True if a value in the tag at `_at` has no end, so that the tag ends at the first ">"."""
        self._open: list[str] = []
        """Names of the open elements."""
        self._begun: int | None = None
        """Offset in `_held` at which the message begins, after any blanks."""
        self._in_envelope = False
        self._learned: set[str] = set()
        """Names of the outermost elements so far, where none are specified."""

    @property
    def is_unfinished(self) -> bool:
        # White space after the last message is not the beginning of another.
        return bool(self._dropped or self._held.strip(BLANKS))

    def _whole(self, data: bytes) -> Sequence[int]:
        framing = self._framing
        if self._state != "before" or (self._in_envelope and not framing.of.stays_open):
            return ()
        ends = framing.ends(data)
        if not framing.roots:
            at = 0
            for end in ends:
                found = _BEGINNING.search(data, at, end)
                at = end
                if found is not None:
                    self._learn(found[1])
        return ends

    def _learn(self, name: bytes) -> None:
        if len(self._learned) < _MAX_LEARNED:
            self._learned.add(name.decode("latin-1").lower())

    def _overflow(self) -> None:
        self._state = "seeking"
        self._at = max(1, FRAME_LIMIT - _TAIL)
        self._place = self._begun or 0

    def _seek(self) -> None:
        self._state = "seeking"
        self._in_envelope = False

    def _frame_end(self) -> int:
        """Process new data; return the offset in `_held` of the frame's end, if known."""
        held = self._held
        if self._state == "seeking":
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
                if self._state == "after" and self._framing.of.blank_line:
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
            self._looked = self._quote_end = 0
            self._is_plain = False
            found = self._take(at, end)
            if found != INCOMPLETE:
                return found

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
        if not self._looked:
            whole = _WHOLE_TAG.match(held, at, limit)
            if whole is not None:
                return whole.end()
        for begin, pattern in self._framing.no_tag_ends.items():
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
        if not self._is_plain:
            end = self._quoted_tag_end(at, limit)
            if not self._is_plain:
                return end
        start = max(self._looked, at + 1)
        end = held.find(b">", start, limit)
        next_tag = held.find(b"<", start, limit if end < 0 else end)
        if next_tag >= 0:
            return next_tag
        if end >= 0:
            return end + 1
        self._looked = limit
        return INCOMPLETE

    def _quoted_tag_end(self, at: int, limit: int) -> int:
        """Return the end of a tag in which a value in quotes may contain ">"; or note that it is plain."""
        held = self._held
        position = max(self._looked, at + 1)
        while (mark := _MARKS.search(held, position, limit)) is not None:
            start = mark.start()
            if held[start] == ord(">"):
                return mark.end()
            value = None
            if held[start] != ord("<"):
                value = _VALUE_ENDS[held[start]].search(held, max(mark.end(), self._quote_end), limit)
                if value is None:
                    self._looked, self._quote_end = start, limit
                    return INCOMPLETE
            if value is None or held[value.start()] != held[start]:
                self._is_plain = True
                self._looked = 0
                return INCOMPLETE
            position, self._quote_end = value.end(), 0
        self._looked = limit
        return INCOMPLETE

    def _take(self, at: int, end: int) -> int:
        """Process the tag at `at`; return the frame's end if the tag shows it."""
        tag = bytes(self._held[at:end])
        kind, name = kind_of(tag)
        opens = kind in ("start", "empty")
        envelope = self._framing.envelope
        state = self._state
        is_next = False
        if state == "inside":
            is_next = (opens and self._begins_message(name, tag, at)) or (
                tag.startswith(b"<?xml") and tag[5:6].isspace()
            )
            if kind == "end":
                self._close(name)
            elif kind == "start" and len(self._open) < _MAX_OPEN:
                self._open.append(name)
        elif state == "after":
            is_next = opens or kind == "declaration"
        elif state == "broken":
            is_next = opens and self._is_root(name, tag)
        elif opens and name != envelope:
            if not self._framing.roots:
                self._learn(name.encode("latin-1"))
            self._open = [name]
            self._state = "inside"
            if kind == "empty":
                self._close(name)
        elif kind == "end":
            self._state = "after" if envelope and name == envelope else "broken"
        elif kind == "text":
            self._state = "broken"
        if is_next:
            if state != "broken" or self._held[:at].strip(BLANKS) != BYTE_ORDER_MARK:
                return at
            self._state = "before"
            return self._take(at, end)
        if envelope and name == envelope:
            self._in_envelope = kind == "start"
        if tag[:2] == b"<!" and state != "after":
            for begin, ending in _NO_TAGS.items():
                if tag.startswith(begin) and not tag.endswith(ending):
                    # It is unterminated.
                    self._state = "broken"
        self._at = at + 1 if kind == "text" else end
        is_whole = self._state == "after" and not self._framing.of.blank_line
        return end if is_whole and (self._framing.of.stays_open or not self._in_envelope) else INCOMPLETE

    def _close(self, name: str) -> None:
        """Close the element of an end tag, with those in it that lack theirs; if there is none, the last."""
        names = self._open
        number = len(names) - 1 - names[::-1].index(name) if name in names else len(names) - 1
        del names[number:]
        if not names or name == self._framing.envelope:
            self._state = "after"

    def _begins_message(self, name: str, tag: bytes, at: int) -> bool:
        """Return True if a start tag inside an unclosed element begins the next message."""
        framing, root = self._framing, self._open[0]
        if framing.begins_message(name, tag, root):
            return True
        if name == root and not framing.of.blank_line and self._held[at - 1 : at] == b"\n":
            return True
        # The name is a message's, and the tag has the attribute of all messages.
        return (
            framing.mark in tag
            and framing.inside is not None
            and name in self._learned
            and name not in framing.inside
        )

    def _is_root(self, name: str, tag: bytes) -> bool:
        """Return True if a start tag after other bytes begins a message."""
        framing = self._framing
        if framing.roots or name == framing.envelope:
            return name in framing.names or name == framing.envelope
        return not self._learned or name in self._learned

    def _next_beginning(self) -> int:
        held, framing = self._held, self._framing
        pattern = _LINE_OR_BEGINNING if framing.of.blank_line else _BEGINNING
        for found in pattern.finditer(held, self._at):
            start, end = found.span()
            if found[1] is None:
                if end < len(held) or not _may_go_on(found[0]):
                    return end
            elif found.end(3) < len(held) or found[3]:
                name = found[1].decode("latin-1").lower()
                if framing.roots:
                    is_root = framing.begins_anywhere(name, found[3] not in (b">", b"/"))
                else:
                    # If no name is known, a start tag on a line of its own, or after another, may begin one.
                    is_likely = not self._learned and name[:1] not in ("!", "?", "/")
                    begins = self._held[start - 1] in b"\n>" if start else self._dropped == 0
                    is_root = name in self._learned or name == "?xml" or (is_likely and begins)
                if is_root or (name == "?xml" and found[2]):
                    return start
                continue
            self._at = start
            return INCOMPLETE
        self._at = max(self._at, len(held) - _TAIL)
        return INCOMPLETE

    def _release(self, upto: int, frames: list[Frame]) -> None:
        super()._release(upto, frames)
        self._looked = self._quote_end = 0
        self._is_plain = False
        self._open.clear()
        self._begun = None
        self._state = "before"


def _any_of(names: Iterable[str]) -> bytes:
    return b"|".join(re.escape(name.encode()) for name in sorted({*names}))


def _may_go_on(blank_line: bytes) -> bool:
    """Return True if a following line feed would still belong to an empty line."""
    return blank_line.endswith(b"\r") and b"\n" in blank_line


def framing_of(rows: Iterable[MessageType], of: XmlFormat) -> XmlFraming:
    """Return how the messages of these rows are found."""
    roots = []
    for row in rows:
        assert isinstance(row, ElementType)
        names: dict[str, bool] | None = None
        with suppress(LookupError):
            names = dict(row.shape.nested())
        branches = frozenset(name for name, is_branch in (names or {}).items() if is_branch)
        mark = None if row.mark is None else row.mark[0]
        roots.append(Root(row.name, mark, None if names is None else frozenset(names), branches))
    if of.mark is None:
        return XmlFraming(of, tuple(roots))
    insides = [root.inside for root in roots]
    every = frozenset(of.path).union(*(names or () for names in insides))
    return XmlFraming(of, inside=None if None in insides else every)
