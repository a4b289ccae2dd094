"""Codecs: from frames to messages and back, also by the codec of a message that a frame carries."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

import msgspec

from kiebitz.dissectors.grammar.dissection_tree import Piece, whole
from kiebitz.dissectors.grammar.field_type import UNWRITABLE, Fields, WireType
from kiebitz.dissectors.grammar.grammar import (
    Decoded,
    Field,
    MessageType,
    Place,
    error_at,
    to_json,
    unreadable,
)
from kiebitz.dissectors.model import Direction

_MAX_QUOTED = 40
"""Maximum length of quoted fields that cannot be written, in characters."""


class Codec(ABC):
    """Decodes and encodes the messages of one protocol."""

    @abstractmethod
    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        """Return a decoded frame. Never raises; errors are in the result's violations."""

    def truncated(self, frame: bytes, direction: Direction) -> Decoded:
        """Return the decoded rest of a stream that ends within a message. Never raises."""
        return unreadable(error_at("truncated", "the stream ends in this message", (len(frame), 0)))

    @abstractmethod
    def encode(self, name: str, direction: Direction, fields: Fields) -> bytes:
        """Return the frame of a message; raise ValueError if no row of the grammar has these fields."""

    def rewrite(self, frame: bytes, direction: Direction, fields: Fields) -> bytes:
        """Return the frame with other values in its fields and, if possible, its original spelling.

        Otherwise it has the spelling of the specification. Raises ValueError if no row of this name has these
        fields.
        """
        decoded = self.decode(frame, direction)
        row = decoded.row
        if row is None:
            raise ValueError(f"no message can be made out in this frame of {len(frame)} bytes")
        wanted = to_json(fields)
        if wanted == decoded.fields_json:
            return frame
        for written in self._spellings(frame, row, decoded.fields, fields):
            again = self.decode(written, direction)
            same_name = again.row is not None and again.row.name == row.name
            if same_name and again.fields_json == wanted and again.valid >= decoded.valid:
                return written
        raise ValueError(
            f"{direction} {row.name} cannot be written with these fields: {wanted[:_MAX_QUOTED]}"
        )

    def _spellings(self, frame: bytes, row: MessageType, before: Fields, fields: Fields) -> Iterator[bytes]:
        """Yield the patched frame, then one in the specification's spelling, if they can be made."""
        with suppress(*UNWRITABLE):
            yield self.patch(frame, row, before, fields)
        with suppress(*UNWRITABLE):
            yield self.encode(row.name, row.direction, fields)

    def patch(self, frame: bytes, row: MessageType, before: Fields, fields: Fields) -> bytes:
        """Return a frame of this row with only the bytes of changed values replaced.

        `before` are the frame's fields. Raises ValueError if it cannot be done. `rewrite` checks that the
        result decodes to the new fields.
        """
        return self.encode(row.name, row.direction, fields)

    def anatomy(self, frame: bytes, direction: Direction) -> tuple[Piece, ...]:
        """Return the annotated bytes of a frame; see `Piece`. Never raises.

        By default the frame is one piece.
        """
        decoded = self.decode(frame, direction)
        notation = self.notation(decoded.row) if decoded.row is not None else None
        return whole(frame, decoded, notation or "message")

    def text_place(self, frame: bytes, row: MessageType, name: str) -> Place | None:
        """Return the place of a field's text in a valid frame by its anatomy, None if it is not known."""
        piece = next((each for each in self.anatomy(frame, row.direction) if each.path == (name,)), None)
        return None if piece is None else (piece.offset, piece.length)

    def whole_place(self, frame: bytes, row: MessageType, name: str) -> Place | None:
        """Return the place of a field and of the bytes that belong to it alone, such as a delimiter.

        Removing these bytes removes the field; repeating them duplicates it.
        """
        before: Piece | None = None
        for piece in self.anatomy(frame, row.direction):
            if piece.path == (name,):
                start = before.offset if before is not None and before.kind == "markup" else piece.offset
                return start, piece.end - start
            if piece.depth == 0:
                before = piece
        return None

    def twice(self, whole: bytes, row: MessageType) -> bytes:
        """Return the bytes of a `whole_place`, doubled."""
        return whole * 2

    def as_text(self, frame: bytes, row: MessageType, field: Field, text: str) -> bytes:
        """Return any text, valid or not, as it is written in a field of such a frame.

        Half a surrogate pair represents a byte that is not UTF-8 (`surrogateescape`).
        """
        return text.encode("utf-8", "surrogateescape")

    def notation(self, row: MessageType) -> str | None:
        """Return the specification's notation of such a message, None if it has none."""
        return None

    @property
    def productions(self) -> tuple[str, ...]:
        """The productions of the symbols in `notation`."""
        return ()

    wire_fallback = "text"
    """Kind of wire type for a field type without a declarative description."""

    def wire_format(self) -> WireType | None:
        """Return a declarative description of the format, if there is one."""
        return None

    def wire_row(self, row: MessageType) -> WireType:
        """Return what else describes a row, beside its name and its fields."""
        return {}

    def resembles(self, frame: bytes, direction: Direction) -> bool:
        """Return True if an invalid frame looks like a malformed message of this protocol."""
        return self.decode(frame, direction).row is not None


