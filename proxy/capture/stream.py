"""The bytes of a capture file, decompressed and counted, independent of their format.

Nothing here raises for damage: a stream that cannot continue ends, and `damage` gives the reason as a clause.
So readers see only one kind of end, and keep all complete packets before it.
"""

from __future__ import annotations

import io
import sys
import zlib
from typing import TYPE_CHECKING, Protocol

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BUFFER_SIZE = 1 << 18

# Compressed input is read in pieces this small, because neither decompressor bounds the output of one call: a
# zstd block of 4 bytes can expand to 128 KiB, so that a piece grows to 16 MiB at most. It also means that no
# more than the output of one piece is lost before a damaged byte.
_PIECE = 512

GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"


class Decoder(Protocol):
    """Common interface of zlib's and zstd's decompression objects, for one member or frame."""

    @property
    def eof(self) -> bool:
        """True at the end of the member or frame."""

    @property
    def unused_data(self) -> bytes:
        """Bytes after that end."""

    def decompress(self, data: bytes, /) -> bytes:
        """Return the content of more compressed bytes."""


def _gzip_decoder() -> Decoder:
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)


def _zstd_decoder() -> Decoder:
    return zstd.ZstdDecompressor()


_DECODERS = {"gzip": _gzip_decoder, "zstd": _zstd_decoder}


def compression_of(head: bytes) -> str | None:
    """Return the compression of a file that starts with the four bytes `head`: gzip, zstd or None."""
    if head.startswith(GZIP_MAGIC):
        return "gzip"
    # RFC 8878, 3.1.1 and 3.1.2: a frame, or a skippable frame, which parallel compressors put first.
    if head == ZSTD_MAGIC or (head[1:] == b"\x2a\x4d\x18" and head[0] & 0xF0 == 0x50):
        return "zstd"
    return None


class CountedInput(io.RawIOBase):
    """A byte stream, not necessarily seekable, whose `position` counts the bytes read."""

    def __init__(self, source: io.BufferedIOBase) -> None:
        self.position = 0
        self.damage: str | None = None
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        try:
            # read1, so that packets of a live pipe arrive before the buffer is full.
            data = self._source.read1(len(view))
        except OSError as error:
            self.damage = f"reading failed at byte {self.position}: {error.strerror or error}"
            return 0
        view[: len(data)] = data
        self.position += len(data)
        return len(data)


class DecompressedInput(io.RawIOBase):
    """The content of gzip members (RFC 1952) or zstd frames (RFC 8878), one after another.

    Args:
        compressed: The compressed stream.
        head: Bytes already read from it.
        kind: The compression, as from `compression_of`.
    """

    def __init__(self, compressed: io.BufferedIOBase, head: bytes, kind: str) -> None:
        self.damage: str | None = None
        self._compressed = compressed
        self._kind = kind
        self._new_decoder = _DECODERS[kind]
        self._decoder = self._new_decoder()
        self._begun = False
        self._rest = head
        self._taken = 0
        self._content = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer)
        while not self._content:
            if not self._decompress_piece():
                return 0
        length = min(len(view), len(self._content))
        view[:length] = self._content[:length]
        self._content = self._content[length:]
        return length

    def _decompress_piece(self) -> bool:
        """Put the content of the next piece into `_content`; return False at the end, whole or damaged."""
        if self.damage is not None:
            return False
        piece = self._rest or self._compressed.read1(_PIECE)
        self._rest = b""
        if not self._begun and self._kind == "gzip":
            # gzip(1), "trailing zero bytes ignored": tapes and block devices pad their last block with zeros.
            while piece and not piece.strip(b"\0"):
                piece = self._compressed.read1(_PIECE)
        if not piece:
            if self._begun:
                self.damage = f"the {self._kind} data is truncated after {self._taken} bytes"
            return False
        self._begun = True
        try:
            content = self._decoder.decompress(piece)
        except (zlib.error, zstd.ZstdError) as error:
            self.damage = f"the {self._kind} data is damaged near byte {self._taken} ({error})"
            return False
        self._taken += len(piece)
        if self._decoder.eof:
            self._rest = self._decoder.unused_data
            self._taken -= len(self._rest)
            self._decoder = self._new_decoder()
            self._begun = False
        self._content = memoryview(content)
        return True
