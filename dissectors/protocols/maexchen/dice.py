"""Two dice: their notation, ranking and words; the words for reason codes."""

from __future__ import annotations

from kiebitz.dissectors.grammar.sentences import coded

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


MIA_WORD = "Mäxchen"

LOST_WORDS = {
    "SEE_BEFORE_FIRST_ROLL": "wanted to see before anybody had rolled",
    "LIED_ABOUT_MIA": "announced Mäxchen and did not have it",
    "ANNOUNCED_LOSING_DICE": "announced too little",
    "DID_NOT_ANNOUNCE": "did not announce in time",
    "DID_NOT_TAKE_TURN": "did not take the turn in time",
    "INVALID_TURN": "did what is not allowed",
    "SEE_FAILED": "wanted to see, and was told the truth",
    "CAUGHT_BLUFFING": "was caught bluffing",
    "MIA": "against Mäxchen",
}
"""The reasons for losing a round, by code."""

CANCELED_WORDS = {
    "NO_PLAYERS": "nobody joined",
    "no players": "nobody joined",
    "ONLY_ONE_PLAYER": "only one player joined",
    "only one player": "only one player joined",
}
"""The reasons for canceling a round, by the server's words."""

_REJECTED_WORDS = {
    "INVALID_NAME": "the name is not valid",
    "NAME_ALREADY_TAKEN": "the name is taken",
    "ALREADY_REGISTERED": "already registered",
}

reason_words = coded(LOST_WORDS | CANCELED_WORDS | _REJECTED_WORDS)
"""The words for a reason; the oldest servers give theirs in words of their own."""

dice_words = coded({MIA: f"{MIA_WORD} ({MIA})"})
"""The words for a roll of the dice."""
