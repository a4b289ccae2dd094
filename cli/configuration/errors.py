"""Errors in the configuration file, with their location."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kiebitz.dissectors.caret_line import with_carets
from kiebitz.dissectors.errors import KiebitzError

if TYPE_CHECKING:
    from kiebitz.dissectors.protocol_file.reading.positions import Place


class ConfigurationError(KiebitzError):
    """The configuration file is unreadable or invalid."""

    is_usage = True

    def __init__(self, path: str, problem: str, place: Place | None = None) -> None:
        where = path if place is None else f"{path}, line {place.number}"
        super().__init__(f"{where}: {problem}")
        self._place = place

    def excerpt(self) -> list[str]:
        """Return the line with carets under the error."""
        if self._place is None:
            return []
        _, line, position, length = self._place
        return with_carets(line, position, length)
