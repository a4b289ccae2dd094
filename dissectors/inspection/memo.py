"""Caches for repeated frames: a server sends most messages to each client."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.model import Direction

MAX_FRAMES = 4096
"""Maximum number of recent decoded frames of a protocol's direction."""

MAX_BYTES = 1 << 20
"""Maximum number of bytes of these frames; their decoded content takes a multiple of that."""

MAX_FRAME_SIZE = 4096
"""Maximum size in bytes of a frame to cache."""

Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedCache(dict[Key, Value]):
    """A bounded cache; when it is full, all entries are dropped."""

    def __init__(self, max_entries: int, max_length: int) -> None:
        """Create a cache.

        Args:
            max_entries: The maximum number of entries.
            max_length: The maximum length of what an entry was computed from, in bytes or characters.
        """
        super().__init__()
        self._max_entries = max_entries
        self._max_length = max_length

    def keep(self, key: Key, value: Value, length: int) -> None:
        """Add a value computed from something of this length, unless that is too long."""
        if length > self._max_length:
            return
        if len(self) >= self._max_entries:
            self.clear()
        self[key] = value


class FrameCache(msgspec.Struct, eq=False):
    """The decoded frames of one direction of one protocol, in two generations.

    When the recent generation is full it becomes the older one, and the older one is dropped. So frames that
    did not come again are forgotten. `room` is how many more bytes the recent generation may hold.
    """

    recent: dict[bytes, Decoded] = {}
    older: dict[bytes, Decoded] = {}
    room: int = MAX_BYTES


def decode_cached(memo: FrameCache, dissector: Dissector, frame: bytes, direction: Direction) -> Decoded:
    """Decode a frame, from the cache if it is there; otherwise add it."""
    found = memo.recent.get(frame)
    if found is None:
        found = memo.older.get(frame)
        if found is None:
            found = dissector.codec.decode(frame, direction)
            if len(frame) > MAX_FRAME_SIZE or (found.row is not None and found.row.is_generated):
                return found
        if len(memo.recent) >= MAX_FRAMES or memo.room < len(frame):
            memo.older, memo.recent, memo.room = memo.recent, {}, MAX_BYTES
        memo.recent[frame] = found
        memo.room -= len(frame)
    return found
