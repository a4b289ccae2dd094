"""The codec for Catan: JSON objects to messages and back.

If several rows have one name, the first that fits is used, preferably one that knows all attributes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.codec import Codec
from kiebitz.dissectors.grammar.dissection_tree import Piece
from kiebitz.dissectors.grammar.grammar import Decoded, MessageType, to_json
from kiebitz.dissectors.grammar.json_keys import duplicate_key
from kiebitz.dissectors.grammar.patching import Path, Place, differences, replaced, spelt_alike, value_at
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocols.catan.diagnostics import (
    habit_notes,
    layout_notes,
    not_an_object,
    not_one_message,
    undecodable,
    unfit_row,
    unknown_message,
)
from kiebitz.dissectors.protocols.catan.dissection_tree import begun_message, build_tree
from kiebitz.dissectors.protocols.catan.grammar import (
    ATTRIBUTE_NAMES,
    GRAMMAR,
    MESSAGE_NAMES,
    NAMES,
    Nachricht,
)
from kiebitz.dissectors.protocols.catan.objects import OBJECTS
from kiebitz.dissectors.protocols.catan.scanner import place_of, places_of
from kiebitz.dissectors.protocols.catan.values import (
    DecodingState,
    InvalidValue,
    Object,
    SingleValue,
    Tuple,
    quoted,
)
from kiebitz.dissectors.protocols.catan.words import spellings

_read_json = msgspec.json.Decoder().decode
_NO_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_to_bytes = msgspec.json.Encoder().encode

_ROWS: dict[tuple[Direction, str], tuple[Nachricht, ...]] = {
    (row.direction, row.name): tuple(
        other for other in GRAMMAR.rows_named(row.direction, row.name) if isinstance(other, Nachricht)
    )
    for row in GRAMMAR.rows
}
_ALONE = {key: tuple(row for row in rows if not row.beside) for key, rows in _ROWS.items()}
"""Rows with no attribute next to the message's name."""


def _rows(value: Mapping[str, Any], direction: Direction) -> tuple[tuple[Nachricht, ...], str]:
    """Return the rows that may fit an object, and the key that names the message."""
    names = NAMES[direction]
    if len(value) == 1:
        key = next(iter(value))
        return _ALONE.get((direction, names.get(key, "")), ()), key
    for key in value:
        rows = _ROWS.get((direction, names.get(key, "")), ())
        fitting = tuple(row for row in rows if row.beside and {key, *row.beside} == {*value})
        if fitting:
            return fitting, key
    return (), ""


def _is_surplus(error: InvalidValue, row: Nachricht) -> bool:
    """Return True if a value is invalid in one row only because `row` has no such attribute."""
    return error.code == "bad-value" and len(error.path) > 1 and not row.knows(error.path[1])


def _nearness(error: InvalidValue) -> tuple[bool, bool, int]:
    """Return a sort key for how closely a row fits that does not fit.

    A missing value is closer than another form of the whole message; an invalid value is closer still, and
    the closer the deeper it is nested.
    """
    is_missing = error.code == "missing-attribute"
    return is_missing or len(error.path) > 1, not is_missing, len(error.path)


def _laid_out(row: Nachricht, fields: Mapping[str, Any]) -> dict[str, Any]:
    beside = {key: fields[key] for key in row.beside if key in fields}
    body: Any = {key: part for key, part in fields.items() if key not in beside}
    if isinstance(row.body, Tuple):
        body = [body[field.name] for field in row.body.fields if field.name in body]
    elif isinstance(row.body, SingleValue):
        body = body.get(row.body.name)
    return {row.name: body, **beside}


_CHARACTER = re.compile(
    r"\\u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\.|[^\\]"
)


def _spelt_alike(before: bytes, value: Any) -> bytes:
    """Encode a value as JSON; use escapes if the previous text did, as many programs write ASCII only."""
    if b"\\" in before and isinstance(value, str):
        text = spelt_alike(before.decode()[1:-1], value, _CHARACTER, _unescaped, _escaped_alike)
        if text is not None:
            return f'"{text}"'.encode()
    return _to_bytes(value)


def _unescaped(character: str) -> str:
    return str(json.loads(f'"{character}"'))


def _escaped_alike(before: str, character: str) -> str:
    return json.dumps(character, ensure_ascii=len(before) > 1)[1:-1]


def field_place(frame: bytes, row: Nachricht, *steps: str | int) -> tuple[int, int]:
    """Return the offset and length in bytes of a field, or of a part of it, in a valid message.

    `steps` are in the specification's spelling; at a step that does not exist, the path ends.
    """
    return place_of(frame, _sent_path(_read_json(frame), row, steps))


def _sent_path(value: Any, row: Nachricht, steps: Path) -> Path:
    """Return the path to a part of a message's fields in its JSON value, with the keys as they were sent.

    At a step that does not exist, the path ends.
    """
    path: list[str | int] = []
    for step in _laid_out_path(row, steps):
        if isinstance(step, str):
            if not isinstance(value, dict):
                break
            key = next((spelt for spelt in spellings((step,)) if spelt in value), None)
            if key is None:
                break
            path.append(key)
            value = value[key]
        elif isinstance(value, list) and step < len(value):
            path.append(step)
            value = value[step]
        else:
            break
    return tuple(path)


def _laid_out_path(row: Nachricht, steps: Path) -> Path:
    """Return the path to a part of a message's fields in the result of `_laid_out`."""
    if steps and steps[0] in row.beside:
        return steps
    if steps and isinstance(row.body, Tuple):
        names = [field.name for field in row.body.fields]
        return (row.name, names.index(str(steps[0])), *steps[1:])
    return (row.name, *(steps[1:] if isinstance(row.body, SingleValue) else steps))


