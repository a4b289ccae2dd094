"""The kinds of events of a CGML server, with their fields and sentences.

A player is an id. `called` in an event's data has the names of its players as known at that time.
"""

from __future__ import annotations

from kiebitz.dissectors.grammar.field_type import IdentifierKinds, KeysOf
from kiebitz.dissectors.grammar.grammar import EventKind
from kiebitz.dissectors.grammar.sentences import CALLED
from kiebitz.dissectors.protocols.cgml.identifiers import ADDRESS, GROUP, NAME, PLAYER, URL

_ANSWERS = ("newgroup", "newgame")
_QUESTIONS = ("licite", "gametype", "flek", "playcard")

EVENTS = (
    # A game server has an url in place of a name.
    EventKind(
        "connected",
        ("name", "id", "role"),
        "{name} ({role}) logs in",
        reported_by=("connect",),
        identifies=True,
    ),
    EventKind(
        "group_formed", ("group", "players"), "group {group}: {players}", reveals=("players.{players}",)
    ),
    EventKind(
        "accepted",
        ("player", "group", "what"),
        "{player} accepts the {what}",
        reported_by=_ANSWERS,
        # The login server has named the group's players to the client.
        reveals=("groups.{group}.players", "players.{player}"),
    ),
    EventKind("rejected", ("player", "group", "what"), "{player} rejects the {what}", reported_by=_ANSWERS),
    EventKind(
        "hand_asked",
        ("group", "players"),
        "another hand? {players}",
        reveals=("players.{players}",),
    ),
    EventKind("dealt", ("player", "cards"), "{player} gets {cards}"),
    EventKind("bid", ("player", "call"), "{player} bids {call}"),
    EventKind("contract", ("player", "game"), "{player} has won the bidding with {game}"),
    EventKind("talon_taken", ("player", "cards"), "{player} takes the talon: {cards}"),
    EventKind("discarded", ("player", "cards"), "{player} discards {cards}"),
    EventKind(
        "trump",
        ("player", "game", "trump", "second"),
        "{player} plays {game}, trumps {trump}",
    ),
    EventKind("flek", ("player", "level"), "{player}: {level}"),
    EventKind("turn", ("player",), "it is {player}'s turn", reported_by=_QUESTIONS, implied_by="before"),
    EventKind("played", ("player", "cards"), "{player} plays {cards}"),
    EventKind("trick", ("number", "cards", "winner"), "trick {number} ({cards}) goes to {winner}"),
    EventKind(
        "result", ("game", "winners", "losers", "money"), "{game} is over; {winners} won; money: {money}"
    ),
    EventKind("renonc", ("player", "card", "should"), "{player} revokes with {card} instead of {should}"),
    EventKind("paused", ("player", "message"), "{player} pauses: {message}"),
    EventKind("resumed", ("player",), "{player} ends the pause"),
    EventKind("cancelled", ("why",), "the hand is cancelled: {why}"),
    EventKind("aborted", ("player", "why"), "the hand is aborted because of {player}: {why}"),
    EventKind("load", ("load",), "a server of bots has a load of {load}"),
    EventKind("left", ("player", "why"), "{player} is gone: {why}", ending="why"),
)

# Kinds of identifiers in the events' data and in the state.
DATA_IDENTIFIERS: IdentifierKinds = {
    "actor": PLAYER,
    "player": PLAYER,
    "players": PLAYER,
    "id": PLAYER,
    "name": NAME,
    "winner": PLAYER,
    "winners": PLAYER,
    "losers": PLAYER,
    "money": KeysOf(PLAYER),
    CALLED: KeysOf(PLAYER),
    "group": GROUP,
    "url": URL,
}
STATE_IDENTIFIERS: IdentifierKinds = {
    "players": PLAYER,
    "name": NAME,
    "accepted": PLAYER,
    "seats": PLAYER,
    "hands": KeysOf(PLAYER),
    "private": KeysOf(PLAYER),
    "player": PLAYER,
    "turn": PLAYER,
    "declarer": PLAYER,
    "winner": PLAYER,
    "money": KeysOf(PLAYER),
    "groups": KeysOf(GROUP),
    "group": GROUP,
    "url": URL,
    "servers": KeysOf(URL),
    "loads": KeysOf(ADDRESS),
}
