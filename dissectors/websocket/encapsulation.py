"""Encapsulation in WebSocket: from the recorded bytes of a message to its plain frame, and back."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from http import HTTPStatus

from kiebitz.dissectors.grammar.framing import Frame
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.websocket.codec import is_message
from kiebitz.dissectors.websocket.framer import WebSocketFramer
from kiebitz.dissectors.websocket.frames import (
    BINARY,
    CLOSE,
    FIN,
    OPCODES,
    RSV1,
    TEXT,
    Header,
    is_plain,
    masked,
    plain_payload,
    read_header,
    write_frame,
)
from kiebitz.dissectors.websocket.handshake import KEY, REQUEST, fitted, may_begin, read_head, response_to


class WebSocketEncapsulation:
    """Messages in WebSocket: clients mask them, and both sides may fragment and compress them."""

    def needs_history(self, recorded: bytes) -> bool:
        """Return True if a message that begins with these bytes cannot be read without those before it."""
        return bool(recorded) and bool(recorded[0] & RSV1) and recorded[0] & 0x0F in (TEXT, BINARY)

    def unwrap(self, recorded: bytes, direction: Direction) -> Frame | None:
        """Return the frame in the recorded bytes of one message; None if there is none."""
        framer = WebSocketFramer(direction, begins=may_begin(recorded, direction))
        # Control frames between the fragments of a message are messages of their own.
        return next((frame for frame in framer.feed(0, recorded) if frame.offset == 0), None)

    def has_message(self, frame: bytes) -> bool:
        """Return True if a frame has a message of the protocol, and is none of the encapsulation itself."""
        return is_message(frame)

    def content_start(self, frame: bytes) -> int:
        """Return where the protocol's own message begins in a frame."""
        return plain_payload(frame)[0] if is_plain(frame) else 0

    def rewritten(self, frame: Frame, recorded: bytes, message: bytes, other: Rewrite) -> bytes:
        """Return recorded bytes with another message, in as many bytes unless they were compressed.

        Args:
            frame: The frame in the recorded bytes.
            recorded: All bytes of the frame in the stream.
            message: The frame with the other message.
            other: Returns other bytes for what the encapsulation itself sends, as many as they were.
        """
        if not is_plain(frame.data):
            return rewritten_head(recorded, other)
        size = sum(length for _, _, length in frame.spans)
        is_compressed = bool(recorded[0] & RSV1) and size == 0
        return rewritten(recorded, plain_payload(message)[1], is_compressed, other)

    def blanked(self, recorded: bytes) -> bytes:
        """Return recorded bytes that begin a frame, and cannot be read, without their content."""
        return blanked(recorded)

    def opening(self, direction: Direction) -> bytes:
        """Return the bytes with which a direction begins, before its first message."""
        return REQUEST if direction == "c2s" else response_to(KEY)

    def fitting(self, frame: bytes, received: bytes) -> bytes:
        """Return a recorded frame as the answer to the last frame that was received."""
        if is_plain(frame) or is_plain(received):
            return frame
        response, request = read_head(frame), read_head(received)
        if response is None or request is None or response.status != 101:
            return frame
        return fitted(frame, request)

    def wrap(self, frame: bytes, direction: Direction) -> bytes:
        """Return the bytes to send for a frame."""
        if not is_plain(frame):
            return frame
        _, payload = plain_payload(frame)
        # The same message has the same mask, so that what is sent can be reproduced.
        mask = zlib.crc32(payload).to_bytes(4, "big") if direction == "c2s" else b""
        return write_frame(frame[0] & 0x0F, payload, mask)


Rewrite = Callable[[bytes], bytes]
"""Function from bytes to as many other bytes."""

_KEPT = re.compile(
    rb"(connection|upgrade|sec-websocket-(?:accept|extensions|key|version)|content-length)", re.I
)
_NAMES = re.compile(
    rb"(host|origin|user-agent|cookie|set-cookie|authorization|server|date|referer|pragma|cache-control"
    rb"|accept(-[a-z]+)?|sec-websocket-protocol|content-type|transfer-encoding)",
    re.I,
)
"""Names of fields of a handshake that are not personal, though their values may be."""

