"""The error of a filter: its message and position, and the caret line under the filter's text."""

from __future__ import annotations

from kiebitz.dissectors.caret_line import with_carets
from kiebitz.dissectors.errors import KiebitzError


class FilterError(KiebitzError, ValueError):
    """An error in a filter.

    `message` describes it, `hint` may have a suggestion. `text` is the whole filter; `position` and `length`
    count its characters. `unknown` is the name, if the error is an unknown name.
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
        """Return the filter, and carets under its faulty part."""
        return with_carets(self.text, self.position, self.length)
