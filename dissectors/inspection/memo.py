"""What is worked out once, as it comes again: most of what a server says it says to each client."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.model import Direction

MAX_FRAMES = 4096
"""How many decoded frames of a protocol's direction are `lately` at the most."""

MAX_BYTES = 1 << 20
"""How many bytes these frames have; what they say takes a multiple of that."""

MAX_FRAME_LENGTH = 4096
"""Frames longer than this (bytes) are not remembered."""

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
    """What frames of one direction of one protocol say: those that came `lately`, and those `before`.

    When there are too many, those that did not come again lately are forgotten. `room` is how many bytes more
    may come lately.
    """

    lately: dict[bytes, Decoded] = msgspec.field(default_factory=dict)
    before: dict[bytes, Decoded] = msgspec.field(default_factory=dict)
    room: int = MAX_BYTES


def decoded(memo: Memo, dissector: Dissector, frame: bytes, direction: Direction) -> Decoded:
    """What a frame says, by the memo if it is there; else it may be from now on."""
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
