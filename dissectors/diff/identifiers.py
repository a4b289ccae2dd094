"""Matching of identifiers (of a trade, a seat) in events that are otherwise equal.

Another session uses other values, but always the same value for the same thing. The match that most events
support is used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

Identifiers = Sequence[tuple[str, str]]
"""The identifiers in an event, in order: kind and value."""


def match_identifiers(pairs: Iterable[tuple[Identifiers, Identifiers, int]]) -> dict[tuple[str, str], str]:
    """Return the one-to-one match of identifiers, by kind and value of the first side.

    Args:
        pairs: The identifiers of two paired events, and the number of such pairs.
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


def identify_same(mine: Identifiers, others: Identifiers, chosen: Mapping[tuple[str, str], str]) -> bool:
    """Return True if two events identify the same things."""
    return all(
        chosen.get((sort, value)) == other for (sort, value), (_, other) in zip(mine, others, strict=True)
    )
