"""Pieces of a whole that come in any order, twice and overlapping: kept in order, each byte once.

Of a byte that comes twice the first version stays.
"""

from __future__ import annotations

from bisect import bisect_left

PIECE_COST = 128
"""What keeping a piece costs beside its bytes, about."""

Contradiction = tuple[int, bytes, bytes]
"""(place, bytes that were here, bytes that came for them): equally many, and not the same."""


class Pieces:
    """Pieces that do not overlap, in order: the one at `starts[i]` goes up to `ends[i]`.

    `data[i]` are its bytes; fewer than `ends[i] - starts[i]` where the snap length cut it. `held` is how many
    bytes of the whole are covered, `cost` what it takes in memory, about.
    """

    __slots__ = ("cost", "data", "ends", "held", "starts")

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.data: list[bytes] = []
        self.held = 0
        self.cost = 0

    def add(self, start: int, end: int, data: bytes) -> list[Contradiction]:
        """Add what is new in a piece; give what in the rest contradicts what is here."""
        contradictions: list[Contradiction] = []
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
                    contradictions.append((position, old[:common], new[:common]))
            position = upto
            index += 1
        return contradictions

    def drop(self, count: int) -> None:
        """Forget the first `count` pieces."""
        for start, end, data in zip(self.starts[:count], self.ends, self.data, strict=False):
            self.held -= end - start
            self.cost -= len(data) + PIECE_COST
        del self.starts[:count], self.ends[:count], self.data[:count]
