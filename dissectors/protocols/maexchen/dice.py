"""Two dice: their notation and ranking."""

from __future__ import annotations

MIA = "2,1"
"""The Mäxchen: beats everything, and can be neither beaten nor tied."""


def written(first: int, second: int) -> str:
    """Return a roll as every server writes it, the higher die first."""
    return f"{max(first, second)},{min(first, second)}"


ROLLS = (
    *(written(high, low) for high in range(3, 7) for low in range(1, high)),
    *(written(pips, pips) for pips in range(1, 7)),
    MIA,
)
"""All 21 rolls, low to high: 3,1 3,2 4,1 … 6,5, then 1,1 … 6,6, then 2,1."""

_RANK = {roll: rank for rank, roll in enumerate(ROLLS)}


def rank(roll: str) -> int | None:
    """Return a roll's rank among the 21, 0 the lowest; None for impossible dice."""
    return _RANK.get(roll)


def beats(roll: str, other: str) -> bool | None:
    """Return True if `roll` is higher than `other`, not equal. None if either is impossible."""
    mine, theirs = rank(roll), rank(other)
    return None if mine is None or theirs is None else mine > theirs
