"""Schafkopf's rules for announcements and cards, by which the server's bots and the player choose."""

from __future__ import annotations

import random
from collections.abc import Sequence

from kiebitz.dissectors.protocols.schafkopf.cards import MODI, SI, Mode, mode


def may_bid(modus: str, hand: Sequence[str]) -> bool:
    """Return whether a hand is one with which this can be bid."""
    if modus == "SI":
        return set(hand) == SI
    if modus.startswith("SAUSPIEL"):
        called = mode(modus).called
        return called is not None and called not in hand
    return modus in MODI


def bid(chance: random.Random, hand: Sequence[str], best: str) -> str:
    """Return a Modus that is worth more than the best so far, or NICHTS."""
    higher = MODI[: MODI.index("SI")] if best == "NICHTS" else MODI[MODI.index(best) + 1 : MODI.index("SI")]
    possible = [modus for modus in higher if may_bid(modus, hand)]
    return chance.choice(possible) if possible and chance.random() < 0.5 else "NICHTS"


def card(chance: random.Random, rules: Mode, hand: Sequence[str], table: Sequence[str]) -> str:
    """Return a card that may be played on those on the table, in their order."""
    return chance.choice(playable(rules, hand, table))


def playable(rules: Mode, hand: Sequence[str], table: Sequence[str]) -> list[str]:
    following = rules.must_follow(table[0], hand) if table else []
    return following or list(hand)


def boolean(chance: random.Random) -> str:
    return "JA" if chance.random() < 0.25 else "NEIN"
