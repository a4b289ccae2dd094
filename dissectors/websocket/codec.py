"""The codec of plain frames of WebSocket; the protocol's own codec reads and writes their payload."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.codec import Codec
from kiebitz.dissectors.grammar.dissection_tree import Piece
from kiebitz.dissectors.grammar.grammar import Decoded, Field, MessageType, Violation, unreadable
from kiebitz.dissectors.grammar.patching import Place
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.websocket.control import (
    ROWS,
    anatomy_of_control,
    decode_control,
    decode_handshake,
    encode_control,
    not_utf_8,
)
from kiebitz.dissectors.websocket.frames import BINARY, TEXT, is_plain, plain_payload, write_frame
from kiebitz.dissectors.websocket.handshake import read_head
from kiebitz.dissectors.websocket.violations import moved

_CONTROL_NAMES = frozenset(row.name for row in ROWS)
_NAMES = {TEXT: "text", BINARY: "binary"}


class WebSocketCodec(Codec):
    """The codec of a protocol over WebSocket; `inner` is that of its messages, `opcode` that of new ones."""

    def __init__(self, inner: Codec, opcode: int = TEXT) -> None:
        self.inner = inner
        self._opcode = opcode

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        if not is_plain(frame):
            head = read_head(frame)
            return unreadable() if head is None else decode_handshake(head)
        opcode = frame[0] & 0x0F
        if opcode not in _NAMES:
            return decode_control(frame, opcode, direction)
        start, payload = plain_payload(frame)
        wrong = not_utf_8(payload, start) if opcode == TEXT else None
        if wrong is not None:
            return unreadable(wrong)
        decoded = self.inner.decode(payload, direction)
        if not decoded.violations:
            return decoded
        found = tuple(_shifted(violation, start) for violation in decoded.violations)
        return msgspec.structs.replace(decoded, violations=found)

    def truncated(self, frame: bytes, direction: Direction) -> Decoded:
        text = "the stream ends in this frame"
        return unreadable(Violation("error", "malformed", "truncated", text, len(frame), 0, "the rest of it"))

    def encode(self, name: str, direction: Direction, fields: Mapping[str, Any]) -> bytes:
        if name in _CONTROL_NAMES:
            return encode_control(name, fields)
        return write_frame(self._opcode, self.inner.encode(name, direction, fields))

    def rewrite(self, frame: bytes, direction: Direction, fields: Mapping[str, Any]) -> bytes:
        if not is_message(frame):
            return super().rewrite(frame, direction, fields)
        return write_frame(frame[0] & 0x0F, self.inner.rewrite(plain_payload(frame)[1], direction, fields))

    def anatomy(self, frame: bytes, direction: Direction) -> tuple[Piece, ...]:
        decoded = self.decode(frame, direction)
        if not is_message(frame):
            return anatomy_of_control(frame, decoded)
        start, payload = plain_payload(frame)
        title = f"frame header: {_NAMES[frame[0] & 0x0F]}, {len(payload):,} bytes"
        inner = self.inner.anatomy(payload, direction)
        moved = (msgspec.structs.replace(piece, offset=piece.offset + start) for piece in inner)
        return (Piece(0, start, 0, "markup", title), *moved)

    def text_place(self, frame: bytes, row: MessageType, name: str) -> Place | None:
        return self._place(self.inner.text_place, frame, row, name)

    def whole_place(self, frame: bytes, row: MessageType, name: str) -> Place | None:
        return self._place(self.inner.whole_place, frame, row, name)

    def _place(
        self,
        find: Callable[[bytes, MessageType, str], Place | None],
        frame: bytes,
        row: MessageType,
        name: str,
    ) -> Place | None:
        """Return a place that the inner codec finds in the payload, in the frame."""
        if row.name in _CONTROL_NAMES:
            return None
        start, payload = plain_payload(frame)
        place = find(payload, row, name)
        return None if place is None else (place[0] + start, place[1])

    def twice(self, whole: bytes) -> bytes:
        return self.inner.twice(whole)

    def as_text(self, frame: bytes, row: MessageType, field: Field, text: str) -> bytes:
        return self.inner.as_text(plain_payload(frame)[1], row, field, text)

    def notation(self, row: MessageType) -> str | None:
        return self.inner.notation(row) if row.name not in _CONTROL_NAMES else None

    @property
    def productions(self) -> tuple[str, ...]:
        return self.inner.productions

    def resembles(self, frame: bytes, direction: Direction) -> bool:
        return is_message(frame) and self.inner.resembles(plain_payload(frame)[1], direction)


def is_message(frame: bytes) -> bool:
    """Return True if a plain frame has a message of the protocol, and is none of WebSocket itself."""
    return is_plain(frame) and frame[0] & 0x0F in _NAMES


def _shifted(violation: Violation, start: int) -> Violation:
    """Return a violation whose place counts from the frame instead of its payload."""
    locate = violation.locate
    if locate is None:
        return moved(violation, start)

    def located(frame: bytes) -> Place:
        at, payload = plain_payload(frame)
        offset, length = locate(payload)
        return offset + at, length

    return msgspec.structs.replace(violation, locate=located)
