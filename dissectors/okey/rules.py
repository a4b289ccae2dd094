"""What a client may ask for now, and what speaks against a request: the game's rules as the specification and
the game have them. Nothing is held against anybody as long as it is not sure what he was told.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kiebitz.dissectors.okey.conversation import Conversation
from kiebitz.dissectors.okey.game import OkeyGame, Place
from kiebitz.dissectors.okey.tiles import DECK, OF_EACH, counted, is_joker, kind, tiles
from kiebitz.dissectors.records import Group, Message, Severity

GAME_RULES = "the rules of the game"

_NEEDS_LOBBY = frozenset(("DRAW", "PUTT", "WINC", "REDY", "RNAM", "RSTA"))
_NEEDS_GAME = frozenset(("DRAW", "PUTT", "WINC"))
_SHOWN = 3
"""So many tiles are named that are too many or too few."""


class Objection(msgspec.Struct, frozen=True):
    """What is wrong with a request; `argument` is where, and `part` which token of it if it is a list."""

    severity: Severity
    group: Group
    code: str
    text: str
    expected: str
    argument: str | None = None
    part: int | None = None


def objection(talk: Conversation, request: Message) -> Objection | None:
    """What speaks against asking for this now, whatever the tiles; None if nothing is sure to."""
    name = request.name
    if talk.whole and talk.lobby is None and request.fields.get("messagetype") == "l":
        text = "a message for the lobby outside a lobby; servers do not answer"
        return Objection("warning", "sequence", "outside-lobby", text, "JLOB before it")
    if name not in _NEEDS_LOBBY:
        return None
    game = talk.game
    if talk.whole:
        if talk.lobby is None:
            text = f"{name} outside a lobby; servers close the connection"
            return Objection("error", "sequence", "outside-lobby", text, "JLOB before it")
        if name not in _NEEDS_GAME:
            return None
        if game is None:
            text = f"{name} before the game has begun"
            return Objection("error", "sequence", "no-game", text, "STRT before it")
        if game.ended:
            text = f"{name} after the end of the game; some servers go on, others close the connection"
            return Objection("warning", "sequence", "after-end", text, "REDY, for another game")
    if game is None or game.ended or not talk.heard_all:
        return None
    return _against_move(talk, game, name)


def _against_move(talk: Conversation, game: OkeyGame, name: str) -> Objection | None:
    """What speaks against a draw or a put now: servers look first whose turn it is, then at the tiles."""
    if name not in ("DRAW", "PUTT") or talk.seat is None:
        return None
    place = game.places[talk.seat]
    count = place.count
    if talk.turn is None:
        if name == "PUTT" and count == DECK and place.sure:
            text = f"PUTT with {count} tiles: he has not drawn yet, or it is not his turn"
            return Objection("error", "sequence", "must-draw", text, "DRAW, if it is his turn")
        return None
    if talk.turn != talk.seat:
        text = f"{name}, but it is not this player's turn"
        return Objection("error", "sequence", "not-your-turn", text, "a STAT with his index before it")
    if name == "DRAW" and count == DECK + 1:
        text = f"DRAW with {count} tiles: he has drawn already, or begins"
        return Objection("error", "sequence", "must-put", text, "PUTT")
    if name == "PUTT" and count == DECK:
        text = f"PUTT with {count} tiles: he has not drawn yet"
        return Objection("error", "sequence", "must-draw", text, "DRAW")
    return None


def against_put(place: Place, tile: str | None, deck: Sequence[str | None]) -> Objection | None:
    """What speaks against putting a tile and having this deck left: the tile must be held, and the deck be
    what is held without it."""
    if place.deck is None or not place.sure:
        return None
    held = counted(place.deck)
    expected = "one of " + ", ".join(sorted({*tiles(place.deck)}, key=_order))
    if tile is None:
        return Objection("error", "rule", "not-held", "no tile is put", expected, "tile")
    if not held[kind(tile)]:
        text = f"{tile} is put, which this player does not hold"
        return Objection("error", "rule", "not-held", text, expected, "tile")
    held[kind(tile)] -= 1
    sent = counted(deck)
    surplus, lacking = sent - held, held - sent
    if surplus:
        part = _surplus_part(deck, held)
        text = f"the deck has {_named(surplus)}, which this player does not hold{_after(tile, surplus)}"
        return Objection("error", "rule", "wrong-deck", text, _left(held), "deck", part)
    if lacking:
        text = f"the deck lacks {_named(lacking)}, which this player holds"
        return Objection("error", "rule", "wrong-deck", text, _left(held), "deck")
    if is_joker(tile) and tile not in place.deck:
        text = f"{tile} is a joker of another colour than the one held; real servers do nothing with it"
        jokers = ", ".join(each for each in tiles(place.deck) if is_joker(each))
        return Objection("warning", "rule", "joker-colour", text, jokers, "tile")
    return None


def _surplus_part(deck: Sequence[str | None], held: dict[str, int]) -> int:
    """Which place of a deck has the first tile that is one too many."""
    left = dict(held)
    for part, tile in enumerate(deck):
        if tile is None:
            continue
        if not left.get(kind(tile)):
            return part
        left[kind(tile)] -= 1
    raise AssertionError("no tile is too many")


def _after(tile: str, surplus: dict[str, int]) -> str:
    return " once it is put" if kind(tile) in surplus else ""


def _left(held: dict[str, int]) -> str:
    """What must be left, in words."""
    return " ".join(
        tile for tile, count in sorted(held.items(), key=lambda item: _order(item[0])) for _ in range(count)
    )


def _named(counts: dict[str, int]) -> str:
    names = sorted(counts, key=_order)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join("a joker" if name == "0" else name for name in names[:_SHOWN]) + more


def _order(tile: str) -> tuple[str, int]:
    number, _, colour = tile.partition(":")
    return colour, int(number)


def wrong_start(game: OkeyGame, place: Place) -> tuple[Severity, str] | None:
    """What speaks against a deck that is dealt.

    What only shows beside other decks is a warning: where deals race, those may be another deal's.
    """
    count = place.count or 0
    if count not in (DECK, DECK + 1):
        return "error", f"a deck of {count} tiles"
    own = counted(place.deck or ())
    tile = next((tile for tile in own if own[tile] > OF_EACH), None)
    if tile is not None:
        return "error", f"{tile} stands {own[tile]} times in one deck"
    others = (other.count or 0 for other in game.places if other is not place)
    if count > DECK and game.alone and not any(game.exchange or ()) and max(others) > DECK:
        return "warning", f"a second deck of {count} tiles: two players would begin"
    tile = game.too_many()
    return None if tile is None else ("warning", f"{tile} is dealt more often than the pack has it")
