"""Datagrams to messages and back: `NAME;field;field` in UTF-8 (Grundlagen).

Of several rows with one name the first whose fields fit is taken; a row with as many fields as there are goes
before one with fewer (real servers ignore surplus fields). What fits no row is told to the byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import permutations
from typing import Any, NamedTuple

from kiebitz.dissectors.grammar import (
    Decoded,
    FieldType,
    Flaw,
    MessageType,
    Mismatch,
    count_of_fields,
    sender_of,
    to_json,
    unreadable,
)
from kiebitz.dissectors.maexchen.grammar import GRAMMAR
from kiebitz.dissectors.records import Direction
from kiebitz.dissectors.rewriting import changed_fields
from kiebitz.dissectors.suggestions import suggesting

_FRAMING = "Grundlagen"


def decode(frame: bytes, direction: Direction) -> Decoded:
    """What a datagram says; see `Dissector.decode`."""
    try:
        parts = frame.decode().split(";")
    except UnicodeDecodeError as error:
        return _decode_not_utf8(frame, direction, error)
    candidates = _candidates(direction, parts[0], len(parts) - 1)
    if candidates is None:
        return _unknown(frame, parts[0], direction)
    return _decode_rows(frame, parts, candidates)


def encode(name: str, direction: Direction, fields: Mapping[str, Any]) -> bytes:
    """The datagram of a message; see `Dissector.encode`."""
    row = GRAMMAR.row_with(name, direction, fields)
    return ";".join([name, *(field.type.encode(fields[field.name]) for field in row.fields)]).encode()


def respelt(frame: bytes, row: MessageType, before: Mapping[str, Any], fields: Mapping[str, Any]) -> bytes:
    """The datagram with other values; see `Dissector.respelt`. What is surplus stays."""
    parts = frame.split(b";")
    changed = changed_fields(before, fields)
    for number, field in enumerate(row.fields, 1):
        if field.name in changed:
            parts[number] = field.type.encode(fields[field.name]).encode()
    return b";".join(parts)


def shape(row: MessageType) -> str:
    """How a message of a row is written: its name, then its fields' names."""
    return ";".join([row.name, *(field.name for field in row.fields)])


class _Reading(NamedTuple):
    """A row as the hot path wants it: how each field is decoded, and which of them are remarked upon."""

    row: MessageType
    decoders: tuple[tuple[str, Callable[[str], Any]], ...]
    remarkable: tuple[int, ...]


class _Candidates(NamedTuple):
    """What a message of some name and number of fields can be: rows in the order to try them.

    `nearest` is the row whose shape is told where none fits.
    """

    readings: tuple[_Reading, ...]
    surplus: bool
    nearest: MessageType


@lru_cache(maxsize=1024)
def _candidates(direction: Direction, name: str, fields: int) -> _Candidates | None:
    """The rows with as many fields as there are, else those with fewer; None for an unknown name."""
    rows = GRAMMAR.rows_named(direction, name)
    if not rows:
        return None
    exact = [row for row in rows if len(row.fields) == fields]
    # Where fields are left over the specification's row goes first.
    fitting = exact or sorted(
        (row for row in rows if len(row.fields) < fields), key=lambda row: row.deviation is not None
    )
    nearest = min(rows, key=lambda row: abs(len(row.fields) - fields))
    return _Candidates(tuple(map(_reading, fitting)), not exact, nearest)


def _reading(row: MessageType) -> _Reading:
    return _Reading(
        row,
        tuple((field.name, field.type.decode) for field in row.fields),
        tuple(
            number
            for number, field in enumerate(row.fields)
            if type(field.type).remark is not FieldType.remark
        ),
    )


def _decode_rows(frame: bytes, parts: list[str], candidates: _Candidates) -> Decoded:
    values = parts[1:]
    readings, surplus, nearest = candidates
    for row, decoders, remarkable in readings:
        try:
            fields = {name: decode(value) for (name, decode), value in zip(decoders, values, strict=False)}
        except Mismatch:
            continue
        notes = _remarks(frame, row, values, remarkable) if remarkable or surplus else ()
        return Decoded(row, fields, to_json(fields), True, notes)
    fields, flaw = _first_flaw(frame, nearest, values)
    return Decoded(nearest, fields, to_json(fields), False, (flaw,))


