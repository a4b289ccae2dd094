"""Decompression of messages: permessage-deflate, RFC 7692."""

from __future__ import annotations

import zlib

MAX_INFLATED = 16 << 20
"""Maximum size in bytes to which a message is decompressed; of more, the rest of the stream is unreadable."""

_TAIL = b"\x00\x00\xff\xff"
"""Bytes that a sender removes from the end of a message: RFC 7692, section 7.2.1."""

_WINDOW = 32 << 10


class Inflater:
    """The decompressor of one direction; messages may refer to earlier ones."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(-zlib.MAX_WBITS)
        self._window = b""
        self.is_lost = False
        """True if earlier bytes are unknown: a message that refers to them cannot be read."""

    def inflate(self, payload: bytes, limit: int) -> bytes | None:
        """Return a message, or its first bytes: at most one more than `limit`; None if it is not readable."""
        found = bytearray()
        size = 0
        rest = payload + _TAIL
        try:
            while rest and not self._stream.eof and size <= MAX_INFLATED:
                piece = self._stream.decompress(rest, 1 << 16)
                rest = self._stream.unconsumed_tail
                if not piece and not rest:
                    break
                size += len(piece)
                self._window = (self._window + piece)[-_WINDOW:]
                found += piece[: limit + 1 - len(found)]
        except zlib.error:
            self.forget()
            return None
        if self._stream.eof:
            # A last block: the next message begins a new stream, which may refer to this one.
            self._stream = zlib.decompressobj(-zlib.MAX_WBITS, self._window)
        elif size > MAX_INFLATED:
            self.forget()
        return bytes(found)

    def forget(self) -> None:
        """Forget all earlier bytes, as some are missing."""
        self._stream = zlib.decompressobj(-zlib.MAX_WBITS)
        self._window = b""
        self.is_lost = True
