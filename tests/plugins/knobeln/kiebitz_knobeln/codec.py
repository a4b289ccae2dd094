"""Datagrams to messages and back (Grundlagen). Of what is wrong in a datagram the first flaw is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kiebitz.dissectors.grammar import (
    Decoded,
    Flaw,
    MessageType,
    Mismatch,
    count_of_fields,
    sender_of,
    to_json,
    unreadable,
)
from kiebitz.dissectors.records import Direction
from kiebitz_knobeln.grammar import GRAMMAR

_FRAMING = "Grundlagen"


def decode(frame: bytes, direction: Direction) -> Decoded:
    """What a datagram says; see `Dissector.decode`."""
    try:
        name, *values = frame.decode().split(" ")
    except UnicodeDecodeError as error:
        text, length = "these bytes are not UTF-8", error.end - error.start
        return unreadable(_flaw("not-utf-8", text, error.start, length, "UTF-8 text", _FRAMING))
    rows = GRAMMAR.rows_named(direction, name)
    if not rows:
        return unreadable(_unknown(name, direction))
    # There are no dialects: a name has one row.
    fields, flaws = _read(frame, rows[0], values)
    return Decoded(rows[0], fields, to_json(fields), not flaws, flaws)


def encode(name: str, direction: Direction, fields: Mapping[str, Any]) -> bytes:
    """The datagram of a message; see `Dissector.encode`."""
    row = GRAMMAR.row_with(name, direction, fields)
    return " ".join([name, *(field.type.encode(fields[field.name]) for field in row.fields)]).encode()


def shape(row: MessageType) -> str:
    """How a message of a row is written: its name, then its fields' names."""
    return " ".join([row.name, *(field.name for field in row.fields)])


def _read(frame: bytes, row: MessageType, values: list[str]) -> tuple[dict[str, Any], tuple[Flaw, ...]]:
    """The fields before the first that is wrong, and what is wrong with that one."""
    fields: dict[str, Any] = {}
    end = len(row.name.encode())
    for number, field in enumerate(row.fields):
        begin = end + 1
        value = values[number] if number < len(values) else ""
        if not value:
            text, place = f"{row.name} has no {field.name}", min(begin, len(frame))
            return fields, (_flaw("missing-field", text, place, 0, shape(row), row.clause),)
        try:
            fields[field.name] = field.type.decode(value)
        except Mismatch as mismatch:
            begin += len(value[: mismatch.start].encode())
            length = len(value[mismatch.start : mismatch.end].encode())
            text = f"{row.name}: {mismatch}"
            return fields, (_flaw(mismatch.code, text, begin, length, mismatch.expected, row.clause),)
        end = begin + len(value.encode())
    if len(values) > len(row.fields):
        text = f"{row.name} has {count_of_fields(len(row.fields))}"
        return fields, (_flaw("surplus-fields", text, end, len(frame) - end, shape(row), row.clause),)
    return fields, ()


def _unknown(name: str, direction: Direction) -> Flaw:
    text = f'"{name[:40]}" is no message {sender_of(direction)} sends'
    near = GRAMMAR.nearest(name, direction)
    if near is not None:
        text += f": did you mean {near}?"
    expected = "one of " + ", ".join(GRAMMAR.names(direction))
    return _flaw("unknown-message", text, 0, len(name.encode()), expected, _FRAMING)


def _flaw(code: str, text: str, offset: int, length: int, expected: str, clause: str) -> Flaw:
    return Flaw("error", "malformed", code, text, offset, length, expected, clause)
