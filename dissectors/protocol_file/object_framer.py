"""The framer for JSON objects one after another, with or without white space between them.

White space before an object belongs to its frame, so that an object is complete with its last bracket. A
broken object extends to where the next one begins: at a bracket that cannot continue it, or after a line end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from kiebitz.dissectors.grammar.framing import FRAME_LIMIT, INCOMPLETE, Frame, StructuredFramer
from kiebitz.dissectors.grammar.quoted_text import quoted_text
from kiebitz.dissectors.model import Direction

_OUTSIDE = re.compile(rb'[^"{}\[\]]*+')
_TEXT = quoted_text(r'"\n').encode()
_INSIDE = re.compile(_TEXT)
_BLANKS = re.compile(rb"[ \t\r\n]*+")
_LINE_END_OR_OBJECT = re.compile(rb"[\n{]")
_CLOSING = {ord("{"): ord("}"), ord("["): ord("]")}
_TOKEN = re.compile(b'"%b"' % _TEXT + rb"|[{}\[\]]")
_OBJECT = msgspec.json.Decoder(msgspec.Raw)

_State = Literal["between", "outside", "string", "broken"]
"""Position of the next byte: between two objects, within one, in one of its strings, or in bytes that are not
part of an object."""


class ObjectFramer(StructuredFramer):
    """The framer for one direction."""

    def __init__(self, direction: Direction) -> None:
        super().__init__(direction)
        self._state: _State = "between"
        self._at = 0
        """Offset in `_held` of the next byte to examine."""
        self._begun = 0
        self._open = bytearray()
        """The closing brackets of the open objects and lists."""
        self._last = 0
        """The last byte before `_at` that is not white space."""
        self._is_no_object = False
        """True if the frame does not begin with an object."""

    @property
    def is_unfinished(self) -> bool:
        # White space after the last object is not the beginning of another.
        return bool(self._dropped or self._held.strip())

    def _whole(self, data: bytes) -> Sequence[int]:
        if self._state != "between" or self._cut is not None:
            return ()
        if len(data) <= FRAME_LIMIT and data.endswith(b"}") and _is_object(data):
            return (len(data),)
        ends: list[int] = []
        at = depth = 0
        for token in _TOKEN.finditer(data):
            byte = data[token.start()]
            if byte in b"{[":
                depth += 1
            elif byte in b"}]":
                depth -= 1
                if depth == 0:
                    end = token.end()
                    if end - at > FRAME_LIMIT or not _is_object(data[at:end]):
                        break
                    ends.append(end)
                    at = end
                elif depth < 0:
                    break
        return ends

    def _overflow(self) -> None:
        self._state = "broken"
        self._is_no_object = False
        self._place = self._begun
        self._at = FRAME_LIMIT
        self._last = 0

    def _seek(self) -> None:
        self._state = "broken"

    def _frame_end(self) -> int:
        """Process new data; return the offset in `_held` of the frame's end, if known."""
        held = self._held
        # Bytes beyond the limit are ignored, as they may arrive now or later.
        limit = len(held) if self._cut is not None else min(len(held), FRAME_LIMIT)
        if self._state == "between":
            self._begun = self._at = _end(_BLANKS, held, self._at, limit)
            if self._at == limit:
                return INCOMPLETE
            self._is_no_object = held[self._at] != ord("{")
            self._state = "broken" if self._is_no_object else "outside"
        while self._at < limit and self._state != "broken":
            end = self._in_string(limit) if self._state == "string" else self._outside(limit)
            if end != INCOMPLETE:
                return end
            if self._state == "string" and self._at + 1 == limit and held[self._at] in b"\n\\":
                # The next byte decides.
                return INCOMPLETE
        return self._next_beginning(limit) if self._state == "broken" else INCOMPLETE

    def _in_string(self, limit: int) -> int:
        held = self._held
        self._at = at = _end(_INSIDE, held, self._at, limit)
        if at == limit:
            return INCOMPLETE
        if held[at] == ord('"'):
            self._at += 1
            self._last = ord('"')
            self._state = "outside"
        elif held[at] == ord("\n"):
            # A string has no line ends: this one probably has no end.
            if at + 1 < limit:
                self._at += 1
                return at + 1 if held[at + 1] == ord("{") else INCOMPLETE
        elif at + 1 < limit:
            # A backslash before a line end.
            self._at += 1
        return INCOMPLETE

    def _outside(self, limit: int) -> int:
        held = self._held
        at = _end(_OUTSIDE, held, self._at, limit)
        passed = held[self._at : at].rstrip()
        if passed:
            self._last = passed[-1]
        self._at = at
        if at == limit:
            return INCOMPLETE
        byte = held[at]
        if byte == ord("{") and self._open and self._last not in b":,[":
            return at
        self._at += 1
        self._last = byte
        if byte == ord('"'):
            self._state = "string"
        elif byte in _CLOSING:
            self._open.append(_CLOSING[byte])
        elif self._open[-1:] == bytes([byte]):
            self._open.pop()
            if not self._open:
                return self._at
        else:
            self._state = "broken"
        return INCOMPLETE

    def _next_beginning(self, limit: int) -> int:
        """Return the offset after a line end, or of an object after the end of another.

        Bytes that are no object at all end before any object.
        """
        held = self._held
        while (mark := _LINE_END_OR_OBJECT.search(held, self._at, limit)) is not None:
            passed = held[self._at : mark.start()].rstrip()
            if passed:
                self._last = passed[-1]
            if mark[0] == b"\n":
                return mark.end()
            is_first = self._cut == "gap" and not self._last
            if self._is_no_object or is_first or self._last == ord("}"):
                return mark.start()
            self._at = mark.end()
            self._last = ord("{")
        passed = held[self._at : limit].rstrip()
        if passed:
            self._last = passed[-1]
        self._at = limit
        return INCOMPLETE

    def _release(self, upto: int, frames: list[Frame]) -> None:
        super()._release(upto, frames)
        self._at = self._begun = self._last = 0
        self._open.clear()
        self._is_no_object = False
        self._state = "between"

    def _drop(self) -> None:
        del self._held[: self._at]
        self._dropped += self._at
        self._at = 0


def _is_object(data: bytes) -> bool:
    """Return True if the data is one valid object, so that its brackets are balanced."""
    try:
        _OBJECT.decode(data)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return False
    return data.lstrip(b" \t\r\n").startswith(b"{")


def _end(pattern: re.Pattern[bytes], data: bytearray, at: int, end: int) -> int:
    """Return the end of a match at `at` of a pattern that also matches the empty string."""
    match = pattern.match(data, at, end)
    assert match is not None
    return match.end()
