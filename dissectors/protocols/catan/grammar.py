"""The grammar and the codec of Catan (protocol 1.0): everything about bytes is in `catan.toml`.

A message is an object with one attribute, its name, whose value has the message's own attributes. A dialect
is a further row.
"""

from __future__ import annotations

from kiebitz.dissectors.grammar.field_type import KeysOf
from kiebitz.dissectors.grammar.json.codec import JsonCodec
from kiebitz.dissectors.grammar.json.diagnostics import Conventions
from kiebitz.dissectors.protocol_file.packaged import packaged_codec, packaged_grammar
from kiebitz.dissectors.protocol_file.text_types import identifier_kind


class CatanCodec(JsonCodec):
    """The codec; unknown messages are allowed, unless their names look misspelt."""

    conventions = Conventions(
        message='{"…":{…}} and a line feed',
        codes={},
        allows_extensions=True,
        json_clause="4 Hinweise zu JSON",
        message_clause="2 Grundlagen",
        names_clause="3 Kompatibilität",
    )


PLAYER, NAME, TRADE = map(identifier_kind, ("id", "player", "trade"))


GRAMMAR = packaged_grammar(
    __package__,
    data={
        NAME: "actor name before from_name partner_name",
        PLAYER: "player from_player partner from winner Eigentümer",
        KeysOf(PLAYER): "points",
        TRADE: "trade",
    },
    state={
        KeysOf(PLAYER): "players",
        PLAYER: "id turn owner player accepted winner longest_road largest_army",
        NAME: "name",
        KeysOf(NAME): "private",
        KeysOf(TRADE): "trades",
    },
    aliases={
        "player": "name",
        "from_player": "from_name",
        "partner": "partner_name",
        "from": "name",
        "winner": "name",
    },
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
