"""What is in a capture file, unpacked, by its digest: a capture is the same one, compressed or not."""

from __future__ import annotations

import hashlib
import io

from kiebitz.proxy.capture.files import CaptureError, open_capture
from kiebitz.proxy.capture.stream import BUFFER_SIZE, DecompressedInput, compression_of


def content_digest(path: str, most: int) -> str:
    """The SHA-256 of what is in a capture file, in hexadecimal.

    Raises CaptureError if there is no capture, or none that can be read, or more than `most` bytes.
    """
    # Says well what is wrong with a file that is none.
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
