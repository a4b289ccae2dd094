"""The grammar, codec and framer of Catan (protocol 1.0): everything about bytes is in `catan.toml`.

A message is an object with one attribute, its name, whose value has the message's own attributes. A dialect
is a further row.
"""

from __future__ import annotations

from kiebitz.dissectors.grammar.json.codec import JsonCodec, attribute_names, message_names
from kiebitz.dissectors.grammar.json.diagnostics import Conventions
from kiebitz.dissectors.grammar.json.framer import JsonFramer, JsonFraming
from kiebitz.dissectors.grammar.json.layouts import KeyLayout
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.json_types import JsonTypes, json_row, productions_of, spellings_of
from kiebitz.dissectors.protocol_file.packaged import packaged_file, packaged_grammar
from kiebitz.dissectors.protocols.catan.identifiers import (
    ALIASES,
    DATA_IDENTIFIERS,
    NAME,
    PLAYER,
    STATE_IDENTIFIERS,
    TRADE,
)

_FILE = packaged_file(__package__)
_FORMAT = _FILE.specification.format
_TYPES = JsonTypes(
    _FORMAT, {"id": PLAYER, "player": NAME, "trade": TRADE}, is_lenient=False, trusts_patterns=True
)
OTHER_SPELLINGS = spellings_of(_FORMAT)
"""Some programs write ASCII instead of umlauts (`Wuerfelwurf`), or a word of their own."""

GRAMMAR = packaged_grammar(
    __package__,
    type_of=lambda field: _TYPES.type(field.type),
    make_row=json_row,
    spellings=OTHER_SPELLINGS.of,
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
_LAYOUT = KeyLayout(GRAMMAR, OTHER_SPELLINGS)
CODEC = JsonCodec(
    _LAYOUT,
    Conventions(
        message='{"…":{…}} and a line feed',
        has_lines=True,
        allows_extensions=True,
        json_clause="4 Hinweise zu JSON",
        message_clause="2 Grundlagen",
        names_clause="3 Kompatibilität",
    ),
    productions_of(_FILE.specification.types, _TYPES),
)
FRAMING = JsonFraming(message_names(_LAYOUT), attribute_names(_LAYOUT))


def framer(direction: Direction) -> JsonFramer:
    """Return a framer for one direction."""
    return JsonFramer(direction, FRAMING)
