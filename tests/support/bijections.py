"""Other names for all that has one: what `renamed` puts in, and what takes it out again."""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.grammar.field_type import IdentifierKind

BEFORE, BEHIND = "Žluťásek ", "-ö"
"""Around a name. ISO-8859-2, Windows-1252 and UTF-8 write the Ž and the ö in different bytes."""


def onwards(handle: IdentifierKind, value: Any) -> Any:
    """Return another name of the same kind; no two have the same."""
    if handle.title == "seat":
        return (value + 1) % 4
    if handle.title == "token":
        return "x" + value
    if handle.title == "url":
        return "other." + value
    return value + 1 if isinstance(value, int) else BEFORE + value + BEHIND


def back(handle: IdentifierKind, value: Any) -> Any:
    """Return the name that `onwards` was given."""
    if handle.title == "seat":
        return (value - 1) % 4
    if handle.title == "token":
        return value.removeprefix("x")
    if handle.title == "url":
        return value.removeprefix("other.")
    return value - 1 if isinstance(value, int) else value.removeprefix(BEFORE).removesuffix(BEHIND)
