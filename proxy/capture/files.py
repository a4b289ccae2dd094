"""Capture files: opening, recognition of formats, and iteration over packets.

Supported are pcap and pcapng, plain or compressed with gzip or zstd, from a file or a pipe. A damaged capture
is read as far as possible, and then describes what is missing; unrecognised content raises CaptureError.

The bytes of a capture file, decompressed and counted, independent of their format.

Nothing here raises for damage: a stream that cannot continue ends, and `damage` gives the reason as a clause.
So readers see only one kind of end, and keep all complete packets before it.
"""

from __future__ import annotations

import difflib
import hashlib
import io
import itertools
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.suggestions import did_you_mean
from kiebitz.proxy.capture.formats import SECTION_HEADER, HeaderError
from kiebitz.proxy.capture.packets import RawPacket
from kiebitz.proxy.capture.pcap import PCAP_MAGICS, PcapRecords
from kiebitz.proxy.capture.pcapng import PcapNgRecords

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


_DECODERS: dict[str, Callable[[], Any]] = {
    "gzip": partial(zlib.decompressobj, wbits=zlib.MAX_WBITS | 16),
    "zstd": zstd.ZstdDecompressor,
}
"""Makes a decompressor for one member or frame, with `decompress`, `eof` and `unused_data`."""


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


_SUPPORTED_FORMATS = "supported are pcap and pcapng, also in .gz and .zst"
_MAX_NEIGHBOURS = 10_000


class CaptureError(KiebitzError):
    """A capture cannot be opened. The text is a sentence for the user: what, where, and what to do."""


class CaptureFile:
    """The packets of one capture, in file order, as `RawPacket` tuples; iterate over it once.

    `name` is for messages; `size` is in bytes, None for a pipe. `truncated` is complete after the iteration,
    as are the reader's `damages` (a clause for each damaged place), `faults` (number of unusable packets and
    interfaces, by kind) and `dropped` (number of packets that the capturing machine has dropped).
    """

    def __init__(
        self,
        name: str,
        size: int | None,
        counted: CountedInput,
        decompressed: DecompressedInput | None,
        reader: PcapRecords | PcapNgRecords,
        owned: io.BufferedIOBase | None,
    ) -> None:
        self.name = name
        self.size = size
        self._counted = counted
        self._decompressed = decompressed
        self.reader = reader
        self._owned = owned
        self._records: Iterator[RawPacket] = reader.records()

    def __iter__(self) -> Iterator[RawPacket]:
        return self._records

    def __enter__(self) -> CaptureFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def position(self) -> int:
        """Bytes of the file read so far, as stored on disk: compressed, if it is."""
        return self._counted.position

    @property
    def truncated(self) -> str | None:
        """A clause that says what is missing at the end; None if nothing is."""
        damage = self._decompressed.damage if self._decompressed else None
        parts = [self.reader.truncated, damage, self._counted.damage]
        return "; ".join(part for part in parts if part) or None

    def close(self) -> None:
        """Close the file, unless the caller opened it."""
        if self._owned is not None:
            self._owned.close()


def open_capture(source: str | io.BufferedIOBase) -> CaptureFile:
    """Open the capture at a path, in standard input (`-`), or in a binary stream that need not be seekable.

    Raises:
        CaptureError: there is no capture, or it cannot be read.
    """
    if not isinstance(source, str):
        return _recognise(getattr(source, "name", "the stream"), source, None, None)
    if source == "-":
        return _recognise("standard input", standard_input(), None, None)
    try:
        file = open(source, "rb")  # noqa: SIM115  # the CaptureFile closes it
    except FileNotFoundError as error:
        raise CaptureError(f"there is no file {source}{_suggestion(source)}") from error
    except IsADirectoryError as error:
        raise CaptureError(f"{source} is a directory: name a capture file in it") from error
    except PermissionError as error:
        raise CaptureError(f"{source} is not readable by this user: check its permissions") from error
    except (OSError, ValueError) as error:
        raise CaptureError(f"{source} cannot be opened: {error}") from error
    status = os.fstat(file.fileno())
    try:
        return _recognise(source, file, status.st_size if stat.S_ISREG(status.st_mode) else None, file)
    except BaseException:
        file.close()
        raise


def standard_input() -> io.BufferedIOBase:
    """Return standard input as a binary stream. Raises CaptureError if it is closed or a terminal."""
    if sys.stdin is None:
        raise CaptureError("standard input is closed: name a capture file, or pipe one into it")
    if sys.stdin.isatty():
        raise CaptureError(
            "standard input is a terminal: pipe a capture into it, such as that of tcpdump -U -w -"
        )
    stdin = sys.stdin.buffer
    assert isinstance(stdin, io.BufferedIOBase)
    return stdin


def _recognise(
    name: str, source: io.BufferedIOBase, size: int | None, owned: io.BufferedIOBase | None
) -> CaptureFile:
    counted = CountedInput(source)
    stream: io.BufferedReader[io.RawIOBase] = io.BufferedReader(counted, BUFFER_SIZE)
    head = stream.read(4)
    decompressed = None
    place = name
    compression = compression_of(head)
    if compression:
        decompressed = DecompressedInput(stream, head, compression)
        stream = io.BufferedReader(decompressed, BUFFER_SIZE)
        head = stream.read(4)
        place = f"the {compression} content of {name}"
    damage = (decompressed and decompressed.damage) or counted.damage
    if len(head) < 4 and damage:
        raise CaptureError(f"{name} cannot be read: {damage}")
    if not head:
        raise CaptureError(f"{place} is empty: there is no capture in it")
    reader: PcapRecords | PcapNgRecords
    try:
        if head in PCAP_MAGICS:
            reader = PcapRecords(stream, head)
        elif head == SECTION_HEADER:
            reader = PcapNgRecords(stream)
        else:
            raise CaptureError(
                f"{place} is not a capture: it starts with {_head_text(head + stream.read(12))}; "
                f"{_SUPPORTED_FORMATS}"
            )
    except HeaderError as error:
        raise CaptureError(f"{place} cannot be read: its header is {error}") from error
    return CaptureFile(name, size, counted, decompressed, reader, owned)


def _head_text(head: bytes) -> str:
    """Return the first bytes of a file as text if they are printable ASCII, else in hexadecimal."""
    text = head.decode("ascii", "replace")
    return repr(text) if text.isascii() and text.replace("\n", "").isprintable() else head.hex(" ")


def _suggestion(path: str) -> str:
    """Return a clause that names the most similar file name in the folder, or nothing."""
    folder, wanted = os.path.split(path)
    try:
        with os.scandir(folder or ".") as entries:
            names = [entry.name for entry in itertools.islice(entries, _MAX_NEIGHBOURS)]
    except (OSError, ValueError):
        return ""
    near = difflib.get_close_matches(wanted, names, n=1)
    return f"; {did_you_mean(os.path.join(folder, near[0]))}" if near else ""


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
