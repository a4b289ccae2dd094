"""The kinds of identifiers in Catan's messages, events and state."""

from __future__ import annotations

from kiebitz.dissectors.grammar.field_type import IdentifierKinds, KeysOf
from kiebitz.dissectors.protocol_file.text_types import identifier_kind

NIEMAND = -1
"""Winner's number of a game without a winner."""

PLAYER, NAME, TRADE = map(identifier_kind, ("id", "player", "trade"))

# Kinds of identifiers in the events' data and in the state.
DATA_IDENTIFIERS: IdentifierKinds = {
    "actor": NAME,
    "player": PLAYER,
    "name": NAME,
    "before": NAME,
    "from_player": PLAYER,
    "from_name": NAME,
    "partner": PLAYER,
    "partner_name": NAME,
    "from": PLAYER,
    "winner": PLAYER,
    "points": KeysOf(PLAYER),
    "Eigentümer": PLAYER,
    "trade": TRADE,
}
STATE_IDENTIFIERS: IdentifierKinds = {
    "players": KeysOf(PLAYER),
    "id": PLAYER,
    "name": NAME,
    "private": KeysOf(NAME),
    "turn": PLAYER,
    "owner": PLAYER,
    "player": PLAYER,
    "accepted": PLAYER,
    "winner": PLAYER,
    "longest_road": PLAYER,
    "largest_army": PLAYER,
    "trades": KeysOf(TRADE),
}
ALIASES = {
    "player": "name",
    "from_player": "from_name",
    "partner": "partner_name",
    "from": "name",
    "winner": "name",
}
