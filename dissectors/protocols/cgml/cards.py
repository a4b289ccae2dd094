"""The cards of licitovaný mariáš and the rules of play: chapter 3, "Základní pravidla hraní", and chapter 5.

A card is a code of three characters: a colour and a height, such as `R07` or `G0A`. The words for players,
cards, suits and levels stand in sentences and in views.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.grammar.sentences import UNKNOWN, counted

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


SUIT_WORDS = {"A": "žaludy", "G": "zelené", "R": "červené", "B": "kule"}
"""The players' words for a card's colour, by its letter: acorns, leaves, hearts, bells."""

_VALUE_WORDS = {"0A": "eso", "0K": "král", "0Q": "svršek", "0J": "spodek"}
"""The players' words for court cards and ace, by height; the others have numbers."""


def suit_words(suit: Any) -> str:
    """Return the word for a colour."""
    return SUIT_WORDS.get(suit, suit) if isinstance(suit, str) else UNKNOWN


def trumps_words(text: str) -> str:
    """Return the words for a <trumf>: `trumps červené and zelené`, or `no trumps`."""
    return f"trumps {' and '.join(map(suit_words, text.upper().split(':')))}" if text else "no trumps"


def value_words(height: str) -> str:
    """Return the word for a card's height: `eso`, `8`."""
    return _VALUE_WORDS.get(height, height.removeprefix("0"))


def card_words(card: Any) -> str:
    """Return the words for a card: `kule 8`."""
    if not isinstance(card, str):
        return UNKNOWN
    if card[:1] not in SUIT_WORDS:
        return card
    return f"{SUIT_WORDS[card[0]]} {value_words(card[1:])}"


def cards_words(cards: Any) -> str:
    """Return the words for cards; for hidden ones, their number."""
    if not isinstance(cards, list):
        return card_words(cards)
    if cards and all(card is None for card in cards):
        return counted(len(cards), "card")
    return ", ".join(map(card_words, cards)) or "nothing"


Level = tuple[int, int]
"""The levels of the game, and of the game against."""


def level_of(text: str) -> Level:
    """Return the level in a text such as `2` or `2:1`; a missing part is 1, not doubled."""
    game, _, against = text.partition(":")
    return int(game), int(against or 1)


def level_words(text: Any, times: str = "×") -> str:
    """Return the levels of the game and the game against: `flek ×2`; empty if not doubled."""
    try:
        game, against = level_of(text)
    except (AttributeError, ValueError):
        return UNKNOWN
    if (game, against) == (1, 1):
        return ""
    return f"flek {times}{game}" + (f", against {times}{against}" if against != 1 else "")


def level_text(level: tuple[int, int]) -> str:
    """Return levels as in messages: `2`, or `4:2` with the game against."""
    return f"{level[0]}:{level[1]}" if level[1] > 1 else str(level[0])


def player_names(state: State) -> dict[str, str]:
    """Return the players' names by id, with texts such as `player 7` for unknown ones."""
    unnamed = {player: f"player {player}" for player in state.get("players", {})}
    return unnamed | known_names(state)


def known_names(state: State) -> dict[str, str]:
    """Return the known names of players by id; a name used twice is followed by the id."""
    told = {player: about.get("name") for player, about in state.get("players", {}).items()}
    names = {player: name for player, name in told.items() if name}
    shared = Counter(names.values())
    return {player: f"{name} {player}" if shared[name] > 1 else name for player, name in names.items()}


def player_name(player: int | None, names: dict[str, str]) -> str:
    """Return a player's name, or a text with the id if the name is unknown."""
    return "?" if player is None else names.get(str(player), f"player {player}")
