"""Throttled messages to the user."""

from __future__ import annotations

import time
from collections.abc import Callable

from kiebitz.dissectors.grammar.grammar import shortened

PERIOD_S = 5.0
"""Length of a throttling period in seconds."""

_MAX_LINE_CHARS = 300
"""Maximum number of characters shown of a line that a hook prints."""

_MAX_LINES = 20
"""Maximum number of a hook's lines per period."""


class Throttle:
    """Passes on `most` sentences per period; of further ones only the last, with their number.

    `others` describes the suppressed ones.
    """

    def __init__(self, tell: Callable[[str], None], most: int = 1, others: str = "more like it") -> None:
        self._notify = tell
        self._most = most
        self._others = others
        self._since: float | None = None
        self._told = 0
        self._missed = 0
        self._last = ""

    def __call__(self, sentence: str) -> None:
        now = time.monotonic()
        if self._since is None or now - self._since >= PERIOD_S:
            self.settle()
            self._since, self._told = now, 0
        if self._told < self._most:
            self._told += 1
            self._notify(sentence)
        else:
            self._missed += 1
            self._last = sentence

    def settle(self) -> None:
        """Report the suppressed sentences."""
        if self._missed:
            more = f" (and {self._missed - 1:,} {self._others})" if self._missed > 1 else ""
            self._notify(f"{self._last}{more}")
            self._missed = 0


class OutputReporter:
    """Reports the lines that a hook prints."""

    def __init__(self, path: str, tell: Callable[[str], None]) -> None:
        self._path = path
        self._notify = Throttle(tell, _MAX_LINES, "lines before it")
        self._rest = b""
        self._is_cut = False

    def feed(self, data: bytes) -> None:
        """Report the lines completed by these bytes."""
        *lines, rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._line(line)
        self._rest = rest
        if len(rest) > 4 * _MAX_LINE_CHARS:
            # A character has at most four bytes; the rest of the line is not shown.
            self._line(rest)
            self._rest, self._is_cut = b"", True

    def settle(self) -> None:
        """Report the rest at the end of the output."""
        if self._rest:
            self._line(self._rest)
            self._rest = b""
        self._notify.settle()

    def _line(self, line: bytes) -> None:
        if self._is_cut:
            self._is_cut = False
            return
        text = line[: 4 * _MAX_LINE_CHARS].decode(errors="replace").rstrip("\r")
        if text:
            self._notify(f"{self._path} says: {shortened(text, _MAX_LINE_CHARS)}")
