"""The short pack of 24 cards and the rules of play: trumps by mode, winner of a trick, suits to follow.

A card is written `FARBE WERT`, such as `EICHEL SAU`. The specification omits the rules of the game; the
behaviour of real servers agrees with these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

import msgspec

FARBEN = ("EICHEL", "GRAS", "HERZ", "SCHELLEN")
WERTE = ("OBER", "UNTER", "SAU", "ZEHN", "KONIG", "NEUN")
PACK = frozenset(f"{farbe} {wert}" for farbe in FARBEN for wert in WERTE)
HAND = 6
SEATS = 4
NOBODY = 4
"""Used in messages instead of a seat."""

_POINTS = {"SAU": 11, "ZEHN": 10, "KONIG": 4, "OBER": 3, "UNTER": 2, "NEUN": 0}
TO_WIN = 61
"""Points of 120 that the player's party needs to win."""

_IN_SUIT = ("SAU", "ZEHN", "KONIG", "OBER", "UNTER", "NEUN")
"""High to low; Ober and Unter only if they are no trumps."""

SI = frozenset({*(f"{farbe} OBER" for farbe in FARBEN), "EICHEL UNTER", "GRAS UNTER"})
"""The six highest trumps: the only hand that is a Sie."""

NICHTS, HOCHZEIT = "NICHTS", "HOCHZEIT"

MODI = (
    *(f"SAUSPIEL{farbe.lower()}" for farbe in FARBEN),
    HOCHZEIT,
    "GEIER",
    "WENZ",
    *(f"SOLO{farbe.lower()}" for farbe in FARBEN),
    "GEIERdu",
    "WENZdu",
    *(f"SOLO{farbe.lower()}DU" for farbe in FARBEN),
    "SI",
    NICHTS,
)


def points(cards: Iterable[str]) -> int:
    """Return the sum of the cards' points; the whole pack has 120."""
    return sum(_POINTS[card.partition(" ")[2]] for card in cards)


class Mode(msgspec.Struct, frozen=True):
    """A kind of game: `trumps` from high to low; `called` is the Sau whose holder is the partner.

    In a `du` the player declares to take every trick.
    """

    name: str
    trumps: tuple[str, ...]
    called: str | None
    du: bool

    def suit(self, card: str) -> str:
        """Return the suit to follow when this card is led: its Farbe, or TRUMPF."""
        return "TRUMPF" if card in self.trumps else card.partition(" ")[0]

    def winner(self, cards: Sequence[str]) -> int:
        """Return which of the cards, in the order played, takes the trick (counted from 0)."""
        led = self.suit(cards[0])
        return min(range(len(cards)), key=lambda place: self._rank(cards[place], led))

    def _rank(self, card: str, led: str) -> int:
        """Return a number that is lower for stronger cards."""
        if card in self.trumps:
            return self.trumps.index(card)
        farbe, _, wert = card.partition(" ")
        return 100 + _IN_SUIT.index(wert) if farbe == led else 1000

    def must_follow(self, led: str, hand: Iterable[str]) -> list[str]:
        """Return the cards of a hand that follow the card `led`; if there are none, any card is allowed."""
        wanted = self.suit(led)
        return [card for card in hand if self.suit(card) == wanted]


@lru_cache(maxsize=64)
def mode(name: str) -> Mode:
    """Return the rules of a Modus of the specification."""
    du = name.lower().endswith("du")
    kind = name[:-2] if du else name
    ober = tuple(f"{farbe} OBER" for farbe in FARBEN)
    unter = tuple(f"{farbe} UNTER" for farbe in FARBEN)
    farbe = next((farbe for farbe in FARBEN if kind.endswith(farbe.lower())), None)
    if kind.startswith("WENZ"):
        return Mode(name, unter, None, du)
    if kind.startswith("GEIER"):
        return Mode(name, ober, None, du)
    called = f"{farbe} SAU" if kind.startswith("SAUSPIEL") else None
    trump_suit = farbe if kind.startswith("SOLO") else "HERZ"
    suit = tuple(f"{trump_suit} {wert}" for wert in _IN_SUIT if wert not in ("OBER", "UNTER"))
    return Mode(name, ober + unter + suit, called, du)


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