class CarriedCodec(Codec):
    """A codec of frames that have a message, perhaps after bytes of their own."""

    def start_of(self, frame: bytes) -> int:
        """Return the offset of the message in a frame."""
        return 0

    @abstractmethod
    def inner_of(self, row: MessageType) -> tuple[Codec, MessageType] | None:
        """Return the codec of a row's messages, and its own row; None if the frame itself is the message."""

    def decode_inner(self, inner: Codec, frame: bytes, start: int, direction: Direction) -> Decoded:
        """Return the decoded message at an offset, with the places of its violations in the frame."""
        decoded = inner.decode(frame[start:], direction)
        if not decoded.violations:
            return decoded
        found = tuple(violation.inside(start) for violation in decoded.violations)
        return msgspec.structs.replace(decoded, violations=found)

    def inner_pieces(self, inner: Codec, frame: bytes, start: int, direction: Direction) -> tuple[Piece, ...]:
        """Return the annotated bytes of the message at an offset."""
        pieces = inner.anatomy(frame[start:], direction)
        return tuple(msgspec.structs.replace(piece, offset=piece.offset + start) for piece in pieces)

    def text_place(self, frame: bytes, row: MessageType, name: str) -> Place | None:
        return self._place(lambda codec, *about: codec.text_place(*about, name), frame, row)

    def whole_place(self, frame: bytes, row: MessageType, name: str) -> Place | None:
        return self._place(lambda codec, *about: codec.whole_place(*about, name), frame, row)

    def _place(
        self, find: Callable[[Codec, bytes, MessageType], Place | None], frame: bytes, row: MessageType
    ) -> Place | None:
        """Return a place that the inner codec finds in the message, in the frame."""
        inner = self.inner_of(row)
        if inner is None:
            return None
        start = self.start_of(frame)
        place = find(inner[0], frame[start:], inner[1])
        return None if place is None else (place[0] + start, place[1])

    def twice(self, whole: bytes, row: MessageType) -> bytes:
        inner = self.inner_of(row)
        return super().twice(whole, row) if inner is None else inner[0].twice(whole, inner[1])

    def as_text(self, frame: bytes, row: MessageType, field: Field, text: str) -> bytes:
        inner = self.inner_of(row)
        if inner is None:
            return super().as_text(frame, row, field, text)
        return inner[0].as_text(frame[self.start_of(frame) :], inner[1], field, text)

    def notation(self, row: MessageType) -> str | None:
        inner = self.inner_of(row)
        return None if inner is None else inner[0].notation(inner[1])

    def wire_row(self, row: MessageType) -> Mapping[str, object]:
        inner = self.inner_of(row)
        return {} if inner is None else inner[0].wire_row(inner[1])
