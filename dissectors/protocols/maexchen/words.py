"""The words for Mäxchen's dice and for its reason codes, in sentences and in views."""

from __future__ import annotations

from kiebitz.dissectors.grammar.sentences import coded
from kiebitz.dissectors.protocols.maexchen.dice import MIA

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
