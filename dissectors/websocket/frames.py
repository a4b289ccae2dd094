"""The frames of WebSocket: RFC 6455, section 5."""

from __future__ import annotations

from typing import NamedTuple

CONTINUATION, TEXT, BINARY = 0x0, 0x1, 0x2
CLOSE, PING, PONG = 0x8, 0x9, 0xA
OPCODES = frozenset({CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG})

FIN = 0x80
RSV1 = 0x40
"""The first reserved bit: the message is compressed (RFC 7692, section 6)."""

RESERVED = 0x70
MASKED = 0x80

MAX_CONTROL = 125
"""Maximum payload of a control frame in bytes: RFC 6455, section 5.5."""


class Header(NamedTuple):
    """The header of a frame.

    Attributes:
        first: Its first byte: FIN, the reserved bits, and the opcode.
        mask: The masking key; empty if the frame is not masked.
        start: Offset of the payload from the start of the frame.
        length: Length of the payload in bytes.
        is_shortest: True if the length has the shortest form.
    """

    first: int
    mask: bytes
    start: int
    length: int
    is_shortest: bool

    @property
    def opcode(self) -> int:
        """Opcode of the frame, which may be a reserved one."""
        return self.first & 0x0F

    @property
    def is_control(self) -> bool:
        """True for close, ping, pong and the reserved control frames."""
        return bool(self.first & 0x08)

    @property
    def end(self) -> int:
        """Length of the frame in bytes."""
        return self.start + self.length


def read_header(data: bytes | bytearray, at: int = 0) -> Header | None:
    """Return the header of the frame at an offset; None if it is incomplete."""
    if len(data) < at + 2:
        return None
    first, second = data[at], data[at + 1]
    length = second & 0x7F
    start, is_shortest = 2, True
    if length >= 126:
        size = 2 if length == 126 else 8
        if len(data) < at + 2 + size:
            return None
        length = int.from_bytes(data[at + 2 : at + 2 + size], "big")
        start, is_shortest = 2 + size, length >= (126 if size == 2 else 1 << 16)
    mask = b""
    if second & MASKED:
        if len(data) < at + start + 4:
            return None
        mask = bytes(data[at + start : at + start + 4])
        start += 4
    return Header(first, mask, start, length, is_shortest)


def write_frame(opcode: int, payload: bytes, mask: bytes = b"", bits: int = FIN) -> bytes:
    """Return a frame with the shortest header; `bits` are FIN and the reserved bits."""
    length = len(payload)
    flag = MASKED if mask else 0
    if length < 126:
        head = bytes((bits | opcode, flag | length))
    elif length < 1 << 16:
        head = bytes((bits | opcode, flag | 126)) + length.to_bytes(2, "big")
    else:
        head = bytes((bits | opcode, flag | 127)) + length.to_bytes(8, "big")
    return head + mask + masked(payload, mask)


def masked(payload: bytes, mask: bytes) -> bytes:
    """Return the payload with a mask applied or removed: RFC 6455, section 5.3."""
    size = len(payload)
    if not mask or not size:
        return payload
    key = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload, "little") ^ int.from_bytes(key, "little")).to_bytes(size, "little")


def is_plain(data: bytes) -> bool:
    """Return True if bytes are a plain frame with a message or control frame, and no handshake."""
    return bool(data) and bool(data[0] & FIN)


def plain_payload(frame: bytes) -> tuple[int, bytes]:
    """Return where the payload of a plain frame begins, and the payload."""
    header = read_header(frame)
    if header is None:
        return len(frame), b""
    return header.start, frame[header.start :]
