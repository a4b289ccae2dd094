"""Decoded messages from one direction of a connection."""

from __future__ import annotations

from typing import Any

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import MessageType
from kiebitz.dissectors.model import Direction


class ReceivedMessage(msgspec.Struct, frozen=True):
    """A valid message: its bytes, row and fields."""

    frame: bytes
    row: MessageType
    fields: dict[str, Any]


class MessageReader:
    """A reader for one direction of a connection, from its beginning."""

    def __init__(self, dissector: Dissector, direction: Direction) -> None:
        self._dissector = dissector
        self._direction: Direction = direction
        self._framer = dissector.framer(direction)
        self._received = 0

    def read(self, data: bytes) -> list[ReceivedMessage]:
        """Return the valid messages that these bytes complete; invalid ones are omitted."""
        frames = [*self._framer.feed(self._received, data), *self._framer.settle()]
        self._received += len(data)
        found = []
        for frame in frames:
            decoded = self._dissector.codec.decode(frame.data, self._direction)
            if decoded.row is not None and decoded.valid:
                found.append(ReceivedMessage(frame.data, decoded.row, decoded.fields))
        return found
