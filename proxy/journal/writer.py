"""The journal between the forwarder and the recorder: an append-only queue on disk, in segments.

The forwarder writes forwarded traffic with `JournalWriter`; another process reads it with `JournalReader`.
They share only the directory: a slow reader never slows the writer, memory is bounded on both sides, and if
either is killed, all flushed records remain (and in practice never left the page cache).

Segments are named `00000001.journal`, `00000002.journal` and so on. Each is a sequence of records and never
changes once it has a successor; an incomplete record at its end counts as not written. A record is a head and
its payload:

    kind u8 | direction u8 | 2 bytes of padding | stream u32 | payload length u32 | time i64, ns | offset u64
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from struct import Struct

import msgspec

from kiebitz.dissectors.model import Blame, Direction, Group, Severity, Transport
from kiebitz.proxy.alterer import Mark

MAX_PAYLOAD = 1 << 20
"""Maximum payload of a record in bytes; a larger length in a head means damage."""

FLUSH_BYTES = 64 << 10
_MAX_LOST_STREAMS = 16_384
"""Maximum number of remembered streams that began and ended while nothing could be written."""

HEAD = Struct("<BBxxIIqQ")
"""A record's head."""

LENGTH = Struct("<Q")
"""A gap's payload: the number of missing bytes; empty if unknown."""

OPEN, CHUNK, GAP, FAULT, END, STOP, ALTERED, CUT, DETAILED_FAULT = range(1, 10)
"""Kinds of records: stream opened, bytes, missing bytes, fault, stream ended, end of the journal.

Then an alteration by Kiebitz. The last two come from captures only: a truncated datagram, with the number of
missing bytes before its bytes, and a fault with all details. An older reader takes an unknown kind for
damage.
"""

MAX_ALTERED = 2 * MAX_PAYLOAD + (64 << 10)
"""Maximum payload of an alteration: the original bytes, and as much again for the fields."""

_MAX_RULE = 4096
_MAX_NAME = 1024


class FaultDetails(msgspec.Struct, array_like=True):
    """Details of a fault that a capture reveals, with the fields of `Fault`."""

    code: str
    text: str
    length: int
    group: Group
    blame: Blame
    expected: str | None
    severity: Severity
    quotes: bool = False


class _StreamLoss(msgspec.Struct):
    """Unwritten records of one stream: its first and last record, and one gap per direction."""

    opening: bytes | None = None
    ending: bytes | None = None
    holes: dict[int, tuple[int, int, int]] = msgspec.field(default_factory=dict)
    """Direction to time of the first loss in ns, offset and length in bytes."""

    @property
    def length(self) -> int:
        """Number of lost bytes in both directions."""
        return sum(length for _, _, length in self.holes.values())


START = "start.json"
"""File with a reader's state for its successor."""

NEW_START = "start.new"
"""Name of that file until it is complete."""

_SEGMENT = re.compile(r"\d{8,}\.journal", re.A)


def segment_name(number: int) -> str:
    """Return the file name of a segment, numbered from 1."""
    return f"{number:08}.journal"


def is_segment(name: str) -> bool:
    """Return True if a file in a journal's folder is named like a segment."""
    return _SEGMENT.fullmatch(name) is not None


def is_journal_file(name: str) -> bool:
    """Return True if a file in a journal's folder belongs to the journal."""
    return is_segment(name) or name in (START, NEW_START)


def _journal_bytes(directory: Path) -> int:
    """Return the total size of all segments, some of which the reader may be deleting."""
    total = 0
    for path in directory.glob("*.journal"):
        with suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