class CatanCodec(Codec):
    """The codec for lines with one JSON object each."""

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        try:
            value = _read_json(frame)
        except _NO_JSON:
            return undecodable(frame)
        if type(value) is not dict:
            return not_an_object(frame, value)
        duplicate = duplicate_key(frame, value)
        decoded = self._decode(frame, value, direction)
        if duplicate is None:
            return decoded
        return msgspec.structs.replace(decoded, violations=(*decoded.violations, duplicate))

    def _decode(self, frame: bytes, value: dict[str, Any], direction: Direction) -> Decoded:
        rows, key = _rows(value, direction)
        if not rows:
            return unknown_message(key, direction) if len(value) == 1 else not_one_message(value, direction)
        unfit: InvalidValue | None = None
        closest = rows[0]
        found: tuple[Nachricht, dict[str, Any], DecodingState] | None = None
        for row in rows:
            reading = DecodingState()
            try:
                around = row.around.read(value, reading)
            except InvalidValue as error:
                if unfit is None or _nearness(error) > _nearness(unfit):
                    unfit, closest = error, row
                continue
            found = found or (row, around, reading)
            if not reading.surplus:
                found = row, around, reading
                break
        if found is None:
            assert unfit is not None
            return unfit_row(closest, unfit)
        row, fields, reading = found
        if reading.surplus and unfit is not None and _is_surplus(unfit, row):
            return unfit_row(closest, unfit)
        inner = fields.pop(row.name)
        fields = inner | fields if fields else inner
        notes = habit_notes(row, reading.remarks) if reading.remarks else ()
        if frame[:1] != b"{" or frame[-2:] != b"}\n" or frame.find(b"\n") != len(frame) - 1:
            notes = (*layout_notes(frame), *notes)
        return Decoded(row, fields, to_json(fields), True, notes)

    def anatomy(self, frame: bytes, direction: Direction) -> tuple[Piece, ...]:
        decoded = self.decode(frame, direction)
        row, upto = decoded.row, len(frame)
        try:
            _read_json(frame)
        except _NO_JSON:
            upto = decoded.violations[0].place(frame)[0]
            name = begun_message(frame, direction, upto)
            row = _ROWS[direction, name][0] if name is not None else None
        return build_tree(frame, decoded, row if isinstance(row, Nachricht) else None, upto)

    def truncated(self, frame: bytes, direction: Direction) -> Decoded:
        try:
            _read_json(frame)
        except _NO_JSON:
            return undecodable(frame, ended=True)
        # A reader of single objects needs no line feed after the last one.
        return self.decode(frame, direction)

    def encode(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> bytes:
        for row in _ROWS.get((direction, name), ()):
            value = _laid_out(row, fields)
            try:
                around = row.around.read(value, DecodingState())
            except InvalidValue:
                continue
            if around.pop(name) | around == fields:
                return _to_bytes(value) + b"\n"
        raise ValueError(f"{direction} {name} has no row with these fields: {quoted(fields)}")

    def patch(
        self, frame: bytes, row: MessageType, before: Mapping[str, Any], fields: Mapping[str, Any]
    ) -> bytes:
        """Return the frame with the changed values replaced in place; see `Codec.patch`.

        A value whose parts differ from before is written as a whole, in the specification's spelling.
        """
        assert isinstance(row, Nachricht)
        value = _read_json(frame)
        changed: dict[Path, Any] = {}
        for path in differences(before, fields):
            if path:
                changed[_sent_path(value, row, path)] = value_at(fields, path)
            else:
                changed[()] = _laid_out(row, fields)
        places = places_of(frame, changed)
        pieces: dict[Place, bytes] = {}
        for path, new in changed.items():
            start, length = places[path]
            pieces[start, length] = _spelt_alike(frame[start : start + length], new)
        return replaced(frame, pieces)

    def text_place(self, frame: bytes, row: MessageType, name: str) -> Place | None:
        assert isinstance(row, Nachricht)
        is_there = super().text_place(frame, row, name) is not None
        return field_place(frame, row, name) if is_there else None

    def whole_place(self, frame: bytes, row: MessageType, name: str) -> Place | None:
        # A member includes the comma after it; the last one has none, and includes the comma before it.
        place = super().text_place(frame, row, name)
        if place is None:
            return None
        start, length = place
        if not frame[start : start + length].rstrip().endswith(b",") and frame[:start].endswith(b","):
            return start - 1, length + 1
        return place

    def twice(self, whole: bytes) -> bytes:
        is_alone = not (whole.startswith(b",") or whole.rstrip().endswith(b","))
        return b"%b,%b" % (whole, whole) if is_alone else whole * 2

    @property
    def productions(self) -> tuple[str, ...]:
        # The objects of clause 7 with the types of their attributes.
        return tuple(
            f"{name} = {{{', '.join(f'{field.name}: {field.type.title}' for field in each.fields)}}}"
            for name, each in OBJECTS.items()
        )

    wire_fallback = "json_any"

    def wire_format(self) -> Mapping[str, Any]:
        only = sorted(MESSAGE_NAMES - ATTRIBUTE_NAMES)
        return {
            "kind": "keyed",
            "framing": {
                "kind": "json",
                "line_end": True,
                "skips_blanks": True,
                "starts": {json.dumps(name)[1:-1]: True for name in only} | dict.fromkeys(only, True),
            },
            "keys": NAMES,
            "runtime": ("text_types", "json", "keyed"),
        }

    def wire_row(self, row: MessageType) -> Mapping[str, Any]:
        assert isinstance(row, Nachricht)
        form = {"list": "tuple"}.get(row.form, row.form)
        return {
            "form": form,
            "beside": dict.fromkeys(row.beside, True) or None,
            "spelt": row.body.wire_type()["spelt"] if isinstance(row.body, Object) else None,
        }
