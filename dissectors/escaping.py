"""Escaping of received text for display: without control characters, and on one line.

Escaped are unprintable characters (controls, DEL, bidirectional marks, invisible and unassigned characters,
lone surrogates) and excessive combining marks on one letter. So a chat message can neither control a
terminal, nor imitate another line, nor cover its neighbours.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any

_MAX_MARKS = 8
"""Maximum number of combining marks on one letter; no language needs as many."""

_FORMULA_SIGNS = ("=", "+", "-", "@")
"""Characters that begin a formula in a spreadsheet; tabs and line ends are escaped anyway."""

_NO_MARKS = re.compile("[\0-\u02ff\u2000-\u20cf\u2100-\u2cee]*")
"""Texts without combining marks: Latin, punctuation, arrows, frames and other symbols."""

_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def printable(text: str) -> str:
    r"""Return `text` on one line, with escapes as in Python (`\n`, `\x1b`, `\u202e`).

    Backslashes are not escaped, so the function is idempotent; use JSON where that is ambiguous.
    """
    return _shown(text, escaped)


def cell(text: str) -> str:
    """Return the text for a table cell, with an apostrophe in front if a spreadsheet would run it."""
    shown = printable(text)
    return f"'{shown}" if shown.startswith(_FORMULA_SIGNS) else shown


def escaped(character: str) -> str:
    r"""Return one character as an escape, such as `\x1b`."""
    return character.encode("unicode_escape").decode()


def encodable(text: str) -> str:
    r"""Escape lone surrogates (`\udce9`), which UTF-8 cannot encode.

    They come from JSON, and from names of files and arguments in another encoding.
    """
    return text.encode(errors="backslashreplace").decode()


def json_text(value: Any) -> str:
    """Return compact JSON on one line, with unprintable characters escaped."""
    return printable_json(_to_json(value))


def printable_json(text: str) -> str:
    """Return JSON text on one line, with unprintable characters escaped; its value stays the same."""
    return _shown(text, lambda character: json.dumps(character)[1:-1])


def _shown(text: str, escape: Callable[[str], str]) -> str:
    # Fast path: nearly all text is ASCII, or has the frames of a picture.
    if text.isprintable() and (text.isascii() or _NO_MARKS.fullmatch(text)):
        return text
    return "".join(
        escape(character) if hidden else character for character, hidden in classify_characters(text)
    )


def classify_characters(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each character of a text, and whether it must be escaped."""
    marks = 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        yield character, marks > _MAX_MARKS or not character.isprintable()


def field_words(fields: Mapping[str, Any]) -> str:
    """Return a message's fields as `dice=5,3 players=alice,bob`."""
    return " ".join(f"{printable(name)}={value_words(value)}" for name, value in fields.items())


def value_words(value: Any) -> str:
    """Return a field's value: text (quoted where its end would be unclear), comma-separated, or JSON."""
    if isinstance(value, str):
        text = printable(value)
        return text if text and " " not in text and '"' not in text else f'"{text}"'
    if isinstance(value, list) and not any(isinstance(part, list | dict) for part in value):
        return ",".join(map(value_words, value))
    return json_text(value)
