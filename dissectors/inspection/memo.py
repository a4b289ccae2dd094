"""What is worked out once, as it comes again: most of what a server says it says to each client."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.model import Direction

MOST_FRAMES = 4096
"""How many decoded frames of a protocol's direction are `lately` at the most."""

MOST_BYTES = 1 << 20
"""How many bytes these frames have; what they say takes a multiple of that."""

LONGEST_FRAME = 4096
"""Frames longer than this (bytes) are not remembered."""

Key = TypeVar("Key")
Value = TypeVar("Value")


class Lately(dict[Key, Value]):
    """What was worked out of things lately; when it is of too many, all is forgotten."""

    def __init__(self, most: int, longest: int) -> None:
        """Of at most so many things, none of them longer than this (bytes or characters)."""
        super().__init__()
        self._most = most
        self._longest = longest

    def keep(self, key: Key, value: Value, length: int) -> None:
        """Remember what was worked out of a thing of this length, unless that is too long."""
        if length > self._longest:
            return
        if len(self) >= self._most:
            self.clear()
        self[key] = value


class Memo(msgspec.Struct, eq=False):
    """What frames of one direction of one protocol say: those that came `lately`, and those `before`.

    When there are too many, those that did not come again lately are forgotten. `room` is how many bytes more
    may come lately.
    """

    lately: dict[bytes, Decoded] = msgspec.field(default_factory=dict)
    before: dict[bytes, Decoded] = msgspec.field(default_factory=dict)
    room: int = MOST_BYTES


def decoded(memo: Memo, dissector: Dissector, frame: bytes, direction: Direction) -> Decoded:
    """What a frame says, by the memo if it is there; else it may be from now on."""
    found = memo.lately.get(frame)
    if found is None:
        found = memo.before.get(frame)
        if found is None:
            found = dissector.decode(frame, direction)
            if len(frame) > LONGEST_FRAME or (found.row is not None and found.row.is_fresh):
                return found
        if len(memo.lately) >= MOST_FRAMES or memo.room < len(frame):
            memo.before, memo.lately, memo.room = memo.lately, {}, MOST_BYTES
        memo.lately[frame] = found
        memo.room -= len(frame)
    return found
