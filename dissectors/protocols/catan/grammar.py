"""The grammar and the codec of Catan (protocol 1.0): everything about bytes is in `catan.toml`.

A message is an object with one attribute, its name, whose value has the message's own attributes. A dialect
is a further row.
"""

from __future__ import annotations

from kiebitz.dissectors.protocol_file.packaged import packaged_codec, packaged_grammar
from kiebitz.dissectors.protocols.catan.codec import CatanCodec
from kiebitz.dissectors.protocols.catan.identifiers import ALIASES, DATA_IDENTIFIERS, STATE_IDENTIFIERS

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
