"""The codec of protocol files for binary messages: a code, and the fields one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kiebitz.dissectors.grammar.envelope import Envelope
from kiebitz.dissectors.grammar.field_type import Fields, Mismatch, WireType
from kiebitz.dissectors.grammar.grammar import (
    Decoded,
    Field,
    Grammar,
    MessageType,
    Path,
    count_of_fields,
    to_json,
    unreadable,
)
from kiebitz.dissectors.grammar.layout_codec import NO_FIELDS, SURPLUS, LayoutCodec, Part
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.binary_types import Binary, name_type
from kiebitz.dissectors.protocol_file.specification import Format

Step = tuple[str, Callable[[bytes, int, int, Mapping[str, Any]], tuple[Any, int]], bool]
"""Name, decoder, and True if it may be absent."""

_Fit = tuple[MessageType, dict[str, Any], int, str, Mismatch | None]
"""A row with what `_fit` returns."""


class StructCodec(LayoutCodec):
    """The codec of binary fields in a fixed order; the message may be padded."""

    def __init__(
        self, grammar: Grammar, envelope: Envelope, of: Format, is_padded: bool, **more: Any
    ) -> None:
        super().__init__(grammar, envelope, **more)
        self._name_type = name_type(of)
        self._is_padded = is_padded
        self._rows: dict[tuple[Direction, str], list[tuple[MessageType, list[Step]]]] = {}
        for row in grammar.rows:
            steps: list[Step] = [
                (field.name, _binary(field).unpack_after, field.optional) for field in row.fields
            ]
            self._rows.setdefault((row.direction, row.name), []).append((row, steps))

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        start, end = self.envelope.body(frame)
        name, first = self.only_names[direction], start
        if self._name_type is not None:
            if start == end:
                text = "there is no message in this frame"
                return unreadable(self.error("unknown-message", text, (start, 0), self._name_type.title))
            try:
                sent, first = self._name_type.unpack(frame, start, end)
            except Mismatch as error:
                place = error.start, error.end - error.start
                return unreadable(self.error("unknown-message", error.problem, place, error.expected))
            known = self._names[direction].get(sent)
            if known is None:
                return unreadable(self.unknown_message(sent, direction, (start, first - start)))
            name = known
        fits: list[_Fit] = []
        for row, steps in self._rows[direction, name]:
            fields, at, key, wrong = _fit(steps, frame, first, end)
            if wrong is None and (at == end or self._is_padded):
                return Decoded(row, fields, to_json(fields), True)
            fits.append((row, fields, at, key, wrong))
        # The first error of the row that fits best.
        row, fields, at, key, wrong = max(fits, key=lambda fit: (len(fit[1]), fit[4] is not None))
        if wrong is not None:
            violation = self.field_error(row, key, wrong, (wrong.start, wrong.end - wrong.start))
        else:
            text = f"{row.name} has {count_of_fields(len(row.fields))}, and {end - at} bytes follow"
            violation = self.error("surplus-fields", text, (at, end - at), self.notation(row), row.clause)
        return Decoded(row, fields, to_json(fields), False, (violation,))

    def layout(self, frame: bytes, row: MessageType) -> Sequence[Part]:
        start, end = self.envelope.body(frame)
        at = start
        parts: list[Part] = []
        if self._name_type is not None:
            _, at = self._name_type.unpack(frame, start, end)
            parts = [Part(start, at, (), "name", f"{row.name} ({self._name_type.title})")]
        fields: dict[str, Any] = {}
        for field in row.fields:
            if field.optional and at == end:
                continue
            kind = _binary(field)
            try:
                fields[field.name], upto = kind.unpack_after(frame, at, end, fields)
                inner = (*_inner(kind, frame, at, upto, (field.name,)),)
            except Mismatch:
                parts.append(Part(at, end, (field.name,), "unread", kind.title))
                return parts
            whole = at, upto - at
            parts.append(Part(at, upto, (field.name,), "field", kind.title, whole, whole, kind, inner))
            at = upto
        if at < end and not self._is_padded:
            parts.append(Part(at, end, (), "unread", SURPLUS))
        return parts

    def write_message(self, row: MessageType, fields: Fields) -> bytes:
        given = [field for field in row.fields if field.name in fields]
        packed = (_binary(field).pack(fields[field.name]) for field in given)
        head = b"" if self._name_type is None else self._name_type.pack(self.sent_name(row))
        return b"".join((head, *packed))

    def write_part(self, frame: bytes, part: Part, value: Any) -> bytes:
        assert isinstance(part.type, Binary)
        return part.type.pack(value)

    def as_text(self, frame: bytes, row: MessageType, field: Field, text: str) -> bytes:
        return _binary(field).as_bytes(text)

    def resembles(self, frame: bytes, direction: Direction) -> bool:
        # Any byte may be a code.
        decoded = self.decode(frame, direction)
        return decoded.row is not None and bool(decoded.fields)

    def notation(self, row: MessageType) -> str:
        names = (f"{field.name}: {field.type.title}" for field in row.fields)
        head = [] if self._name_type is None else [f"{row.name} = {self.sent_name(row)}"]
        return ", ".join([*head, *names]) or NO_FIELDS

    def wire_parts(self) -> Sequence[str]:
        return (*super().wire_parts(), "struct")

    def wire_details(self) -> WireType:
        return {
            "kind": "struct",
            "is_padded": self._is_padded or None,
            "name_type": self._name_type and self._name_type.wire_type(),
        }


def _fit(
    steps: Sequence[Step], frame: bytes, at: int, end: int
) -> tuple[dict[str, Any], int, str, Mismatch | None]:
    """Return the fields of a row that a frame has, their end, and the next one with its error, if any."""
    fields: dict[str, Any] = {}
    key = ""
    try:
        for key, unpack, optional in steps:
            if optional and at == end:
                continue
            fields[key], at = unpack(frame, at, end, fields)
    except Mismatch as error:
        return fields, at, key, error
    return fields, at, key, None


def _binary(field: Field) -> Binary:
    assert isinstance(field.type, Binary)
    return field.type


def _inner(kind: Binary, frame: bytes, at: int, end: int, path: Path) -> Iterator[Part]:
    """Yield the parts of a valid value."""
    for steps, of, start, upto in kind.inner(frame, at, end):
        place = start, upto - start
        if steps:
            inner = (*_inner(of, frame, start, upto, (*path, *steps)),)
            yield Part(start, upto, (*path, *steps), "field", of.title, place, place, of, inner)
        else:
            # The same value without its length cannot be written alone.
            yield Part(start, upto, path, "field", of.title, place, place)