class JournalWriter:
    """A writer for a journal in `directory`, which is created (mode 0700) if needed and must not contain one.

    `identity` distinguishes the folder from all others: its device and inode. Nothing is on disk before
    `flush()`; the buffer flushes itself at 64 KiB. `on_pending` is called when the first record enters an
    empty buffer, so that the owner can schedule a flush.

    No error is raised if the disk fails or is full, if `has_room` returns False, or if more than `max_bytes`
    await the reader. The writer then drops records, reports that to `on_trouble` in a sentence, and retries
    every `retry_seconds`. Once that works, it reports that too, and first writes the losses as gaps of known
    length. Every stream's beginning and end is kept. Faults are lost, and alterations leave only an empty
    gap.

    Args:
        directory: Folder of the journal.
        on_trouble: Callback for sentences about losses and recovery.
        has_room: Returns False if the disk counts as full.
        max_bytes: Maximum size of all segments on disk.
        segment_bytes: Size at which a segment is followed by the next one.
        retry_seconds: Interval between attempts to write again.

    Raises:
        OSError: the first segment cannot be created, or the folder exists and belongs to another user or is
            accessible to others.
        ValueError: `max_bytes` is less than three segments.
    """

    def __init__(
        self,
        directory: Path,
        *,
        on_trouble: Callable[[str], None],
        has_room: Callable[[], bool] = lambda: True,
        max_bytes: int = 1 << 30,
        segment_bytes: int = 8 << 20,
        retry_seconds: float = 0.1,
    ) -> None:
        if max_bytes < 3 * segment_bytes:
            raise ValueError("a journal must have room for three segments")
        self.on_pending: Callable[[], None] = lambda: None
        self._on_trouble = on_trouble
        self._has_room = has_room
        self._directory = directory
        self._max_bytes = max_bytes
        self._segment_bytes = segment_bytes
        self._retry_seconds = retry_seconds
        self._retry_at = 0.0
        self._buffer = bytearray()
        self._is_dropping = False
        self._lost: dict[int, _StreamLoss] = {}
        self._unrecorded_streams = self._unrecorded_bytes = 0
        """Totals of streams that began and ended while nothing could be written: they are not recorded."""
        self._abandoned = False
        self._streams = 0
        self._number = 0
        self._fd = -1
        self._size = 0
        try:
            directory.mkdir(mode=0o700)
            is_new = True
        except FileExistsError:
            is_new = False
        there = directory.lstat()
        # On file systems without owners, a folder created just now is accepted.
        if not is_new and (there.st_uid != os.geteuid() or stat.S_IMODE(there.st_mode) & 0o077):
            raise PermissionError(errno.EPERM, "this folder is accessible to other users", str(directory))
        self.identity = (there.st_dev, there.st_ino)
        self._next_segment()

    @property
    def is_dropping(self) -> bool:
        """True while records are dropped."""
        return self._is_dropping

    @property
    def streams(self) -> int:
        """Number of streams opened so far."""
        return self._streams

    def open(self, transport: Transport, client: str, server: str, ts_ns: int) -> int:
        """Open a stream between two `ip:port` and return its number, counted from 1."""
        self._streams += 1
        payload = "\0".join((transport, client, server)).encode()
        self._append(OPEN, 0, self._streams, ts_ns, 0, payload)
        return self._streams

    def chunk(self, number: int, direction: Direction, ts_ns: int, offset: int, data: bytes) -> None:
        """Write one datagram or piece of a byte stream of at most `MAX_PAYLOAD` bytes; it may be empty."""
        # The forwarder's hot path: an inlined _append.
        buffer = self._buffer
        if not buffer:
            self.on_pending()
        buffer += HEAD.pack(CHUNK, direction == "s2c", number, len(data), ts_ns, offset)
        buffer += data
        if len(buffer) >= FLUSH_BYTES:
            self.flush()

    def cut(
        self, number: int, direction: Direction, ts_ns: int, offset: int, data: bytes, missing: int
    ) -> None:
        """Write a datagram whose last `missing` bytes were not captured."""
        self._append(CUT, direction == "s2c", number, ts_ns, offset, LENGTH.pack(missing) + data)

    def gap(self, number: int, direction: Direction, ts_ns: int, offset: int, length: int | None) -> None:
        """Write a gap of missing bytes; `length` is None if unknown."""
        payload = b"" if length is None else LENGTH.pack(length)
        self._append(GAP, direction == "s2c", number, ts_ns, offset, payload)

    def detailed_fault(
        self, number: int, direction: Direction, ts_ns: int, offset: int, details: FaultDetails
    ) -> None:
        """Write a fault with all its details."""
        self._append(
            DETAILED_FAULT, direction == "s2c", number, ts_ns, offset, msgspec.msgpack.encode(details)
        )

    def fault(self, number: int, direction: Direction, ts_ns: int, offset: int, code: str, text: str) -> None:
        """Write a network error of a stream."""
        self._append(FAULT, direction == "s2c", number, ts_ns, offset, f"{code}\0{text}".encode())

    def altered(
        self, number: int, direction: Direction, ts_ns: int, offset: int, length: int, mark: Mark
    ) -> None:
        """Write an alteration, right before the `length` bytes that are forwarded for it.

        Rule, name and original bytes are truncated if they exceed a record's limits; fields that do are left
        out.
        """
        fields = mark.fields_json
        # As MessagePack: the number of forwarded bytes, then all of the mark.
        payload = (
            length,
            mark.action,
            mark.rule[:_MAX_RULE],
            mark.sent_ns,
            None if mark.original is None else mark.original[:MAX_PAYLOAD],
            None if mark.name is None else mark.name[:_MAX_NAME],
            None if fields is None or len(fields.encode()) > MAX_PAYLOAD else fields,
        )
        encoded = msgspec.msgpack.encode(payload)
        self._append(ALTERED, direction == "s2c", number, ts_ns, offset, encoded)

    def end(self, number: int, ts_ns: int, reason: str) -> None:
        """Write the end of a stream; nothing may follow on it."""
        self._append(END, 0, number, ts_ns, 0, reason.encode())

    def flush(self) -> None:
        """Pass all buffered records to the operating system in one write."""
        data = self._buffer
        if not data:
            return
        self._buffer = bytearray()
        if self._abandoned:
            return
        if self._is_dropping:
            if time.monotonic() < self._retry_at:
                self._note_loss(data, 0)
                return
            data = self._gap_records() + data
            lost = self._loss_text()
            self._lost.clear()
        written = 0
        try:
            if not self._has_room():
                raise OSError(errno.ENOSPC, "the disk is nearly full")
            if self._fd < 0 or self._size >= self._segment_bytes:
                self._next_segment()
            with memoryview(data) as view:
                while written < len(view):
                    written += os.write(self._fd, view[written:])
        except OSError as error:
            self._handle_write_error(error, data, written)
        else:
            self._size += written
            if self._is_dropping:
                self._is_dropping = False
                self._unrecorded_streams = self._unrecorded_bytes = 0
                self._on_trouble(
                    f"The journal can be written again: traffic is recorded from now on; {lost} are missing."
                )

    def abandon(self) -> None:
        """Stop writing, as there is no reader any more; what is on disk stays there."""
        self._abandoned = True
        self._buffer.clear()
        self._lost.clear()
        self._close_segment()

    def close(self) -> None:
        """Write the end of the journal, if the disk allows, and close it."""
        self._append(STOP, 0, 0, 0, 0, b"")
        self._retry_at = 0.0
        # There is always room for this little, and for the gaps.
        self._has_room = lambda: True
        self.flush()
        if self._is_dropping:
            self._on_trouble(
                f"The journal could not be written to its end: {self._loss_text()} are missing, and are "
                "not recorded as missing."
            )
        self._close_segment()

    def _append(
        self, kind: int, direction: int, number: int, ts_ns: int, offset: int, payload: bytes
    ) -> None:
        if not self._buffer:
            self.on_pending()
        self._buffer += HEAD.pack(kind, direction, number, len(payload), ts_ns, offset) + payload
        if len(self._buffer) >= FLUSH_BYTES:
            self.flush()

    def _next_segment(self) -> None:
        self._close_segment()
        if _journal_bytes(self._directory) + self._segment_bytes > self._max_bytes:
            raise OSError(errno.EDQUOT, f"{self._max_bytes} bytes are waiting for the recorder")
        path = self._directory / segment_name(self._number + 1)
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._number += 1
        self._size = 0

    def _close_segment(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _handle_write_error(self, error: OSError, data: bytearray, written: int) -> None:
        """Register the loss of all records from the first one that was not written completely."""
        self._retry_at = time.monotonic() + self._retry_seconds
        if written:
            # An incomplete record may be on disk. A successor segment tells the reader that it stays
            # incomplete.
            self._close_segment()
        self._note_loss(data, written)
        if not self._is_dropping:
            self._is_dropping = True
            self._on_trouble(
                f"The journal cannot be written: {error.strerror}. Traffic is forwarded but not recorded."
            )

    def _note_loss(self, data: bytearray, written: int) -> None:
        end = 0
        while (start := end) < len(data):
            kind, direction, number, length, ts_ns, offset = HEAD.unpack_from(data, start)
            body = start + HEAD.size
            end = body + length
            if end <= written or kind in (FAULT, DETAILED_FAULT, STOP):
                continue
            loss = self._lost.setdefault(number, _StreamLoss())
            if kind == OPEN:
                loss.opening = bytes(data[start:end])
            elif kind == END:
                loss.ending = bytes(data[start:end])
                if loss.opening is not None and len(self._lost) > _MAX_LOST_STREAMS:
                    self._unrecorded_streams += 1
                    self._unrecorded_bytes += self._lost.pop(number).length
            else:
                if kind == CUT:
                    (missing,) = LENGTH.unpack_from(data, body)
                    length += missing - LENGTH.size
                elif kind == ALTERED:
                    # A gap, even of 0 bytes, tells readers to blame no peer for what follows.
                    length = 0
                elif kind == GAP and length:
                    (length,) = LENGTH.unpack_from(data, body)
                ts_ns, offset, before = loss.holes.get(direction, (ts_ns, offset, 0))
                loss.holes[direction] = (ts_ns, offset, before + length)

    def _loss_text(self) -> str:
        """Return the number of lost bytes and streams as text."""
        streams = len(self._lost) + self._unrecorded_streams
        total = sum(loss.length for loss in self._lost.values()) + self._unrecorded_bytes
        of_streams = f"{total:,} bytes of {streams:,} stream{'' if streams == 1 else 's'}"
        if not self._unrecorded_streams:
            return of_streams
        return f"{of_streams} ({self._unrecorded_streams:,} of which are not recorded at all)"

    def _gap_records(self) -> bytearray:
        """Return the records that describe the losses, stream by stream."""
        records = bytearray()
        for number, loss in self._lost.items():
            records += loss.opening or b""
            for direction, (ts_ns, offset, length) in loss.holes.items():
                records += HEAD.pack(GAP, direction, number, LENGTH.size, ts_ns, offset)
                records += LENGTH.pack(length)
            records += loss.ending or b""
        return records
