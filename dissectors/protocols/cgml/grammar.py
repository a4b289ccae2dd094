"""The types of fields in messages of CGML 1.19, and its grammar, whose tables are in `cgml.toml`.

A message is named by its element; if several share a name, the value of `status` or `type` distinguishes
them. Fields have the names of the attributes and elements, which are English, though sometimes misspelt
(`dial` deals, `winer` wins). Words of licitovaný mariáš are glossed: *flek* is a double, *štych* a trick,
*talon* the two cards that the winner of the bidding (*licitace*) exchanges.
"""

from __future__ import annotations

from functools import partial

from kiebitz.dissectors.grammar.field_type import FieldType
from kiebitz.dissectors.grammar.fields import Number, Text, Word
from kiebitz.dissectors.grammar.xml.codec import XmlCodec
from kiebitz.dissectors.grammar.xml.markup import location_of as location_in
from kiebitz.dissectors.protocol_file.packaged import packaged_codec, packaged_grammar
from kiebitz.dissectors.protocols.cgml.cards import HAND, LADDER
from kiebitz.dissectors.protocols.cgml.identifiers import (
    DATA_IDENTIFIERS,
    GROUP,
    NAME,
    PLAYER,
    STATE_IDENTIFIERS,
    URL,
)
from kiebitz.dissectors.protocols.cgml.types import Card, Pattern, Range, Version

TYPES: dict[str, FieldType] = {
    "version": Version(),
    "id": Number(PLAYER),
    "name": Text(NAME),
    "race": Word(title="one of human, bot", values={"human": "human", "bot": "bot", "": None}),
    "amount": Number(),
    "count": Range(1, 100),
    "url": Pattern(
        r"[A-Za-z0-9._-]{1,253}:[0-9]{1,5}|\[[0-9A-Fa-f:.]+\]:[0-9]{1,5}",
        "an address and a port, as in 127.0.0.1:7002",
        URL,
    ),
    "group": Number(GROUP),
    "cards": Card(hidden=True),
    "card": Card(hidden=False),
    "game": Word(*LADDER, title="a game of table 3-1: " + ", ".join(LADDER)),
    "bid": Word(*LADDER, "YES", "NO"),
    "trumps": Pattern("[rgba](:[rgba])?", "r, g, b or a, and after a colon a second one if the game has it"),
    "level": Pattern("[0-9]{1,6}(:[0-9]{1,6})?", "a level, and after a colon that of the game against"),
    "number": Range(1, HAND),
    "load": Range(0, 100),
}

GRAMMAR = packaged_grammar(
    __package__,
    TYPES,
    data_identifiers=DATA_IDENTIFIERS,
    state_identifiers=STATE_IDENTIFIERS,
    aliases={"id": "name"},
    # A client sends one player, a server all of them.
    variable_shape=("player",),
    more_words=(
        "xml",
        "encoding",
        "standalone",
        "yes",
        "no",
        "CDATA",
        "DOCTYPE",
        "ENTITY",
        "SYSTEM",
        "PUBLIC",
        "UTF",
        "ISO",
    ),
)

CODEC: XmlCodec = packaged_codec(__package__, GRAMMAR)

location_of = partial(location_in, envelope=CODEC.format.envelope)
"""Returns the offset and length in bytes of a part of a message's element."""
