"""What is wrong with the configuration file, and where in it."""

from __future__ import annotations

from typing import NamedTuple

from kiebitz.dissectors.caret_line import with_carets
from kiebitz.dissectors.errors import KiebitzError


class Place(NamedTuple):
    """`length` characters of a line; `number` counts lines from 1, `position` characters from 0."""

    number: int
    line: str
    position: int
    length: int


class ConfigurationError(KiebitzError):
    """The configuration file cannot be read, or something in it is not right."""

    is_usage = True

    def __init__(self, path: str, problem: str, place: Place | None = None) -> None:
        where = path if place is None else f"{path}, line {place.number}"
        super().__init__(f"{where}: {problem}")
        self._place = place

    def excerpt(self) -> list[str]:
        """The line, and carets under the place that is wrong."""
        if self._place is None:
            return []
        _, line, position, length = self._place
        return with_carets(line, position, length)
