"""The kinds of identifiers in CGML's messages, events and state."""

from __future__ import annotations

from kiebitz.dissectors.grammar.field_type import IdentifierKind, IdentifierKinds, KeysOf
from kiebitz.dissectors.grammar.sentences import CALLED

PLAYER = IdentifierKind("player", of_player=True, global_=True)
NAME = IdentifierKind("name", of_player=True, null_values=("",))
GROUP = IdentifierKind("group")
URL = IdentifierKind("url", of_server=True)
ADDRESS = IdentifierKind("address")

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
