"""Duplicate names within the objects of a JSON text, which parsers handle in different ways.

RFC 8259, section 4: the names within an object should be unique; if they are not, many programs use the last
member only, others report an error. Here the last member counts, as in `msgspec.json.decode`, which does not
report duplicates. The codec of a JSON protocol calls `duplicate_key` for each decoded text.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.grammar import Violation
from kiebitz.dissectors.grammar.patching import Place
from kiebitz.dissectors.grammar.quoted_text import JSON_STRING

CLAUSE = "RFC 8259, 4"

_MAX_QUOTED = 40
"""Maximum number of characters of a name in a diagnostic."""

_encode = msgspec.json.Encoder().encode

_LEAST = 2
"""Number of colons below which a text has at most one member."""

ESCAPED_COLON = rb"\u003"
"""The beginning of an escape that may be a colon."""

_TOKEN = re.compile(JSON_STRING + rb"|[{}\[\],]", re.DOTALL)
"""Strings and the marks that decide whether a string is a name; numbers and literals are skipped."""


def duplicate_key(text: bytes, value: Any) -> Violation | None:
    """Return the diagnostic for the first name that an object repeats; None if all names are unique.

    Args:
        text: A valid JSON text, optionally with surrounding whitespace.
        value: The decoded value, which has only the last of several members with the same name.
    """
    colons = text.count(b":")
    # Each member has a colon, so a duplicate member that is missing from the value lowers its count. Colons
    # in
    # strings count in both texts, unless escaped. Equal counts are thus sufficient, and the cheapest check.
    if colons < _LEAST or (ESCAPED_COLON not in text and _colons(value) == colons):
        return None
    found = _first_duplicate(text)
    if found is None:
        return None
    name, place = found
    shown = name if len(name) <= _MAX_QUOTED else f"{name[:_MAX_QUOTED]}…"
    return Violation(
        "warning",
        "malformed",
        "duplicate-key",
        f'"{shown}" occurs twice in this object; the last value counts, but some programs reject the message',
        *place,
        "each name once in an object",
        CLAUSE,
    )


def _colons(value: Any) -> int | None:
    """Return the number of colons in a value's JSON text; None if it is nested too deeply to be written."""
    try:
        return _encode(value).count(b":")
    except RecursionError:
        return None


def _first_duplicate(text: bytes) -> tuple[str, Place] | None:
    """Return the first name that its object already has, and its place including the quotes."""
    around: list[set[str] | None] = []
    """Names of each open object; None for a list."""
    names: set[str] | None = None
    is_name = False
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark == b"{":
            around.append(names)
            names, is_name = set(), True
        elif mark == b"[":
            around.append(names)
            names, is_name = None, False
        elif mark in (b"}", b"]"):
            names, is_name = around.pop(), False
        elif mark == b",":
            is_name = names is not None
        elif is_name:
            assert names is not None
            name = str(json.loads(mark)) if b"\\" in mark else mark[1:-1].decode()
            if name in names:
                return name, (token.start(), len(mark))
            names.add(name)
            is_name = False
    return None
