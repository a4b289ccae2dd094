"""What a peer sent, as text that may be shown: without control characters, and on one line.

Escaped is what is not printable (controls, DEL, bidirectional marks, invisible and unassigned characters,
lone surrogates), and of marks that are piled up on one letter those that no language has: a chat message can
neither drive a terminal nor pass for another line, nor cover those around it.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_MARKS = 8
"""So many marks stand on one letter at the most; no language takes as many."""

_FORMULA_SIGNS = ("=", "+", "-", "@")
"""What a spreadsheet takes for the beginning of a formula; tabs and line ends are escaped anyway."""

_FIRST_MARK = "\u0300"

_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def printable(text: str) -> str:
    r"""One line that shows `text`, with escapes as in Python (`\n`, `\x1b`, `\u202e`).

    A backslash stays as it is, so that this may be done twice; who must tell the two apart takes JSON.
    """
    return _shown(text, escaped)


def cell(text: str) -> str:
    """The text for a table that a spreadsheet may open: behind an apostrophe if that would run it."""
    shown = printable(text)
    return f"'{shown}" if shown.startswith(_FORMULA_SIGNS) else shown


def escaped(character: str) -> str:
    r"""One character as an escape, such as `\x1b`."""
    return character.encode("unicode_escape").decode()


def encodable(text: str) -> str:
    r"""The text as UTF-8 can have it: lone surrogates become escapes such as `\udce9`.

    They come from JSON, and from names of files and arguments in another encoding.
    """
    return text.encode(errors="backslashreplace").decode()


def json_text(value: Any) -> str:
    """Compact JSON on one line, in which all that is not printable is escaped."""
    return printable_json(_to_json(value))


def printable_json(text: str) -> str:
    """JSON text without line breaks, with all escaped that is not printable; its value stays the same."""
    return _shown(text, lambda character: json.dumps(character)[1:-1])


def _shown(text: str, escape: Callable[[str], str]) -> str:
    # Most is ASCII, and that is told at once.
    if text.isprintable() and (text.isascii() or max(text) < _FIRST_MARK):
        return text
    return "".join(escape(character) if hidden else character for character, hidden in judged(text))


def judged(text: str) -> Iterator[tuple[str, bool]]:
    """Each character of a text, and whether it is not to be shown as it is."""
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        yield character, marks > _MARKS or not character.isprintable()


def field_words(fields: Mapping[str, Any]) -> str:
    """A message's fields as `dice=5,3 players=alice,bob`."""
    return " ".join(f"{printable(name)}={value_words(value)}" for name, value in fields.items())


def value_words(value: Any) -> str:
    """A field's value: a text as it is, or in quotation marks where its end would not be seen, else JSON."""
    if isinstance(value, str):
        text = printable(value)
        return text if text and " " not in text and '"' not in text else f'"{text}"'
    if isinstance(value, list) and not any(isinstance(part, list | dict) for part in value):
        return ",".join(map(value_words, value))
    return json_text(value)
