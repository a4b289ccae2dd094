"""What a peer says on one connection, cut into messages and read."""

from __future__ import annotations

from typing import Any

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Direction


class Heard(msgspec.Struct, frozen=True):
    """A valid message: its bytes, and what they say."""

    frame: bytes
    row: MessageType
    fields: dict[str, Any]


class Ear:
    """Hears what goes in one direction of a connection, from its beginning on."""

    def __init__(self, dissector: Dissector, hears: Direction) -> None:
        self._dissector = dissector
        self._hears: Direction = hears
        self._framer = dissector.framer(hears)
        self._came = 0

    def hear(self, data: bytes) -> list[Heard]:
        """The messages that come to an end with these bytes; what is not valid is left out."""
        frames = [*self._framer.feed(self._came, data), *self._framer.settle()]
        self._came += len(data)
        found = []
        for frame in frames:
            decoded = self._dissector.codec.decode(frame.data, self._hears)
            if decoded.row is not None and decoded.valid:
                found.append(Heard(frame.data, decoded.row, decoded.fields))
        return found

    @property
    def has_heard(self) -> bool:
        """Whether any bytes have come."""
        return self._came > 0
