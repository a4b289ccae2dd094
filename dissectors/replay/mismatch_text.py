"""Texts that compare a live message with the recorded one in its place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kiebitz.dissectors.grammar.grammar import UNREADABLE, Decoded, shortened, to_json

_MAX_VALUE_LENGTH = 80
"""Maximum length of a quoted value in characters."""

_MAX_FIELDS = 4
"""Maximum number of differing fields to name."""


def quote_message(decoded: Decoded) -> str:
    """Return a message's name and fields, shortened."""
    if decoded.row is None:
        return f"a message that is {UNREADABLE}"
    name = decoded.row.name
    return f"{name} {shortened(decoded.fields_json, _MAX_VALUE_LENGTH)}" if decoded.fields else name


def describe_difference(live: Decoded, recorded: Decoded, expected: Mapping[str, Any]) -> str:
    """Describe how a live message differs from a recorded one.

    `expected` are the recorded message's fields with the live identifiers.
    """
    if live.row is None or live.row is not recorded.row:
        return f"{quote_message(live)}, where the record has {quote_message(recorded)}"
    names = [name for name in {**expected, **live.fields} if expected.get(name) != live.fields.get(name)]
    if not names:
        return f"{quote_message(live)}, where the record has the same, but one of the two is malformed"
    parts = [
        f"{name} {_value(live.fields, name)} for {_value(expected, name)}" for name in names[:_MAX_FIELDS]
    ]
    more = f" and {len(names) - _MAX_FIELDS} more" if len(names) > _MAX_FIELDS else ""
    return f"{live.row.name} with {', '.join(parts)}{more}"


def _value(fields: Mapping[str, Any], name: str) -> str:
    return shortened(to_json(fields[name]), _MAX_VALUE_LENGTH) if name in fields else "nothing"