_LINE = re.compile(rb"([^\r\n]*)(\r?\n|$)")
_REQUEST = re.compile(rb"([A-Z]{1,20} )(\S+)( HTTP/1\.\d)")
_STATUS = re.compile(rb"(HTTP/1\.\d )(\d{3})( ?)(.*)")


def rewritten_head(head: bytes, other: Rewrite) -> bytes:
    """Return the head of a handshake with other values, except those that open the connection."""
    first, *lines = _LINE.findall(head)
    found = [_first_line(first[0], other) + first[1]]
    for text, end in lines:
        name, colon, value = text.partition(b":")
        if not _KEPT.fullmatch(name):
            text = (name if _NAMES.fullmatch(name) else other(name)) + colon + _without_digits(other(value))
        found.append(text + end)
    return b"".join(found)


def _first_line(line: bytes, other: Rewrite) -> bytes:
    if (request := _REQUEST.fullmatch(line)) is not None:
        return request[1] + _without_digits(other(request[2])) + request[3]
    if (status := _STATUS.fullmatch(line)) is not None:
        usual = int(status[2]) in [*HTTPStatus] and HTTPStatus(int(status[2])).phrase.encode() == status[4]
        return status[1] + status[2] + status[3] + (status[4] if usual else other(status[4]))
    return other(line)


def _without_digits(value: bytes) -> bytes:
    """Return a value without the digits of addresses, which short numbers may be."""
    return re.sub(rb"[0-9]", b"0", value)


def rewritten(recorded: bytes, payload: bytes, is_compressed: bool, other: Rewrite) -> bytes:
    """Return the frames of a message with another payload.

    The payload is as long as that of the message. A compressed message becomes an uncompressed one, whose
    fragments after the first are empty. The masks stay.

    Args:
        recorded: The frames, with the control frames between them.
        payload: The other payload.
        is_compressed: True if the recorded payload is compressed.
        other: Rewrites the payloads of control frames.
    """
    frames = [*_frames(recorded)]
    found: list[bytes] = []
    at = 0
    for header, data in frames:
        if header.is_control:
            found.append(_with_payload(recorded, header, at, _control(header, data, other)))
        elif is_compressed:
            found.append(write_frame(header.opcode, payload, header.mask, header.first & FIN))
            payload = b""
        else:
            found.append(_with_payload(recorded, header, at, payload[: len(data)]))
            payload = payload[len(data) :]
        at += header.end
    return b"".join(found)


def blanked(recorded: bytes) -> bytes:
    """Return frames that cannot be read with question marks as payloads; the last one may be incomplete."""
    found: list[bytes] = []
    at = 0
    while (header := read_header(recorded, at)) is not None and header.opcode in OPCODES:
        size = min(header.length, len(recorded) - at - header.start)
        found.append(_with_payload(recorded, header, at, b"?" * size))
        at += header.start + size
    return b"".join(found) + b"?" * (len(recorded) - at)


def _frames(recorded: bytes) -> Iterator[tuple[Header, bytes]]:
    """Yield the frames with their payloads, without masks."""
    at = 0
    while (header := read_header(recorded, at)) is not None and at + header.end <= len(recorded):
        data = recorded[at + header.start : at + header.end]
        yield header, masked(data, header.mask)
        at += header.end


def _with_payload(recorded: bytes, header: Header, at: int, payload: bytes) -> bytes:
    return recorded[at : at + header.start] + masked(payload, header.mask)


def _control(header: Header, data: bytes, other: Rewrite) -> bytes:
    """Return the payload of a control frame; the first two bytes of a close frame are its code."""
    kept = data[:2] if header.opcode == CLOSE else b""
    return kept + other(data[len(kept) :])
