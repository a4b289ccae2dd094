"""The codec of frames with a header; the codec of the format reads and writes what follows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.codec import CarriedCodec, Codec
from kiebitz.dissectors.grammar.dissection_tree import Kind, Piece, whole
from kiebitz.dissectors.grammar.field_type import Fields, Mismatch, WireType
from kiebitz.dissectors.grammar.grammar import (
    Decoded,
    Field,
    Grammar,
    MessageType,
    Path,
    Place,
    Violation,
    error_at,
    to_json,
    unreadable,
)
from kiebitz.dissectors.grammar.layout_codec import unknown_name
from kiebitz.dissectors.model import OPPOSITE, Direction
from kiebitz.dissectors.protocol_file.header import Header, Part, Read, TextHead
from kiebitz.dissectors.protocol_file.message_grammar import rows_of
from kiebitz.dissectors.protocol_file.specification import LENGTH, NAME, Framing, Specification

_WHOLE = Framing(kind="datagrams")
"""The framing of a message that is all that there is."""

_ENDED = ("lines", "delimiter", "block")
"""Framings in which a message has an end."""


class HeaderCodec(CarriedCodec):
    """The codec of frames with a header, which may have the code of the name, and fields of all messages."""

    def __init__(
        self, specification: Specification, grammar: Grammar, make: Callable[[Specification, Grammar], Codec]
    ) -> None:
        framing = specification.framing
        self.grammar = grammar
        self.header: Header | TextHead = (
            TextHead(framing.before, specification.format)
            if framing.before
            else Header(framing, specification.format)
        )
        self._has_name = framing.has_name
        self._is_binary = not framing.before
        self._needed = {field.name for field in framing.fields if not field.optional}
        self._codes = specification.codes
        self._names = {(direction, sent): name for (direction, name), sent in self._codes.items()}
        self._own = {field.name for field in framing.fields}
        messages = tuple(
            msgspec.structs.replace(message, fields=message.fields[len(self._own) :])
            for message in specification.messages
        )
        around = _WHOLE
        if framing.kind == "size":
            size = framing.size - sum(part.size for part in self.header.parts)
            around = Framing(kind="size", size=size)
        elif framing.before or framing.kind in _ENDED:
            around = msgspec.structs.replace(framing, before=(), header=())
        self._end = framing.end.encode() if framing.kind in _ENDED else None
        inner = msgspec.structs.replace(specification, framing=around, messages=messages)
        rows = [*rows_of(inner)]
        self._inner = {id(outer): row for outer, row in zip(grammar.rows, rows, strict=True)}
        self._outer = {id(row): outer for outer, row in zip(grammar.rows, rows, strict=True)}
        self._codecs: dict[tuple[Direction, str], Codec] = {}
        """The codecs of the messages by direction and name."""
        if not framing.has_name:
            codec = make(inner, grammar.part(rows))
            self._codecs = dict.fromkeys(((row.direction, row.name) for row in rows), codec)
        else:
            inner = msgspec.structs.replace(inner, format=msgspec.structs.replace(inner.format, name=""))
            for key in dict.fromkeys((row.direction, row.name) for row in rows):
                own = [row for row in rows if (row.direction, row.name) == key]
                codec = self._codecs[key] = make(inner, grammar.part(own))
        self.wire_fallback = codec.wire_fallback

    def start_of(self, frame: bytes) -> int:
        found = self.header.extent(frame, 0, len(frame))
        return len(frame) if found is None else found.start

    def inner_of(self, row: MessageType) -> tuple[Codec, MessageType]:
        return self._codecs[row.direction, row.name], self._inner[id(row)]

    def _codec_of(self, read: Read, direction: Direction) -> Codec | None:
        """Return the codec of a message, None if its name is not known."""
        if not self._has_name:
            return next(iter(self._codecs.values()))
        return self._codecs.get((direction, self._name(read.sent, direction)))

    def _name(self, sent: Any, direction: Direction) -> Any:
        """Return the name for what was sent, which may be the digits of a code."""
        code = int(sent) if isinstance(sent, str) and sent.isdecimal() else sent
        return self._names.get((direction, code), sent)

    # Decoding and encoding.

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        try:
            read = self.header.read(frame)
        except Mismatch as error:
            return unreadable(_violation(error))
        codec = self._codec_of(read, direction)
        if codec is None:
            return unreadable(self._unknown(read, direction))
        decoded = self.decode_inner(codec, frame, read.start, direction)
        if decoded.row is None:
            return decoded
        row = self._outer[id(decoded.row)]
        fields = {**read.fields, **decoded.fields}
        if read.error is None:
            return Decoded(row, fields, to_json(fields), decoded.valid, decoded.violations)
        name, wrong = read.error
        wrong.problem = f"{row.name}: {name}: {wrong.problem}"
        violations = (_violation(wrong, row.clause), *decoded.violations)
        return Decoded(row, fields, to_json(fields), False, violations)

    def _unknown(self, read: Read, direction: Direction) -> Violation:
        if read.error is not None and read.error[0] == NAME:
            return _violation(read.error[1])
        place = next((at, upto - at) for part, at, upto in read.places if part.name == NAME)
        opposite = OPPOSITE[direction]
        is_others = (opposite, self._name(read.sent, opposite)) in self._codecs
        return unknown_name(self.grammar, read.sent, direction, place, is_others)

    def truncated(self, frame: bytes, direction: Direction) -> Decoded:
        text = "the stream ends in this message"
        expected = "the end of the message"
        return unreadable(error_at("truncated", text, (len(frame), 0), expected))

    def encode(self, name: str, direction: Direction, fields: Fields) -> bytes:
        codec = self._codecs.get((direction, name))
        if codec is None:
            raise ValueError(f"{direction} {name} is not known")
        body = codec.encode(name, direction, self._without_own(fields))
        frame = self._written(name, direction, fields, body)
        if self.decode(frame, direction).fields_json != to_json(fields):
            raise ValueError(f"{direction} {name} has no row with these fields")
        return frame

    def _written(self, name: str, direction: Direction, fields: Fields, body: bytes) -> bytes:
        if not fields.keys() >= self._needed:
            raise ValueError(f"{direction} {name} lacks fields of the header")
        frame = self.header.write(self._codes.get((direction, name), name), fields, body)
        if self._end and self._end in frame[: len(frame) - len(body)]:
            raise ValueError("the header would contain the end of the message")
        return frame

    def _without_own(self, fields: Fields) -> dict[str, Any]:
        return {name: value for name, value in fields.items() if name not in self._own}

    def patch(self, frame: bytes, row: MessageType, before: Fields, fields: Fields) -> bytes:
        codec, inner = self.inner_of(row)
        body = frame[self.start_of(frame) :]
        old, new = self._without_own(before), self._without_own(fields)
        if old != new:
            body = codec.patch(body, inner, old, new)
        return self._written(row.name, row.direction, fields, body)

    # Places.

    def anatomy(self, frame: bytes, direction: Direction) -> tuple[Piece, ...]:
        decoded = self.decode(frame, direction)
        if decoded.row is None:
            return whole(frame, decoded, "message")
        read = self.header.read(frame)
        pieces = [self._piece(part, at, upto, decoded) for part, at, upto in read.places]
        codec, _ = self.inner_of(decoded.row)
        return (*pieces, *self.inner_pieces(codec, frame, read.start, direction))

    def _piece(self, part: Part, at: int, upto: int, decoded: Decoded) -> Piece:
        kind: Kind = "markup"
        title = "constant" if part.type is None else part.type.title
        path: Path = ()
        value: Any = msgspec.UNSET
        if part.name == LENGTH and self._is_binary:
            title = f"length ({title})"
        elif part.name == NAME and self._is_binary:
            assert decoded.row is not None
            kind, title = "name", f"{decoded.row.name} ({title})"
        elif part.name:
            kind, path = "field", (part.name,)
            if part.name in decoded.fields:
                value = decoded.fields[part.name]
            else:
                kind = "unread"
        return Piece(at, upto - at, 0, kind, title, path, value)

    def text_place(self, frame: bytes, row: MessageType, name: str) -> Place | None:
        return self._own_place(frame, name) or super().text_place(frame, row, name)

    def whole_place(self, frame: bytes, row: MessageType, name: str) -> Place | None:
        return self._own_place(frame, name) or super().whole_place(frame, row, name)

    def _own_place(self, frame: bytes, name: str) -> Place | None:
        """Return the place of a field of the header; None if it is another one."""
        if name not in self._own:
            return None
        places = self.header.read(frame).places
        return next(((at, upto - at) for part, at, upto in places if part.name == name), None)

    def as_text(self, frame: bytes, row: MessageType, field: Field, text: str) -> bytes:
        kind = next((part.type for part in self.header.parts if part.name == field.name), None)
        if kind is None or field.name not in self._own:
            return super().as_text(frame, row, field, text)
        return self.header.as_bytes(kind, text)

    # Descriptions.

    def notation(self, row: MessageType) -> str:
        codec, inner = self.inner_of(row)
        shown = (
            part.constant.hex(" ")
            if part.type is None
            else f"{row.name} = {self._codes.get((row.direction, row.name), row.name)}"
            if part.name == NAME and self._is_binary
            else f"{part.name}: {part.type.title}"
            for part in self.header.parts
        )
        return ", ".join([*shown, codec.notation(inner) or ""])

    def wire_format(self) -> WireType | None:
        inner = next(iter(self._codecs.values())).wire_format()
        if inner is None:
            return None
        if not self._is_binary:
            framing = {**(inner["framing"] or {"kind": "lines"}), **self.header.wire()}
            return {**inner, "framing": framing, "runtime": (*inner["runtime"], "before")}
        runtime = (*inner["runtime"], "struct", "header")
        around = [self.header.wire(), inner["framing"] or {}]
        first, last = around if self._end is not None else reversed(around)
        return {**inner, "framing": {**first, **last}, "runtime": runtime}

    def wire_row(self, row: MessageType) -> WireType:
        code = self._codes.get((row.direction, row.name))
        return {**super().wire_row(row), **({} if code is None else {"code": str(code)})}

    def resembles(self, frame: bytes, direction: Direction) -> bool:
        try:
            read = self.header.read(frame)
        except Mismatch:
            return False
        codec = self._codec_of(read, direction)
        return codec is not None and (
            self.header.is_strong or codec.resembles(frame[read.start :], direction)
        )


def _violation(error: Mismatch, clause: str | None = None) -> Violation:
    place = error.start, error.end - error.start
    return error_at(error.code, error.problem, place, error.expected, clause)
