"""Reader of a journal that is still being written; deletes what is safe elsewhere.

The format is described in `proxy/journal/writer.py`. Before a reader deletes segments, it saves what its
successor must know in `start.json`: the number of items in them, and the streams that were open at their end.

The folder is opened once, and its files relative to it, so that none can be replaced. No number in the files
makes a reader wait, use more memory than the files' size, or return values that the database cannot hold.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path
from struct import error as StructError
from typing import Annotated, TypeVar

import msgspec

from kiebitz.dissectors.errors import KiebitzError
from kiebitz.dissectors.model import (
    DIRECTIONS,
    Action,
    Altered,
    Chunk,
    Direction,
    End,
    Fault,
    Gap,
    Item,
    Stream,
    Transport,
)
from kiebitz.proxy.journal.writer import (
    ALTERED,
    CHUNK,
    CUT,
    DETAILED_FAULT,
    END,
    FAULT,
    GAP,
    HEAD,
    LENGTH,
    MAX_ALTERED,
    MAX_PAYLOAD,
    NEW_START,
    OPEN,
    START,
    STOP,
    FaultDetails,
    is_segment,
    segment_name,
)
from kiebitz.proxy.system.safe_files import open_file, open_folder, replace_file

_READ_BYTES = 1 << 20

_MAX_START_BYTES = 64 << 20
"""Exceeds the size of all streams that can be open at once."""

_MAX_OFFSET = 1 << 62
"""Maximum offset in a stream; a database's integers end a little above."""

_Number = Annotated[int, msgspec.Meta(ge=1, le=(1 << 32) - 1)]
_Count = Annotated[int, msgspec.Meta(ge=0, le=_MAX_OFFSET)]
_Nanoseconds = Annotated[int, msgspec.Meta(ge=-_MAX_OFFSET, le=_MAX_OFFSET)]

_ALTERED = msgspec.msgpack.Decoder(
    tuple[_Count, Action, str, _Nanoseconds | None, bytes | None, str | None, str | None]
)
"""Decoder for the payload that `JournalWriter.altered` writes."""

_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])

_FAULT_DETAILS = msgspec.msgpack.Decoder(FaultDetails)


class JournalError(KiebitzError):
    """The journal is damaged: it contains data that no writer wrote."""


class _Start(msgspec.Struct):
    """State of the journal at the beginning of its oldest existing segment."""

    segment: _Number = 1
    items: _Count = 0
    open: list[tuple[_Number, Transport, str, str, _Nanoseconds]] = msgspec.field(default_factory=list)
    """Number, transport, client, server and time of opening of each stream."""


