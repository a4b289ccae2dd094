"""What frames say that came before: a server says the same to each client, and it is decoded once."""

from __future__ import annotations

from kiebitz.dissectors.dissector import Dissector
from kiebitz.dissectors.grammar import Decoded
from kiebitz.dissectors.records import Direction

MOST_FRAMES = 4096
"""How many decoded frames of a protocol's direction are remembered."""

LONGEST_FRAME = 512
"""Frames longer than this (bytes) are not remembered."""

Memo = dict[bytes, Decoded]
"""What frames of one direction of one protocol say."""


def decoded(memo: Memo, dissector: Dissector, frame: bytes, direction: Direction) -> Decoded:
    """What a frame says, by the memo if it is there; else it may be from now on."""
    found = memo.get(frame)
    if found is None:
        found = dissector.decode(frame, direction)
        if len(frame) <= LONGEST_FRAME and (found.row is None or not found.row.is_fresh):
            if len(memo) >= MOST_FRAMES:
                memo.clear()
            memo[frame] = found
    return found
