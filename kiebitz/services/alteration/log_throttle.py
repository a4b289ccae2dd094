"""Sentences that may come thick and fast: each is told at once, but not a thousand in a second."""

from __future__ import annotations

import time
from collections.abc import Callable

from kiebitz.dissectors.grammar.grammar import shortened

EVERY_S = 5.0
"""In so long a time only so many of a kind are told."""

_LONGEST_LINE = 300
"""No line that a hook prints is shown with more characters."""

_LINES = 20
"""So many of its lines are shown in `EVERY_S`."""


class Sparing:
    """Tells `most` sentences in five seconds; of the others it tells the last one, and how many there were.

    `others` says what they are.
    """

    def __init__(self, tell: Callable[[str], None], most: int = 1, others: str = "more like it") -> None:
        self._tell = tell
        self._most = most
        self._others = others
        self._since: float | None = None
        self._told = 0
        self._missed = 0
        self._last = ""

    def __call__(self, sentence: str) -> None:
        now = time.monotonic()
        if self._since is None or now - self._since >= EVERY_S:
            self.settle()
            self._since, self._told = now, 0
        if self._told < self._most:
            self._told += 1
            self._tell(sentence)
        else:
            self._missed += 1
            self._last = sentence

    def settle(self) -> None:
        """Tell of those that were not told."""
        if self._missed:
            more = f" (and {self._missed - 1:,} {self._others})" if self._missed > 1 else ""
            self._tell(f"{self._last}{more}")
            self._missed = 0


class Printed:
    """What a hook prints, as sentences: a line each."""

    def __init__(self, path: str, tell: Callable[[str], None]) -> None:
        self._path = path
        self._tell = Sparing(tell, _LINES, "lines before it")
        self._rest = b""
        self._is_cut = False

    def feed(self, data: bytes) -> None:
        """The next of what it has printed."""
        *lines, rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._line(line)
        self._rest = rest
        if len(rest) > 4 * _LONGEST_LINE:
            # No letter takes more bytes; what follows of the line is not shown.
            self._line(rest)
            self._rest, self._is_cut = b"", True

    def settle(self) -> None:
        """Nothing more comes."""
        if self._rest:
            self._line(self._rest)
            self._rest = b""
        self._tell.settle()

    def _line(self, line: bytes) -> None:
        if self._is_cut:
            self._is_cut = False
            return
        text = line[: 4 * _LONGEST_LINE].decode(errors="replace").rstrip("\r")
        if text:
            self._tell(f"{self._path} says: {shortened(text, _LONGEST_LINE)}")
