"""Records exchanged by the forwarder and a hook's process, and their framing on a byte stream.

Each record is MessagePack, preceded by its length in four bytes. `Opened`, `Closed` and `Ask`, for which the
hook may have a function, are answered in order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec

from kiebitz.dissectors.model import Direction, Transport

MAX_MESSAGES = 64
"""Maximum number of messages that a hook may return for one."""

MAX_RETURNED_BYTES = 1 << 20
"""Maximum number of their bytes."""

MEMORY_LIMIT = 1 << 30
"""Memory limit of a hook's process in bytes."""

SLOW_NS = 100_000_000
"""A call that takes longer is reported."""

CHUNK_BYTES = 1 << 16
"""Number of bytes read or written at once."""

_LENGTH = 4
_MAX_RECORD_BYTES = 2 * MAX_RETURNED_BYTES + MAX_MESSAGES * 64
"""Maximum length of a record in bytes."""


class Opened(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False):
    """A new stream."""

    number: int
    transport: Transport
    client: str
    server: str


class Closed(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False):
    """The end of a stream."""

    number: int


class Forwarded(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False):
    """Bytes forwarded to their receiver; a gap between two offsets was forwarded too, but is unknown."""

    number: int
    direction: Direction
    ts_ns: int
    offset: int
    data: bytes


class Ask(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False):
    """A received message to decide about."""

    ticket: int
    number: int
    direction: Direction
    ts_ns: int
    protocol: str
    frame: bytes


class Ready(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False):
    """The hook is loaded."""


class Outcome(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A message to forward after `delay_ns`.

    It `is_same` if it is the very message asked about; another one may have the same bytes.
    """

    direction: Direction
    data: bytes
    delay_ns: int
    is_same: bool


class Answer(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False):
    """The decision about a message; None to forward it unchanged."""

    ticket: int
    outcomes: list[Outcome] | None


class Done(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False):
    """The acknowledgement of `Opened` or `Closed`."""


class Alive(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False):
    """A sign of progress between two calls."""


class Slow(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False):
    """A report that a call took long."""

    sentence: str


class Refused(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False):
    """A report that a returned message cannot be sent."""

    sentence: str


class Failed(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False):
    """The last record of a hook that cannot continue."""

    sentence: str


ToHook = Opened | Closed | Forwarded | Ask
FromHook = Ready | Answer | Done | Alive | Slow | Refused | Failed

Record = TypeVar("Record")

_encoder = msgspec.msgpack.Encoder()


class InvalidRecord(Exception):
    """Bytes that are not a valid record."""


def pack(record: ToHook | FromHook) -> bytes:
    """Encode a record with its length."""
    body = _encoder.encode(record)
    return len(body).to_bytes(_LENGTH, "big") + body


class Unpacker(Generic[Record]):
    """Incremental decoder of the records of one side."""

    def __init__(self, records: Any) -> None:
        self._decoder = msgspec.msgpack.Decoder(records)
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[Record]:
        """Yield the records completed by these bytes. Raises InvalidRecord."""
        held = self._held
        held += data
        while len(held) >= _LENGTH:
            length = int.from_bytes(held[:_LENGTH], "big")
            if length > _MAX_RECORD_BYTES:
                raise InvalidRecord
            if len(held) < _LENGTH + length:
                return
            body = bytes(held[_LENGTH : _LENGTH + length])
            del held[: _LENGTH + length]
            try:
                yield self._decoder.decode(body)
            except msgspec.DecodeError as error:
                raise InvalidRecord from error
