"""The grammar, codec and framer of Catan (protocol 1.0): everything about bytes is in `catan.toml`.

A message is an object with one attribute, its name, whose value has the message's own attributes. A dialect
is a further row.
"""

from __future__ import annotations

from kiebitz.dissectors.grammar.json.codec import JsonCodec
from kiebitz.dissectors.grammar.json.diagnostics import Conventions
from kiebitz.dissectors.grammar.json.framer import JsonFramer
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.json_table import JsonTable
from kiebitz.dissectors.protocols.catan.identifiers import (
    ALIASES,
    DATA_IDENTIFIERS,
    NAME,
    PLAYER,
    STATE_IDENTIFIERS,
    TRADE,
)

_TABLE = JsonTable(
    __package__,
    {"id": PLAYER, "player": NAME, "trade": TRADE},
    foreign=True,
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
GRAMMAR = _TABLE.grammar
CODEC = JsonCodec(
    _TABLE.layout,
    Conventions(
        message='{"…":{…}} and a line feed',
        has_lines=True,
        allows_extensions=True,
        json_clause="4 Hinweise zu JSON",
        message_clause="2 Grundlagen",
        names_clause="3 Kompatibilität",
    ),
    _TABLE.productions,
)
FRAMING = _TABLE.framing
OTHER_SPELLINGS = _TABLE.layout.spellings
"""Some programs write ASCII instead of umlauts (`Wuerfelwurf`), or a word of their own."""


def framer(direction: Direction) -> JsonFramer:
    """Return a framer for one direction."""
    return JsonFramer(direction, FRAMING)
