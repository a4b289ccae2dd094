"""The objects that messages consist of, clause 7 of the specification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kiebitz.dissectors.grammar.field_type import Rename, Replace
from kiebitz.dissectors.grammar.fields import is_version
from kiebitz.dissectors.grammar.grammar import Field
from kiebitz.dissectors.grammar.invalid_values import Wrong
from kiebitz.dissectors.protocols.catan.identifiers import NAME, NIEMAND, PLAYER, TRADE
from kiebitz.dissectors.protocols.catan.values import (
    AdjacentFields,
    Boolean,
    Coordinates,
    Counts,
    DecodingState,
    Integer,
    InvalidValue,
    ListOf,
    Object,
    OneOf,
    Text,
    Value,
)
from kiebitz.dissectors.protocols.catan.words import (
    FARBEN,
    FELDER,
    GEBÄUDE,
    GRÖSSTE_RITTERMACHT,
    HIDDEN,
    HÄFEN,
    KARTEN,
    LÄNGSTE_HANDELSSTRASSE,
    ROHSTOFFE,
    STATUS,
    STRASSE,
)

TEXT = Text()
TRUTH = Boolean()
SPIELERNAME = Text(NAME)

# Clause 6: "Als Spielernummern dürfen nur positive 31-bit Integer-Werte verwendet werden." Real servers begin
# with 0.
SPIELERNUMMER = Integer(title="a player's number", identifier=PLAYER)
NEUE_NUMMER = Integer(usual=1, title="a positive number", identifier=PLAYER)
SIEGER = Integer(NIEMAND, usual=0, title="a player's number", identifier=PLAYER)
HANDEL_ID = Integer(title="a trade's number", identifier=TRADE)

# 7.1 Felder
ORT = Coordinates()
FELD = Object(
    Field("Ort", Coordinates(may_be_letter=True), "where it is"),
    Field("Typ", OneOf(*FELDER), "its terrain"),
    Field(
        "Zahl", Integer(0, 12, title="a number from 2 to 12"), "the dice that make it yield", optional=True
    ),
)

# 7.2 Gebäude: "eine Straße liegt immer genau zwischen zwei Feldern, Orte und Städte liegen zwischen drei"
STRASSENORT = AdjacentFields(2)
BAUORT = AdjacentFields(2, 3)


class Version(Text):
    """The version of the protocol; other versions than 1.0 are decoded alike."""

    title = '"1.0"'

    def wrong_values(self) -> Iterator[Wrong]:
        yield from super().wrong_values()
        yield Wrong("other-version", "a version that does not exist", '"99.0"', allowed=True)

    def read(self, value: Any, reading: DecodingState) -> str:
        version = super().read(value, reading)
        if version != "1.0":
            reading.note("unusual-value", f'version "{version[:20]}" of the protocol is read as 1.0')
        return version

    def anonymized(self, value: Any, replace: Replace, rename: Rename) -> Any:
        # In a dialect it is a number.
        return value if not isinstance(value, str) or is_version(value) else replace(value)


class Building(Object):
    """An object with a `Typ`, and an `Ort` with the number of fields that this type requires."""

    def check(self, found: dict[str, Any], value: Mapping[str, Any]) -> None:
        count = 2 if found["Typ"] == STRASSE else 3
        if len(found["Ort"]) != count:
            raise InvalidValue(
                f"{found['Typ']} needs {count} fields, not {len(found['Ort'])}",
                AdjacentFields(count).title,
                path=(self.key_of("Ort", value),),
            )

    def wire_type(self) -> Mapping[str, Any]:
        limit = "the number of fields of a building is not checked"
        return {**super().wire_type(), "limit": limit}


GEBÄUDETYP = Field("Typ", OneOf(*GEBÄUDE), "road, village or city")
GEBÄUDEORT = Field("Ort", BAUORT, "the two fields beside a road, or the three around a village or city")
GEBÄUDE_OBJEKT = Building(
    Field("Eigentümer", SPIELERNUMMER, "its owner"),
    GEBÄUDETYP,
    GEBÄUDEORT,
)

# 7.3 Häfen
HAFEN_OBJEKT = Object(
    Field("Ort", STRASSENORT, "the land and the sea"),
    Field("Typ", OneOf(*HÄFEN), "what is traded there; Hafen: anything, 3:1"),
)

# 7.4 Karte
KARTE = Object(
    Field("Felder", ListOf(FELD, "list of Feld", least=1), "the fields"),
    Field("Gebäude", ListOf(GEBÄUDE_OBJEKT, "list of Gebäude"), "the buildings", optional=True),
    Field("Häfen", ListOf(HAFEN_OBJEKT, "list of Hafen"), "the harbours", optional=True),
    Field("Räuber", ORT, "field of the robber", optional=True),
)

# 7.6 Rohstoffe, 7.7 Entwicklungskarten: an object, or the total where they are hidden
ROHSTOFFE_OBJEKT = Counts(ROHSTOFFE, 'resources, such as {"Holz":1}, or their total', may_owe=True)
OFFENE_ROHSTOFFE = Counts(ROHSTOFFE, 'resources, such as {"Holz":1}', is_open=True)
KARTEN_OBJEKT = Counts(KARTEN, 'development cards, such as {"Ritter":1}, or their total')
ROHSTOFF = OneOf(*ROHSTOFFE, also={rohstoff.upper(): rohstoff for rohstoff in ROHSTOFFE})


class BoughtCard(Value):
    """A development card; 1 if it is hidden."""

    title = "a development card, or 1 where it is hidden"
    _word = OneOf(*KARTEN)
    words = (HIDDEN, *_word.all_words())

    def read(self, value: Any, reading: DecodingState) -> Any:
        if value == HIDDEN:
            reading.note("unusual-value", f'"{HIDDEN}" is used for hidden cards')
            return 1
        if type(value) is int:
            if value != 1:
                raise InvalidValue(f"{value} cards are bought at once", self.title)
            return 1
        try:
            return self._word.read(value, reading)
        except InvalidValue as error:
            error.expected = self.title
            raise

    def wire_type(self) -> Mapping[str, Any]:
        return {
            "kind": "json_either",
            "either": [
                {"kind": "json_choice", "values": {f"s:{HIDDEN}": ("i", "1"), "i:1": ("i", "1")}},
                self._word.wire_type(),
            ],
        }


# 7.5 Spieler
SPIELER = Object(
    Field("id", SPIELERNUMMER, "number"),
    Field("Farbe", OneOf(*FARBEN), "colour", optional=True),
    Field("Name", SPIELERNAME, "name", optional=True),
    Field("Status", OneOf(*STATUS), "what is expected of the player", optional=True),
    Field("Siegpunkte", Integer(-100, usual=0), "victory points", optional=True),
    Field("Rohstoffe", ROHSTOFFE_OBJEKT, "resources; of others the total", optional=True),
    Field("Rittermacht", Integer(), "knights that were played", optional=True),
    Field("Entwicklungskarten", KARTEN_OBJEKT, "development cards; of others the total", optional=True),
    Field(GRÖSSTE_RITTERMACHT, TRUTH, "has the largest army", optional=True),
    Field(LÄNGSTE_HANDELSSTRASSE, TRUTH, "has the longest road", optional=True),
)

# 10.2 Würfeln
WURF = ListOf(Integer(1, 6, title="pips from 1 to 6"), "two dice", least=2, most=2)

OBJECTS = {
    "Feld": FELD,
    "Gebäude": GEBÄUDE_OBJEKT,
    "Hafen": HAFEN_OBJEKT,
    "Karte": KARTE,
    "Spieler": SPIELER,
}
"""The objects with attributes, by their name in the specification."""
