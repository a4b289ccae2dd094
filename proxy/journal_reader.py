"""Reads a journal (`proxy/journal.py`) while it is being written, and deletes what is safe elsewhere.

Before a reader deletes segments it notes in `start.json` what one who comes after it must know of them: how
many items they held, and which streams were open at their end.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from struct import error as StructError

import msgspec

from dissectors.records import DIRECTIONS, Chunk, End, Fault, Gap, Item, Stream, Transport
from proxy.journal import (
    CHUNK,
    FAULT,
    GAP,
    HEAD,
    LENGTH,
    MAX_PAYLOAD,
    OPEN,
    STOP,
    segment_path,
)

_READ_BYTES = 1 << 20
_START = "start.json"


class JournalError(Exception):
    """The journal is damaged: it holds something that no writer wrote."""


class _Start(msgspec.Struct):
    """The beginning of the oldest segment that is there: what came before it in this journal."""

    segment: int = 1
    items: int = 0
    open: list[tuple[int, Transport, str, str, int]] = msgspec.field(default_factory=list)
    """Number, transport, client, server and time of opening of each stream."""


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
        first = segment_path(directory, self._number)
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
        return self._has_seen_end and len(self._window) - self._at < HEAD.size

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
        unpack, head_size = HEAD.unpack_from, HEAD.size
        last_head = len(window) - head_size
        try:
            while at <= last_head and len(items) < limit:
                kind, direction, number, length, ts_ns, offset = unpack(window, at)
                body = at + head_size
                end = body + length
                if not OPEN <= kind <= STOP or direction > 1 or length > MAX_PAYLOAD:
                    raise JournalError(self._damage(at))
                if end > len(window):
                    return
                if kind == CHUNK:
                    data = window[body:end]
                    items.append(Chunk(self._streams[number], DIRECTIONS[direction], ts_ns, offset, data))
                elif kind == STOP:
                    self.stopped = True
                    return
                elif kind == OPEN:
                    transport, client, server = window[body:end].decode().split("\0")
                    self._open(number, "tcp" if transport == "tcp" else "udp", client, server, ts_ns)
                elif kind == GAP:
                    (missing,) = LENGTH.unpack_from(window, body)
                    items.append(Gap(self._streams[number], DIRECTIONS[direction], ts_ns, offset, missing))
                elif kind == FAULT:
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
        path = segment_path(self._directory, self._number)
        return f"The journal is damaged: {path}, byte {self._position + at}, holds no record."

    def _fill(self) -> bool:
        """Look for more bytes after the last whole record; false if there are none now."""
        # Asked first: if there is a successor, then what is read next is all of this segment.
        succeeded = segment_path(self._directory, self._number + 1).exists()
        if self._fd < 0:
            try:
                self._fd = os.open(segment_path(self._directory, self._number), os.O_RDONLY | os.O_CLOEXEC)
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
        self._consumed.append(segment_path(self._directory, self._number))
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
