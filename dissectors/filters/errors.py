"""The error of a filter: its message and position, and the caret line under the filter's text."""

from __future__ import annotations

from kiebitz.dissectors.caret_line import with_carets
from kiebitz.dissectors.errors import KiebitzError


class FilterError(KiebitzError, ValueError):
    """A filter that cannot be understood.

    `message` says what is wrong and `hint` what was perhaps meant (None where nothing is near). `text` is the
    whole filter; `position` and `length` count its characters. `unknown` is the name that nothing is called
    by, if that is what is wrong.
    """

    is_usage = True

    def __init__(
        self,
        message: str,
        text: str,
        position: int,
        length: int = 1,
        hint: str | None = None,
        unknown: tuple[str | int, ...] = (),
    ) -> None:
        super().__init__(message if hint is None else f"{message}; {hint}")
        self.message = message
        self.text = text
        self.position = position
        self.length = max(length, 1)
        self.hint = hint
        self.unknown = unknown

    def excerpt(self) -> list[str]:
        """Two lines for below the message: the filter, and carets under the wrong part."""
        return with_carets(self.text, self.position, self.length)
