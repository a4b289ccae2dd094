"""The framer for messages in JSON: finds where a message, one JSON object, begins and ends.

A message is an object with its line feed; or it ends at its bracket, and blanks belong to the message after
them. Peers send objects without a line feed between them, or with several inside. Therefore the object's
structure determines its end, not the line. A broken object extends to the next line feed or the next message
start, whichever comes first. A message start is a brace and a known name; within a message, hardly any object
begins with such a name. So an error covers only its own bytes, and the next message is complete. Only an
object with an unknown first name may contain a whole message: a real server wraps those it passes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Literal

import msgspec

from kiebitz.dissectors.grammar.field_type import WireType
from kiebitz.dissectors.grammar.framing import (
    FRAME_LIMIT,
    INCOMPLETE,
    CachedEnds,
    Frame,
    StructuredFramer,
)
from kiebitz.dissectors.grammar.grammar import BLANKS
from kiebitz.dissectors.grammar.json.scanner import DEPTH_LIMIT, Scanner, as_sent
from kiebitz.dissectors.model import Direction

_MAX_BLANKS = 32
"""Maximum number of consecutive blanks in a message start, which bounds its length."""
_SOME_BLANKS = rb"[ \t\r\n]{0,%d}" % _MAX_BLANKS
_MAX_NAME = 64
"""Maximum length of a name that is not known, in bytes."""
_ANY_NAME = rb'"([^"{\n:,]{0,%d})"' % _MAX_NAME
"""A name that no part of a valid message has behind a brace in a string."""
_STRETCH = 256
"""Number of bytes to search for a message start at a time: more than the longest has, few for an object."""

_OBJECT = msgspec.json.Decoder(msgspec.Raw)
_FIRST_NAMES = re.compile(rb'\{[ \t\r\n]*+"([^"{]*+)"[ \t\r\n]*+:')
_BLANKS = {False: re.compile(rb"[ \t\r]*+"), True: re.compile(rb"[ \t\r\n]*+")}
"""Blanks before an object, by whether messages end at their brackets."""

_State = Literal["between", "object", "after", "broken", "skipping", "seeking"]
"""Position of the next byte: between two messages, in an object, in the blanks after one, in a broken or an
oversized message, or after a gap, before the first possible beginning of a message.
"""


class JsonFraming:
    """The beginnings and the ends of messages.

    Args:
        names: First names of messages.
        attributes: Names that also occur first in objects within a message; None if any name may.
        ends_at_bracket: True if a message ends at its bracket, rather than after the next line feed.
    """

    def __init__(
        self, names: Iterable[str], attributes: Iterable[str] | None = None, ends_at_bracket: bool = False
    ) -> None:
        self.ends_at_bracket = ends_at_bracket
        self.names = as_sent(names)
        self._own = frozenset() if attributes is None else self.names - as_sent(attributes)
        self._has_any_name = attributes is None
        self._length = max(_MAX_NAME * self._has_any_name, max(map(len, self.names), default=0))
        self.max_length = 2 * _MAX_BLANKS + self._length + 4
        self.ends = CachedEnds(self._whole_ends)

    # Patterns of many names take long to compile, and lines that are whole objects do not need them.

    @cached_property
    def _name(self) -> bytes:
        return rb'"(%s)"' % (b"|".join(re.escape(name) for name in sorted(self.names)) or rb"(?!)")

    @cached_property
    def start(self) -> re.Pattern[bytes]:
        """The beginning of a message or of an object within it, with its name."""
        name = _ANY_NAME if self._has_any_name else self._name
        return re.compile(rb"\{%s%s%s:" % (_SOME_BLANKS, name, _SOME_BLANKS))

    def wire(self) -> WireType:
        """Return the declarative description of lines; see `Codec.wire_format`."""
        starts = {name.decode(): name in self._own for name in sorted(self.names)}
        return {"kind": "json", "line_end": True, "starts": starts}

    def is_own(self, start: re.Match[bytes]) -> bool:
        """Return True if an object with this name is not within a message."""
        return start[1] in self._own

    def is_wrapper(self, data: bytes | bytearray, at: int) -> bool:
        """Return True if an object has an unknown first name, so that it may contain a message."""
        first = _FIRST_NAMES.match(data, at)
        return first is not None and first[1] not in self.names

    @cached_property
    def mark(self) -> re.Pattern[bytes]:
        """The end of a broken message: a line feed, a known beginning, or any one behind a brace."""
        names = rb"\{%s%s%s:" % (_SOME_BLANKS, self._name, _SOME_BLANKS)
        return re.compile(rb"\n|%s|(?<=\})%s" % (names, self.start.pattern))

    @cached_property
    def any_mark(self) -> re.Pattern[bytes]:
        """The end of bytes that are no object: a line feed, or the beginning of any object."""
        return re.compile(rb"\n|%s" % self.start.pattern)

    @cached_property
    def begun(self) -> re.Pattern[bytes]:
        """A part of a possible message start at the end of the data."""
        names = rb"%s|%s" % (_ANY_NAME, self._name) if self._has_any_name else self._name
        name = rb'"[^"{\n]{0,%d}|(?:%s)%s' % (self._length, names, _SOME_BLANKS)
        return re.compile(rb"\{%s(?:%s)?\Z" % (_SOME_BLANKS, name))

    def _whole_ends(self, data: bytes) -> tuple[int, ...]:
        """Return the ends of the leading lines that are whole frames, which is the usual case."""
        ends = []
        at = line = 0
        while line < len(data):
            line = data.find(b"\n", line, at + FRAME_LIMIT) + 1 or self.ends_at_bracket * len(data)
            end = at + self.frame_length(data[at:line])
            if end == at or end - at > FRAME_LIMIT:
                break
            ends.append(end)
            at = end
        return tuple(ends)

    def frame_length(self, line: bytes) -> int:
        """Return the length of the frame at the beginning of a line that is only this object; else 0."""
        length = len(line.rstrip(BLANKS)) if self.ends_at_bracket else len(line)
        return length if self.is_frame(line) else 0

    def is_frame(self, line: bytes) -> bool:
        """Return True if a line is a valid object with no message start in it.

        The scanner would find the same end; it rejects only deep nesting, which is checked here, too.
        """
        if not (line.lstrip(BLANKS) if self.ends_at_bracket else line).startswith(b"{"):
            return False
        try:
            _OBJECT.decode(line)
        except (msgspec.DecodeError, RecursionError):
            return False
        names = _FIRST_NAMES.findall(line, line.find(b"{") + 1)
        if not self._own.isdisjoint(names):
            return False
        if line.count(b"{") + line.count(b"[") <= DEPTH_LIMIT:
            return True
        return not self.ends_at_bracket and self.names.isdisjoint(names)


class JsonFramer(StructuredFramer):
    """The framer for one direction; both directions are framed alike."""

    def __init__(self, direction: Direction, framing: JsonFraming) -> None:
        super().__init__(direction)
        self._framing = framing
        self._state: _State = "between"
        self._begun = 0
        """Offset in `_held` at which the message begins, after any blanks."""
        self._scanner = Scanner()
        self._line_from: int | None = 0
        """Offset from which to search for the first line end, to use the line as a whole; None if that
        failed.
        """

    @property
    def is_unfinished(self) -> bool:
        # Blanks after the last message are not the beginning of another.
        return bool(self._dropped or self._held.strip(BLANKS if self._framing.ends_at_bracket else b""))

    def _whole(self, data: bytes) -> Sequence[int]:
        if self._state != "between":
            return ()
        return self._framing.ends(data)

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
        return (end and self._framing.frame_length(bytes(self._held[:end]))) or INCOMPLETE

    def _in_object(self, limit: int) -> int:
        held, scanner = self._held, self._scanner
        while self._at < limit:
            stretch = min(self._at + _STRETCH, limit)
            certain = self._certain(stretch)
            start = self._framing.start.search(held, self._at, certain)
            upto = start.start() if start is not None else certain
            scanner.scan(held, upto)
            if scanner.is_complete and self._framing.ends_at_bracket:
                return scanner.at
            if scanner.is_complete:
                self._state = "after"
                self._at = scanner.at
                break
            if scanner.is_broken:
                self._state = "broken"
                self._at = upto
                if self._framing.ends_at_bracket and held[scanner.at] == ord("{"):
                    return scanner.at
                return held.find(b"\n", scanner.at, upto) + 1 or INCOMPLETE
            if start is None:
                self._at = upto
                if stretch == limit:
                    break
            elif scanner.expects_value(upto) and self._may_contain(start):
                self._at = upto + 1
            else:
                return upto
        return INCOMPLETE

    def _may_contain(self, start: re.Match[bytes]) -> bool:
        """Return True if an object with this name may be within the current one."""
        return not self._framing.is_own(start) or self._framing.is_wrapper(self._held, self._begun)

    def _next_mark(self, limit: int) -> int:
        """Return the end of a broken or oversized message."""
        certain = self._certain(limit)
        is_no_object = self._state == "broken" and self._held[self._begun] != ord("{")
        pattern = self._framing.any_mark if is_no_object else self._framing.mark
        mark = pattern.search(self._held, self._at, certain)
        if mark is None:
            self._at = certain
            return INCOMPLETE
        return mark.end() if mark[0] == b"\n" else mark.start()

    def _next_beginning(self) -> int:
        held = self._held
        certain = self._certain(len(held))
        line = held.find(b"\n{", self._at) + 1
        for start in self._framing.start.finditer(held, self._at, line or certain):
            at = start.start()
            # A name that is also an attribute's may belong to the rest of a message, unless the gap ended
            # between messages.
            if self._framing.is_own(start) or self._dropped + at == 0:
                return at
        self._at = certain - held.endswith(b"\n", 0, certain)
        return line or INCOMPLETE

    def _certain(self, limit: int) -> int:
        """Return the offset up to which message starts are certain, given the bytes before `limit`."""
        begun = self._framing.begun.search(self._held, max(self._at, limit - self._framing.max_length), limit)
        return begun.start() if begun is not None else limit

    def _blanks_end(self, limit: int) -> int:
        blanks = _BLANKS[self._framing.ends_at_bracket].match(self._held, self._at, limit)
        assert blanks is not None
        return blanks.end()

    def _release(self, upto: int, frames: list[Frame]) -> None:
        held = self._held
        self._line_from = 0 if held.endswith(b"\n", 0, upto) or upto == len(held) else None
        super()._release(upto, frames)
        self._begun = 0
        self._state = "between"
