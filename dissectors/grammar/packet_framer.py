"""The framer of packets of lines: a first line with the message's name, fields, and a last line.

Packets of some names end after a fixed number of lines instead. Much of the code handles invalid traffic: a
packet without its end extends to the next line that begins a known one. Others are ignored, as a text in a
packet may look like the beginning of another. So an invalid packet contains all lines of its violation, and
the next one is complete.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal

import msgspec

from kiebitz.dissectors.grammar.framing import FRAME_LIMIT, ByteFramer, Frame
from kiebitz.dissectors.grammar.grammar import nearest_word
from kiebitz.dissectors.model import Direction

_LONG_LINE = b"\0"
"""Represents a line that is too long for the first or the last one of a packet."""

_State = Literal["between", "ended", "counted", "unknown", "seeking"]
"""State before the next line: between two packets, in one that has an end, in one that is counted, among
unknown lines, or after a gap, searching for the next first or last line.
"""

_CONTINUES = -1


class Counted(msgspec.Struct, frozen=True):
    """The lines of a packet that ends after a fixed number of them.

    Attributes:
        lines: Valid texts of each line after the first one.
        period: Number of lines of the last field's items: one item too many is still a part of the packet.
    """

    lines: tuple[frozenset[bytes], ...]
    period: int = 1

    def texts(self, number: int) -> frozenset[bytes]:
        """Return the valid texts of a line; those after the last one continue the last field."""
        count = len(self.lines)
        if number >= count:
            number = count - self.period + (number - count) % self.period
        return self.lines[number]

    def distinct(self, number: int) -> frozenset[bytes]:
        """Return the texts of a line that are valid in no other kind of line."""
        texts = self.texts(number)
        return texts.difference(*(other for other in self.lines if other != texts))


class PacketForms(msgspec.Struct, frozen=True, dict=True):
    """The forms of the packets of one direction.

    Attributes:
        mark: Beginning of the first line, before the name.
        end: Last line.
        texts: First lines, and the number of lines after each that may be any text.
        counted: First lines of packets without a last line.
    """

    mark: bytes
    end: bytes
    texts: Mapping[bytes, int]
    counted: Mapping[bytes, Counted]

    @cached_property
    def longest(self) -> int:
        """Maximum length of a line that is a first or a last one, or two joined, with its line end."""
        return 2 * max(len(line) for line in (*self.texts, self.end)) + 2

    @cached_property
    def misspelt_ends(self) -> frozenset[bytes]:
        """First lines that may be a typo of the last line."""
        end = (self.end.decode(),)
        return frozenset(line for line in self.texts if nearest_word(line.decode(), end) is not None)

    @cached_property
    def whole(self) -> Mapping[bytes, re.Pattern[bytes]]:
        """Patterns of complete, valid counted packets: the fast path, without a look at each line."""
        return {line: _whole(line, counted) for line, counted in self.counted.items()}


class PacketFramer(ByteFramer):
    """Splits the lines of one direction into packets."""

    def __init__(self, direction: Direction, forms: PacketForms) -> None:
        super().__init__(direction)
        self._forms = forms
        self._end, self._mark, self._texts_of = forms.end, forms.mark, forms.texts
        self._longest = forms.longest
        self._state: _State = "between"
        self._line = 0
        """Position in `_held` of the incomplete line."""
        self._lines = 0
        """Number of lines received after the first one."""
        self._texts = 0
        """Number of those that may be any text, even a first line."""
        self._counted = Counted(())
        self._doubtful = 0
        """Position in `_held` of a line that may be a first one, as the next lines show; 0 for none."""
        self._in_phase = True
        """True if the lines of this counted packet so far can have the right numbers."""

    def feed(self, offset: int, data: bytes) -> Sequence[Frame]:
        held = self._held
        if not held and not self._dropped:
            self._start = offset
        searched = len(held)
        held += data
        frames: list[Frame] = []
        while searched < len(held) and (end := held.find(b"\n", searched) + 1):
            upto = self._take(end)
            if upto == _CONTINUES:
                self._line = searched = end
            else:
                self._release(upto, frames)
                searched = 0
        # A short line may still begin the next packet, and then this one ends before it.
        if self._is_too_long(len(held)) and (self._cut or len(held) - self._line > self._longest):
            self._drop()
        return frames

    def eof(self) -> Sequence[Frame]:
        if self._is_too_long(len(self._held)):
            self._overflow()
        return super().eof()

    def _is_too_long(self, upto: int) -> bool:
        """Return True if the bytes up to there exceed the maximum length of a packet."""
        return self._dropped + upto > FRAME_LIMIT

    def _seek(self) -> None:
        self._state = "seeking"

    def _take(self, end: int) -> int:
        """Take the line that ends at `end`; return the end of the packet in `_held`, if it is complete."""
        if not self._is_too_long(end):
            return self._judge(end)
        if end - self._line > self._longest:
            self._overflow()
        upto = self._judge(end)
        if upto == _CONTINUES or self._is_too_long(upto):
            self._overflow()
        return upto

    def _judge(self, end: int) -> int:
        """Return the result of `_take`, regardless of the length."""
        start, forms = self._line, self._forms
        line = self._line_at(start, end)
        state = self._state
        if state == "counted":
            return self._take_counted(line, end)
        if state == "ended":
            return self._take_ended(line, end)
        if line == self._end:
            return end
        if state == "between":
            if not line:
                return end
            if line in forms.whole and (whole := forms.whole[line].match(self._held)) is not None:
                return whole.end()
            self._begin(line)
        elif line in self._texts_of:
            return start
        return _CONTINUES

    def _line_at(self, start: int, end: int) -> bytes:
        """Return the text of a line without its end."""
        if end - start > self._longest:
            return _LONG_LINE
        return bytes(self._held[start : end - 1]).removesuffix(b"\r")

    def _begin(self, line: bytes) -> None:
        self._lines = 0
        if line not in self._texts_of:
            self._state = "unknown"
        elif line in self._forms.counted:
            self._state = "counted"
            self._counted = self._forms.counted[line]
            self._in_phase = True
        else:
            self._state = "ended"
            self._texts = self._texts_of[line]
            self._doubtful = 0

    def _take_ended(self, line: bytes, end: int) -> int:
        doubtful = self._doubtful
        if line == self._end:
            # If there are too few texts, the line among them that looked like a first line was one.
            return doubtful if doubtful and self._lines < self._texts else end
        self._lines += 1
        if self._lines <= self._texts:
            if line in self._texts_of and not doubtful:
                self._doubtful = self._line
        elif line in self._texts_of:
            if line not in self._forms.misspelt_ends or doubtful:
                return self._line
            # If it is a typo of the last line, another first line follows.
            self._doubtful = self._line
        elif doubtful:
            return doubtful
        return _CONTINUES

    def _take_counted(self, line: bytes, end: int) -> int:
        number = self._lines
        self._lines += 1
        lines = self._counted.lines
        if self._in_phase and number + 1 < len(lines) and line in lines[number]:
            # The case of most lines.
            return _CONTINUES
        if not self._fits(line, number):
            if line == self._end:
                return end
            second = self._held.find(b"\n") + 1
            if number == 1 and self._line_at(second, self._held.find(b"\n", second) + 1) in self._texts_of:
                return second
            if line in self._texts_of:
                return self._line
            if self._mark and self._mark in line:
                # Two lines were joined, and the rest belongs to another packet: it extends to the next
                # first or last line.
                self._state = "unknown"
                return _CONTINUES
            # A line may be extra or missing: that is disproved by a text at its only right place, otherwise
            # the packet extends to the next first or last line.
            self._in_phase = False
        elif not self._in_phase and line in self._counted.distinct(number):
            self._in_phase = True
        excess = self._lines - len(lines)
        is_end = excess >= 0 and excess % self._counted.period == 0 and self._in_phase
        return end if is_end else _CONTINUES

    def _fits(self, line: bytes, number: int) -> bool:
        """Return True if a line of a counted packet fits its number."""
        texts = self._counted.texts(number)
        if line in texts:
            return True
        # A misspelt word with a mark; a first line may also be such a word, as the next line shows.
        is_marked = bool(self._mark) and all(text.startswith(self._mark) for text in texts)
        return is_marked and line.startswith(self._mark) and line != self._end and line not in self._texts_of

    def _release(self, upto: int, frames: list[Frame]) -> None:
        super()._release(upto, frames)
        self._line = 0
        self._state = "between"

    def _overflow(self) -> None:
        """Mark the packet as too long, from the current line on."""
        if self._cut is None:
            self._cut = "limit"
            self._place = self._line
            self._state = "unknown"

    def _drop(self) -> None:
        """Drop all bytes but the beginning of the current line."""
        self._overflow()
        # No first line is that long: the beginning of any such line is enough.
        rest = bytes(self._held[self._line : self._line + self._longest + 1])
        self._dropped += len(self._held) - len(rest)
        self._held[:] = rest
        self._line = 0


def _whole(first: bytes, counted: Counted) -> re.Pattern[bytes]:
    """Return a pattern of a complete, valid packet."""
    lines = (b"(?:%b)" % b"|".join(map(re.escape, sorted(texts))) for texts in counted.lines)
    return re.compile(b"".join(line + rb"\r?\n" for line in (re.escape(first), *lines)))
