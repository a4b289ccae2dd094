"""A Paket's lines: their text, where each stands in its bytes, and which of a row's fields stand on which."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from kiebitz.dissectors.grammar.charset import read_text, windows_note
from kiebitz.dissectors.grammar.field_type import FieldType, Mismatch
from kiebitz.dissectors.grammar.grammar import Flaw, MessageType
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
    """A field as the hot path wants it: its name, its type, and which lines behind the flag it takes."""

    name: str
    type: Nonterminal
    start: int
    end: int


class Reading(NamedTuple):
    """A row of the grammar with the lines of its fields; `remarkable` are those that can be unusual."""

    row: MessageType
    fields: tuple[FieldLines, ...]
    remarkable: tuple[FieldLines, ...]


class Wrong(NamedTuple):
    """Lines `first` to `last` behind the flag, counted from 0, are not what a row has there."""

    first: int
    last: int
    mismatch: Mismatch


@lru_cache(maxsize=256)
def reading(row: MessageType) -> Reading:
    """Where a row's fields stand."""
    fields = []
    at = 0
    for field, kind in zip(row.fields, kinds(row), strict=True):
        fields.append(FieldLines(field.name, kind, at, at + kind.lines))
        at += kind.lines
    remarkable = (field for field in fields if type(field.type.part).remark is not FieldType.remark)
    return Reading(row, tuple(fields), tuple(remarkable))


@lru_cache(maxsize=256)
def readings(direction: Direction, name: str, lines: int) -> tuple[Reading, ...]:
    """The rows of a name that have as many lines as there are."""
    rows = GRAMMAR.rows_named(direction, name)
    return tuple(reading(row) for row in rows if line_count(row) == lines)


def read_lines(frame: bytes) -> tuple[list[str], tuple[Flaw, ...]]:
    """A frame's lines as text, and what is to be noted about its charset."""
    habits: tuple[Flaw, ...] = ()
    try:
        lines = frame.decode().split("\n")
    except UnicodeDecodeError as error:
        habits = (windows_note(error, 0, "Zeichen = UTF_8", "Zeichen"),)
        # Names of several players can come in several charsets.
        lines = [read_text(line)[0] for line in frame.split(b"\n")]
    if lines[-1] == "" and len(lines) > 1:
        del lines[-1]
    if b"\r" in frame:
        lines = [line.removesuffix("\r") for line in lines]
    if TWICE_ENCODED in lines:
        habits = (*habits, _encoded_twice(frame, lines))
        lines = [EMPTY if line == TWICE_ENCODED else line for line in lines]
    return lines, habits


def spelt_as_in(frame: bytes, line: bytes, text: str) -> bytes:
    """The bytes of a text in place of a line of a Paket, as its writer has them: in the charset of that line,
    or of all of it if the line does not tell, and with its § if it shows one."""
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
    """Whether a text can stand on a line for a value: it is no end, neither of the Paket nor of the line."""
    return text != END and "\n" not in text and text[-1:] != "\r"


def _encoded_twice(frame: bytes, lines: Sequence[str]) -> Flaw:
    offset, length = place_of(frame, lines.index(TWICE_ENCODED))
    return Flaw(
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
    """Offset and length in bytes of the lines `first` to `last`, the flag being 0; the end, if there are
    none."""
    raw = frame.split(b"\n")
    offset = sum(len(line) + 1 for line in raw[:first])
    if offset >= len(frame):
        return len(frame), 0
    wanted = raw[first : (first if last is None else last) + 1]
    return offset, len(b"\n".join(wanted).rstrip(b"\r\n"))


def first_wrong(row: MessageType, body: Sequence[str]) -> Wrong | None:
    """The first line that cannot stand where it stands in a row; lines that are missing are not wrong."""
    at = 0
    for kind in _parts(row):
        lines = body[at : at + kind.lines]
        if not lines:
            return None
        # Of a card whose second line is missing the first can still be wrong.
        read = kind if len(lines) == kind.lines else terminals(row)[at]
        text = "\n".join(lines)
        try:
            read.decode(text)
        except Mismatch as error:
            return Wrong(at + text.count("\n", 0, error.start), at + text.count("\n", 0, error.end), error)
        at += kind.lines
    return None


@lru_cache(maxsize=256)
def _parts(row: MessageType) -> tuple[Nonterminal, ...]:
    """A row's fields, each repetition taken apart."""
    return tuple(kind.part for kind in kinds(row) for _ in range(kind.lines // kind.part.lines))


def closest_row(rows: Sequence[MessageType], body: Sequence[str]) -> MessageType:
    """Of several rows with one flag the one that was meant: that agrees for the most lines, and has the most
    lines that are there."""

    def likeness(row: MessageType) -> tuple[int, bool, int, bool, bool]:
        count = line_count(row)
        wrong = first_wrong(row, body)
        right = min(len(body), count) if wrong is None else wrong.first
        whole = wrong is None and len(body) >= count
        # Where there should be no field at all, none can be wrong: it is ignored.
        return right, count == 0, -abs(len(body) - count), whole, row.deviation is None

    return max(rows, key=likeness)


def sound_fields(row: MessageType, body: Sequence[str]) -> dict[str, Any]:
    """The fields before the first that does not fit."""
    fields: dict[str, Any] = {}
    for name, kind, start, end in reading(row).fields:
        if end > len(body):
            break
        try:
            fields[name] = kind.decode("\n".join(body[start:end]))
        except Mismatch:
            break
    return fields
