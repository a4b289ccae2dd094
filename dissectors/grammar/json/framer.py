"""The framer for messages in JSON: finds where a message, one JSON object, begins and ends.

A message is an object with its line feed. Peers send objects without a line feed between them, or with
several inside. Therefore the object's structure determines its end, not the line. A broken object extends to
the next line feed or the next message start, whichever comes first. A message start is a brace and a known
name; within a message, hardly any object begins with such a name. So an error covers only its own bytes, and
the next message is complete.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Literal

import msgspec

from kiebitz.dissectors.grammar.framing import (
    CACHE_SIZE,
    FRAME_LIMIT,
    INCOMPLETE,
    MAX_CACHED_LENGTH,
    Frame,
    StructuredFramer,
)
from kiebitz.dissectors.grammar.json.scanner import DEPTH_LIMIT, Scanner
from kiebitz.dissectors.model import Direction

_MAX_BLANKS = 32
"""Maximum number of consecutive blanks in a message start, which bounds its length."""
_SOME_BLANKS = rb"[ \t\r\n]{0,%d}" % _MAX_BLANKS
_STRETCH = 256
"""Number of bytes to search for a message start at a time: more than the longest has, few for an object."""

_OBJECT = msgspec.json.Decoder(msgspec.Raw)
_FIRST_NAMES = re.compile(rb'\{[ \t\r\n]*+"([^"{]*+)"[ \t\r\n]*+:')
_BLANKS = re.compile(rb"[ \t\r]*+")

_State = Literal["between", "object", "after", "broken", "skipping", "seeking"]
"""Position of the next byte: between two messages, in an object, in the blanks after one, in a broken or an
oversized message, or after a gap, before the first possible beginning of a message.
"""


class MessageStarts:
    """The beginnings of messages: a brace and one of the names.

    Args:
        names: First names of messages.
        attributes: Names that also occur first in objects within a message.
    """

    def __init__(self, names: Iterable[str], attributes: Iterable[str]) -> None:
        self.names = _as_sent(names)
        self.attributes = _as_sent(attributes)
        self._own = self.names - self.attributes
        self._length = max(map(len, self.names))
        self.max_length = 2 * _MAX_BLANKS + self._length + 4
        self.short_line_ends = lru_cache(CACHE_SIZE)(self.line_ends)

    # Patterns of many names take long to compile, and lines that are whole objects do not need them.

    @cached_property
    def _name(self) -> bytes:
        return rb'"(%s)"' % b"|".join(re.escape(name) for name in sorted(self.names))

    @cached_property
    def start(self) -> re.Pattern[bytes]:
        """The beginning of a message, with its name."""
        return re.compile(rb"\{%s%s%s:" % (_SOME_BLANKS, self._name, _SOME_BLANKS))

    @cached_property
    def start_or_line_end(self) -> re.Pattern[bytes]:
        """The beginning of a message, or a line feed."""
        return re.compile(rb"\n|%s" % self.start.pattern)

    @cached_property
    def begun(self) -> re.Pattern[bytes]:
        """A part of a possible message start at the end of the data."""
        name = rb'"[^"{\n]{0,%d}|%s%s' % (self._length, self._name, _SOME_BLANKS)
        return re.compile(rb"\{%s(?:%s)?\Z" % (_SOME_BLANKS, name))

    def line_ends(self, data: bytes) -> tuple[int, ...]:
        """Return the ends of the leading lines that are whole frames, which is the usual case."""
        ends = []
        at = 0
        while end := data.find(b"\n", at, at + FRAME_LIMIT) + 1:
            if not self.is_frame(data[at:end]):
                break
            ends.append(end)
            at = end
        return tuple(ends)

    def is_frame(self, line: bytes) -> bool:
        """Return True if a line is a valid object with no message start in it.

        The scanner would find the same end; it rejects only deep nesting, which is checked here, too.
        """
        if not line.startswith(b"{"):
            return False
        try:
            _OBJECT.decode(line)
        except (msgspec.DecodeError, RecursionError):
            return False
        names = _FIRST_NAMES.findall(line, 1)
        if not self._own.isdisjoint(names):
            return False
        return line.count(b"{") + line.count(b"[") <= DEPTH_LIMIT or self.names.isdisjoint(names)


def _as_sent(names: Iterable[str]) -> frozenset[bytes]:
    """Return names as they are sent: in UTF-8, and with the escapes that most programs write."""
    return frozenset(
        json.dumps(name, ensure_ascii=escaped)[1:-1].encode() for name in names for escaped in (False, True)
    )


class JsonFramer(StructuredFramer):
    """The framer for one direction; both directions are framed alike."""

    def __init__(self, direction: Direction, starts: MessageStarts) -> None:
        super().__init__(direction)
        self._starts = starts
        self._state: _State = "between"
        self._at = 0
        """Offset in `_held` of the next byte to examine; the scanner has its own."""
        self._begun = 0
        """Offset in `_held` at which the message begins, after any blanks."""
        self._scanner = Scanner()
        self._line_from: int | None = 0
        """Offset from which to search for the first line end, to use the line as a whole; None if that
        failed.
        """

    def _whole(self, data: bytes) -> Sequence[int]:
        if self._state != "between":
            return ()
        is_short = len(data) <= MAX_CACHED_LENGTH <= FRAME_LIMIT
        return self._starts.short_line_ends(data) if is_short else self._starts.line_ends(data)

    def _overflow(self) -> None:
        self._state = "skipping"
        self._place = self._begun

    def _seek(self) -> None:
        self._state = "seeking"

    def _frame_end(self) -> int:
        """Process new data; return the offset in `_held` of the frame's end, if known."""
        held = self._held
        if self._state == "seeking":
            return self._next_beginning()
        if self._state == "skipping":
            return self._next_mark(len(held))
        # No frame is longer. Bytes beyond the limit are ignored, as they may arrive now or later.
        limit = min(len(held), FRAME_LIMIT)
        if self._line_from is not None and (end := self._whole_line(limit)) != INCOMPLETE:
            return end
        if self._state == "between":
            at = self._at = self._blanks_end(limit)
            if at == limit:
                return INCOMPLETE
            if held[at] == ord("\n"):
                return at + 1
            self._begun = at
            self._state = "broken"
            if held[at] == ord("{"):
                self._state = "object"
                self._scanner = Scanner(at, raw_controls=True)
                self._at = at + 1
        if self._state == "object" and (end := self._in_object(limit)) != INCOMPLETE:
            return end
        if self._state == "after":
            at = self._at = self._blanks_end(limit)
            if at < limit:
                return at + (held[at] == ord("\n"))
        if self._state == "broken":
            return self._next_mark(limit)
        return INCOMPLETE

    def _whole_line(self, limit: int) -> int:
        """Return the end of the first line if it is a frame, which is the usual case and cheap to detect."""
        end = self._held.find(b"\n", self._line_from, limit) + 1
        self._line_from = None if end else limit
        return end if end and self._starts.is_frame(bytes(self._held[:end])) else INCOMPLETE

    def _in_object(self, limit: int) -> int:
        held, scanner = self._held, self._scanner
        while self._at < limit:
            stretch = min(self._at + _STRETCH, limit)
            certain = self._certain(stretch)
            start = self._starts.start.search(held, self._at, certain)
            upto = start.start() if start is not None else certain
            scanner.scan(held, upto)
            if scanner.is_complete:
                self._state = "after"
                self._at = scanner.at
                break
            if scanner.is_broken:
                self._state = "broken"
                self._at = upto
                return held.find(b"\n", scanner.at, upto) + 1 or INCOMPLETE
            if start is None:
                self._at = upto
                if stretch == limit:
                    break
            elif start[1] in self._starts.attributes and scanner.expects_value(upto):
                self._at = upto + 1
            else:
                return upto
        return INCOMPLETE

    def _next_mark(self, limit: int) -> int:
        """Return the end of a broken or oversized message."""
        certain = self._certain(limit)
        mark = self._starts.start_or_line_end.search(self._held, self._at, certain)
        if mark is None:
            self._at = certain
            return INCOMPLETE
        return mark.start() if mark[1] else mark.end()

    def _next_beginning(self) -> int:
        held = self._held
        certain = self._certain(len(held))
        line = held.find(b"\n{", self._at) + 1
        for start in self._starts.start.finditer(held, self._at, line or certain):
            at = start.start()
            # A name that is also an attribute's may belong to the rest of a message, unless the gap ended
            # between messages.
            if start[1] not in self._starts.attributes or self._dropped + at == 0:
                return at
        self._at = certain - held.endswith(b"\n", 0, certain)
        return line or INCOMPLETE

    def _certain(self, limit: int) -> int:
        """Return the offset up to which message starts are certain, given the bytes before `limit`."""
        begun = self._starts.begun.search(self._held, max(self._at, limit - self._starts.max_length), limit)
        return begun.start() if begun is not None else limit

    def _blanks_end(self, limit: int) -> int:
        blanks = _BLANKS.match(self._held, self._at, limit)
        assert blanks is not None
        return blanks.end()

    def _release(self, upto: int, frames: list[Frame]) -> None:
        held = self._held
        self._line_from = 0 if held.endswith(b"\n", 0, upto) or upto == len(held) else None
        super()._release(upto, frames)
        self._at = self._begun = 0
        self._state = "between"

    def _drop(self) -> None:
        del self._held[: self._at]
        self._dropped += self._at
        self._at = 0
