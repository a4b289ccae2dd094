"""The types of fields in messages of CGML 1.19, and its grammar, whose tables are in `cgml.toml`.

A message is named by its element; if several share a name, the value of `status` or `type` distinguishes
them. Fields have the names of the attributes and elements, which are English, though sometimes misspelt
(`dial` deals, `winer` wins). Words of licitovaný mariáš are glossed: *flek* is a double, *štych* a trick,
*talon* the two cards that the winner of the bidding (*licitace*) exchanges.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import msgspec

from kiebitz.dissectors.grammar.field_type import FieldType
from kiebitz.dissectors.grammar.fields import Number, Text
from kiebitz.dissectors.grammar.grammar import Field
from kiebitz.dissectors.grammar.xml.shapes import MAX_CHILDREN, Compound, ElementList, closed_shape
from kiebitz.dissectors.grammar.xml.shapes import ElementType as XmlElementType
from kiebitz.dissectors.protocol_file.packaged import packaged_file, packaged_grammar
from kiebitz.dissectors.protocol_file.rows import keys_of
from kiebitz.dissectors.protocol_file.specification import MessageSpec
from kiebitz.dissectors.protocol_file.xml_codec import strict_field
from kiebitz.dissectors.protocols.cgml.cards import HAND, LADDER, SEATS
from kiebitz.dissectors.protocols.cgml.identifiers import (
    DATA_IDENTIFIERS,
    GROUP,
    NAME,
    PLAYER,
    STATE_IDENTIFIERS,
    URL,
)
from kiebitz.dissectors.protocols.cgml.types import Card, Choice, Pattern, Range, Version

ENVELOPE = "cgml"
"""The outer element, whose name is missing in the transcript of the specification."""

VERSION = Field("version", Version(), "the version of CGML that is used", optional=True)

Server = Literal["login", "game"]
"""The server that a message belongs to: the login server on ports 7001 and 7003, or the game server on 7002.
"""


class ElementType(XmlElementType, frozen=True):
    """A message's row; `server` is the server that it is exchanged with, None if it may be either."""

    server: Server | None = None

    @cached_property
    def asks(self) -> bool:
        """True if it is marked as a question."""
        return self.mark is not None and self.mark[1] == "ask"


_ID = Field("id", Number(PLAYER), "the player's id")
_NAME = Field("name", Text(NAME), "the player's name", optional=True)
_RACE = Field("race", Choice("human", "bot", empty=True), "a person or a program", optional=True)
_ID_IF = msgspec.structs.replace(_ID, optional=True)


def _element(name: str, *attributes: Field, inside: tuple[Field, ...] = ()) -> Compound:
    fields = [*((field, True) for field in attributes), *((field, False) for field in inside)]
    return Compound(name, closed_shape(name, fields))


_PLAYER = _element("player", _ID, inside=(_NAME, _RACE))
_WHOSE = Field("playerid", Number(PLAYER), "the player's id")
_CARD = Card(hidden=False)
_TRICK = _element(
    "round",
    Field("number", Range(1, HAND), "the number of the trick"),
    Field("playerid", _WHOSE.type, "the winner's id"),
    inside=(Field("card", ElementList(_CARD, SEATS, SEATS), "cards"),),
)


def _outcome(name: str, word: str) -> Compound:
    """Return the type of a winner or loser, with the money won or lost."""
    kind = Field("type", Choice(word), "won or lost")
    money = _element("money", kind, inside=(Field("money", Number(), "the amount"),))
    return _element(name, _WHOSE, inside=(Field("money", money, "money"),))


TYPES: dict[str, FieldType] = {
    "player": _PLAYER,
    "culprit": _element("player", _ID_IF, inside=(_NAME, _RACE)),
    "opponent": _element(
        "opponent", inside=(Field("player", ElementList(_PLAYER, 1, MAX_CHILDREN), "players"),)
    ),
    "count": Range(1, 100),
    "url": Pattern(
        r"[A-Za-z0-9._-]{1,253}:[0-9]{1,5}|\[[0-9A-Fa-f:.]+\]:[0-9]{1,5}",
        "an address and a port, as in 127.0.0.1:7002",
        URL,
    ),
    "group": Number(GROUP),
    "id": _WHOSE.type,
    "cards": Card(hidden=True),
    "card": _CARD,
    "game": Choice(*LADDER, title="a game of table 3-1: " + ", ".join(LADDER)),
    "bid": Choice(*LADDER, "YES", "NO"),
    "trumps": Pattern("[rgba](:[rgba])?", "r, g, b or a, and after a colon a second one if the game has it"),
    "level": Pattern("[0-9]{1,6}(:[0-9]{1,6})?", "a level, and after a colon that of the game against"),
    "number": Range(1, HAND),
    "trick": _TRICK,
    "winner": _outcome("winer", "get"),
    "loser": _outcome("loser", "lost"),
    "load": Range(0, 100),
}

_FORMAT = msgspec.structs.replace(packaged_file(__package__, TYPES).specification.format, python=TYPES)
_LOGIN = {("newgroup", "init"), ("newgroup", "ack"), ("load", "")}
"""The messages to and from the login server besides `connect`: their names, and the words of their marks."""


def _row(spec: MessageSpec, fields: tuple[Field, ...]) -> ElementType:
    """Return a row with the shape of its element, and its server."""
    typed = [strict_field(*each, _FORMAT) for each in zip(spec.fields, fields, strict=True)]
    are_attributes = (each.is_attribute for each in spec.fields)
    shape = closed_shape(spec.name, zip(typed, are_attributes, strict=True), (VERSION,))
    row = ElementType(
        spec.name, spec.direction, (*shape.fields,), **keys_of(spec), shape=shape, repeats=spec.repeats
    )
    is_login = spec.name == "connect" or (spec.name, row.mark[1] if row.mark else "") in _LOGIN
    server: Server | None = "login" if is_login else "game"
    return msgspec.structs.replace(row, server=None if spec.name == "disconnect" else server)


GRAMMAR = packaged_grammar(
    __package__,
    TYPES,
    make_row=_row,
    foreign=True,
    data_identifiers=DATA_IDENTIFIERS,
    state_identifiers=STATE_IDENTIFIERS,
    aliases={"id": "name"},
    # A client sends one player, a server all of them.
    variable_shape=("player",),
    more_words=(
        ENVELOPE,
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
