"""The extents of binary messages whose fields show where they end."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, cast

from kiebitz.dissectors.grammar.field_type import Mismatch
from kiebitz.dissectors.grammar.framing import FRAME_LIMIT
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
