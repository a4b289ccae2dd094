"""Digest of a capture's decompressed content, which is the same for compressed and plain files."""

from __future__ import annotations

import hashlib
import io

from kiebitz.proxy.capture.files import CaptureError, open_capture
from kiebitz.proxy.capture.stream import BUFFER_SIZE, DecompressedInput, compression_of


def content_digest(path: str, most: int) -> str:
    """Return the SHA-256 of a capture file's content in hexadecimal.

    Raises:
        CaptureError: the file is no capture, cannot be read, or has more than `most` bytes of content.
    """
    # Reports precisely what is wrong with a file that is no capture.
    open_capture(path).close()
    digest = hashlib.sha256()
    size = 0
    try:
        with open(path, "rb") as file:
            compression = compression_of(file.peek(4)[:4])
            content: io.BufferedIOBase = file
            if compression:
                content = io.BufferedReader(DecompressedInput(file, file.read(4), compression), BUFFER_SIZE)
            while piece := content.read(BUFFER_SIZE):
                digest.update(piece)
                size += len(piece)
                if size > most:
                    raise CaptureError(f"{path} unpacks to more than {most >> 30} GiB: import it by itself")
    except OSError as error:
        raise CaptureError(f"{path} cannot be read: {error.strerror or error}") from error
    return digest.hexdigest()
