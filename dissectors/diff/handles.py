"""Values that name something (a trade, a seat) in events that are otherwise the same.

Another playing has other values, but always the same ones for the same thing. Which value of the one session
stands for which of the other, most of the events decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

Named = Sequence[tuple[str, str]]
"""The values of an event that name something, in order: what sort of thing, and the value."""


def partners(pairs: Iterable[tuple[Named, Named, int]]) -> dict[tuple[str, str], str]:
    """Return which value stands for which, one to one, by sort and value of the first side.

    Each pair is what two events name, and how many such events there are.
    """
    counts: Counter[tuple[str, str, str]] = Counter()
    for mine, others, count in pairs:
        for (sort, value), (_, other) in zip(mine, others, strict=True):
            counts[sort, value, other] += count
    chosen: dict[tuple[str, str], str] = {}
    taken: set[tuple[str, str]] = set()
    # The first of those that come as often stays first: a Counter keeps them in their order.
    for (sort, value, other), _ in counts.most_common():
        if (sort, value) not in chosen and (sort, other) not in taken:
            chosen[sort, value] = other
            taken.add((sort, other))
    return chosen


def agree(mine: Named, others: Named, chosen: Mapping[tuple[str, str], str]) -> bool:
    """Return True if two events name the same things."""
    return all(
        chosen.get((sort, value)) == other for (sort, value), (_, other) in zip(mine, others, strict=True)
    )
