"""The base of codecs of frames that carry a message: other codecs read and write the message."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping

import msgspec

from kiebitz.dissectors.grammar.codec import Codec
from kiebitz.dissectors.grammar.dissection_tree import Piece
from kiebitz.dissectors.grammar.grammar import Decoded, Field, MessageType
from kiebitz.dissectors.grammar.patching import Place
from kiebitz.dissectors.model import Direction


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
