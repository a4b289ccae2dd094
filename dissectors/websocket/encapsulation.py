"""Encapsulation in WebSocket: from the recorded bytes of a message to its plain frame, and back."""

from __future__ import annotations

import zlib

from kiebitz.dissectors.grammar.framing import Frame
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.websocket.codec import is_message
from kiebitz.dissectors.websocket.framer import WebSocketFramer
from kiebitz.dissectors.websocket.frames import BINARY, RSV1, TEXT, is_plain, plain_payload, write_frame
from kiebitz.dissectors.websocket.handshake import KEY, REQUEST, fitted, may_begin, read_head, response_to
from kiebitz.dissectors.websocket.rewriting import Rewrite, blanked, rewritten, rewritten_head


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