class JournalReader:
    """A reader for the journal in `directory` while it is being written; there may be no segment yet.

    `stopped` becomes True once the writer's end-of-journal record was read. Nothing is deleted before
    `release()`.

    A reader that died is followed by one that skips the first `skip` items of the journal, as they are safe
    elsewhere, and continues with the `known` streams.

    Args:
        directory: Folder of the journal.
        base: Added to a stream's number in the journal to form its id.
        skip: Number of items to skip, counted from the journal's beginning; None skips the released ones,
            whose number is then in `items_before`.
        known: Streams that were already open.
        identity: Device and inode of the folder, as the writer has them.

    Raises:
        JournalError: the folder was replaced, or the first reader's state is unreadable or lacks items that
            are not to be skipped.
    """

    def __init__(
        self,
        directory: Path,
        base: int = 0,
        *,
        skip: int | None = 0,
        known: Iterable[Stream] = (),
        identity: tuple[int, int] | None = None,
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
        self._parsed_items = 0
        self._parsed_bytes = 0
        self._folder = self._open_folder(identity)
        self._start = self._read_start()
        self._number = self._start.segment
        self._items = self.items_before = self._start.items
        self._skip = 0 if skip is None else skip - self._items
        if self._skip < 0:
            raise JournalError(f"The journal is damaged: {directory} begins after item {self._items}.")
        self._streams: dict[int, Stream] = {}
        for number, transport, client, server, opened_ns in self._start.open:
            self._open(number, transport, client, server, opened_ns)
        # The process that saved the start may have died before it deleted older segments.
        first = segment_name(self._number)
        self._consumed = [name for name in os.listdir(self._folder) if is_segment(name) and name < first]

    def read(self, limit: int = 4096) -> list[Item]:
        """Return the next items, at most `limit` and about 1 MiB; none if none is available. Never blocks.

        Raises:
            JournalError: the next record is damaged; all items before it have been returned.
        """
        items: list[Item] = []
        while True:
            damage: JournalError | None = None
            try:
                self._parse(items, limit)
            except JournalError as error:
                damage = error
            self._items += len(items)
            self._parsed_items += len(items)
            skipped = min(self._skip, len(items))
            self._skip -= skipped
            del items[:skipped]
            if items or self.stopped:
                return items
            if damage is not None:
                raise damage
            if not skipped and not self._read_more():
                return items

    @property
    def is_at_end(self) -> bool:
        """True if the items returned last were all that had been written by then."""
        return self._has_seen_end and len(self._window) - self._at < HEAD.size

    def backlog(self) -> int:
        """Estimate how many written items have not been returned yet, from the average item size."""
        written = 0
        with suppress(FileNotFoundError):
            for number in count(self._number):
                name = segment_name(number)
                written += os.stat(name, dir_fd=self._folder, follow_symlinks=False).st_size
        unread = max(0, written - self._position - self._at)
        return round(unread * self._parsed_items / self._parsed_bytes) if self._parsed_bytes else 0

    def release(self) -> None:
        """Declare all returned items safe elsewhere, and delete the segments that contain nothing else.

        The last segment stays: the next reader finds the journal's end in it.
        """
        if not self._consumed:
            return
        try:
            replace_file(START, msgspec.json.encode(self._start), self._folder, NEW_START)
        except OSError:
            # The disk is full. The segments stay for a later call or the next reader.
            return
        for name in self._consumed:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=self._folder)
        self._consumed.clear()

    def close(self) -> None:
        """Close the files; unreleased segments stay on disk."""
        self._close_segment()
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1

    def _close_segment(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _parse(self, items: list[Item], limit: int) -> None:
        """Append the window's complete records to `items`."""
        window, at = self._window, self._at
        unpack, head_size = HEAD.unpack_from, HEAD.size
        last_head = len(window) - head_size
        try:
            while at <= last_head and len(items) < limit:
                kind, direction, number, length, ts_ns, offset = unpack(window, at)
                body = at + head_size
                end = body + length
                longest = MAX_PAYLOAD if kind != ALTERED else MAX_ALTERED
                if (
                    not OPEN <= kind <= DETAILED_FAULT
                    or direction > 1
                    or length > longest
                    or offset > _MAX_OFFSET
                ):
                    raise JournalError(self._damage_text(at))
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
                elif kind == END:
                    items.append(End(self._streams.pop(number), ts_ns, window[body:end].decode()))
                else:
                    stream = self._streams[number]
                    items.append(
                        _decode_rare(kind, stream, DIRECTIONS[direction], ts_ns, offset, window[body:end])
                    )
                at = end
        except (KeyError, ValueError, StructError, msgspec.MsgspecError) as error:
            raise JournalError(self._damage_text(at)) from error
        finally:
            self._parsed_bytes += at - self._at
            self._at = at

    def _open(self, number: int, transport: Transport, client: str, server: str, opened_ns: int) -> None:
        self._streams[number] = self._known.get(number) or Stream(
            self._base + number, transport, client, server, opened_ns
        )

    def _damage_text(self, at: int) -> str:
        path = self._directory / segment_name(self._number)
        return f"The journal is damaged: {path}, byte {self._position + at}: no valid record."

    def _read_more(self) -> bool:
        """Read more bytes after the last complete record; return False if there are none now."""
        # Checked first: if there is a successor, the next read returns the rest of this segment.
        succeeded = self._has_segment(self._number + 1)
        if self._fd < 0:
            try:
                self._fd = open_file(segment_name(self._number), self._folder)
            except FileNotFoundError:
                return False
            except OSError as error:
                raise JournalError(f"{self._damage_text(0)[:-1]}: {error.strerror}.") from error
        self._position += self._at
        rest = len(self._window) - self._at
        self._at = 0
        # The rest is read again rather than joined to what follows, so that a long record ends up in one
        # window.
        self._window = os.pread(self._fd, rest + _READ_BYTES, self._position)
        self._has_seen_end = not succeeded and len(self._window) < rest + _READ_BYTES
        if len(self._window) > rest:
            return True
        if succeeded:
            self._advance()
        return succeeded

    def _advance(self) -> None:
        """Go to the next segment. The writer reports an incomplete record at the end of this one as lost."""
        self._close_segment()
        self._consumed.append(segment_name(self._number))
        self._number += 1
        self._position = self._at = 0
        self._window = b""
        # Saved only by `release`: until then, the next reader starts where this one did.
        self._start = _Start(
            self._number,
            self._items,
            [(number, s.transport, s.client, s.server, s.opened_ns) for number, s in self._streams.items()],
        )

    def _open_folder(self, identity: tuple[int, int] | None) -> int:
        """Open the folder itself: not the target of a link, nor a replacement."""
        try:
            folder = open_folder(self._directory)
        except OSError as error:
            raise JournalError(f"The journal is lost: {self._directory}: {error.strerror}.") from error
        there = os.fstat(folder)
        if identity is not None and (there.st_dev, there.st_ino) != identity:
            os.close(folder)
            raise JournalError(f"The journal is lost: {self._directory} was replaced by another folder.")
        return folder

    def _has_segment(self, number: int) -> bool:
        try:
            os.stat(segment_name(number), dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return True

    def _read_start(self) -> _Start:
        try:
            with open(open_file(START, self._folder), "rb") as file:
                text = file.read(_MAX_START_BYTES + 1)
            if len(text) > _MAX_START_BYTES:
                raise OSError(errno.EFBIG, "it is too long")
            start = msgspec.json.decode(text, type=_Start)
        except FileNotFoundError:
            return _Start()
        except (OSError, msgspec.DecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error
            raise JournalError(f"The journal is damaged: {self._directory / START}: {reason}.") from error
        # The segment that the start names is never deleted before a newer start is saved.
        if not self._has_segment(start.segment):
            raise JournalError(f"The journal is damaged: there is no {segment_name(start.segment)}.")
        return start


def _decode_rare(
    kind: int, stream: Stream, direction: Direction, ts_ns: int, offset: int, payload: bytes
) -> Item:
    """Decode a record of a rare kind. Invalid payloads raise the exceptions that `_parse` handles."""
    if kind == GAP:
        length = LENGTH.unpack(payload)[0] if payload else None
        return Gap(stream, direction, ts_ns, offset, _checked_length(length))
    if kind == CUT:
        (missing,) = LENGTH.unpack_from(payload)
        return Chunk(stream, direction, ts_ns, offset, payload[LENGTH.size :], _checked_length(missing))
    if kind == FAULT:
        code, text = payload.decode().split("\0")
        return Fault(stream, direction, ts_ns, offset, code, text)
    if kind == DETAILED_FAULT:
        return Fault(
            stream, direction, ts_ns, offset, *msgspec.structs.astuple(_FAULT_DETAILS.decode(payload))
        )
    passed_on, action, rule, sent_ns, original, name, fields = _ALTERED.decode(payload)
    if fields is not None:
        _FIELDS.decode(fields)
    return Altered(stream, direction, ts_ns, offset, passed_on, action, rule, sent_ns, original, name, fields)


L = TypeVar("L", int, None)


def _checked_length(length: L) -> L:
    """Return a length if the database can hold it. Raises ValueError."""
    if length is not None and length > _MAX_OFFSET:
        raise ValueError("the length exceeds that of any stream")
    return length