def _remarks(
    frame: bytes, row: MessageType, values: list[str], remarkable: tuple[int, ...]
) -> tuple[Flaw, ...]:
    """Notes on a message that its row allows."""
    notes = []
    for number in remarkable:
        kind = row.fields[number].type
        remark = kind.remark(values[number])
        if remark is not None:
            offset, length = _place(frame, number + 1)
            notes.append(
                Flaw("note", "malformed", "loose-spelling", remark, offset, length, kind.title, row.clause)
            )
    if len(values) > len(row.fields):
        offset, _ = _place(frame, len(row.fields) + 1)
        notes.append(
            Flaw(
                "note",
                "malformed",
                "surplus-fields",
                f"{row.name} has {count_of_fields(len(row.fields))}; what follows is ignored",
                offset - 1,
                len(frame) - offset + 1,
                shape(row),
                row.clause,
            )
        )
    return tuple(notes)


def _first_flaw(frame: bytes, row: MessageType, values: list[str]) -> tuple[dict[str, Any], Flaw]:
    """The fields before the first that does not fit, and what is wrong with that one."""
    fields: dict[str, Any] = {}
    for number, field in enumerate(row.fields):
        if number >= len(values):
            missing = ", ".join(field.name for field in row.fields[number:])
            text = f"{row.name} ends before its {missing}"
            return fields, Flaw(
                "error", "malformed", "missing-field", text, len(frame), 0, shape(row), row.clause
            )
        try:
            fields[field.name] = field.type.decode(values[number])
        except Mismatch as mismatch:
            offset, _ = _place(frame, number + 1)
            before = len(values[number][: mismatch.start].encode())
            length = len(values[number][mismatch.start : mismatch.end].encode())
            swapped = "; are the fields in the wrong order?" if _fits_shuffled(row, values) else ""
            return fields, Flaw(
                "error",
                "malformed",
                mismatch.code,
                f"{row.name}: {mismatch}{swapped}",
                offset + before,
                length,
                mismatch.expected,
                row.clause,
            )
    raise AssertionError("a row was asked for its flaw that has none")


def _fits_shuffled(row: MessageType, values: list[str]) -> bool:
    if len(values) != len(row.fields):
        return False
    for order in permutations(values):
        try:
            for field, value in zip(row.fields, order, strict=True):
                field.type.decode(value)
        except Mismatch:
            continue
        return True
    return False


def _decode_not_utf8(frame: bytes, direction: Direction, error: UnicodeDecodeError) -> Decoded:
    """Real servers put U+FFFD for each wrong byte and go on, so a name can still be registered."""
    flaw = Flaw(
        "error",
        "malformed",
        "not-utf-8",
        f"the bytes {frame[error.start : error.end].hex(' ')} are not UTF-8",
        error.start,
        error.end - error.start,
        "UTF-8 text",
        _FRAMING,
    )
    parts = [part.decode("utf-8", "replace") for part in frame.split(b";")]
    candidates = _candidates(direction, parts[0], len(parts) - 1)
    if candidates is None:
        return unreadable(flaw)
    decoded = _decode_rows(frame, parts, candidates)
    return Decoded(decoded.row, decoded.fields, decoded.fields_json, False, (flaw,))


def _unknown(frame: bytes, name: str, direction: Direction) -> Decoded:
    """A datagram that begins with no known name, and what it may have been meant to be."""
    expected = "one of " + ", ".join(GRAMMAR.names(direction))
    offset, length = 0, len(name.encode())
    near = GRAMMAR.nearest(name.removeprefix("\ufeff"), direction)
    if not frame:
        code, text = "empty-datagram", "an empty datagram says nothing"
    elif name.startswith("\ufeff"):
        code, text, length = "byte-order-mark", "a byte order mark stands before the message", 3
    elif b"\0" in frame[:2] and len(frame) > 1:
        code, text, near = "utf-16", "this looks like UTF-16", None
        length = len(frame)
    elif near is not None and name != name.lstrip() and name.strip() == near:
        code, text = "leading-blank", "a blank stands before the message"
        length = len(name) - len(name.lstrip())
    elif not name:
        code, text = "unknown-message", "there is no message name"
    else:
        code, text = "unknown-message", f'"{name[:40]}" is no message {sender_of(direction)} sends'
    text = suggesting(text, near)
    flaw = Flaw("error", "malformed", code, text, offset, length, expected, _FRAMING)
    return unreadable(flaw)


def _place(frame: bytes, number: int) -> tuple[int, int]:
    """Offset and length in bytes of the part `number`, 0 being the name."""
    parts = frame.split(b";")
    return sum(len(part) + 1 for part in parts[:number]), len(parts[number])
