"""The lines of a Paket: their text, their offsets, and the fields of a row that they hold."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from kiebitz.dissectors.grammar.charset import read_text, windows_note
from kiebitz.dissectors.grammar.field_type import FieldType, Mismatch
from kiebitz.dissectors.grammar.grammar import MessageType, Violation
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocols.schafkopf.grammar import (
    EMPTY,
    EMPTY_SPELLINGS,
    END,
    GRAMMAR,
    TWICE_ENCODED,
    Nonterminal,
    kinds,
    line_count,
    terminals,
)


class FieldLines(NamedTuple):
    """A field for the hot path: its name, its type, and its range of lines after the flag."""

    name: str
    type: Nonterminal
    start: int
    end: int


class RowLines(NamedTuple):
    """A row of the grammar with the lines of its fields; `remarkable` are those that can be unusual."""

    row: MessageType
    fields: tuple[FieldLines, ...]
    remarkable: tuple[FieldLines, ...]


class WrongLines(NamedTuple):
    """A range of lines after the flag, counted from 0, that do not fit a row."""

    first: int
    last: int
    mismatch: Mismatch


@lru_cache(maxsize=256)
def lines_of(row: MessageType) -> RowLines:
    """Return a row with the lines of its fields."""
    fields = []
    at = 0
    for field, kind in zip(row.fields, kinds(row), strict=True):
        fields.append(FieldLines(field.name, kind, at, at + kind.lines))
        at += kind.lines
    remarkable = (field for field in fields if type(field.type.part).remark is not FieldType.remark)
    return RowLines(row, tuple(fields), tuple(remarkable))


@lru_cache(maxsize=256)
def rows_of_length(direction: Direction, name: str, lines: int) -> tuple[RowLines, ...]:
    """Return the rows of a name that have this number of lines."""
    rows = GRAMMAR.rows_named(direction, name)
    return tuple(lines_of(row) for row in rows if line_count(row) == lines)


def read_lines(frame: bytes) -> tuple[list[str], tuple[Violation, ...]]:
    """Return a frame's lines as text, and notes on its charset."""
    habits: tuple[Violation, ...] = ()
    try:
        lines = frame.decode().split("\n")
    except UnicodeDecodeError as error:
        habits = (windows_note(error, 0, "Zeichen = UTF_8", "Zeichen"),)
        # Players' names may have different charsets.
        lines = [read_text(line)[0] for line in frame.split(b"\n")]
    if lines[-1] == "" and len(lines) > 1:
        del lines[-1]
    if b"\r" in frame:
        lines = [line.removesuffix("\r") for line in lines]
    if TWICE_ENCODED in lines:
        habits = (*habits, _encoded_twice(frame, lines))
        lines = [EMPTY if line == TWICE_ENCODED else line for line in lines]
    return lines, habits


def spelled_as_in(frame: bytes, line: bytes, text: str) -> bytes:
    """Encode a text that replaces a line of a Paket, in its sender's style.

    The charset is that of the line, or of the frame if the line is ASCII; § is spelled as in the frame.
    """
    if text == EMPTY:
        lines = {each.removesuffix(b"\r") for each in frame.split(b"\n")}
        shown = next((spelt for spelt in EMPTY_SPELLINGS if spelt in lines), None)
        if shown is not None:
            return shown
    try:
        (frame if line.isascii() else line).decode()
    except UnicodeDecodeError:
        with suppress(UnicodeEncodeError):
            return text.encode("cp1252")
    return text.encode()


def is_line(text: str) -> bool:
    """Return True if a text is a valid line for a value: no line end in it, and not the end of a Paket."""
    return text != END and "\n" not in text and text[-1:] != "\r"


def _encoded_twice(frame: bytes, lines: Sequence[str]) -> Violation:
    offset, length = place_of(frame, lines.index(TWICE_ENCODED))
    return Violation(
        "note",
        "malformed",
        "encoded-twice",
        f"{EMPTY} was encoded as UTF-8 twice",
        offset,
        length,
        f'"{EMPTY}" (c2 a7)',
        "Zeichen",
        habit=True,
    )


def place_of(frame: bytes, first: int, last: int | None = None) -> tuple[int, int]:
    """Return offset and length in bytes of the lines `first` to `last`, the flag being 0.

    Returns the end of the frame if there are no such lines.
    """
    raw = frame.split(b"\n")
    offset = sum(len(line) + 1 for line in raw[:first])
    if offset >= len(frame):
        return len(frame), 0
    wanted = raw[first : (first if last is None else last) + 1]
    return offset, len(b"\n".join(wanted).rstrip(b"\r\n"))


def first_wrong(row: MessageType, body: Sequence[str]) -> WrongLines | None:
    """Return the first line that does not fit a row; missing lines are not wrong."""
    at = 0
    for kind in _parts(row):
        lines = body[at : at + kind.lines]
        if not lines:
            return None
        # If a card's second line is missing, the first can still be wrong.
        read = kind if len(lines) == kind.lines else terminals(row)[at]
        text = "\n".join(lines)
        try:
            read.decode(text)
        except Mismatch as error:
            return WrongLines(
                at + text.count("\n", 0, error.start), at + text.count("\n", 0, error.end), error
            )
        at += kind.lines
    return None


@lru_cache(maxsize=256)
def _parts(row: MessageType) -> tuple[Nonterminal, ...]:
    """Return a row's fields, with repetitions expanded."""
    return tuple(kind.part for kind in kinds(row) for _ in range(kind.lines // kind.part.lines))


def closest_row(rows: Sequence[MessageType], body: Sequence[str]) -> MessageType:
    """Return the row with this flag that was probably meant: with the most lines that fit."""

    def likeness(row: MessageType) -> tuple[int, bool, int, bool, bool]:
        count = line_count(row)
        wrong = first_wrong(row, body)
        right = min(len(body), count) if wrong is None else wrong.first
        whole = wrong is None and len(body) >= count
        # A row without fields has no wrong lines: all are ignored.
        return right, count == 0, -abs(len(body) - count), whole, row.deviation is None

    return max(rows, key=likeness)


def valid_fields(row: MessageType, body: Sequence[str]) -> dict[str, Any]:
    """Return the fields before the first one that does not fit."""
    fields: dict[str, Any] = {}
    for name, kind, start, end in lines_of(row).fields:
        if end > len(body):
            break
        try:
            fields[name] = kind.decode("\n".join(body[start:end]))
        except Mismatch:
            break
    return fields
