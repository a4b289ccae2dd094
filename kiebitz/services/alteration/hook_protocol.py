"""What the forwarder and a hook's process say to each other, and how that stands on a byte stream.

Each record is MessagePack, behind its length in four bytes. What the hook may have a function for, which is
`Opened`, `Closed` and `Ask`, is answered in its order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

import msgspec

from kiebitz.dissectors.model import Direction, Transport

MOST_MESSAGES = 64
"""A hook may give back so many messages for one."""

MOST_BYTES = 1 << 20
"""And so many bytes of them."""

MEMORY = 1 << 30
"""So much memory (bytes) a hook's process may have."""

SLOW_NS = 100_000_000
"""A hook that works for longer on one message is told of."""

PIECE = 1 << 16
"""So many bytes are read or written at once."""

_LENGTH = 4
_LONGEST = 2 * MOST_BYTES + MOST_MESSAGES * 64
"""No record is longer (bytes)."""


class Opened(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False):
    """A stream begins."""

    number: int
    transport: Transport
    client: str
    server: str


class Closed(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False):
    """A stream is over."""

    number: int


class Passed(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False):
    """Bytes were passed on to their receiver; those between two of these were, too, and are not known."""

    number: int
    direction: Direction
    ts_ns: int
    offset: int
    data: bytes


class Ask(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False):
    """A message has come: what is to become of it?"""

    ticket: int
    number: int
    direction: Direction
    ts_ns: int
    protocol: str
    frame: bytes


class Ready(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False):
    """The hook is loaded."""


class Outcome(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """What is to be passed on, and after how long.

    It `is_same` if it is the very message that was asked about; another one may have the same bytes.
    """

    direction: Direction
    data: bytes
    delay_ns: int
    is_same: bool


class Answer(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False):
    """What is to become of a message; None if it is to be passed on as it is."""

    ticket: int
    outcomes: list[Outcome] | None


class Done(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False):
    """The opening or the end of a stream was taken note of."""


class Alive(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False):
    """Work goes on between two calls."""


class Slow(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False):
    """The hook has worked for long."""

    sentence: str


class Refused(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False):
    """What the hook gave back cannot be passed on."""

    sentence: str


class Failed(msgspec.Struct, array_like=True, tag=True, frozen=True, gc=False):
    """The hook cannot go on; nothing follows."""

    sentence: str


ToHook = Opened | Closed | Passed | Ask
FromHook = Ready | Answer | Done | Alive | Slow | Refused | Failed

Record = TypeVar("Record")

_encoder = msgspec.msgpack.Encoder()


class Garbled(Exception):
    """What has come is no record."""


def packed(record: ToHook | FromHook) -> bytes:
    """A record as it stands on the stream."""
    body = _encoder.encode(record)
    return len(body).to_bytes(_LENGTH, "big") + body


class Unpacking(Generic[Record]):
    """Puts the pieces of a stream together to records of one side."""

    def __init__(self, records: Any) -> None:
        self._decoder = msgspec.msgpack.Decoder(records)
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[Record]:
        """The records that are whole with these bytes. Raises Garbled."""
        held = self._held
        held += data
        while len(held) >= _LENGTH:
            length = int.from_bytes(held[:_LENGTH], "big")
            if length > _LONGEST:
                raise Garbled
            if len(held) < _LENGTH + length:
                return
            body = bytes(held[_LENGTH : _LENGTH + length])
            del held[: _LENGTH + length]
            try:
                yield self._decoder.decode(body)
            except msgspec.DecodeError as error:
                raise Garbled from error
