"""The base class of all errors that are reported to the user, in all rooms."""

from __future__ import annotations

from typing import ClassVar


class KiebitzError(Exception):
    """An expected failure. The text is a sentence for the user: what, where, and what to do."""

    is_usage: ClassVar[bool] = False
    """True if the error is in the command's arguments rather than in the data."""

    def excerpt(self) -> list[str]:
        """Return lines to print below the sentence."""
        return []
