"""Okey's framer: lines, ended by CR, LF or both.

Servers end theirs with CRLF and take from clients what comes. A CR at the end of what has come may be half a
CRLF, so its line waits for one more byte, unless the server answers first: it takes the line at its CR. A LF
that comes after that stands before the next line.
After a gap a line begins where a known command stands right behind it, else with the next line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kiebitz.dissectors.framing import FRAME_LIMIT, ByteFramer, Frame
from kiebitz.dissectors.okey.grammar import GRAMMAR
from kiebitz.dissectors.records import DIRECTIONS, Direction

_LINE_END = re.compile(rb"\r\n|\n|\r(?!\Z)")

_BEGINNING = {
    direction: re.compile(
        rb"(?:%s)[ \r\n]" % b"|".join(re.escape(name.encode()) for name in GRAMMAR.names(direction))
    )
    for direction in DIRECTIONS
}
_LONGEST_BEGINNING = 6
"""A plus sign, four letters, and what comes after them."""


class OkeyFramer(ByteFramer):
    """The lines of one direction."""

    def __init__(self, direction: Direction) -> None:
        super().__init__()
        self._direction = direction
        self._searched = 0
        """So many bytes of `_held` have no line end in them."""
        self._seeking = False
        """Whether bytes are missing before these, and nothing has shown yet that a line begins here."""
        self._after_cr = False
        """Whether a LF that comes next belongs to a line end whose line is over already."""

    def feed(self, offset: int, data: bytes) -> Sequence[Frame]:
        held = self._held
        if not held and not self._dropped:
            self._start = offset
            if self._after_cr and data:
                self._after_cr = False
                self._searched = int(data[:1] == b"\n")
        held += data
        frames: list[Frame] = []
        if self._seeking and (len(held) >= _LONGEST_BEGINNING or _LINE_END.search(held) is not None):
            # What is lost are segments, as a rule, and those end with a line.
            self._seeking = False
            if _BEGINNING[self._direction].match(held):
                self._cut = None
        while (end := _LINE_END.search(held, self._searched)) is not None:
            self._end_line(end.end(), frames)
        self._searched = max(self._searched, len(held) - 1)
        if self._dropped + len(held) > FRAME_LIMIT:
            self._drop()
        return frames

    def settle(self) -> Sequence[Frame]:
        frames: list[Frame] = []
        if self._direction == "c2s" and self._held[-1:] == b"\r":
            self._end_line(len(self._held), frames)
            self._after_cr = True
        return frames

    def eof(self) -> Sequence[Frame]:
        # Nothing more comes: a CR was the whole line end.
        frames: list[Frame] = []
        if self._held[-1:] == b"\r":
            self._end_line(len(self._held), frames)
        return [*frames, *super().eof()]

    def _seek(self) -> None:
        self._searched = 0
        self._after_cr = False
        self._seeking = True

    def _end_line(self, upto: int, frames: list[Frame]) -> None:
        if self._dropped + upto > FRAME_LIMIT:
            self._cut = self._cut or "limit"
        self._release(upto, frames)
        self._searched = 0

    def _drop(self) -> None:
        """Keep nothing but what may be half a line end."""
        self._cut = self._cut or "limit"
        rest = b"\r" if self._held[-1:] == b"\r" else b""
        self._dropped += len(self._held) - len(rest)
        self._held[:] = rest
        self._searched = 0
