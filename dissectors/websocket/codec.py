"""The codec of plain frames of WebSocket; the protocol's own codec reads and writes their payload."""

from __future__ import annotations

from kiebitz.dissectors.grammar.codec import CarriedCodec, Codec
from kiebitz.dissectors.grammar.dissection_tree import Piece, Pieces, not_understood
from kiebitz.dissectors.grammar.field_type import Fields, WireType
from kiebitz.dissectors.grammar.grammar import Decoded, MessageType, Violation, error_at, unreadable
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

_CONTROL_NAMES = frozenset(row.name for row in ROWS)
_WIRE_LIMITS = (
    "handshakes, pings and close frames are Wireshark's own",
    "Wireshark reads WebSocket at the ports in the preferences of the protocol",
)
"""Limits of Wireshark, whose own dissector reads WebSocket."""

_NAMES = {TEXT: "text", BINARY: "binary"}


class WebSocketCodec(CarriedCodec):
    """The codec of a protocol over WebSocket; `inner` is that of its messages, `opcode` that of new ones."""

    def __init__(self, inner: Codec, opcode: int = TEXT) -> None:
        self.inner = inner
        self._opcode = opcode
        self.wire_fallback = inner.wire_fallback

    def decode(self, frame: bytes, direction: Direction) -> Decoded:
        if not is_plain(frame):
            head = read_head(frame)
            return unreadable() if head is None else decode_handshake(head)
        opcode = frame[0] & 0x0F
        if opcode not in _NAMES:
            return decode_control(frame, opcode, direction)
        wrong = _wrong_text(frame)
        if wrong is not None:
            return unreadable(wrong)
        return self.decode_inner(self.inner, frame, self.start_of(frame), direction)

    def truncated(self, frame: bytes, direction: Direction) -> Decoded:
        text = "the stream ends in this frame"
        return unreadable(error_at("truncated", text, (len(frame), 0), "the rest of it"))

    def encode(self, name: str, direction: Direction, fields: Fields) -> bytes:
        if name in _CONTROL_NAMES:
            return encode_control(name, fields)
        return write_frame(self._opcode, self.inner.encode(name, direction, fields))

    def rewrite(self, frame: bytes, direction: Direction, fields: Fields) -> bytes:
        if not is_message(frame):
            return super().rewrite(frame, direction, fields)
        return write_frame(frame[0] & 0x0F, self.inner.rewrite(plain_payload(frame)[1], direction, fields))

    def anatomy(self, frame: bytes, direction: Direction) -> tuple[Piece, ...]:
        decoded = self.decode(frame, direction)
        if not is_message(frame):
            return anatomy_of_control(frame, decoded)
        start, payload = plain_payload(frame)
        title = f"frame header: {_NAMES[frame[0] & 0x0F]}, {len(payload):,} bytes"
        if _wrong_text(frame) is not None:
            pieces = Pieces(frame)
            pieces.take_any(start, "markup", title)
            pieces.take_any(len(frame), *not_understood(decoded))
            return pieces.finish(decoded)
        return (Piece(0, start, 0, "markup", title), *self.inner_pieces(self.inner, frame, start, direction))

    def start_of(self, frame: bytes) -> int:
        return plain_payload(frame)[0]

    def inner_of(self, row: MessageType) -> tuple[Codec, MessageType] | None:
        return None if row.name in _CONTROL_NAMES else (self.inner, row)

    @property
    def productions(self) -> tuple[str, ...]:
        return self.inner.productions

    def wire_format(self) -> WireType | None:
        inner = self.inner.wire_format()
        if inner is None:
            return None
        limits = (*inner.get("limits", ()), *_WIRE_LIMITS)
        return {**inner, "table": "ws.port", "limits": limits}

    def resembles(self, frame: bytes, direction: Direction) -> bool:
        return is_message(frame) and self.inner.resembles(plain_payload(frame)[1], direction)


def _wrong_text(frame: bytes) -> Violation | None:
    """Return the violation of a message that is text by its header, but not in UTF-8."""
    start, payload = plain_payload(frame)
    return not_utf_8(payload, start) if frame[0] & 0x0F == TEXT else None


def is_message(frame: bytes) -> bool:
    """Return True if a plain frame has a message of the protocol, and is none of WebSocket itself."""
    return is_plain(frame) and frame[0] & 0x0F in _NAMES
