"""The types of fields in messages of CGML 1.19, and its grammar, whose tables are in `cgml.toml`.

A message is named by its element; if several share a name, the value of `status` or `type` distinguishes
them. Fields have the names of the attributes and elements, which are English, though sometimes misspelt
(`dial` deals, `winer` wins). Words of licitovaný mariáš are glossed: *flek* is a double, *štych* a trick,
*talon* the two cards that the winner of the bidding (*licitace*) exchanges.
"""

from __future__ import annotations

from functools import partial

from kiebitz.dissectors.grammar.field_type import FieldType, IdentifierKind, KeysOf
from kiebitz.dissectors.grammar.fields import Number, Text, Word
from kiebitz.dissectors.grammar.sentences import CALLED
from kiebitz.dissectors.grammar.xml.codec import XmlCodec
from kiebitz.dissectors.grammar.xml.markup import location_of as location_in
from kiebitz.dissectors.protocol_file.packaged import packaged_codec, packaged_grammar
from kiebitz.dissectors.protocols.cgml.cards import HAND, LADDER
from kiebitz.dissectors.protocols.cgml.types import Card, Pattern, Range, Version

PLAYER = IdentifierKind("player", of_player=True, global_=True)
NAME = IdentifierKind("name", of_player=True, null_values=("",))
GROUP = IdentifierKind("group")
URL = IdentifierKind("url", of_server=True)
ADDRESS = IdentifierKind("address")

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
    data={
        PLAYER: "actor player players id winner winners losers",
        NAME: "name",
        KeysOf(PLAYER): f"money {CALLED}",
        GROUP: "group",
        URL: "url",
    },
    state={
        PLAYER: "players accepted seats player turn declarer winner",
        NAME: "name",
        KeysOf(PLAYER): "hands private money",
        KeysOf(GROUP): "groups",
        GROUP: "group",
        URL: "url",
        KeysOf(URL): "servers",
        KeysOf(ADDRESS): "loads",
    },
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
