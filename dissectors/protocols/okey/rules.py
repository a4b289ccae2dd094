"""The rules that the table of an Okey server checks."""

from __future__ import annotations

from kiebitz.dissectors.grammar.grammar import Rule
from kiebitz.dissectors.protocols.okey.tiles import DECK

_GAME = "the rules of the game"
_DEAL = f"{DECK} tiles, one more for who begins; each tile twice, and two jokers"

RULES = (
    # The order of messages.
    Rule(
        "outside-lobby",
        None,
        "{name} outside a lobby; servers close the connection",
        "JLOB before it",
        group="sequence",
    ),
    Rule(
        "outside-lobby/chat",
        "CATC",
        "a message for the lobby outside a lobby; servers do not answer",
        "JLOB before it",
        group="sequence",
        severity="warning",
    ),
    Rule("no-game", None, "{name} before the game has begun", "STRT before it", group="sequence"),
    Rule(
        "after-end",
        None,
        "{name} after the end of the game; some servers continue, others close the connection",
        "REDY, for another game",
        group="sequence",
        severity="warning",
    ),
    Rule(
        "not-your-turn",
        None,
        "{name}, but it is not this player's turn",
        "a STAT with this player's index before it",
        group="sequence",
    ),
    Rule(
        "must-put",
        "DRAW",
        "DRAW with {count} tiles: this player has drawn already, or begins",
        "PUTT",
        group="sequence",
    ),
    Rule(
        "must-draw",
        "PUTT",
        "PUTT with {count} tiles: this player has not drawn yet",
        "DRAW",
        group="sequence",
    ),
    Rule(
        "must-draw/turn",
        "PUTT",
        "PUTT with {count} tiles: this player has not drawn yet, or it is another player's turn",
        "DRAW, in this player's turn",
        group="sequence",
    ),
    Rule(
        "unasked",
        None,
        "{name} without an open {request}",
        "{request} before it",
        group="sequence",
    ),
    Rule(
        "unasked/acknowledged",
        None,
        "{name} without an unacknowledged {request}",
        "{request} before it",
        group="sequence",
        severity="warning",
    ),
    # Deals.
    Rule("wrong-deal/count", "STRT", "a deck of {count} tiles", _DEAL),
    Rule("wrong-deal/tile", "STRT", "{tile} is {count} times in one deck", _DEAL),
    # Rules that compare several decks give warnings: in a race those may be of different deals.
    Rule(
        "wrong-deal/second",
        "STRT",
        "a second deck of {count} tiles: two players would begin",
        _DEAL,
        severity="warning",
    ),
    Rule(
        "wrong-deal/pack",
        "STRT",
        "{tile} is dealt more often than the pack has it",
        _DEAL,
        severity="warning",
    ),
    # Tiles.
    Rule(
        "other-tile",
        "+DRAW",
        "{tile} is drawn from an exchange stack with {top} on top",
        "{top}",
        group="state",
        severity="warning",
        clause=None,
        unwritten="it contradicts an earlier message",
    ),
    Rule("not-held", "PUTT", "{tile} is put, which this player does not hold", "one of {held}", clause=_GAME),
    Rule("not-held/none", "PUTT", "no tile is put", "one of {held}", clause=_GAME),
    Rule(
        "wrong-deck/surplus",
        "PUTT",
        "the deck has {tiles}, which this player does not hold{when}",
        "{left}",
        clause=_GAME,
    ),
    Rule(
        "wrong-deck/lacking",
        "PUTT",
        "the deck lacks {tiles}, which this player holds",
        "{left}",
        clause=_GAME,
    ),
    Rule(
        "joker-colour",
        "PUTT",
        "{tile} is a joker of another colour than the one held; real servers ignore it",
        "{jokers}",
        severity="warning",
        clause=_GAME,
    ),
    Rule(
        "no-win",
        None,
        "the server reports a win, but the tiles are not all in runs and groups",
        f"{DECK} tiles in runs and groups of three or more",
        clause=_GAME,
    ),
)
