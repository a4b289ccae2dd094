"""What every error that is told to a user derives from, in all rooms: the program has no fault then."""

from __future__ import annotations

from typing import ClassVar


class KiebitzError(Exception):
    """Something cannot be done. The text is a sentence for the user: what, where, and what to do."""

    is_usage: ClassVar[bool] = False
    """Whether it is about what was asked for, rather than about what was found."""

    def excerpt(self) -> list[str]:
        """Lines to stand below the sentence."""
        return []
