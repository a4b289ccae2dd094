"""A line of user input, such as a filter, with carets under its faulty part."""

from __future__ import annotations

import unicodedata

_WINDOW = 100
"""Columns of a long line that are shown; a wrapped one would tear the carets off their place."""


def with_carets(text: str, position: int, length: int) -> list[str]:
    """Return a line with the part of `text` around `position`, and a line with carets.

    `length` carets begin at `position`, but at least one. A control character is shown as a blank.
    """
    start = max(0, position - _WINDOW // 2)
    end = start + _WINDOW
    before = ("…" if start else "") + _printable(text[start:position])
    marked = _printable(text[position : min(position + length, end)])
    after = _printable(text[position + len(marked) : end]) + ("…" if end < len(text) else "")
    carets = " " * _columns(before) + "^" * max(_columns(marked), 1)
    return [f"  {before}{marked}{after}", f"  {carets}"]


def _printable(text: str) -> str:
    """Replace control characters by blanks."""
    return "".join(c if c.isprintable() else " " for c in text)


def _columns(text: str) -> int:
    """Return the width of a text on a terminal."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )
