"""What is wrong with a filter, and where: the sentence, and the caret line under the filter's text."""

from __future__ import annotations

import unicodedata

from kiebitz.dissectors.errors import KiebitzError

_WINDOW = 100
"""Columns of a long filter that `render` shows; a wrapped line would tear the caret off its place."""


class FilterError(KiebitzError, ValueError):
    """A filter that cannot be understood.

    `message` says what is wrong and `hint` what was perhaps meant (None where nothing is near). `text` is the
    whole filter; `position` and `length` count its characters. `unknown` is the name that nothing is called
    by, if that is what is wrong.
    """

    is_usage = True

    def __init__(
        self,
        message: str,
        text: str,
        position: int,
        length: int = 1,
        hint: str | None = None,
        unknown: tuple[str | int, ...] = (),
    ) -> None:
        super().__init__(message if hint is None else f"{message}; {hint}")
        self.message = message
        self.text = text
        self.position = position
        self.length = max(length, 1)
        self.hint = hint
        self.unknown = unknown

    def excerpt(self) -> list[str]:
        """Two lines to stand below the sentence: the filter, and carets under the place that is wrong."""
        start = max(0, self.position - _WINDOW // 2)
        end = start + _WINDOW
        before = ("…" if start else "") + _printable(self.text[start : self.position])
        marked = _printable(self.text[self.position : min(self.position + self.length, end)])
        after = _printable(self.text[self.position + len(marked) : end]) + (
            "…" if end < len(self.text) else ""
        )
        carets = " " * _columns(before) + "^" * max(_columns(marked), 1)
        return [f"  {before}{marked}{after}", f"  {carets}"]


def _printable(text: str) -> str:
    """One line without control characters, as long as before."""
    return "".join(c if c.isprintable() else " " for c in text)


def _columns(text: str) -> int:
    """The width of a text on a terminal."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )
