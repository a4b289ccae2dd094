"""The codec of protocol files for JSON: the engine for JSON, and what a framing adds to a message."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.codec import Codec
from kiebitz.dissectors.grammar.dissection_tree import Piece
from kiebitz.dissectors.grammar.grammar import Decoded, Grammar, MessageType, Violation
from kiebitz.dissectors.grammar.json.codec import JsonCodec
from kiebitz.dissectors.grammar.json.diagnostics import Conventions
from kiebitz.dissectors.grammar.json.layouts import JsonRow, KeyLayout, Layout, PathLayout
from kiebitz.dissectors.grammar.patching import Place
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.envelope import FileEnvelope
from kiebitz.dissectors.protocol_file.json_types import JsonTypes, productions_of, spellings_of
from kiebitz.dissectors.protocol_file.specification import Specification

_FindPlace = Callable[[bytes, MessageType, str], Place | None]
_CODES = {
    "charset": "not-utf-8",
    "empty-line": "empty-message",
    "missing-attribute": "missing-field",
    "not-one-message": "unknown-message",
    "surplus-attribute": "unknown-field",
    "utf-16": "not-utf-8",
}
"""The codes that all formats of protocol files share, by those of the engine."""


def layout_of(specification: Specification, grammar: Grammar) -> Layout:
    """Return where the messages of a protocol file have their names and fields."""
    of, codes = specification.format, specification.codes
    spellings = spellings_of(of)
    if of.name == "*":
        return KeyLayout(grammar, spellings, is_lenient=True, allows_others=True)
    sent = {key: codes.get(key, key[1]) for key in {(row.direction, row.name): None for row in grammar.rows}}
    return PathLayout(grammar, sent, _path(of.name), _path(of.fields), spellings=spellings, is_lenient=True)


def _path(text: str) -> tuple[str, ...]:
    return tuple(text.split(".")) if text else ()


class FileJsonCodec(Codec):
    """The codec of JSON objects with a line end, or a delimiter around them, or nothing."""

    def __init__(self, specification: Specification, grammar: Grammar) -> None:
        self.envelope = FileEnvelope(specification.framing, specification.format)
        self._is_bare = specification.framing.kind not in ("delimiter", "block", "size")
        self._layout = layout_of(specification, grammar)
        shown = productions_of(specification.types, JsonTypes(specification.format))
        self._engine = JsonCodec(self._layout, Conventions(), shown, keeps_valid_fields=True)

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        if self._is_bare:
            return _moved(self._engine.decode(frame, direction), 0, len(frame))
        start, end = self.envelope.body(frame)
        return _moved(self._engine.decode(frame[start:end], direction), start, end)

    def truncated(self, frame: bytes, direction: Direction) -> Decoded:
        start, end = self.envelope.body(frame)
        if self.envelope.is_line or start == end:
            return _moved(self._engine.truncated(frame[start:end], direction), start, end)
        decoded = self.decode(frame, direction)
        text, expected = "the stream ends in this message", "the rest of the message"
        violation = Violation("error", "malformed", "truncated", text, len(frame), 0, expected)
        return msgspec.structs.replace(decoded, valid=False, violations=(violation,))

    def encode(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> bytes:
        return self.envelope.wrap(self._engine.encode(name, direction, fields))

    def patch(
        self, frame: bytes, row: MessageType, before: Mapping[str, Any], fields: Mapping[str, Any]
    ) -> bytes:
        start, end = self.envelope.body(frame)
        return self.envelope.rewrap(frame, self._engine.patch(frame[start:end], row, before, fields))

    # Places.

    def anatomy(self, frame: bytes, direction: Direction) -> tuple[Piece, ...]:
        start, end = self.envelope.body(frame)
        inner = self._engine.anatomy(frame[start:end], direction) if start < end else ()
        before = [Piece(0, start, 0, "markup", self.envelope.title)] if start else []
        after = [Piece(end, len(frame) - end, 0, "markup", "line end")] if end < len(frame) else []
        moved = (msgspec.structs.replace(piece, offset=start + piece.offset) for piece in inner)
        return (*before, *moved, *after)

    def text_place(self, frame: bytes, row: MessageType, name: str) -> Place | None:
        return self._place(self._engine.text_place, frame, row, name)

    def whole_place(self, frame: bytes, row: MessageType, name: str) -> Place | None:
        return self._place(self._engine.whole_place, frame, row, name)

    def _place(self, find: _FindPlace, frame: bytes, row: MessageType, name: str) -> Place | None:
        start, end = self.envelope.body(frame)
        place = find(frame[start:end], row, name)
        return None if place is None else (start + place[0], place[1])

    def twice(self, whole: bytes, row: MessageType) -> bytes:
        return self._engine.twice(whole, row)

    # The reference, and Wireshark.

    @property
    def productions(self) -> tuple[str, ...]:
        return self._engine.productions

    def notation(self, row: MessageType) -> str:
        assert isinstance(row, JsonRow)
        value = self._layout.whole(row, {field.name: ... for field in row.fields})
        return _notation(value)

    def resembles(self, frame: bytes, direction: Direction) -> bool:
        decoded = self.decode(frame, direction)
        return decoded.row is not None or any(
            violation.code == "unknown-message" and violation.suggestion is not None
            for violation in decoded.violations
        )

    wire_fallback = "json_any"

    @property
    def _has_forms(self) -> bool:
        """True if the fields of some messages are a list, or next to the name."""
        return any(row.beside or row.form == "list" for row in self._layout.all_rows)

    def wire_format(self) -> Mapping[str, Any]:
        layout = self._layout
        parts = ("text_types", "framing_text", *self.envelope.wire_parts, "json", "pairs", "keyed")
        framing = self.envelope.wire_framing()
        if self._has_forms:
            return {**self._engine.wire_format(), "framing": framing, "runtime": parts}
        details: dict[str, Any] = {"is_key": True, "name_path": (), "fields_path": (), "reserved": None}
        if isinstance(layout, PathLayout):
            details = {
                "is_key": None,
                "name_path": layout.name_path,
                "fields_path": layout.fields_path,
                "reserved": layout.reserved,
            }
        return {
            "framing": framing,
            "encoding": "utf-8",
            "runtime": parts,
            "kind": "json",
            **details,
        }

    def wire_row(self, row: MessageType) -> Mapping[str, Any]:
        if self._has_forms:
            return self._engine.wire_row(row)
        sent = next(sent for sent, name in self._layout.names[row.direction].items() if name == row.name)
        return {} if isinstance(sent, str) else {"code": str(sent)}


def _moved(decoded: Decoded, start: int, end: int) -> Decoded:
    """Return a decoded message as one of its frame, in which it is at `start`."""
    if not decoded.violations:
        return decoded

    def moved(violation: Violation) -> Violation:
        def located(frame: bytes) -> Place:
            offset, length = violation.place(frame[start:end])
            return start + offset, length

        code = _CODES.get(violation.code, violation.code)
        return msgspec.structs.replace(violation, code=code, locate=located)

    return msgspec.structs.replace(decoded, violations=tuple(map(moved, decoded.violations)))


def _notation(value: Any) -> str:
    if value is ...:
        return "…"
    if isinstance(value, dict):
        members = (f"{json.dumps(key)}:{_notation(part)}" for key, part in value.items())
        return f"{{{','.join(members)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_notation, value))}]"
    return json.dumps(value)
