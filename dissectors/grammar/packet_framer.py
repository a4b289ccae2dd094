"""The framer of packets of lines: a first line with the message's name, fields, and a last line.

Packets of some names end after a fixed number of lines instead. Much of the code handles invalid traffic: a
packet without its end extends to the next line that begins a known one. Others are ignored, as a text in a
packet may look like the beginning of another. So an invalid packet contains all lines of its violation, and
the next one is complete. An unknown packet extends to the usual last line; if there is none, it is one line.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal

import msgspec

from kiebitz.dissectors.grammar.field_type import FieldType
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

LONGEST_TYPED = 50
"""Maximum length of the line of a type whose lines are checked, such as a number."""


class AnyLine(Container[bytes]):
    """The forms of a line that may be any text."""

    def __contains__(self, line: object) -> bool:
        return True


class TypedLine(Container[bytes]):
    """The forms of a line of a type that is no set of words."""

    def __init__(self, kind: FieldType) -> None:
        self.type = kind

    def __contains__(self, line: object) -> bool:
        return isinstance(line, bytes) and self.type.accepts(line.decode("utf-8", "replace"))


class Counted(msgspec.Struct, frozen=True):
    """The lines of a packet that ends after a fixed number of them.

    Attributes:
        lines: Valid texts of each line after the first one.
        period: Number of lines of the last field's items: one item too many is still a part of the packet.
    """

    lines: tuple[Container[bytes], ...]
    period: int = 1

    def texts(self, number: int) -> Container[bytes]:
        """Return the valid texts of a line; those after the last one continue the last field."""
        count = len(self.lines)
        if number >= count:
            number = count - self.period + (number - count) % self.period
        return self.lines[number]

    def is_distinct(self, line: bytes, number: int) -> bool:
        """Return True if a line is valid in this place, and in no other kind of line."""
        texts = self.texts(number)
        return line in texts and not any(line in other for other in self.lines if other != texts)


class PacketForm(msgspec.Struct, frozen=True):
    """The form of the packets with one first line.

    Attributes:
        end: Last line; empty if they have none.
        texts: Number of lines after the first one that may be any text.
        least: Number of lines that they have at least, if some may be any text.
        counted: Their lines, if they have no last line.
    """

    end: bytes
    texts: int = 0
    least: int = 0
    counted: Counted | None = None


class PacketForms(msgspec.Struct, frozen=True, dict=True):
    """The forms of the packets of one direction.

    Attributes:
        mark: Beginning of each first line, before the name.
        end: The usual last line; empty if there is none.
        forms: Forms by first line.
    """

    mark: bytes
    end: bytes
    forms: Mapping[bytes, PacketForm]

    @cached_property
    def ends(self) -> frozenset[bytes]:
        """All last lines."""
        return frozenset({self.end, *(form.end for form in self.forms.values())} - {b""})

    @cached_property
    def longest(self) -> int:
        """Maximum length of a line that is looked at: a first or a last one, or two joined, or a number."""
        has_types = any(
            isinstance(line, TypedLine)
            for form in self.forms.values()
            for line in (form.counted.lines if form.counted is not None else ())
        )
        lines = (*self.forms, *self.ends, *((bytes(LONGEST_TYPED),) if has_types else ()))
        return 2 * max(map(len, lines), default=0) + 2

    @cached_property
    def misspelt_ends(self) -> Mapping[bytes, frozenset[bytes]]:
        """First lines that may be a typo of a last line, for each of these."""

        def alike(end: bytes) -> Iterator[bytes]:
            words = (end.decode(),)
            return (line for line in self.forms if nearest_word(line.decode(), words) is not None)

        return {end: frozenset(alike(end)) for end in self.ends}

    @cached_property
    def whole(self) -> Mapping[bytes, re.Pattern[bytes]]:
        """Patterns of complete, valid counted packets: the fast path, without a look at each line."""
        found = {
            line: _whole(line, form.counted) for line, form in self.forms.items() if form.counted is not None
        }
        return {line: pattern for line, pattern in found.items() if pattern is not None}


class PacketFramer(ByteFramer):
    """Splits the lines of one direction into packets."""

    def __init__(self, direction: Direction, forms: PacketForms) -> None:
        super().__init__(direction)
        self._forms = forms
        self._mark, self._firsts, self._ends = forms.mark, forms.forms, forms.ends
        self._longest = forms.longest
        self._form = PacketForm(b"")
        self._state: _State = "between"
        self._line = 0
        """Position in `_held` of the incomplete line."""
        self._lines = 0
        """Number of lines received after the first one."""
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
        if self._dropped + end <= FRAME_LIMIT:
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
        line = bytes(self._held[start : end - 1]) if end - start <= self._longest else _LONG_LINE
        if line.endswith(b"\r"):
            line = line[:-1]
        state = self._state
        if state == "counted":
            number, lines = self._lines, self._counted.lines
            if self._in_phase and number + 1 < len(lines) and line in lines[number]:
                # The case of most lines.
                self._lines = number + 1
                return _CONTINUES
            return self._take_counted(line, end)
        if state == "ended":
            return self._take_ended(line, end)
        if line in self._ends:
            return end
        if state == "between":
            if not line:
                return end
            if line in forms.whole and (whole := forms.whole[line].match(self._held)) is not None:
                return whole.end()
            return self._begin(line, end)
        return start if line in self._firsts else _CONTINUES

    def _line_at(self, start: int, end: int) -> bytes:
        """Return the text of a line without its end."""
        if end - start > self._longest:
            return _LONG_LINE
        return bytes(self._held[start : end - 1]).removesuffix(b"\r")

    def _begin(self, line: bytes, end: int) -> int:
        """Take the first line of a packet."""
        self._lines = 0
        form = self._firsts.get(line)
        if form is None:
            self._state = "unknown"
            return _CONTINUES if self._forms.end else end
        self._form = form
        if form.counted is None:
            self._state = "ended"
            self._doubtful = 0
        else:
            self._state = "counted"
            self._counted = form.counted
            self._in_phase = True
            if not form.counted.lines:
                return end
        return _CONTINUES

    def _take_ended(self, line: bytes, end: int) -> int:
        doubtful, form = self._doubtful, self._form
        if line == form.end:
            # If there are too few texts, the line among them that looked like a first line was one.
            return doubtful if doubtful and self._lines < form.least else end
        self._lines += 1
        if self._lines <= form.texts:
            if line in self._firsts and not doubtful:
                self._doubtful = self._line
        elif line in self._firsts:
            if line not in self._forms.misspelt_ends[form.end] or doubtful:
                return self._line
            # If it is a typo of the last line, another first line follows.
            self._doubtful = self._line
        elif doubtful:
            return doubtful
        return _CONTINUES

    def _take_counted(self, line: bytes, end: int) -> int:
        number = self._lines
        self._lines += 1
        if not self._fits(line, number):
            if line in self._ends:
                return end
            second = self._held.find(b"\n") + 1
            if number == 1 and self._line_at(second, self._held.find(b"\n", second) + 1) in self._firsts:
                return second
            if line in self._firsts:
                return self._line
            if self._mark and self._mark in line:
                # Two lines were joined, and the rest belongs to another packet: it extends to the next
                # first or last line.
                self._state = "unknown"
                return _CONTINUES
            # A line may be extra or missing: that is disproved by a text at its only right place, otherwise
            # the packet extends to the next first or last line.
            self._in_phase = False
        elif not self._in_phase and self._counted.is_distinct(line, number):
            self._in_phase = True
        excess = self._lines - len(self._counted.lines)
        is_end = excess >= 0 and excess % self._counted.period == 0 and self._in_phase
        return end if is_end else _CONTINUES

    def _fits(self, line: bytes, number: int) -> bool:
        """Return True if a line of a counted packet fits its number."""
        texts = self._counted.texts(number)
        if line in texts:
            return True
        # A misspelt word with a mark; a first line may also be such a word, as the next line shows.
        if not (self._mark and isinstance(texts, frozenset) and line.startswith(self._mark)):
            return False
        is_marked = all(text.startswith(self._mark) for text in texts)
        return is_marked and line not in self._ends and line not in self._firsts

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


def _whole(first: bytes, counted: Counted) -> re.Pattern[bytes] | None:
    """Return a pattern of a complete, valid packet; None if lines have other types than words."""
    if any(isinstance(texts, TypedLine) for texts in counted.lines):
        return None
    lines = [
        b"(?:%b)\\r?\\n" % b"|".join(map(re.escape, sorted(texts)))
        if isinstance(texts, frozenset)
        else rb"[^\n]*?\r?\n"
        for texts in counted.lines
    ]
    # Repeated items are one group, as reading the pattern takes longer than many packets.
    period, repeated = counted.period, 0
    items = lines[len(lines) - period :]
    while lines and lines[len(lines) - period :] == items:
        del lines[len(lines) - period :]
        repeated += 1
    more = b"(?:%b){%d}" % (b"".join(items), repeated)
    return re.compile(b"".join([re.escape(first), rb"\r?\n", *lines, more]))
