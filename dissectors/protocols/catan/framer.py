"""Catan's framer: where a message, one JSON object, begins and ends.

A message is an object up to its line feed. Peers are sloppy with both: objects come without a line feed
between them, or with several inside. So the object's structure tells its end, not the line. What makes this
more than that is broken objects: one takes all up to the next line feed, or to where a message starts, if
that comes first. A known name after a brace shows that, as within a message hardly any object begins with
the name of a message. So the flaw takes what belongs to it, and the next message is whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from kiebitz.dissectors.grammar.framing import (
    FRAME_LIMIT,
    GOES_ON,
    MAX_SHORT,
    SHORT,
    Frame,
    StructuredFramer,
)
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocols.catan.grammar import ATTRIBUTE_NAMES, MESSAGE_NAMES
from kiebitz.dissectors.protocols.catan.scanner import DEPTH_LIMIT, Scanner


def _written(names: Iterable[str]) -> frozenset[bytes]:
    """How names stand on the wire, as they are and with the escapes that most programs write."""
    return frozenset(
        json.dumps(name, ensure_ascii=escaped)[1:-1].encode() for name in names for escaped in (False, True)
    )


_MESSAGES = _written(MESSAGE_NAMES)
_ATTRIBUTES = _written(ATTRIBUTE_NAMES)
_ONLY_MESSAGES = _MESSAGES - _ATTRIBUTES
_MAX_NAME_LENGTH = max(map(len, _MESSAGES))

_MAX_BLANKS = 32
"""With more blanks in a row a brace, a name and a colon are no message start: to tell one from something else
takes a bounded number of bytes."""
_MAX_START_LENGTH = 2 * _MAX_BLANKS + _MAX_NAME_LENGTH + 4
_STRETCH = 256
"""So many bytes are looked at for a message start at a time: more than the longest has, few for an object."""

_SOME_BLANKS = rb"[ \t\r\n]{0,%d}" % _MAX_BLANKS
_A_NAME = rb'"(%s)"' % b"|".join(re.escape(name) for name in sorted(_MESSAGES))
_START = re.compile(rb"\{%s%s%s:" % (_SOME_BLANKS, _A_NAME, _SOME_BLANKS))
_START_OR_LINE_END = re.compile(rb"\n|%s" % _START.pattern)
_START_BEGUN = re.compile(
    rb'\{%s(?:"[^"{\n]{0,%d}|%s%s)?\Z' % (_SOME_BLANKS, _MAX_NAME_LENGTH, _A_NAME, _SOME_BLANKS)
)
"""What the following bytes may make a message start."""

_OBJECT = msgspec.json.Decoder(msgspec.Raw)
_FIRST_NAMES = re.compile(rb'\{[ \t\r\n]*+"([^"{]*+)"[ \t\r\n]*+:')
_BLANKS = re.compile(rb"[ \t\r]*+")

_State = Literal["between", "object", "after", "broken", "skipping", "seeking"]
"""Where the next byte stands: between two messages, in an object, in the blanks after one, in what is broken,
in what is too long, or after a gap, where nothing can be told before a place where a message can begin."""


class CatanFramer(StructuredFramer):
    """The objects of one direction; both directions are framed alike."""

    def __init__(self, direction: Direction) -> None:
        super().__init__(direction)
        self._state: _State = "between"
        self._at = 0
        """Up to where `_held` is looked at; the scanner has a place of its own."""
        self._begun = 0
        """Where in `_held` the message begins, the blanks before it being over."""
        self._scanner = Scanner()
        self._line_from: int | None = 0
        """From where on the first line end is looked for, to take the line as a whole; None if it is not."""

    def _whole(self, data: bytes) -> Sequence[int]:
        if self._state != "between":
            return ()
        return _short_ends(data) if len(data) <= SHORT <= FRAME_LIMIT else _ends(data)

    def _overflow(self) -> None:
        self._state = "skipping"
        self._place = self._begun

    def _seek(self) -> None:
        self._state = "seeking"

    def _frame_end(self) -> int:
        """Look at what has come; say where in `_held` the frame ends, if that can be told."""
        held = self._held
        if self._state == "seeking":
            return self._next_beginning()
        if self._state == "skipping":
            return self._next_mark(len(held))
        # No frame is longer: nothing beyond may have a say, as it may come at once or later.
        limit = min(len(held), FRAME_LIMIT)
        if self._line_from is not None and (end := self._whole_line(limit)) != GOES_ON:
            return end
        if self._state == "between":
            at = self._at = self._blanks_end(limit)
            if at == limit:
                return GOES_ON
            if held[at] == ord("\n"):
                return at + 1
            self._begun = at
            self._state = "broken"
            if held[at] == ord("{"):
                self._state = "object"
                self._scanner = Scanner(at, raw_controls=True)
                self._at = at + 1
        if self._state == "object" and (end := self._in_object(limit)) != GOES_ON:
            return end
        if self._state == "after":
            at = self._at = self._blanks_end(limit)
            if at < limit:
                return at + (held[at] == ord("\n"))
        if self._state == "broken":
            return self._next_mark(limit)
        return GOES_ON

    def _whole_line(self, limit: int) -> int:
        """Where the first line ends, if it is a frame: almost always, and soon seen."""
        end = self._held.find(b"\n", self._line_from, limit) + 1
        self._line_from = None if end else limit
        return end if end and _is_frame(bytes(self._held[:end])) else GOES_ON

    def _in_object(self, limit: int) -> int:
        held, scanner = self._held, self._scanner
        while self._at < limit:
            stretch = min(self._at + _STRETCH, limit)
            certain = self._certain(stretch)
            start = _START.search(held, self._at, certain)
            upto = start.start() if start is not None else certain
            scanner.scan(held, upto)
            if scanner.is_complete:
                self._state = "after"
                self._at = scanner.at
                break
            if scanner.is_broken:
                self._state = "broken"
                self._at = upto
                return held.find(b"\n", scanner.at, upto) + 1 or GOES_ON
            if start is None:
                self._at = upto
                if stretch == limit:
                    break
            elif start[1] in _ATTRIBUTES and scanner.expects_value(upto):
                self._at = upto + 1
            else:
                return upto
        return GOES_ON

    def _next_mark(self, limit: int) -> int:
        """Where what is broken or too long ends."""
        certain = self._certain(limit)
        mark = _START_OR_LINE_END.search(self._held, self._at, certain)
        if mark is None:
            self._at = certain
            return GOES_ON
        return mark.start() if mark[1] else mark.end()

    def _next_beginning(self) -> int:
        """Where the first message after a gap begins."""
        held = self._held
        certain = self._certain(len(held))
        line = held.find(b"\n{", self._at) + 1
        for start in _START.finditer(held, self._at, line or certain):
            at = start.start()
            # What is also an attribute is one in the rest of a message, but a gap may end between messages.
            if start[1] not in _ATTRIBUTES or self._dropped + at == 0:
                return at
        self._at = certain - held.endswith(b"\n", 0, certain)
        return line or GOES_ON

    def _certain(self, limit: int) -> int:
        """Up to where the bytes before `limit` tell whether there is a message start."""
        begun = _START_BEGUN.search(self._held, max(self._at, limit - _MAX_START_LENGTH), limit)
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
        """Keep nothing but what may be part of a message start."""
        del self._held[: self._at]
        self._dropped += self._at
        self._at = 0


def _ends(data: bytes) -> tuple[int, ...]:
    """Where the lines end that can be taken as a whole: almost all are so, and it is soon seen."""
    ends = []
    at = 0
    while end := data.find(b"\n", at, at + FRAME_LIMIT) + 1:
        if not _is_frame(data[at:end]):
            break
        ends.append(end)
        at = end
    return tuple(ends)


_short_ends = lru_cache(MAX_SHORT)(_ends)


def _is_frame(line: bytes) -> bool:
    """Whether a line is a valid object, and no message starts in it.

    Then the scanner would come to its end, too: what only the scanner takes exception to is deep nesting.
    """
    if not line.startswith(b"{"):
        return False
    try:
        _OBJECT.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return False
    names = _FIRST_NAMES.findall(line, 1)
    if not _ONLY_MESSAGES.isdisjoint(names):
        return False
    return line.count(b"{") + line.count(b"[") <= DEPTH_LIMIT or _MESSAGES.isdisjoint(names)
