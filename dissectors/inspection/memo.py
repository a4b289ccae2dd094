"""Caches of decoded frames: most messages of a server are sent to each client."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.model import Direction

MAX_FRAMES = 4096
"""Maximum number of recent decoded frames of one direction of a protocol."""

MAX_BYTES = 1 << 20
"""Maximum size of these frames in bytes; decoded, they take a multiple of it."""

MAX_FRAME_LENGTH = 4096
"""Maximum length of a cached frame in bytes."""

Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedDict(dict[Key, Value]):
    """A cache of at most `max_entries`, of inputs of at most `max_length`; when it is full, it is emptied."""

    def __init__(self, max_entries: int, max_length: int) -> None:
        super().__init__()
        self._max_entries = max_entries
        self._max_length = max_length

    def keep(self, key: Key, value: Value, length: int) -> None:
        """Store the value for an input of this length, unless that is too long."""
        if length > self._max_length:
            return
        if len(self) >= self._max_entries:
            self.clear()
        self[key] = value


class Memo(msgspec.Struct, eq=False):
    """The cached frames of one direction of one protocol: recent ones (`lately`) and older ones (`before`).

    If there are too many, older ones that did not recur are forgotten. `room` is the number of bytes left for
    recent ones.
    """

    lately: dict[bytes, Decoded] = msgspec.field(default_factory=dict)
    before: dict[bytes, Decoded] = msgspec.field(default_factory=dict)
    room: int = MAX_BYTES


def decoded(memo: Memo, dissector: Dissector, frame: bytes, direction: Direction) -> Decoded:
    """Return a decoded frame from the cache, or decode it and cache it."""
    found = memo.lately.get(frame)
    if found is None:
        found = memo.before.get(frame)
        if found is None:
            found = dissector.codec.decode(frame, direction)
            if len(frame) > MAX_FRAME_LENGTH or (found.row is not None and found.row.is_generated):
                return found
        if len(memo.lately) >= MAX_FRAMES or memo.room < len(frame):
            memo.before, memo.lately, memo.room = memo.lately, {}, MAX_BYTES
        memo.lately[frame] = found
        memo.room -= len(frame)
    return found
