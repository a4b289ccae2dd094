"""The short pack of 24 cards with its words, the rules of play, and the play of one round.

A card is written `FARBE WERT`, such as `EICHEL SAU`. The specification omits the rules of the game; the
behaviour of real servers agrees with these.

A MODEL does not report the card played; it shows the table and the last trick, by seat. New cards in it,
compared with all known ones, were played since, in the order of seats from the leader on. A snapshot may also
be an old one, as connections progress at different speeds: then it agrees with the known cards of that
moment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from kiebitz.dissectors.grammar.sentences import UNKNOWN, each

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


TRICKS = 6

BySeat = Sequence[str | None]
"""Four cards by seat, None where there is none."""


class PlayedCard(msgspec.Struct, eq=False):
    """A card that was played, and the id of its event."""

    seat: int
    card: str
    event_id: int | None = None


class Trick(msgspec.Struct, eq=False):
    """A trick so far, in the order played.

    `leader` is the seat that played first, `winner` the one that takes it by the rules; None if unknown.
    """

    number: int
    leader: int | None
    cards: list[PlayedCard] = []
    by_seat: list[str | None] = msgspec.field(default_factory=lambda: [None] * SEATS)
    winner: int | None = None
    disputed: bool = False
    """True if the server let another player lead next."""
    event_id: int | None = None

    @property
    def over(self) -> bool:
        """True if all players have played a card."""
        return len(self.cards) == SEATS

    @property
    def points(self) -> int:
        """The points of the trick's cards."""
        return points(played.card for played in self.cards)

    def lay(self, seat: int, card: str) -> None:
        """Add the next card."""
        self.cards.append(PlayedCard(seat, card))
        self.by_seat[seat] = card

    def next_seat(self) -> int | None:
        """Return the seat that plays next, by the order of seats."""
        if self.cards:
            return (self.cards[-1].seat + 1) % SEATS
        return self.leader


class Contradiction(Exception):
    """A snapshot that contradicts what is known; the text is a sentence.

    `field` is the wrong field of the MODEL, and `place` the card's index in it. If only the leader of the
    trick differs from the winner of the last one, `leader` is that seat.
    """

    def __init__(self, text: str, field: str, place: int, leader: int | None = None) -> None:
        super().__init__(text)
        self.field = field
        self.place = place
        self.leader = leader


