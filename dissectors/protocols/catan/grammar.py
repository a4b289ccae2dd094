"""The grammar and the codec of Catan (protocol 1.0): everything about bytes is in `catan.toml`.

A message is an object with one attribute, its name, whose value has the message's own attributes. A dialect
is a further row.
"""

from __future__ import annotations

from kiebitz.dissectors.grammar.field_type import IdentifierKinds, KeysOf
from kiebitz.dissectors.protocol_file.packaged import packaged_codec, packaged_grammar
from kiebitz.dissectors.protocol_file.text_types import identifier_kind
from kiebitz.dissectors.protocols.catan.codec import CatanCodec

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

GRAMMAR = packaged_grammar(
    __package__,
    data_identifiers=DATA_IDENTIFIERS,
    state_identifiers=STATE_IDENTIFIERS,
    aliases=ALIASES,
    # Hidden cards are a number, and one server names fields by letters.
    variable_shape=(
        "Rohstoffe",
        "Spieler.Rohstoffe",
        "Spieler.Entwicklungskarten",
        "Karte.Felder.Ort",
        "map.Felder.Ort",
    ),
)
CODEC: CatanCodec = packaged_codec(__package__, GRAMMAR)
OTHER_SPELLINGS = CODEC.layout.spellings
"""Some programs write ASCII instead of umlauts (`Wuerfelwurf`), or a word of their own."""
