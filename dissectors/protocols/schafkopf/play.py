"""The play of one round: derives the order of the cards from snapshots of the table.

A MODEL does not report the card played; it shows the table and the last trick, by seat. New cards in it,
compared with all known ones, were played since, in the order of seats from the leader on. A snapshot may also
be an old one, as connections progress at different speeds: then it agrees with the known cards of that
moment.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kiebitz.dissectors.protocols.schafkopf.cards import SEATS, Mode, points

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
    cards: list[PlayedCard] = msgspec.field(default_factory=list)
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
