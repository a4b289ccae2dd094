"""The words for players, cards, suits and levels of licitovaný mariáš, in sentences and in views."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.grammar.sentences import UNKNOWN, counted
from kiebitz.dissectors.protocols.cgml.hand import level_of

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
