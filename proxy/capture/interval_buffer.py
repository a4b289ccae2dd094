"""A buffer for byte ranges that arrive in any order, repeated and overlapping; each byte is kept once.

Of several versions of a byte the first one is kept.
"""

from __future__ import annotations

from bisect import bisect_left

PIECE_COST = 128
"""Approximate memory per piece in bytes, without its data."""

OverlapConflict = tuple[int, bytes, bytes]
"""(position, earlier bytes, later bytes): two versions of equal length that differ."""


class IntervalBuffer:
    """Non-overlapping pieces in order: piece i covers `starts[i]` to `ends[i]`.

    `data[i]` are its bytes; fewer than `ends[i] - starts[i]` if the snap length cut it. `held` is the number
    of bytes covered, `cost` the approximate memory in bytes.
    """

    __slots__ = ("cost", "data", "ends", "held", "starts")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.data: list[bytes] = []
        self.held = 0
        self.cost = 0

    def add(self, start: int, end: int, data: bytes) -> list[OverlapConflict]:
        """Add the uncovered parts of a piece; return where its other parts differ from the buffer."""
        conflicts: list[OverlapConflict] = []
        index = max(bisect_left(self.starts, start) - 1, 0)
        position = start
        while position < end:
            if index < len(self.starts) and self.ends[index] <= position:
                index += 1
                continue
            here = self.starts[index] if index < len(self.starts) else end
            if position < here:
                upto = min(here, end)
                new = data[position - start : upto - start]
                self.starts.insert(index, position)
                self.ends.insert(index, upto)
                self.data.insert(index, new)
                self.held += upto - position
                self.cost += len(new) + PIECE_COST
            else:
                upto = min(self.ends[index], end)
                old = self.data[index][position - here : upto - here]
                new = data[position - start : upto - start]
                common = min(len(old), len(new))
                if old[:common] != new[:common]:
                    conflicts.append((position, old[:common], new[:common]))
            position = upto
            index += 1
        return conflicts

    def drop(self, count: int) -> None:
        """Remove the first `count` pieces."""
        for start, end, data in zip(self.starts[:count], self.ends, self.data, strict=False):
            self.held -= end - start
            self.cost -= len(data) + PIECE_COST
        del self.starts[:count], self.ends[:count], self.data[:count]
