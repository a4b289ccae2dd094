"""What is known of cards that others may not see: how many of each kind at least and at most, and in all.

Cards that come or go face down widen what is possible; a total, and what was paid openly, narrow it again.
Nothing is ever thought to be known that is not: without a total, or after a gap, counts go missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Counts = Mapping[str, int] | int
"""So many of each kind; or, face down, so many in all."""

UNBOUNDED = 1000
"""Stands for a count of which nothing is known; no game has so many cards."""


def total(counts: Counts) -> int:
    """How many in all."""
    return counts if isinstance(counts, int) else sum(counts.values())


def plain(counts: Mapping[str, int]) -> dict[str, int]:
    """Counts without those that are 0."""
    return {kind: count for kind, count in counts.items() if count}


class Hand:
    """The cards of one kind, resources or development cards, that a player holds."""

    __slots__ = ("least", "most", "total")

    def __init__(self, kinds: Iterable[str], is_empty: bool) -> None:
        self.least = dict.fromkeys(kinds, 0)
        self.most = dict.fromkeys(self.least, 0 if is_empty else UNBOUNDED)
        self.total: int | None = 0 if is_empty else None

    @property
    def is_known(self) -> bool:
        """Whether each count is known."""
        return self.least == self.most

    def gain(self, counts: Counts) -> None:
        """Cards come."""
        if self.total is not None:
            self.total += total(counts)
        if isinstance(counts, int):
            for kind, most in self.most.items():
                self.most[kind] = most + counts
        else:
            for kind, count in counts.items():
                self.least[kind] += count
                self.most[kind] += count
        self._narrow()

    def pay(self, counts: Counts) -> bool:
        """Cards go; False if there cannot have been so many."""
        enough = self.total is None or self.total >= total(counts)
        if self.total is not None:
            self.total -= total(counts)
        if isinstance(counts, int):
            for kind, least in self.least.items():
                self.least[kind] = min(least, max(0, least - counts))
        else:
            for kind, count in counts.items():
                enough = enough and self.most[kind] >= count
                # Who pays so many has had them: more than was known, perhaps.
                known = self.least[kind] == self.most[kind]
                if known:
                    self.least[kind] = self.most[kind] = self.most[kind] - count
                else:
                    self.least[kind] = max(0, self.least[kind] - count)
                    self.most[kind] = max(0, self.most[kind] - count)
        self._narrow()
        return enough

    def tell(self, counts: Counts) -> bool:
        """Take over what the server says; False if it contradicts what was known."""
        agrees = self.total is None or self.total == total(counts)
        if isinstance(counts, int):
            if not agrees:
                # How the difference came about is not known.
                self.least = dict.fromkeys(self.least, 0)
                self.most = dict.fromkeys(self.most, UNBOUNDED)
            self.total = counts
            self._narrow()
        else:
            for kind in self.least:
                count = counts.get(kind, 0)
                agrees = agrees and self.least[kind] <= count <= self.most[kind]
                self.least[kind] = self.most[kind] = count
            self.total = total(counts)
        return agrees

    def as_json(self) -> dict[str, Any]:
        """Each kind with its count, or with the least and the most; nothing where nothing is known."""
        return {
            kind: least if least == most else [least, most]
            for kind, least, most in zip(self.least, self.least.values(), self.most.values(), strict=True)
            if most < UNBOUNDED // 2
        }

    def _narrow(self) -> None:
        """What the total says of the single counts."""
        whole = self.total
        if whole is None or self.least == self.most:
            return
        least, most = self.least, self.most
        all_least, all_most = sum(least.values()), sum(most.values())
        if all_least > whole:
            # It contradicts what was known: of the single counts nothing is sure.
            self.least = dict.fromkeys(least, 0)
            self.most = dict.fromkeys(most, max(0, whole))
            return
        for kind in least:
            upper = min(most[kind], whole - (all_least - least[kind]))
            lower = max(least[kind], whole - (all_most - most[kind]))
            if lower > upper:
                continue
            least[kind], most[kind] = lower, upper
