"""Framers of protocol files: they cut the bytes of a direction into messages, also by extents of fields."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import Any, cast

from kiebitz.dissectors.grammar.field_type import Mismatch
from kiebitz.dissectors.grammar.framing import (
    FRAME_LIMIT,
    INCOMPLETE,
    ByteFramer,
    Frame,
    LineFramer,
    StructuredFramer,
)
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.binary_types import (
    Binary,
    BinaryList,
    BinaryNumber,
    BinaryObject,
    BinarySequence,
    binary_type,
    name_type,
)
from kiebitz.dissectors.protocol_file.header import INVALID, PLAUSIBLE, Extent, Header, fixed_size
from kiebitz.dissectors.protocol_file.specification import Specification

_MOST_VALUES = 32
"""Maximum number of values of a message from which a framer may resume: so the search takes linear time."""

_Waiting = Generator[None, None, int]
"""Yields None until there are more bytes, and returns the offset after a value."""

_Fields = list[tuple[str, Binary]]


class _NoMessage(Exception):
    """Raised for bytes that no message has."""


class FieldExtents:
    """The extents of the messages of one direction: a header, or what stands for the name, and the fields."""

    fixed_size = 0
    is_strong = False
    searches = True

    def __init__(self, specification: Specification, direction: Direction) -> None:
        framing, of = specification.framing, specification.format
        self._header = Header(framing, of) if framing.header else None
        self._name_type = None if framing.has_name else name_type(of)
        own, codes = len(framing.fields), specification.codes
        self._rows: dict[Any, _Fields] = {
            codes.get((direction, message.name), message.name): [
                (field.name, binary_type(field.type, of)) for field in message.fields[own:]
            ]
            for message in specification.messages
            if message.direction == direction
        }

    def extent(self, data: bytes | bytearray, at: int, end: int) -> Extent | None:
        """Return the extent of the message at an offset; None if it is incomplete."""
        return next(self.measure(data, at))

    def plausible(self, data: bytes | bytearray, at: int, end: int) -> Extent | None:
        """Return the extent of a short message of few values, else an invalid one; None if incomplete."""
        return next(self.measure(data, at, _MOST_VALUES))

    def measure(
        self, data: bytes | bytearray, begin: int = 0, most: int | None = None
    ) -> Iterator[Extent | None]:
        """Yield None until the message at an offset of growing data is complete, then its extent."""
        walk = _Walk(data, begin, most)
        try:
            fields = yield from self._begin(walk)
            yield from walk.skip(fields)
        except _NoMessage:
            yield Extent(min(max(walk.at, begin + 1), len(data)), INVALID)
        else:
            yield Extent(walk.at, walk.at - begin)

    def _begin(self, walk: _Walk) -> Generator[None, None, _Fields]:
        """Skip the header and the name; return the fields that follow."""
        sent = None
        if self._header is not None:
            while (found := self._header.extent(walk.data, walk.at, len(walk.data))) is None:
                yield
            if not found.size:
                raise _NoMessage
            sent = self._header.read(bytes(walk.data[walk.at : found.start])).sent
            walk.at = found.start
        if self._name_type is not None:
            sent = yield from walk.value(self._name_type)
        if sent not in self._rows:
            raise _NoMessage
        return self._rows[sent]


class _Walk:
    """A walk over the fields of a message, as its bytes arrive."""

    def __init__(self, data: bytes | bytearray, at: int, most: int | None) -> None:
        self.data = data
        self.at = at
        self._end = at + (FRAME_LIMIT if most is None else PLAUSIBLE)
        self._left = most

    def value(self, kind: Binary) -> Generator[None, None, Any]:
        """Skip a value and return it."""
        while True:
            try:
                value, self.at = kind.unpack(cast(bytes, self.data), self.at, len(self.data))
            except Mismatch as error:
                if error.code != "missing-field":
                    raise _NoMessage from None
            else:
                return value
            yield

    def skip(self, fields: _Fields) -> Generator[None, None, None]:
        """Skip fields."""
        counts = {kind.count for _, kind in fields if isinstance(kind, BinaryList)}
        found: dict[str, int] = {}
        for name, kind in fields:
            if name in counts:
                found[name] = yield from self._number(kind)
            elif isinstance(kind, BinaryList):
                count = found.get(kind.count, 0) if isinstance(kind.count, str) else kind.count or 0
                yield from self._items(kind.item, count)
            else:
                yield from self._skip_one(kind)
            self._check_length()

    def _check_length(self) -> None:
        if self.at > self._end:
            raise _NoMessage

    def _number(self, kind: Binary) -> Generator[None, None, int]:
        """Skip a number and return it, whether or not its row allows it."""
        if isinstance(kind, BinaryNumber):
            yield from self._wait(kind.size)
            number = int(kind.raw(self.data, self.at))
            self.at += kind.size
        else:
            number = yield from self.value(kind)
        if number < 0:
            raise _NoMessage
        return number

    def _items(self, item: Binary, count: int) -> Generator[None, None, None]:
        size = size_of(item)
        if size is not None:
            self.at += count * size
            return
        for _ in range(count):
            yield from self._skip_one(item)
            self._check_length()

    def _skip_one(self, kind: Binary) -> Generator[None, None, None]:
        if self._left is not None:
            self._left -= 1
            if self._left < 0:
                raise _NoMessage
        size = size_of(kind)
        if size is not None:
            self.at += size
        elif isinstance(kind, BinaryObject):
            yield from self.skip([*kind.fields.items()])
        elif isinstance(kind, BinarySequence) and kind.prefix is not None:
            length = yield from self._number(kind.prefix)
            self.at += length
        else:
            yield from self.value(kind)

    def _wait(self, size: int) -> Generator[None, None, None]:
        while len(self.data) < self.at + size:
            yield


def size_of(kind: Binary) -> int | None:
    """Return the number of bytes of all values of a type, None if it varies."""
    if isinstance(kind, BinaryObject):
        sizes = [size_of(part) for part in kind.fields.values()]
        return None if None in sizes else sum(size for size in sizes if size is not None)
    if isinstance(kind, BinaryList):
        size = size_of(kind.item)
        return size * kind.count if size is not None and isinstance(kind.count, int) else None
    return fixed_size(kind) or None


_FULL = 1200
"""Size of a segment from which the next one continues it."""


class DelimiterFramer(LineFramer):
    """Frames that end with a delimiter of one or more bytes."""

    def __init__(self, direction: Direction, end: bytes) -> None:
        super().__init__(direction)
        self.line_end = re.compile(re.escape(end))
        self.overlap = len(end) - 1


class BlockFramer(LineFramer):
    """Lines up to one that is the end of a block; after a gap, a block begins behind the next end."""

    def __init__(self, direction: Direction, end: bytes) -> None:
        super().__init__(direction)
        self.line_end = re.compile(rb"(?:\A|(?<=\n))%b\r?\n" % re.escape(end))
        self.overlap = len(end) + 2

    def _drop(self) -> None:
        self._cut = self._cut or "limit"
        # Of a longer line, the beginning is enough: it is not the end.
        line = self._held.rfind(b"\n") + 1
        rest = bytes(self._held[line : line + self.overlap + 1])
        self._dropped += len(self._held) - len(rest)
        self._held[:] = rest
        self._searched = 0


class LengthFramer(StructuredFramer):
    """Frames whose beginning says how long they are, by `headers` of each direction.

    After a gap within a frame, the next one begins where that one ends. Otherwise it begins at the first
    offset at which a plausible one leads to another, or has bytes that others hardly have.
    """

    def __init__(self, direction: Direction, headers: Mapping[Direction, Header | FieldExtents]) -> None:
        super().__init__(direction)
        self._header = headers[direction]
        self._size = 0
        """Size of the frame with its header, 0 if not known."""
        self._skipped = 0
        """Number of bytes after a gap that belong to the frame before it."""
        self._is_lost = False
        self._measuring: Iterator[Extent | None] | None = None
        """The extent of the frame that begins with the held bytes, as soon as it is known."""

    def gap(self, offset: int, length: int | None) -> Sequence[Frame]:
        come = self._dropped + len(self._held)
        size, skipped, is_lost = self._size, self._skipped, self._is_lost
        frames = super().gap(offset, length)
        rest, fixed = (size or skipped) - come - (length or 0), self._header.fixed_size
        if fixed:
            rest %= fixed
        if length is None or is_lost or not (size or skipped or fixed) or rest < 0:
            self._is_lost = True
        elif rest > 0:
            self._skipped = rest
            self._is_lost = False
        else:
            self._cut = None
        return frames

    def _seek(self) -> None:
        self._size = self._skipped = self._at = 0
        self._is_lost, self._measuring = False, None

    def _whole(self, data: bytes) -> Sequence[int]:
        if self._cut is not None or self._is_lost or self._skipped:
            return ()
        ends: list[int] = []
        at = 0
        while (found := self._header.extent(data, at, len(data))) is not None and found.size:
            if found.size > min(len(data) - at, FRAME_LIMIT):
                break
            at += found.size
            ends.append(at)
        return ends

    def _frame_end(self) -> int:
        held = self._held
        if self._skipped:
            return self._skipped - self._dropped if self._dropped + len(held) >= self._skipped else INCOMPLETE
        if self._is_lost:
            return self._next_beginning()
        if not self._size:
            self._measuring = self._measuring or self._header.measure(held)
            if (found := next(self._measuring)) is None:
                return INCOMPLETE
            if not found.size and not self._header.searches:
                # A length that is never valid is a frame of its own.
                return found.start
            if not found.size:
                self._is_lost = True
                return self._next_beginning()
            self._size = found.size
        if self._size > FRAME_LIMIT:
            self._cut = self._cut or "limit"
        return self._size - self._dropped if self._dropped + len(held) >= self._size else INCOMPLETE

    def _next_beginning(self) -> int:
        """Return the offset of the first plausible frame, if it is known."""
        held, header = self._held, self._header
        while self._at < len(held):
            found = header.plausible(held, self._at, len(held))
            if found is None:
                return INCOMPLETE
            if found.size:
                following = header.plausible(held, self._at + found.size, len(held))
                if header.is_strong or (following is not None and following.size):
                    self._is_lost = False
                    if self._at or self._dropped:
                        if self._dropped + self._at > FRAME_LIMIT:
                            self._cut = self._cut or "limit"
                        return self._at
                    self._cut = None
                    return self._frame_end()
                if following is None:
                    return INCOMPLETE
            self._at += 1
        return INCOMPLETE

    def _is_too_long(self) -> bool:
        # What follows may be the beginning of a frame.
        return self._at > FRAME_LIMIT if self._is_lost else super()._is_too_long()

    def _release(self, upto: int, frames: list[Frame]) -> None:
        super()._release(upto, frames)
        self._size, self._skipped, self._measuring = 0, 0, None

    def _overflow(self) -> None:
        self._place = 0

    def _drop(self) -> None:
        self._measuring = None
        if self._is_lost:
            # What is held is at most one plausible frame.
            self._dropped += self._at
            del self._held[: self._at]
            self._at = 0
        else:
            # If the end of a frame is not known, it is searched for.
            self._is_lost = not (self._size or self._skipped)
            self._dropped += len(self._held)
            self._held.clear()


class SendFramer(ByteFramer):
    """Frames that have what one segment has, which is a guess.

    A segment that is full is continued by the next one, unless the other side answers first.
    """

    depends_on_segments = True

    def feed(self, offset: int, data: bytes) -> Sequence[Frame]:
        frames: list[Frame] = []
        if not self.is_unfinished:
            self._start = offset
        self._held += data
        if self._dropped + len(self._held) > FRAME_LIMIT:
            self._cut = self._cut or "limit"
            self._dropped += len(self._held)
            self._held.clear()
        if len(data) < _FULL:
            self._release(len(self._held), frames)
        return frames

    def settle(self) -> Sequence[Frame]:
        frames: list[Frame] = []
        self._release(len(self._held), frames)
        return frames

    def eof(self) -> Sequence[Frame]:
        # The end of the stream is a pause, too.
        return self.settle()

    def _seek(self) -> None:
        pass
