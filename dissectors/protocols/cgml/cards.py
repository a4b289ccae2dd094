"""The cards of licitovaný mariáš and the rules of play: chapter 3, "Základní pravidla hraní", and chapter 5.

A card is a code of three characters: a colour and a height, such as `R07` or `G0A`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

COLOURS = "RBGA"
HEIGHTS = ("07", "08", "09", "10", "0J", "0Q", "0K", "0A")
PACK = tuple(colour + height for colour in COLOURS for height in HEIGHTS)

SEATS = 3
HAND = 10
"""Number of cards dealt to each player, and of tricks in a hand."""
TALON = 2

LADDER = (
    *("PASS", "G", "BG", "7", "B7", "100", "107", "B100", "B107"),
    *("SMALL", "BIG", "27", "127", "B27", "B127"),
)
"""The games of table 3-1, in its order."""

WITHOUT_TRUMPS = frozenset(("SMALL", "BIG"))
WITH_TWO_SEVENS = frozenset(("27", "127", "B27", "B127"))
"""The games with a second colour."""
WITH_A_SEVEN = frozenset(game for game in LADDER if game.endswith("7"))

_WITH_TRUMPS = {height: rank for rank, height in enumerate(("07", "08", "09", "0J", "0Q", "0K", "10", "0A"))}
_WITHOUT = {height: rank for rank, height in enumerate(HEIGHTS)}


def has_trumps(game: str) -> bool:
    """Return True if a game of table 3-1 has trumps."""
    return game not in WITHOUT_TRUMPS and game != "PASS"


class Rules:
    """The rules of play in one game; `trump` is a colour, None without trumps."""

    def __init__(self, game: str, trump: str | None) -> None:
        self.trump = trump
        self._rank = _WITHOUT if game in WITHOUT_TRUMPS else _WITH_TRUMPS

    def rank(self, card: str) -> int:
        """Return a card's rank in its colour."""
        return self._rank[card[1:]]

    def winner(self, cards: Sequence[str]) -> int:
        """Return the index of the card that takes a trick; cards are in the order played."""
        trumps = [card for card in cards if card[0] == self.trump]
        colour = trumps[0][0] if trumps else cards[0][0]
        best = max((card for card in cards if card[0] == colour), key=self.rank)
        return cards.index(best)

    def allowed(self, table: Sequence[str], hand: Collection[str]) -> list[str]:
        """Return the cards of a hand that may be played to the table, by the specification's eleven steps."""
        if not table:
            return list(hand)
        led = table[0][0]
        # 1: does the player have the colour that was led?
        same = [card for card in hand if card[0] == led]
        trumps = [card for card in hand if card[0] == self.trump]
        on_table = [card for card in table if card[0] == self.trump]
        if same:
            # 2, 3: it is no trump, and trumps have been played: any card of that colour.
            if led != self.trump and on_table:
                return same
            # 4, 5, 6: a card higher than the highest of that colour so far, or else any of it.
            return self._higher(same, [card for card in table if card[0] == led]) or same
        # 7, 8, 9, 10: a trump higher than the highest so far, or else any trump.
        if trumps:
            return self._higher(trumps, on_table) or trumps
        # 11: any card.
        return list(hand)

    def _higher(self, cards: Sequence[str], than: Sequence[str]) -> list[str]:
        highest = max(map(self.rank, than), default=-1)
        return [card for card in cards if self.rank(card) > highest]
