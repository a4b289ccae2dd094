"""Text that ought to be UTF-8, and is Windows-1252 where an older program wrote it."""

from __future__ import annotations

from kiebitz.dissectors.grammar.grammar import Violation


def read_text(data: bytes) -> tuple[str, UnicodeDecodeError | None]:
    """The text of some bytes, and why it is no UTF-8: then it has one character for each byte."""
    try:
        return data.decode(), None
    except UnicodeDecodeError as error:
        return data.decode("cp1252", "replace"), error


def windows_note(error: UnicodeDecodeError, offset: int, expected: str, clause: str) -> Violation:
    """That bytes which begin at `offset` of the frame were read as Windows-1252; a habit of their sender."""
    wrong = error.object[error.start : error.end]
    text = f"{wrong.hex(' ')} is no UTF-8; read as Windows-1252"
    place = offset + error.start, len(wrong)
    return Violation("note", "malformed", "charset", text, *place, expected, clause, habit=True)
