"""A line that somebody has written, such as a filter, with carets under the place that is wrong in it."""

from __future__ import annotations

import unicodedata

_WINDOW = 100
"""Columns of a long line that are shown; a wrapped one would tear the carets off their place."""


def with_carets(text: str, position: int, length: int) -> list[str]:
    """The part of `text` around `position`, and carets under `length` characters from there on, in two lines.

    At least one caret is shown. A control character is shown as a blank.
    """
    start = max(0, position - _WINDOW // 2)
    end = start + _WINDOW
    before = ("…" if start else "") + _printable(text[start:position])
    marked = _printable(text[position : min(position + length, end)])
    after = _printable(text[position + len(marked) : end]) + ("…" if end < len(text) else "")
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
