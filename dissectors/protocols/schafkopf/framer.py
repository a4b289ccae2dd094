"""Schafkopf's framer, which finds the ends of Pakete.

A Paket ends with `!END`, a MODEL after 28 lines. Much of the code handles invalid traffic: a Paket without
its end extends to the next line that is a known flag. Others are ignored, as a player may have the name
`!DRAN`. So an invalid Paket contains all lines of its violation, and the next one is complete.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from kiebitz.dissectors.grammar.framing import FRAME_LIMIT, ByteFramer, Frame
from kiebitz.dissectors.model import DIRECTIONS, Direction
from kiebitz.dissectors.protocols.schafkopf.cards import FARBEN, WERTE
from kiebitz.dissectors.protocols.schafkopf.grammar import (
    EMPTY_SPELLINGS,
    GRAMMAR,
    MODEL_FLAG,
    MODEL_LINES,
    text_lines,
)

_END = b"!END"
_ENDE = b"!ENDE"
_MODEL = b"!MODEL"
_MAX_MARK_LENGTH = 16
"""Longer than any flag and its line end: longer lines are no flags."""
_LONG_LINE = b"\0"
"""Represents such a line."""

_FLAGS = {
    direction: frozenset(f"!{name}".encode() for name in GRAMMAR.names(direction)) for direction in DIRECTIONS
}
_TEXT_LINES = {f"!{row.name}".encode(): text_lines(row) for row in GRAMMAR.rows}
_MODEL_FLAGS = frozenset(word.encode() for word in MODEL_FLAG.words)
_EMPTY = frozenset(EMPTY_SPELLINGS)
_FARBEN = frozenset(farbe.encode() for farbe in FARBEN)
_WERTE = frozenset(wert.encode() for wert in WERTE)
_FITTING = (_WERTE | _EMPTY, _FARBEN | _EMPTY)
"""Valid lines of a MODEL with an even and with an odd number; its flag is line 0."""

_WHOLE_MODEL = re.compile(
    rb"!MODEL\r?\n(?:%s)\r?\n(?:(?:%s)\r?\n(?:%s)\r?\n){%d}"
    % (b"|".join(_MODEL_FLAGS), b"|".join(_FITTING[1]), b"|".join(_FITTING[0]), MODEL_LINES // 2)
)
"""A complete, valid MODEL: the fast path, without a look at each line."""

_State = Literal["between", "paket", "model", "unknown", "seeking"]
"""State before the next line: between two Pakete, in a Paket, in a MODEL, among unknown lines, or after a
gap, searching for the next mark.
"""

_CONTINUES = -1


class SchafkopfFramer(ByteFramer):
    """Splits the lines of one direction into Pakete."""

    def __init__(self, direction: Direction) -> None:
        super().__init__(direction)
        self._flags = _FLAGS[direction]
        self._state: _State = "between"
        self._line = 0
        """Position in `_held` of the incomplete line."""
        self._lines = 0
        """Number of lines received after the flag."""
        self._texts = 0
        """Number of those that may be any text, even a flag."""
        self._doubtful = 0
        """Position in `_held` of a line that may be a flag or not, as the next lines show; 0 for none."""
        self._in_phase = True
        """True if the lines of this MODEL so far can have the right numbers."""

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
        # A short line may still become the next flag, and then this Paket ends before it.
        if self._is_too_long(len(held)) and (self._cut or len(held) - self._line > _MAX_MARK_LENGTH):
            self._drop()
        return frames

    def eof(self) -> Sequence[Frame]:
        if self._is_too_long(len(self._held)):
            self._overflow()
        return super().eof()

    def _is_too_long(self, upto: int) -> bool:
        """Return True if the bytes up to there exceed the maximum length of a Paket."""
        return self._dropped + upto > FRAME_LIMIT

    def _seek(self) -> None:
        self._state = "seeking"

    def _take(self, end: int) -> int:
        """Take the line that ends at `end`; return the end of the Paket in `_held`, if it is complete."""
        if not self._is_too_long(end):
            return self._judge(end)
        if end - self._line > _MAX_MARK_LENGTH:
            self._overflow()
        upto = self._judge(end)
        if upto == _CONTINUES or self._is_too_long(upto):
            self._overflow()
        return upto

    def _judge(self, end: int) -> int:
        """Return the result of `_take`, regardless of the length."""
        start = self._line
        if end - start <= _MAX_MARK_LENGTH:
            line = bytes(self._held[start : end - 1]).removesuffix(b"\r")
        else:
            line = _LONG_LINE
        state = self._state
        if state == "model":
            number = self._lines
            if self._in_phase and 0 < number < MODEL_LINES and line in _FITTING[number & 1]:
                # The case of most lines.
                self._lines = number + 1
                return _CONTINUES
            return self._take_in_model(line, end)
        if state == "paket":
            return self._take_in_paket(line, end)
        if line == _END:
            return end
        if state == "between":
            if not line:
                return end
            if line == _MODEL and (whole := _WHOLE_MODEL.match(self._held)) is not None:
                return whole.end()
            self._begin(line)
        elif line in self._flags:
            return start
        return _CONTINUES

    def _begin(self, line: bytes) -> None:
        self._lines = 0
        if line not in self._flags:
            self._state = "unknown"
        elif line == _MODEL:
            self._state = "model"
            self._in_phase = True
        else:
            self._state = "paket"
            self._texts = _TEXT_LINES[line]
            self._doubtful = 0

    def _take_in_paket(self, line: bytes, end: int) -> int:
        doubtful = self._doubtful
        if line == _END:
            # If there are too few texts, the line among them that looked like a flag was one.
            return doubtful if doubtful and self._lines < self._texts else end
        self._lines += 1
        if self._lines <= self._texts:
            if line in self._flags and not doubtful:
                self._doubtful = self._line
        elif line in self._flags:
            if line != _ENDE or doubtful:
                return self._line
            # It may be a typo of !END: then a flag follows, not an amount.
            self._doubtful = self._line
        elif doubtful:
            return doubtful
        return _CONTINUES

    def _take_in_model(self, line: bytes, end: int) -> int:
        number = self._lines
        self._lines += 1
        if number == 0:
            # SPIELSTDU and ERSTE3 are flags of other Pakete, too: the next line decides.
            fits = line in _MODEL_FLAGS or (line[:1] == b"!" and line != _END and line not in self._flags)
        else:
            fits = line in _FITTING[number % 2]
        if not fits:
            if line == _END:
                return end
            flag_line = len(_MODEL) + (2 if self._held[len(_MODEL)] == ord("\r") else 1)
            if number == 1 and self._flag_at(flag_line):
                return flag_line
            if line in self._flags:
                return self._line
            if b"!" in line:
                # Two lines were joined, and the cards belong to another MODEL: it extends to the next mark.
                self._state = "unknown"
                return _CONTINUES
            # A line may be extra or missing: that is disproved by a Farbe or a Wert at its right place,
            # otherwise the MODEL extends to the next mark.
            self._in_phase = False
        elif line not in _EMPTY and number:
            self._in_phase = True
        return end if number >= MODEL_LINES and number % 2 == 0 and self._in_phase else _CONTINUES

    def _flag_at(self, start: int) -> bool:
        """Return True if the line at `start` is the flag of a Paket."""
        end = self._held.find(b"\n", start)
        return bytes(self._held[start:end]).removesuffix(b"\r") in self._flags

    def _release(self, upto: int, frames: list[Frame]) -> None:
        super()._release(upto, frames)
        self._line = 0
        self._state = "between"

    def _overflow(self) -> None:
        """Mark the Paket as too long, from the current line on."""
        if self._cut is None:
            self._cut = "limit"
            self._place = self._line
            self._state = "unknown"

    def _drop(self) -> None:
        """Drop all bytes but the beginning of the current line."""
        self._overflow()
        # No flag is that long: the beginning of any such line is enough.
        rest = bytes(self._held[self._line : self._line + _MAX_MARK_LENGTH + 1])
        self._dropped += len(self._held) - len(rest)
        self._held[:] = rest
        self._line = 0
