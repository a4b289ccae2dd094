"""Two dice: how they are written, and which roll beats which."""

from __future__ import annotations

MIA = "2,1"
"""The Mäxchen: beats everything, and can be neither beaten nor tied."""


def written(first: int, second: int) -> str:
    """The higher die first, as every server writes a roll."""
    return f"{max(first, second)},{min(first, second)}"


ROLLS = (
    *(written(high, low) for high in range(3, 7) for low in range(1, high)),
    *(written(pips, pips) for pips in range(1, 7)),
    MIA,
)
"""All 21 rolls, low to high: 3,1 3,2 4,1 … 6,5, then 1,1 … 6,6, then 2,1."""

_RANK = {roll: rank for rank, roll in enumerate(ROLLS)}


def rank(roll: str) -> int | None:
    """A roll's place among the 21, 0 the lowest; None where two dice cannot show it."""
    return _RANK.get(roll)


def beats(roll: str, other: str) -> bool | None:
    """Whether `roll` is higher than `other`; an equal one is not. None where either is no roll."""
    mine, theirs = rank(roll), rank(other)
    return None if mine is None or theirs is None else mine > theirs
