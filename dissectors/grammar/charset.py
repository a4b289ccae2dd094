"""Decoding of text that should be UTF-8, but is Windows-1252 if an older program wrote it."""

from __future__ import annotations

from kiebitz.dissectors.grammar.grammar import Violation


def read_text(data: bytes) -> tuple[str, UnicodeDecodeError | None]:
    """Return the decoded text, and the error if it is not UTF-8.

    In that case each line that is not is decoded as Windows-1252, with one character for each byte; others
    may come from other programs.
    """
    try:
        return data.decode(), None
    except UnicodeDecodeError as error:
        return "\n".join(map(_read_line, data.split(b"\n"))), error


def _read_line(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        return line.decode("cp1252", "replace")


def character_sizes(data: bytes) -> list[int]:
    """Return the number of bytes of each character that `read_text` returns."""
    sizes: list[int] = []
    for number, line in enumerate(data.split(b"\n")):
        if number:
            sizes.append(1)
        text = _read_line(line)
        sizes += [1] * len(line) if len(text) == len(line) else [len(each.encode()) for each in text]
    return sizes


def windows_note(error: UnicodeDecodeError, offset: int, expected: str, clause: str | None) -> Violation:
    """Return the note that bytes were read as Windows-1252, reported once per sender.

    `offset` is the position in the frame of the bytes that could not be decoded as UTF-8.
    """
    wrong = error.object[error.start : error.end]
    text = f"{wrong.hex(' ')} is not UTF-8; read as Windows-1252"
    place = offset + error.start, len(wrong)
    return Violation("note", "malformed", "charset", text, *place, expected, clause, habit=True)
