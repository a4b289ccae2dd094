"""The types of fields in messages of CGML 1.19, and its grammar, whose tables are in `cgml.toml`.

A message is named by its element; if several share a name, the value of `status` or `type` distinguishes
them. Fields have the names of the attributes and elements, which are English, though sometimes misspelt
(`dial` deals, `winer` wins). Words of licitovaný mariáš are glossed: *flek* is a double, *štych* a trick,
*talon* the two cards that the winner of the bidding (*licitace*) exchanges.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import msgspec

from kiebitz.dissectors.grammar.field_type import FieldType
from kiebitz.dissectors.grammar.fields import Number, Text
from kiebitz.dissectors.grammar.grammar import Field
from kiebitz.dissectors.grammar.table_file import FieldEntry, grammar_from
from kiebitz.dissectors.grammar.xml.shapes import MAX_CHILDREN, Compound, ElementList, closed_shape
from kiebitz.dissectors.grammar.xml.shapes import ElementType as XmlElementType
from kiebitz.dissectors.model import Direction
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


def _listed(entry: FieldEntry) -> Field:
    field = entry.field
    if entry.most is None:
        return field
    return msgspec.structs.replace(field, type=ElementList(field.type, entry.least, entry.most))


def _row(
    name: str,
    direction: Direction,
    entries: tuple[FieldEntry, ...],
    description: str,
    *,
    server: Literal["login", "game", "any"] = "game",
    **more: Any,
) -> ElementType:
    """Return a row with the shape of its element."""
    fields = ((_listed(entry), entry.is_attribute) for entry in entries)
    shape = closed_shape(name, fields, (VERSION,))
    return ElementType(
        name,
        direction,
        (*shape.fields,),
        description,
        shape=shape,
        server=None if server == "any" else server,
        **more,
    )


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
    "text": Text(),
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

GRAMMAR = grammar_from(
    __package__,
    TYPES,
    choice=Choice,
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
