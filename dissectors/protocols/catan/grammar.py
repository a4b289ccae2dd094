"""The grammar of Catan: the specification's messages (protocol 1.0), and real programs' dialects.

A message is an object with one attribute, its name, whose value has the message's own attributes. A dialect
is a further row.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Literal

from kiebitz.dissectors.grammar.field_type import FieldType
from kiebitz.dissectors.grammar.grammar import Field, Grammar, MessageType
from kiebitz.dissectors.model import DIRECTIONS
from kiebitz.dissectors.protocols.catan.events import ALIASES, DATA_IDENTIFIERS, EVENTS, STATE_IDENTIFIERS
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
from kiebitz.dissectors.protocols.catan.rules import RULES
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
    GRÖSSTE_RITTERMACHT,
    HIDDEN,
    LÄNGSTE_HANDELSSTRASSE,
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


_SPIELER = Field("Spieler", SPIELERNUMMER, "player")
_HANDEL = Field("Handel id", HANDEL_ID, "trade")
_ANGEBOT = Field("Angebot", OFFENE_ROHSTOFFE, "offered")
_NACHFRAGE = Field("Nachfrage", OFFENE_ROHSTOFFE, "wanted")
_ROHSTOFFE = Field("Rohstoffe", ROHSTOFFE_OBJEKT, "resources")
_ORT = Field("Ort", ORT, "new field of the robber")
_ZIEL = Field("Ziel", SPIELERNUMMER, "player that is robbed", optional=True)
_STRASSE_1 = Field("Straße 1", STRASSENORT, "first road")
_STRASSE_2 = Field("Straße 2", STRASSENORT, "second road", optional=True)
_NACHRICHT = Field("Nachricht", TEXT, "text")
_MELDUNG = Field("Meldung", TEXT, "text")
_VERSION = Field("Version", TEXT, "the program's name and version")
_WER = Field("Spieler", SPIELERNUMMER, "player", optional=True)

_ANTWORT = "the server answers with Serverantwort; the specification has OK and Fehler"
_ZWEI_SCHLÜSSEL = "the player is next to the message, not in it"
_EIGENE_NUMMER = "the message names the player who sends it; the specification leaves that to the server"
_ANNAHME = "accepting a trade has Mitspieler and Annehmen, also for rejections; the specification has Spieler"

ROWS = (
    Nachricht(
        "Hallo",
        "s2c",
        (_VERSION, Field("Protokoll", Version(), "the protocol's version")),
        "the server greets",
        clause="6 Verbindungsaufbau",
        summary="{Version}",
    ),
    Nachricht(
        "Hallo",
        "s2c",
        (_VERSION, Field("Protokoll", Integer(1, 1, title='"1.0"'), "the protocol's version")),
        "the server greets",
        clause="6 Verbindungsaufbau",
        deviation='Protokoll is the number 1; the specification has the text "1.0"',
        summary="{Version}",
    ),
    Nachricht(
        "Hallo",
        "c2s",
        (_VERSION,),
        "the client greets",
        clause="6 Verbindungsaufbau",
        answers=("Hallo",),
        summary="{Version}",
    ),
    Nachricht(
        "Willkommen",
        "s2c",
        (Field("id", NEUE_NUMMER, "the client's number", generated=True),),
        "the client's number",
        clause="6 Verbindungsaufbau",
        answers=("Hallo",),
        summary="player {id}",
    ),
    Nachricht("OK", "s2c", (), "done", clause="8.1 Bestätigungen und Fehler"),
    Nachricht(
        "Fehler", "s2c", (_MELDUNG,), "refused", clause="8.1 Bestätigungen und Fehler", summary="{Meldung}"
    ),
    Nachricht(
        "Serverantwort",
        "s2c",
        (Field("Meldung", Text(words=("OK", "Ok", "ok")), "text"),),
        "done, or refused",
        clause="8.1 Bestätigungen und Fehler",
        deviation=_ANTWORT,
        summary="{Meldung}",
        form="value",
    ),
    Nachricht(
        "Chatnachricht senden",
        "c2s",
        (_NACHRICHT,),
        "says",
        clause="8.2 Chat senden",
        summary='says "{Nachricht}"',
    ),
    Nachricht(
        "Chatnachricht senden",
        "c2s",
        (_NACHRICHT, Field("id", SPIELERNUMMER, "player")),
        "says",
        clause="8.2 Chat senden",
        deviation=_EIGENE_NUMMER,
        summary='says "{Nachricht}"',
    ),
    Nachricht(
        "Chatnachricht",
        "s2c",
        (Field("Absender", SPIELERNUMMER, "sender; the server if left out", optional=True), _NACHRICHT),
        "chat",
        clause="8.3 Chat empfangen",
        broadcast=True,
        summary='"{Nachricht}"',
    ),
    Nachricht(
        "Spieler",
        "c2s",
        (
            Field("Name", SPIELERNAME, "name", optional=True),
            Field("Farbe", OneOf(*FARBEN), "colour", optional=True),
        ),
        "takes a name and a colour",
        clause="9 Konfiguration und Spielstart",
        summary="{Name}, {Farbe}",
    ),
    Nachricht("Spiel starten", "c2s", (), "is ready", clause="9.1 Spielbereitschaft"),
    Nachricht(
        "Spiel gestartet",
        "s2c",
        (Field("Karte", KARTE, "the map"),),
        "the game begins",
        clause="9.2 Spielstart",
        broadcast=True,
    ),
    Nachricht(
        "Spiel beendet",
        "s2c",
        (
            Field("Nachricht", TEXT, "text", optional=True),
            Field("Sieger", SIEGER, "winner"),
        ),
        "the game is over",
        clause="9.3 Spielende",
        broadcast=True,
        summary="player {Sieger} wins",
    ),
    Nachricht(
        "Spiel beendet",
        "s2c",
        (
            Field("Nachricht", TEXT, "text", optional=True),
            Field("Spieler", SIEGER, "winner"),
        ),
        "the game is over",
        clause="9.3 Spielende",
        broadcast=True,
        deviation="Spiel beendet names the winner as Spieler; the specification has Sieger",
        summary="player {Spieler} wins",
    ),
    Nachricht(
        "Statusupdate",
        "s2c",
        (Field("Spieler", SPIELER, "player"),),
        "a player's status",
        clause="10.1 Statusupdate eines Spielers",
        broadcast=True,
        summary="player {Spieler[id]}: {Spieler[Status]}",
    ),
    Nachricht(
        "Würfelwurf",
        "s2c",
        (_SPIELER, Field("Wurf", WURF, "dice")),
        "dice",
        clause="10.2 Würfeln",
        broadcast=True,
        summary="dice {Wurf}",
    ),
    Nachricht(
        "Ertrag",
        "s2c",
        (_SPIELER, _ROHSTOFFE),
        "gains",
        clause="10.3 Ertrag",
        broadcast=True,
        summary="player {Spieler} gains {Rohstoffe}",
    ),
    Nachricht(
        "Kosten",
        "s2c",
        (_SPIELER, _ROHSTOFFE),
        "pays",
        clause="10.4 Kosten",
        broadcast=True,
        summary="player {Spieler} pays {Rohstoffe}",
    ),
    Nachricht(
        "Räuber versetzt",
        "s2c",
        (_WER, _ORT, _ZIEL),
        "the robber is moved",
        clause="10.5 Räuber versetzt",
        broadcast=True,
        summary="robber to {Ort}",
    ),
    Nachricht(
        "Bauvorgang",
        "s2c",
        (Field("Gebäude", GEBÄUDE_OBJEKT, "the building"),),
        "built",
        clause="10.6 Bauvorgang",
        broadcast=True,
        summary="player {Gebäude[Eigentümer]} builds {Gebäude[Typ]}",
    ),
    Nachricht(
        "Entwicklungskarte gekauft",
        "s2c",
        (
            _SPIELER,
            Field("Entwicklungskarte", BoughtCard(), "the card; 1 if it is another player's", optional=True),
        ),
        "buys a development card",
        clause="10.7 Entwicklungskarten",
        broadcast=True,
        summary="player {Spieler} buys a card",
    ),
    Nachricht(
        LÄNGSTE_HANDELSSTRASSE,
        "s2c",
        (_WER,),
        "longest road; no player's if empty",
        clause="10.10 Rittermacht und Handelsstraße",
        broadcast=True,
        summary="longest road: player {Spieler}",
    ),
    Nachricht(
        GRÖSSTE_RITTERMACHT,
        "s2c",
        (_WER,),
        "largest army",
        clause="10.10 Rittermacht und Handelsstraße",
        broadcast=True,
        summary="largest army: player {Spieler}",
    ),
    Nachricht("Würfeln", "c2s", (), "rolls", clause="11.1 Würfeln"),
    Nachricht(
        "Karten abgeben",
        "c2s",
        (Field("Abgeben", OFFENE_ROHSTOFFE, "discarded resources"),),
        "discards",
        clause="11.2 Räuber: Rohstoffe abgeben",
        summary="discards {Abgeben}",
    ),
    Nachricht(
        "Räuber versetzen",
        "c2s",
        (_ORT, _ZIEL),
        "moves the robber",
        clause="11.3 Räuber versetzen",
        summary="robber to {Ort}",
    ),
    Nachricht("Zug beenden", "c2s", (), "ends the turn", clause="11.4 Zug beenden"),
    Nachricht(
        "Bauen", "c2s", (GEBÄUDETYP, GEBÄUDEORT), "builds", clause="11.5 Bauen", summary="builds {Typ}"
    ),
    Nachricht(
        "Bauen",
        "c2s",
        (GEBÄUDETYP, GEBÄUDEORT, Field("Eigentümer", SPIELERNUMMER, "player")),
        "builds",
        clause="11.5 Bauen",
        deviation=_EIGENE_NUMMER,
        summary="builds {Typ}",
    ),
    Nachricht(
        "Entwicklungskarte kaufen",
        "c2s",
        (),
        "buys a development card",
        clause="11.6 Entwicklungskarte kaufen",
    ),
    Nachricht(
        "Seehandel",
        "c2s",
        (_ANGEBOT, _NACHFRAGE),
        "trades overseas",
        clause="11.8 Seehandel",
        summary="gives {Angebot} for {Nachfrage}",
    ),
    Nachricht(
        "Handel anbieten",
        "c2s",
        (_ANGEBOT, _NACHFRAGE),
        "offers a trade",
        clause="12.1 Handel anbieten",
        summary="offers {Angebot} for {Nachfrage}",
    ),
    Nachricht(
        "Handelsangebot",
        "s2c",
        (_SPIELER, Field("Handel id", HANDEL_ID, "trade", generated=True), _ANGEBOT, _NACHFRAGE),
        "a trade is offered",
        clause="12.1 Handel anbieten",
        broadcast=True,
        summary="player {Spieler} offers {Angebot} for {Nachfrage}",
    ),
    Nachricht(
        "Handel annehmen",
        "c2s",
        (_HANDEL,),
        "accepts the trade",
        clause="12.2 Handelsangebot annehmen",
        answers=("Handelsangebot",),
        summary="trade {Handel id}",
    ),
    Nachricht(
        "Handel annehmen",
        "c2s",
        (_HANDEL, Field("Annehmen", TRUTH, "true to accept")),
        "accepts or rejects the trade",
        clause="12.2 Handelsangebot annehmen",
        answers=("Handelsangebot",),
        deviation="Handel annehmen has Annehmen, true or false; the specification has no rejections",
        summary="trade {Handel id}: {Annehmen}",
    ),
    Nachricht(
        "Handelsangebot angenommen",
        "s2c",
        (_SPIELER, _HANDEL),
        "a player accepts the trade",
        clause="12.2 Handelsangebot annehmen",
        broadcast=True,
        summary="player {Spieler} accepts trade {Handel id}",
    ),
    Nachricht(
        "Handelsangebot angenommen",
        "s2c",
        (Field("Mitspieler", SPIELERNUMMER, "player"), _HANDEL, Field("Annehmen", TRUTH, "true to accept")),
        "a player accepts or rejects the trade",
        clause="12.2 Handelsangebot annehmen",
        broadcast=True,
        deviation=_ANNAHME,
        summary="player {Mitspieler}, trade {Handel id}: {Annehmen}",
    ),
    Nachricht(
        "Handel abschließen",
        "c2s",
        (_HANDEL, Field("Mitspieler", SPIELERNUMMER, "trading partner")),
        "concludes a trade",
        clause="12.3 Handel durchführen",
        summary="trade {Handel id} with player {Mitspieler}",
    ),
    Nachricht(
        "Handel ausgeführt",
        "s2c",
        (_SPIELER, Field("Mitspieler", SPIELERNUMMER, "trading partner")),
        "a trade is concluded",
        clause="12.3 Handel durchführen",
        broadcast=True,
        summary="player {Spieler} with player {Mitspieler}",
    ),
    Nachricht(
        "Handel ausgeführt",
        "s2c",
        (_SPIELER, Field("Mitspieler", SPIELERNUMMER, "trading partner"), _HANDEL),
        "a trade is concluded",
        clause="12.3 Handel durchführen",
        broadcast=True,
        deviation="Handel ausgeführt has the trade's number, too",
        summary="player {Spieler} with player {Mitspieler}",
    ),
    Nachricht(
        "Handel abbrechen",
        "c2s",
        (_HANDEL,),
        "withdraws an offer or an acceptance",
        clause="12.4 Handel abbrechen",
        summary="trade {Handel id}",
    ),
    Nachricht(
        "Handelsangebot abgebrochen",
        "s2c",
        (_SPIELER, _HANDEL),
        "an offer or an acceptance is withdrawn",
        clause="12.4 Handel abbrechen",
        broadcast=True,
        summary="player {Spieler}, trade {Handel id}",
    ),
    Nachricht(
        "Ritter ausspielen",
        "c2s",
        (_ORT, _ZIEL),
        "plays a knight",
        clause="13.1 Ritter",
        summary="robber to {Ort}",
    ),
    Nachricht(
        "Ritter ausspielen",
        "s2c",
        (_SPIELER, _ORT, _ZIEL),
        "a knight is played",
        clause="13.1 Ritter",
        broadcast=True,
        summary="player {Spieler}, robber to {Ort}",
    ),
    Nachricht(
        "Ritter ausspielen",
        "s2c",
        (_SPIELER, _ORT, _ZIEL),
        "a knight is played",
        clause="13.1 Ritter",
        broadcast=True,
        deviation=f"Ritter ausspielen: {_ZWEI_SCHLÜSSEL}",
        summary="player {Spieler}, robber to {Ort}",
        beside=("Spieler",),
    ),
    Nachricht(
        "Straßenbaukarte ausspielen",
        "c2s",
        (_STRASSE_1, _STRASSE_2),
        "plays road building",
        clause="13.2 Straßenbau",
    ),
    Nachricht(
        "Straßenbaukarte ausspielen",
        "c2s",
        (_STRASSE_1, _STRASSE_2),
        "plays road building",
        clause="13.2 Straßenbau",
        deviation="the client sends the roads of the card as a list; the specification names them",
        form="list",
    ),
    Nachricht(
        "Straßenbaukarte ausspielen",
        "s2c",
        (_SPIELER, _STRASSE_1, _STRASSE_2),
        "road building is played",
        clause="13.2 Straßenbau",
        broadcast=True,
        summary="player {Spieler}",
    ),
    Nachricht(
        "Straßenbaukarte ausspielen",
        "s2c",
        (_SPIELER, _STRASSE_1, _STRASSE_2),
        "road building is played",
        clause="13.2 Straßenbau",
        broadcast=True,
        deviation=f"Straßenbaukarte ausspielen: the roads are a list, and {_ZWEI_SCHLÜSSEL}",
        summary="player {Spieler}",
        form="list",
        beside=("Spieler",),
    ),
    Nachricht(
        "Monopol",
        "c2s",
        (Field("Rohstoff", ROHSTOFF, "resource"),),
        "plays a monopoly",
        clause="13.3 Monopol",
        summary="{Rohstoff}",
    ),
    Nachricht(
        "Monopol",
        "s2c",
        (_SPIELER, Field("Rohstoff", ROHSTOFF, "resource")),
        "a monopoly is played",
        clause="13.3 Monopol",
        broadcast=True,
        summary="player {Spieler}: {Rohstoff}",
    ),
    Nachricht(
        "Erfindung",
        "c2s",
        (Field("Rohstoffe", OFFENE_ROHSTOFFE, "two resources"),),
        "plays an invention",
        clause="13.4 Erfindung",
        summary="{Rohstoffe}",
    ),
    Nachricht(
        "Erfindung",
        "s2c",
        (_SPIELER, _ROHSTOFFE),
        "an invention is played",
        clause="13.4 Erfindung",
        broadcast=True,
        summary="player {Spieler}: {Rohstoffe}",
    ),
)

GRAMMAR = Grammar(
    "catan",
    "Catan",
    rows=ROWS,
    events=EVENTS,
    foreign=True,
    data_identifiers=DATA_IDENTIFIERS,
    state_identifiers=STATE_IDENTIFIERS,
    aliases=ALIASES,
    rules=RULES,
    # Hidden cards are a number, and one server names fields by letters.
    variable_shape=(
        "Rohstoffe",
        "Spieler.Rohstoffe",
        "Spieler.Entwicklungskarten",
        "Karte.Felder.Ort",
        "map.Felder.Ort",
    ),
    more_words=spellings(name for row in ROWS for name in (row.name, *(field.name for field in row.fields))),
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
