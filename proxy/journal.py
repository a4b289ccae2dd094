"""The journal between the forwarder and the recorder: an append-only spool on disk, in segments.

The forwarder writes what it forwarded with `JournalWriter`, another process reads it with `JournalReader`.
They share nothing but the directory: a slow reader never slows the writer, memory is bounded on both sides,
and when either is killed, whatever was flushed is still there (and in practice never left the page cache).

Segments are named `00000001.journal`, `00000002.journal` and so on. Each is a sequence of records and never
changes once it has a successor; a record cut short at its end counts as not written. A record is a head and
its payload:

    kind u8 | direction u8 | 2 bytes of padding | stream u32 | payload length u32 | time i64, ns | offset u64

A reader deletes segments once what they hold is safe elsewhere. Before that it notes in `start.json` what
one who comes after it must know of them: how many items they held, and which streams were open at their end.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from struct import Struct
from struct import error as StructError

import msgspec

from dissectors.records import DIRECTIONS, Chunk, Direction, End, Fault, Gap, Item, Stream, Transport

MAX_PAYLOAD = 1 << 20
"""No record carries more bytes than this; a head that says so is damage."""

FLUSH_BYTES = 64 << 10
_READ_BYTES = 1 << 20
_MAX_LOST_STREAMS = 16_384
"""How many streams that came and went while nothing could be written are remembered for later."""

_START = "start.json"

_HEAD = Struct("<BBxxIIqQ")
_LENGTH = Struct("<Q")
_OPEN, _CHUNK, _GAP, _FAULT, _END, _STOP = range(1, 7)


class JournalError(Exception):
    """The journal is damaged: it holds something that no writer wrote."""


class _Head(msgspec.Struct):
    """One record as it lies in a buffer, from `start` to `end`, its payload from `body`."""

    start: int
    body: int
    end: int
    kind: int
    direction: int
    number: int
    ts_ns: int
    offset: int


class _Start(msgspec.Struct):
    """The beginning of the oldest segment that is there: what came before it in this journal."""

    segment: int = 1
    items: int = 0
    open: list[tuple[int, Transport, str, str, int]] = msgspec.field(default_factory=list)
    """Number, transport, client, server and time of opening of each stream."""


class _Loss(msgspec.Struct):
    """What could not be written of one stream: its first and last record, and per direction a hole."""

    opening: bytes | None = None
    ending: bytes | None = None
    holes: dict[int, tuple[int, int, int]] = msgspec.field(default_factory=dict)
    """Direction to time of the first loss in ns, offset and length in bytes."""


def _heads(data: bytes | bytearray) -> Iterator[_Head]:
    """Walk over whole records; only for what this process has written itself."""
    start = 0
    while start < len(data):
        kind, direction, number, length, ts_ns, offset = _HEAD.unpack_from(data, start)
        body = start + _HEAD.size
        yield _Head(start, body, body + length, kind, direction, number, ts_ns, offset)
        start = body + length


def _segment(directory: Path, number: int) -> Path:
    return directory / f"{number:08}.journal"


def _spooled_bytes(directory: Path) -> int:
    """The size of all segments; the reader may be deleting some meanwhile."""
    total = 0
    for path in directory.glob("*.journal"):
        with suppress(FileNotFoundError):
            total += path.stat().st_size
    return total


class JournalWriter:
    """Writes a journal into `directory`, which is made (mode 0700) if need be and must hold none yet.

    Nothing is on disk before `flush()`; the buffer is flushed by itself at 64 KiB. `on_pending` is called
    when the first record enters an empty buffer, so that the owner can plan a flush.

    If the disk fails or is full, or more than `max_bytes` are waiting for the reader, the writer raises
    nothing: it drops records, tells `on_trouble` in a sentence, tries again every `retry_seconds`, and when
    that works writes first where the holes are, as gaps of known length; no stream's beginning or end is
    lost, but faults are. `on_trouble` hears when it works again, too.

    Raises OSError if the first segment cannot be made, ValueError if `max_bytes` is under three segments.
    """

    def __init__(
        self,
        directory: Path,
        *,
        on_trouble: Callable[[str], None],
        max_bytes: int = 1 << 30,
        segment_bytes: int = 8 << 20,
        retry_seconds: float = 0.1,
    ) -> None:
        if max_bytes < 3 * segment_bytes:
            raise ValueError("a journal must have room for three segments")
        self.on_pending: Callable[[], None] = lambda: None
        self._on_trouble = on_trouble
        self._directory = directory
        self._max_bytes = max_bytes
        self._segment_bytes = segment_bytes
        self._retry_seconds = retry_seconds
        self._retry_at = 0.0
        self._buffer = bytearray()
        self._losing = False
        self._lost: dict[int, _Loss] = {}
        self._abandoned = False
        self._streams = 0
        self._number = 0
        self._fd = -1
        self._size = 0
        directory.mkdir(mode=0o700, exist_ok=True)
        self._next_segment()

    def open(self, transport: Transport, client: str, server: str, ts_ns: int) -> int:
        """Begin a stream between two `ip:port`; the answer is its number, counted from 1."""
        self._streams += 1
        payload = "\0".join((transport, client, server)).encode()
        self._put(_OPEN, 0, self._streams, ts_ns, 0, payload)
        return self._streams

    def chunk(self, number: int, direction: Direction, ts_ns: int, offset: int, data: bytes) -> None:
        """Write one datagram or piece of a byte stream, of at most `MAX_PAYLOAD` bytes, maybe none."""
        # The forwarder's hot path: _put, spelled out.
        buffer = self._buffer
        if not buffer:
            self.on_pending()
        buffer += _HEAD.pack(_CHUNK, direction == "s2c", number, len(data), ts_ns, offset)
        buffer += data
        if len(buffer) >= FLUSH_BYTES:
            self.flush()

    def fault(self, number: int, direction: Direction, ts_ns: int, offset: int, code: str, text: str) -> None:
        """Write what the network said about a stream."""
        self._put(_FAULT, direction == "s2c", number, ts_ns, offset, f"{code}\0{text}".encode())

    def end(self, number: int, ts_ns: int, reason: str) -> None:
        """Write that a stream is over; nothing may follow on it."""
        self._put(_END, 0, number, ts_ns, 0, reason.encode())

    def flush(self) -> None:
        """Hand everything to the operating system, with one write."""
        data = self._buffer
        if not data:
            return
        self._buffer = bytearray()
        if self._abandoned:
            return
        if self._losing:
            if time.monotonic() < self._retry_at:
                self._lose(data, 0)
                return
            data = self._holes() + data
            self._lost.clear()
        written = 0
        try:
            if self._fd < 0 or self._size >= self._segment_bytes:
                self._next_segment()
            with memoryview(data) as view:
                while written < len(view):
                    written += os.write(self._fd, view[written:])
        except OSError as error:
            self._failed(error, data, written)
        else:
            self._size += written
            if self._losing:
                self._losing = False
                self._on_trouble("The journal can be written again: from here on, traffic is recorded.")

    def abandon(self) -> None:
        """Write nothing from here on: there is nobody left to read it. What is on disk stays there."""
        self._abandoned = True
        self._buffer.clear()
        self._lost.clear()
        self._close_segment()

    def close(self) -> None:
        """Write that this is the journal's end, as far as the disk allows, and close it."""
        self._put(_STOP, 0, 0, 0, 0, b"")
        self._retry_at = 0.0
        self.flush()
        self._close_segment()

    def _put(self, kind: int, direction: int, number: int, ts_ns: int, offset: int, payload: bytes) -> None:
        if not self._buffer:
            self.on_pending()
        self._buffer += _HEAD.pack(kind, direction, number, len(payload), ts_ns, offset) + payload
        if len(self._buffer) >= FLUSH_BYTES:
            self.flush()

    def _next_segment(self) -> None:
        self._close_segment()
        if _spooled_bytes(self._directory) + self._segment_bytes > self._max_bytes:
            raise OSError(errno.EDQUOT, f"{self._max_bytes} bytes are waiting for the recorder")
        path = _segment(self._directory, self._number + 1)
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._number += 1
        self._size = 0

    def _close_segment(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _failed(self, error: OSError, data: bytearray, written: int) -> None:
        """Note the loss of all records from the first that was not written whole."""
        self._retry_at = time.monotonic() + self._retry_seconds
        if written:
            # Half a record may be on disk. A successor tells the reader that it will never be whole.
            self._close_segment()
        self._lose(data, written)
        if not self._losing:
            self._losing = True
            self._on_trouble(
                f"The journal cannot be written: {error.strerror}. Traffic is forwarded but not recorded."
            )

    def _lose(self, data: bytearray, written: int) -> None:
        for head in _heads(data):
            if head.end <= written or head.kind in (_FAULT, _STOP):
                continue
            loss = self._lost.setdefault(head.number, _Loss())
            if head.kind == _OPEN:
                loss.opening = bytes(data[head.start : head.end])
            elif head.kind == _END:
                loss.ending = bytes(data[head.start : head.end])
                if loss.opening is not None and len(self._lost) > _MAX_LOST_STREAMS:
                    del self._lost[head.number]
            else:
                if head.kind == _CHUNK:
                    length = head.end - head.body
                else:
                    (length,) = _LENGTH.unpack_from(data, head.body)
                ts_ns, offset, before = loss.holes.get(head.direction, (head.ts_ns, head.offset, 0))
                loss.holes[head.direction] = (ts_ns, offset, before + length)

    def _holes(self) -> bytearray:
        """The records that say what was lost, stream by stream."""
        records = bytearray()
        for number, loss in self._lost.items():
            records += loss.opening or b""
            for direction, (ts_ns, offset, length) in loss.holes.items():
                records += _HEAD.pack(_GAP, direction, number, _LENGTH.size, ts_ns, offset)
                records += _LENGTH.pack(length)
            records += loss.ending or b""
        return records


class JournalReader:
    """Reads the journal in `directory` while it is being written; it need not have any segment yet.

    The ids of the streams are `base` plus the stream's number in the journal. `stopped` becomes true when the
    writer's own end of the journal was read. Nothing is deleted before `release()`.

    A reader that died is followed by one that passes over the first `skip` items of the journal, as they are
    safe elsewhere, and goes on with the streams that are `known` from there. Raises JournalError if what the
    first one left cannot be read, or lacks items that are not to be skipped.
    """

    def __init__(
        self, directory: Path, base: int = 0, *, skip: int = 0, known: Iterable[Stream] = ()
    ) -> None:
        self.stopped = False
        self._directory = directory
        self._base = base
        self._known = {stream.id - base: stream for stream in known}
        self._fd = -1
        self._position = 0
        self._window = b""
        self._at = 0
        self._has_seen_end = False
        self._start = self._read_start()
        self._number = self._start.segment
        self._items = self._start.items
        self._skip = skip - self._items
        if self._skip < 0:
            raise JournalError(f"The journal is damaged: {directory} begins after item {self._items}.")
        self._streams: dict[int, Stream] = {}
        for number, transport, client, server, opened_ns in self._start.open:
            self._open(number, transport, client, server, opened_ns)
        # Whoever noted the start may have died before it deleted what comes before that.
        first = _segment(directory, self._number)
        self._consumed = [path for path in directory.glob("*.journal") if path < first]

    def read(self, limit: int = 4096) -> list[Item]:
        """The next items, at most `limit` and about 1 MiB; none if nothing more is there yet. Never waits.

        Raises JournalError at a damaged record, once all that is before it was returned.
        """
        items: list[Item] = []
        while True:
            damage: JournalError | None = None
            try:
                self._parse(items, limit)
            except JournalError as error:
                damage = error
            self._items += len(items)
            skipped = min(self._skip, len(items))
            self._skip -= skipped
            del items[:skipped]
            if items or self.stopped:
                return items
            if damage is not None:
                raise damage
            if not skipped and not self._fill():
                return items

    @property
    def is_at_end(self) -> bool:
        """Whether the items returned last were all that had been written by then."""
        return self._has_seen_end and len(self._window) - self._at < _HEAD.size

    def release(self) -> None:
        """Say that all items returned so far are safe elsewhere; segments with nothing else are deleted.

        The last segment stays: whoever comes after this reader finds the journal's end in it.
        """
        if not self._consumed:
            return
        try:
            self._write_start()
        except OSError:
            # The disk is full. The segments stay for whoever comes after this reader, until this works.
            return
        for path in self._consumed:
            path.unlink(missing_ok=True)
        self._consumed.clear()

    def close(self) -> None:
        """Close the file; what was not released stays on disk."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _parse(self, items: list[Item], limit: int) -> None:
        """Append the window's whole records to `items`."""
        window, at = self._window, self._at
        unpack, head_size = _HEAD.unpack_from, _HEAD.size
        last_head = len(window) - head_size
        try:
            while at <= last_head and len(items) < limit:
                kind, direction, number, length, ts_ns, offset = unpack(window, at)
                body = at + head_size
                end = body + length
                if not _OPEN <= kind <= _STOP or direction > 1 or length > MAX_PAYLOAD:
                    raise JournalError(self._damage(at))
                if end > len(window):
                    return
                if kind == _CHUNK:
                    data = window[body:end]
                    items.append(Chunk(self._streams[number], DIRECTIONS[direction], ts_ns, offset, data))
                elif kind == _STOP:
                    self.stopped = True
                    return
                elif kind == _OPEN:
                    transport, client, server = window[body:end].decode().split("\0")
                    self._open(number, "tcp" if transport == "tcp" else "udp", client, server, ts_ns)
                elif kind == _GAP:
                    (missing,) = _LENGTH.unpack_from(window, body)
                    items.append(Gap(self._streams[number], DIRECTIONS[direction], ts_ns, offset, missing))
                elif kind == _FAULT:
                    code, text = window[body:end].decode().split("\0")
                    stream = self._streams[number]
                    items.append(Fault(stream, DIRECTIONS[direction], ts_ns, offset, code, text))
                else:
                    items.append(End(self._streams.pop(number), ts_ns, window[body:end].decode()))
                at = end
        except (KeyError, ValueError, StructError) as error:
            raise JournalError(self._damage(at)) from error
        finally:
            self._at = at

    def _open(self, number: int, transport: Transport, client: str, server: str, opened_ns: int) -> None:
        self._streams[number] = self._known.get(number) or Stream(
            self._base + number, transport, client, server, opened_ns
        )

    def _damage(self, at: int) -> str:
        path = _segment(self._directory, self._number)
        return f"The journal is damaged: {path}, byte {self._position + at}, holds no record."

    def _fill(self) -> bool:
        """Look for more bytes after the last whole record; false if there are none now."""
        # Asked first: if there is a successor, then what is read next is all of this segment.
        succeeded = _segment(self._directory, self._number + 1).exists()
        if self._fd < 0:
            try:
                self._fd = os.open(_segment(self._directory, self._number), os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return False
        self._position += self._at
        rest = len(self._window) - self._at
        self._at = 0
        # The rest is read again rather than joined to what follows; a long record thus ends up in one window.
        self._window = os.pread(self._fd, rest + _READ_BYTES, self._position)
        self._has_seen_end = not succeeded and len(self._window) < rest + _READ_BYTES
        if len(self._window) > rest:
            return True
        if succeeded:
            self._advance()
        return succeeded

    def _advance(self) -> None:
        """Go to the next segment. What remains of this one is half a record, which the writer calls lost."""
        self.close()
        self._consumed.append(_segment(self._directory, self._number))
        self._number += 1
        self._position = self._at = 0
        self._window = b""
        # Not noted before `release`: until then the next reader begins where this one did.
        self._start = _Start(
            self._number,
            self._items,
            [(number, s.transport, s.client, s.server, s.opened_ns) for number, s in self._streams.items()],
        )

    def _read_start(self) -> _Start:
        try:
            return msgspec.json.decode((self._directory / _START).read_bytes(), type=_Start)
        except FileNotFoundError:
            return _Start()
        except (OSError, msgspec.DecodeError) as error:
            raise JournalError(f"The journal is damaged: {self._directory / _START}: {error}.") from error

    def _write_start(self) -> None:
        """Note where this reader stands, at once or not at all. Raises OSError."""
        path = self._directory / _START
        new = path.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(self._start))
        new.replace(path)