class Play:
    """The known play of a round. `tricks` are the finished ones, `current` the one on the table."""

    def __init__(self, certain: bool) -> None:
        self.certain = certain
        """True if the round was seen from its first card on."""
        self.mode: Mode | None = None
        self.tricks: list[Trick] = []
        self.current = Trick(1, 0 if certain else None)

    @property
    def over(self) -> bool:
        """True if all tricks are complete."""
        return self.current.number > TRICKS

    def cards(self) -> list[PlayedCard]:
        """Return all cards played, in order."""
        return [played for trick in (*self.tricks, self.current) for played in trick.cards]

    def last(self) -> PlayedCard | None:
        """Return the latest card."""
        for trick in (self.current, *reversed(self.tricks)):
            if trick.cards:
                return trick.cards[-1]
        return None

    def news(self, table: BySeat, last_trick: BySeat) -> list[tuple[int, str]]:
        """Return the new cards of a snapshot as (seat, card) in order; none if all of them are known.

        Raises:
            Contradiction: The snapshot contradicts what is known.
        """
        missed: list[tuple[int, str]] = []
        current = self.current
        shown = self._trick_shown(last_trick)
        if shown is None:
            # The known trick is over, and its last cards were not seen on the table.
            missed = self._since(current, last_trick, "letzter_stich")
            current = Trick(current.number + 1, None)
        elif shown < len(self.tricks):
            self._agrees(self.tricks[shown], table)
            return []
        if all(card is None or card == known for card, known in zip(table, current.by_seat, strict=True)):
            return missed
        return missed + self._since(current, table, "tisch")

    def add(self, seat: int, card: str) -> Trick | None:
        """Add the next card; return the trick that it completes."""
        trick = self.current
        if not trick.cards:
            trick.leader = seat
        trick.lay(seat, card)
        if not trick.over:
            return None
        if self.mode is not None:
            trick.winner = trick.cards[self.mode.winner([played.card for played in trick.cards])].seat
        self.tricks.append(trick)
        self.current = Trick(trick.number + 1, trick.winner)
        return trick

    def restart(self, table: BySeat, last_trick: BySeat) -> None:
        """Accept a snapshot unchecked, as the cards before it were not seen.

        The number of the trick is then a guess.
        """
        self.certain = False
        for cards in (last_trick, table):
            if all(cards) and self._trick_shown(cards) in (0, None):
                # The leader is unknown; a full trick does not show it.
                lost = Trick(len(self.tricks) + 1, None)
                for seat, card in enumerate(cards):
                    if card:
                        lost.lay(seat, card)
                self.tricks.append(lost)
        self.current = Trick(len(self.tricks) + 1, None)

    def showing(self, table: BySeat, last_trick: BySeat) -> tuple[int | None, int]:
        """Return the id of the latest event in a snapshot, and its number of finished tricks."""
        shown = self._trick_shown(last_trick)
        if shown is None:
            return None, len(self.tricks)
        trick = [*self.tricks, self.current][shown]
        on_table = [played for played in trick.cards if table[played.seat] == played.card]
        if on_table:
            event_id = trick.event_id if len(on_table) == SEATS else on_table[-1].event_id
        else:
            event_id = self.tricks[shown - 1].event_id if shown else None
        return event_id, shown + all(table)

    def _trick_shown(self, last_trick: BySeat) -> int | None:
        """Return the trick on the table, counted from 0, after this last trick; None if that is new."""
        if not any(last_trick):
            return 0
        for number in range(len(self.tricks) - 1, -1, -1):
            if self.tricks[number].by_seat == last_trick:
                return number + 1
        return None

    def _agrees(self, trick: Trick, table: BySeat) -> None:
        """Check an older snapshot's table against the trick that resulted from it."""
        for seat, card in enumerate(table):
            if card is not None and trick.by_seat[seat] != card:
                text = f"{card} lies before seat {seat}, where {trick.by_seat[seat]} was played"
                raise Contradiction(text, "tisch", seat)

    def _since(self, trick: Trick, shown: BySeat, field: str) -> list[tuple[int, str]]:
        """Return the new cards of a trick in a snapshot, in the order played."""
        for played in trick.cards:
            if shown[played.seat] != played.card:
                there = shown[played.seat] or "nothing"
                text = f"{there} lies before seat {played.seat}, where {played.card} was played"
                raise Contradiction(text, field, played.seat)
        seats = [seat for seat in range(SEATS) if shown[seat] is not None]
        known = {played.seat for played in trick.cards}
        first = trick.next_seat()
        if first is None:
            first = self._leads(seats)
            if first is None and not seats:
                return []
            if first is None:
                raise Contradiction("a whole trick is there of which no card was seen before", field, 0)
        news: list[tuple[int, str]] = []
        for step in range(SEATS - len(known)):
            seat = (first + step) % SEATS
            card = shown[seat]
            if card is None:
                break
            news.append((seat, card))
        stray = [seat for seat in seats if seat not in known and seat not in dict(news)]
        if stray:
            text = f"{shown[stray[0]]} lies before seat {stray[0]}, but seat {first} was to play"
            leads = None if trick.cards else self._leads(seats)
            raise Contradiction(text, field, stray[0], leads)
        return news

    def _leads(self, seats: Sequence[int]) -> int | None:
        """Return who began a trick in which these seats have played, if that is unambiguous."""
        return next((seat for seat in seats if (seat - 1) % SEATS not in seats), None)


WERT_WORDS = {"OBER": "Ober", "UNTER": "Unter", "SAU": "Sau", "ZEHN": "10", "KONIG": "König", "NEUN": "9"}
FARBE_WORDS = {farbe: farbe.capitalize() for farbe in FARBEN}

MODE = re.compile(r"([A-Z]+?)(eichel|gras|herz|schellen)?(du|DU)?")
"""The parts of a mode: kind, suit, and the word for a du."""


def card_words(card: Any) -> str:
    """Return the name of a card: `Eichel-Ober`."""
    if not isinstance(card, str):
        return UNKNOWN
    farbe, _, wert = card.partition(" ")
    known = farbe in FARBE_WORDS and wert in WERT_WORDS
    return f"{FARBE_WORDS[farbe]}-{WERT_WORDS[wert]}" if known else card


cards_words = each(card_words)
"""The words for several cards."""


def mode_words(name: Any) -> str:
    """Return the name of a mode: `Solo Herz du` for `SOLOherzDU`."""
    if not isinstance(name, str):
        return UNKNOWN
    found = MODE.fullmatch(name)
    if found is None:
        return name
    kind, farbe, du = found.groups()
    return " ".join(filter(None, (kind.capitalize(), (farbe or "").capitalize(), (du or "").lower())))
