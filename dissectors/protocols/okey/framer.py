"""Okey's framer: lines, ended by CR, LF or both.

Servers end their lines with CRLF, and accept other line ends. A CR at the end of the received bytes may be
half a CRLF, so its line waits for one more byte, unless the server answers first. A LF that arrives after
that precedes the next line. After a gap, a line begins where a known command follows immediately, else after
the next line end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kiebitz.dissectors.grammar.framing import Frame, LineFramer
from kiebitz.dissectors.model import DIRECTIONS, Direction
from kiebitz.dissectors.protocols.okey.grammar import GRAMMAR

_BEGINNING = {
    direction: re.compile(
        rb"(?:%s)[ \r\n]" % b"|".join(re.escape(name.encode()) for name in GRAMMAR.names(direction))
    )
    for direction in DIRECTIONS
}
_MAX_BEGINNING_LENGTH = 6
"""A plus sign, four letters, and the character after them."""


class OkeyFramer(LineFramer):
    """Splits one direction into lines."""

    line_end = re.compile(rb"\r\n|\n|\r(?!\Z)")

    def __init__(self, direction: Direction) -> None:
        super().__init__(direction)
        self._after_cr = False
        """True if a LF that comes next belongs to the end of a finished line."""

    def settle(self) -> Sequence[Frame]:
        frames: list[Frame] = []
        if self._direction == "c2s" and self._held[-1:] == b"\r":
            self._end_line(len(self._held), frames)
            self._after_cr = True
        return frames

    def eof(self) -> Sequence[Frame]:
        # No more bytes follow: the CR was the whole line end.
        frames: list[Frame] = []
        if self._held[-1:] == b"\r":
            self._end_line(len(self._held), frames)
        return [*frames, *super().eof()]

    def _begin(self, offset: int, data: bytes) -> None:
        super()._begin(offset, data)
        if self._after_cr and data:
            self._after_cr = False
            self._searched = int(data[:1] == b"\n")

    def _seek(self) -> None:
        super()._seek()
        self._after_cr = False

    def _resync(self) -> None:
        held = self._held
        if len(held) >= _MAX_BEGINNING_LENGTH or self.line_end.search(held) is not None:
            # Usually whole segments are lost, and those end with a line.
            self._seeking = False
            if _BEGINNING[self._direction].match(held):
                self._cut = None
