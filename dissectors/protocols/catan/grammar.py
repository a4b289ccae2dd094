"""The types of fields in Catan's messages (protocol 1.0), and its grammar, whose tables are in `catan.toml`.

A message is an object with one attribute, its name, whose value has the message's own attributes. A dialect
is a further row.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from typing import Literal

from kiebitz.dissectors.grammar.field_type import FieldType
from kiebitz.dissectors.grammar.grammar import Field, MessageType
from kiebitz.dissectors.grammar.table_file import grammar_from, plain_row
from kiebitz.dissectors.model import DIRECTIONS
from kiebitz.dissectors.protocols.catan.identifiers import ALIASES, DATA_IDENTIFIERS, STATE_IDENTIFIERS
from kiebitz.dissectors.protocols.catan.objects import (
    GEBÄUDE_OBJEKT,
    GEBÄUDEORT,
    GEBÄUDETYP,
    HANDEL_ID,
    KARTE,
    NEUE_NUMMER,
    OFFENE_ROHSTOFFE,
    ORT,
    ROHSTOFF,
    ROHSTOFFE_OBJEKT,
    SIEGER,
    SPIELER,
    SPIELERNAME,
    SPIELERNUMMER,
    STRASSENORT,
    TEXT,
    TRUTH,
    WURF,
    BoughtCard,
    Building,
    Version,
)
from kiebitz.dissectors.protocols.catan.values import (
    Counts,
    Integer,
    ListOf,
    Object,
    OneOf,
    SingleValue,
    Text,
    Tuple,
    Value,
)
from kiebitz.dissectors.protocols.catan.words import (
    FARBEN,
    HIDDEN,
    spellings,
)

Form = Literal["object", "list", "value"]


class Nachricht(MessageType, frozen=True):
    """A row with the layout of its fields: attributes of an object, a list in their order, or a single value.

    The fields `beside` are next to the message's name instead.
    """

    form: Form = "object"
    beside: tuple[str, ...] = ()

    @cached_property
    def body(self) -> Value:
        """The type of the value behind the name."""
        inner = tuple(field for field in self.fields if field.name not in self.beside)
        if self.form == "list":
            return Tuple(*inner)
        if self.form == "value":
            return SingleValue(*inner)
        is_building = {field.name for field in inner} >= {"Typ", "Ort"}
        return (Building if is_building else Object)(*inner)

    @cached_property
    def around(self) -> Object:
        """The type of the whole message."""
        beside = (field for field in self.fields if field.name in self.beside)
        return Object(Field(self.name, self.body, self.description), *beside)

    def knows(self, key: str | int) -> bool:
        """Return True if a key is one of the message's fields."""
        return key in spellings(field.name for field in self.fields)


TYPES: dict[str, FieldType] = {
    "text": TEXT,
    "version": Version(),
    "version-number": Integer(1, 1, title='"1.0"'),
    "result": Text(words=("OK", "Ok", "ok")),
    "truth": TRUTH,
    "new-number": NEUE_NUMMER,
    "number": SPIELERNUMMER,
    "winner": SIEGER,
    "name": SPIELERNAME,
    "colour": OneOf(*FARBEN),
    "map": KARTE,
    "player": SPIELER,
    "dice": WURF,
    "resource": ROHSTOFF,
    "resources": ROHSTOFFE_OBJEKT,
    "open-resources": OFFENE_ROHSTOFFE,
    "field": ORT,
    "building": GEBÄUDE_OBJEKT,
    "piece": GEBÄUDETYP.type,
    "place": GEBÄUDEORT.type,
    "road": STRASSENORT,
    "card": BoughtCard(),
    "trade": HANDEL_ID,
}

GRAMMAR = grammar_from(
    __package__,
    TYPES,
    make_row=partial(plain_row, row_class=Nachricht),
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
    spellings=spellings,
)

NAMES = {direction: spellings(GRAMMAR.names(direction)) for direction in DIRECTIONS}
"""The message names of each direction in every known spelling, to the specification's."""


def _names_in(kind: FieldType) -> Iterator[str]:
    if isinstance(kind, Object):
        for field in kind.fields:
            yield field.name
            yield from _names_in(field.type)
    elif isinstance(kind, ListOf):
        yield from _names_in(kind.part)
    elif isinstance(kind, Counts):
        yield from (HIDDEN, *kind.kinds)


MESSAGE_NAMES = frozenset(spelt for names in NAMES.values() for spelt in names)
ATTRIBUTE_NAMES = frozenset(
    spellings(
        name for row in GRAMMAR.rows for field in row.fields for name in (field.name, *_names_in(field.type))
    )
)
"""Attribute names in every spelling; some are message names, too."""
