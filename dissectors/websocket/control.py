"""Messages of WebSocket itself: handshakes, ping, pong, close."""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.grammar.dissection_tree import Piece, Pieces, whole
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.grammar.fields import Number, Text
from kiebitz.dissectors.grammar.grammar import Decoded, Field, MessageType, Violation, to_json, unreadable
from kiebitz.dissectors.model import DIRECTIONS, Direction
from kiebitz.dissectors.websocket.frames import CLOSE, PING, PONG, plain_payload, write_frame
from kiebitz.dissectors.websocket.handshake import Head
from kiebitz.dissectors.websocket.violations import CLAUSE, frame_error

REQUEST, RESPONSE = "websocket-request", "websocket-response"
_CLOSE, _PING, _PONG = "websocket-close", "websocket-ping", "websocket-pong"

_CLOSE_CODES = frozenset({*range(1000, 1004), *range(1007, 1015), *range(3000, 5000)})
"""Codes that may be sent: RFC 6455, section 7.4, and IANA's registry."""

_DATA = Field("data", Text(), "the payload in hexadecimal", generated=True, optional=True)
_REQUEST_ROW = MessageType(
    REQUEST,
    "c2s",
    (Field("path", Text(), "the path that is asked for"),),
    "the client asks for WebSocket",
    clause=f"{CLAUSE}, 4.1",
    summary="{path}",
)
_RESPONSE_ROW = MessageType(
    RESPONSE,
    "s2c",
    (Field("status", Number(), "the status; 101 accepts"),),
    "the server answers",
    clause=f"{CLAUSE}, 4.2.2",
    answers=(REQUEST,),
)


def _rows(direction: Direction) -> dict[int, MessageType]:
    """Return the rows of the control frames of a direction by opcode."""
    closing = (
        Field("code", Number(), "why it closes", optional=True),
        Field("reason", Text(), "the same in words", optional=True),
    )
    return {
        CLOSE: MessageType(
            _CLOSE,
            direction,
            closing,
            "the connection is closed",
            clause=f"{CLAUSE}, 5.5.1",
            answers=(_CLOSE,),
        ),
        PING: MessageType(
            _PING, direction, (_DATA,), "a pong is asked for", clause=f"{CLAUSE}, 5.5.2", heartbeat=True
        ),
        PONG: MessageType(
            _PONG,
            direction,
            (_DATA,),
            "the answer to a ping",
            clause=f"{CLAUSE}, 5.5.3",
            answers=(_PING,),
            heartbeat=True,
        ),
    }


_BY_OPCODE = {direction: _rows(direction) for direction in DIRECTIONS}
_OPCODES = {_CLOSE: CLOSE, _PING: PING, _PONG: PONG}

ROWS = (_REQUEST_ROW, _RESPONSE_ROW, *(row for rows in _BY_OPCODE.values() for row in rows.values()))
"""The rows of all messages of WebSocket itself."""


def decode_handshake(head: Head) -> Decoded:
    """Return a decoded handshake."""
    fields: dict[str, Any] = {"path": head.target} if head.status is None else {"status": head.status}
    row = _REQUEST_ROW if head.status is None else _RESPONSE_ROW
    return Decoded(row, fields, to_json(fields), True)


def decode_control(frame: bytes, opcode: int, direction: Direction) -> Decoded:
    """Return a decoded control frame; reserved ones are unreadable."""
    row = _BY_OPCODE[direction].get(opcode)
    if row is None:
        return unreadable()
    start, payload = plain_payload(frame)
    if opcode != CLOSE:
        fields: dict[str, Any] = {"data": payload.hex()} if payload else {}
        return Decoded(row, fields, to_json(fields), True)
    fields = {}
    if len(payload) == 1:
        found = frame_error("bad-close", "a close frame has half a code", "5.5.1", "2 bytes", (start, 1))
        return Decoded(row, fields, "{}", False, (found,))
    violations: list[Violation] = []
    if payload:
        code = fields["code"] = int.from_bytes(payload[:2], "big")
        if code not in _CLOSE_CODES:
            text = f"{code} is no close code that may be sent"
            violations.append(frame_error("bad-close", text, "7.4", "a code such as 1000", (start, 2)))
    if payload[2:]:
        fields["reason"] = payload[2:].decode("utf-8", "replace")
        wrong = not_utf_8(payload[2:], start + 2)
        if wrong is not None:
            violations.append(wrong)
    return Decoded(row, fields, to_json(fields), not violations, tuple(violations))


def not_utf_8(payload: bytes, start: int) -> Violation | None:
    """Return the error of text that is not UTF-8, None if it is; the payload begins at offset `start`."""
    try:
        payload.decode()
    except UnicodeDecodeError as error:
        wrong = payload[error.start : error.end]
        text = f"the bytes {wrong.hex(' ')} are not UTF-8"
        return frame_error("not-utf-8", text, "8.1", "UTF-8 text", (start + error.start, len(wrong)))
    return None


def anatomy_of_control(frame: bytes, decoded: Decoded) -> tuple[Piece, ...]:
    """Return the annotated bytes of a handshake or control frame."""
    if decoded.row is None:
        return whole(frame, decoded, "")
    pieces = Pieces(frame)
    if decoded.row in (_REQUEST_ROW, _RESPONSE_ROW):
        first = frame.index(b" ") + 1
        end = frame.index(b" ", first) if decoded.row is _REQUEST_ROW else first + 3
        name = decoded.row.fields[0].name
        pieces.take(first, "name", "handshake")
        pieces.take(end, "field", name, (name,))
        pieces.take_any(len(frame), "markup", "head of HTTP")
        return pieces.finish(decoded)
    start, _ = plain_payload(frame)
    pieces.take(start, "name", f"frame header: {decoded.row.name.removeprefix('websocket-')}")
    if "code" in decoded.fields:
        pieces.take(start + 2, "field", "code", ("code",))
    for name in ("reason", "data"):
        if name in decoded.fields:
            pieces.take(len(frame), "field", name, (name,))
    return pieces.finish(decoded)


def encode_control(name: str, fields: Fields) -> bytes:
    """Return the plain frame of a control message; raise ValueError if it cannot be made."""
    opcode = _OPCODES.get(name)
    if opcode is None:
        raise ValueError(f"{name} cannot be written: a handshake is made by the connection")
    if opcode != CLOSE:
        return write_frame(opcode, bytes.fromhex(fields.get("data", "")))
    if "code" not in fields:
        return write_frame(CLOSE, b"")
    return write_frame(CLOSE, int(fields["code"]).to_bytes(2, "big") + str(fields.get("reason", "")).encode())
