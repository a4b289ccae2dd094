"""Suggestions ("did you mean …?"), appended to a diagnostic's text and parsed from it.

Diagnostics are stored as text in columns that other programs read, and that older databases lack. So the
suggestion is part of the text, and only this module knows its form.
"""

from __future__ import annotations

import re

_SUGGESTION = re.compile(r': did you mean (?:"([^"?]+)"|([^"?]+))\?$')
"""A suggestion has neither quotation nor question marks: received text is quoted, and cannot imitate one."""


def did_you_mean(*words: str) -> str:
    """Return a question that suggests these words."""
    return f"did you mean {' or '.join(words)}?"


def with_suggestion(problem: str, meant: str | None) -> str:
    """Append a suggestion, if any, to a problem."""
    return problem if meant is None else f"{problem}: {did_you_mean(meant)}"


def suggestion_in(group: str, text: str) -> str | None:
    """Return the suggestion in the text of a diagnostic of this group, without quotation marks, or None."""
    found = _SUGGESTION.search(text) if group == "malformed" else None
    return (found[1] or found[2]) if found is not None else None
