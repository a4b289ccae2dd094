"""Mistakes in protocol files, with their location."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kiebitz.dissectors.caret_line import with_carets
from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.protocol_file.reading.positions import Place


class Mistake(msgspec.Struct, frozen=True):
    """A mistake in a file, or something that is probably one."""

    message: str
    place: Place

    def text(self, name: str) -> str:
        """Return `NAME:LINE:COLUMN: message`."""
        return f"{name}:{self.place.number}:{self.place.position + 1}: {self.message}"

    def excerpt(self) -> list[str]:
        """Return the line with carets under the mistake."""
        return with_carets(self.place.line, self.place.position, self.place.length)


class ProtocolFileError(KiebitzError):
    """A protocol file is invalid; the attributes describe its first mistake.

    Attributes:
        message: A sentence without the location.
        name: The file.
        line: Number of the line, from 1.
        column: Number of the column in characters, from 1.
        length: Number of wrong characters.
        all: All mistakes of the file.
    """

    is_usage = True

    def __init__(self, name: str, mistakes: Sequence[Mistake]) -> None:
        first = mistakes[0]
        self.message = first.message
        self.name = name
        self.line = first.place.number
        self.column = first.place.position + 1
        self.length = first.place.length
        self.all = tuple(mistakes)
        super().__init__(first.text(name))

    def excerpt(self) -> list[str]:
        """Return the first line with carets, and the number of further mistakes."""
        more = len(self.all) - 1
        further = [f"{more} more mistake{'s' if more > 1 else ''}: kiebitz protocols --check {self.name}"]
        return [*self.all[0].excerpt(), *(further if more else [])]
