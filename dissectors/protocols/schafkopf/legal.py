"""The bids and cards that the rules allow."""

from __future__ import annotations

from collections.abc import Sequence

from kiebitz.dissectors.protocols.schafkopf.cards import MODI, SI, Mode, mode

NICHTS, HOCHZEIT = "NICHTS", "HOCHZEIT"


def bids(hand: Sequence[str], best: str) -> list[str]:
    """Return the Modi that this hand may bid after the best bid so far; NICHTS is always among them."""
    least = 0 if best == NICHTS else MODI.index(best) + 1
    return [modus for modus in MODI[least:] if _may_bid(modus, hand)]


def playable(rules: Mode, hand: Sequence[str], laid: Sequence[str]) -> list[str]:
    """Return the cards of a hand that may be played after those laid, in their order."""
    return (rules.must_follow(laid[0], hand) if laid else []) or list(hand)


def _may_bid(modus: str, hand: Sequence[str]) -> bool:
    if modus == "SI":
        return set(hand) == SI
    called = mode(modus).called if modus.startswith("SAUSPIEL") else None
    return called is None or called not in hand
