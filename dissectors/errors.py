"""The base class of all errors that are reported to the user, in all rooms, and the report of any other."""

from __future__ import annotations

import os
from typing import ClassVar


class KiebitzError(Exception):
    """An expected failure. The text is a sentence for the user: what, where, and what to do."""

    is_usage: ClassVar[bool] = False
    """True if the error is in the command's arguments rather than in the data."""

    def excerpt(self) -> list[str]:
        """Return lines to print below the sentence."""
        return []


INTERNAL_ERROR = "internal error of Kiebitz"
"""Beginning of the report of an unforeseen error."""


def fault(error: Exception) -> str:
    """Return a sentence about an unforeseen error and its place in the source."""
    # Hardly any command needs it.
    import traceback

    place = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{os.path.basename(os.path.dirname(place.filename))}/{os.path.basename(place.filename)}"
    return f"{INTERNAL_ERROR}: {error!r:.300} in {where}, line {place.lineno}"
