"""The known range of a player's cards: minimum and maximum of each kind, and the total.

Hidden gains and payments widen the range; a total, or an open payment, narrows it. Nothing is assumed:
without a total, or after a gap, counts are unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kiebitz.dissectors.grammar.sentences import counted

Counts = Mapping[str, int] | int
"""Number of cards of each kind; or, if they are hidden, their total."""

UNBOUNDED = 1000
"""Maximum of an unknown count; no game has so many cards."""


def total(counts: Counts) -> int:
    """Return the number of all cards."""
    return counts if isinstance(counts, int) else sum(counts.values())


def counts_text(counts: Counts | None) -> str:
    """Return counts as text: `2 Holz, 1 Erz`, or `3 cards` if they are hidden."""
    if counts is None:
        return "nothing that is known"
    if isinstance(counts, int):
        return counted(counts, "card")
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "nothing"


def plain(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the counts without zeros."""
    return {kind: count for kind, count in counts.items() if count}


class Hand:
    """A player's resources or development cards."""

    __slots__ = ("least", "most", "total")

    def __init__(self, kinds: Iterable[str], is_empty: bool) -> None:
        self.least = dict.fromkeys(kinds, 0)
        self.most = dict.fromkeys(self.least, 0 if is_empty else UNBOUNDED)
        self.total: int | None = 0 if is_empty else None

    @property
    def is_known(self) -> bool:
        """True if each count is known."""
        return self.least == self.most

    def gain(self, counts: Counts) -> None:
        """Add cards."""
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
        """Remove cards; return False if the player cannot have had them."""
        enough = self.total is None or self.total >= total(counts)
        if self.total is not None:
            self.total -= total(counts)
        if isinstance(counts, int):
            for kind, least in self.least.items():
                self.least[kind] = min(least, max(0, least - counts))
        else:
            for kind, count in counts.items():
                enough = enough and self.most[kind] >= count
                # The player had these cards, even if that was not known.
                known = self.least[kind] == self.most[kind]
                if known:
                    self.least[kind] = self.most[kind] = self.most[kind] - count
                else:
                    self.least[kind] = max(0, self.least[kind] - count)
                    self.most[kind] = max(0, self.most[kind] - count)
        self._narrow()
        return enough

    def apply_counts(self, counts: Counts) -> bool:
        """Apply counts sent by the server; return False if they contradict the known range."""
        agrees = self.total is None or self.total == total(counts)
        if isinstance(counts, int):
            if not agrees:
                # The cause of the difference is unknown.
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
        """Return each kind with its count, or with minimum and maximum; unknown kinds are omitted."""
        return {
            kind: least if least == most else [least, most]
            for kind, least, most in zip(self.least, self.least.values(), self.most.values(), strict=True)
            if most < UNBOUNDED // 2
        }

    def _narrow(self) -> None:
        whole = self.total
        if whole is None or self.least == self.most:
            return
        least, most = self.least, self.most
        all_least, all_most = sum(least.values()), sum(most.values())
        if all_least > whole:
            # The total contradicts the single counts, so none of them is certain.
            self.least = dict.fromkeys(least, 0)
            self.most = dict.fromkeys(most, max(0, whole))
            return
        for kind in least:
            upper = min(most[kind], whole - (all_least - least[kind]))
            lower = max(least[kind], whole - (all_most - most[kind]))
            if lower > upper:
                continue
            least[kind], most[kind] = lower, upper
