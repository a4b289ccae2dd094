"""Decoding of text that should be UTF-8, but is Windows-1252 if an older program wrote it."""

from __future__ import annotations

from kiebitz.dissectors.grammar.grammar import Violation


def read_text(data: bytes) -> tuple[str, UnicodeDecodeError | None]:
    """Return the decoded text, and the error if it is not UTF-8; it is then decoded as Windows-1252.

    In that case the text has one character for each byte.
    """
    try:
        return data.decode(), None
    except UnicodeDecodeError as error:
        return data.decode("cp1252", "replace"), error


def windows_note(error: UnicodeDecodeError, offset: int, expected: str, clause: str | None) -> Violation:
    """Return the note that bytes were read as Windows-1252, reported once per sender.

    `offset` is the position in the frame of the bytes that could not be decoded as UTF-8.
    """
    wrong = error.object[error.start : error.end]
    text = f"{wrong.hex(' ')} is not UTF-8; read as Windows-1252"
    place = offset + error.start, len(wrong)
    return Violation("note", "malformed", "charset", text, *place, expected, clause, habit=True)
