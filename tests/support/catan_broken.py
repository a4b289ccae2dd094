"""The table of flawed Catan conversations: what is sent, and what must be said of it, to the byte.

In the conversation of `catan_talk.py` one message is replaced by one with a flaw. What is wrong in it stands
between ⟨ and ⟩; everything else in this table is written by hand, too.
"""

from __future__ import annotations

from typing import NamedTuple

from catan_cases import DORF_TEXT, FLAWED, STRASSE_TEXT, Marked, line, marked
from catan_talk import conversation

from kiebitz.dissectors.grammar.framing import FRAME_LIMIT
from kiebitz.dissectors.model import Direction, Severity

MESSAGE = '{"…":{…}} and a line feed'
ONE = "one message in an object"
OF_A_CLIENT = "one of Hallo, Chatnachricht senden, Spieler, Spiel starten, Würfeln, Karten abgeben, "
OF_A_SERVER = "one of Hallo, Willkommen, OK, Fehler, Serverantwort, Chatnachricht, Spiel gestartet, "
NAME = "a name in quotes"
NAME_OR_END = 'a name in quotes or "}"'
NEXT_OR_END = '"," or "}"'
NEXT_OR_END_OF_LIST = '"," or "]"'
REST_OF_TEXT = "the rest of the string and its closing quote"
ESCAPE = 'an escape such as "\\n" in place of a control character'
PLACE = '{"x":…,"y":…}'
PLAYER = "a player's number"
OPEN = 'resources, such as {"Holz":1}'
RESOURCES = 'resources, such as {"Holz":1}, or their total'
CARDS = 'development cards, such as {"Ritter":1}, or their total'
WHOLE = "a whole number"
COLOURS = 'one of "Rot", "Orange", "Blau", "Weiß", "Grün", "Braun"'
KINDS = 'one of "Holz", "Lehm", "Wolle", "Getreide", "Erz"'
BUILDINGS = 'one of "Straße", "Dorf", "Stadt"'
BREAKS_OFF = "the message breaks off here"


class Broken(NamedTuple):
    """A message with one flaw and what must be said of it: `says` is a part of the text."""

    direction: Direction
    sent: Marked
    code: str
    says: str
    expected: str
    severity: Severity = "error"

    @property
    def place(self) -> tuple[int, int]:
        (place,) = self.sent.places
        return place

    @property
    def replaced(self) -> int:
        """Which message of the conversation it replaces: the first of the same name, if there is one."""
        for number, step in enumerate(conversation()):
            if step.direction == self.direction and self.sent.data.startswith(f'{{"{step.name}"'.encode()):
                return number
        return ANY[self.direction]


ANY: dict[Direction, int] = {
    step.direction: number
    for number, step in enumerate(conversation())
    if step.name in ("Chatnachricht senden", "OK")
}
"""A message that hardly anything follows from: the last of its name."""


def meant(word: str) -> str:
    return f': did you mean "{word}"?'


def c2s(text: str, code: str, says: str, expected: str, charset: str = "utf-8") -> Broken:
    """What a client sends."""
    return Broken("c2s", marked(line(text), charset), code, says, expected)


def s2c(text: str, code: str, says: str, expected: str, charset: str = "utf-8") -> Broken:
    """What a server sends."""
    return Broken("s2c", marked(line(text), charset), code, says, expected)


def name_of_client(text: str, says: str) -> Broken:
    return c2s(text, "unknown-message", says, OF_A_CLIENT)


def name_of_server(text: str, says: str) -> Broken:
    return s2c(text, "unknown-message", says, OF_A_SERVER)


def value(direction: Direction, text: str, says: str, expected: str) -> Broken:
    """A value that cannot stand where it stands."""
    return Broken(direction, marked(line(text)), "bad-value", says, expected)


def syntax(text: str, says: str, expected: str) -> Broken:
    """A client's message that is no JSON."""
    return c2s(text, "broken-json", says, expected)


MESSAGE_NAMES = [
    name_of_client('{⟨"Wurfeln"⟩:{}}', '"Wurfeln" is no message that a client sends' + meant("Würfeln")),
    name_of_client('{⟨"Würfel"⟩:{}}', meant("Würfeln")),
    name_of_client('{⟨"Zug beeenden"⟩:{}}', meant("Zug beenden")),
    name_of_client('{⟨"Buaen"⟩:{}}', meant("Bauen")),
    name_of_client('{⟨"WÜRFELN"⟩:{}}', meant("Würfeln")),
    name_of_client('{⟨"hallo"⟩:{"Version":"x"}}', meant("Hallo")),
    name_of_client('{⟨"Würfeln "⟩:{}}', meant("Würfeln")),
    name_of_client('{⟨"Zug_beenden"⟩:{}}', meant("Zug beenden")),
    name_of_client('{⟨"SpielStarten"⟩:{}}', meant("Spiel starten")),
    name_of_client('{⟨"Entwicklungskarten kaufen"⟩:{}}', meant("Entwicklungskarte kaufen")),
    name_of_client('{⟨"Handel abschlißen"⟩:{"Handel id":0,"Mitspieler":2}}', meant("Handel abschließen")),
    name_of_client(r'{⟨"W\u00fcrfln"⟩:{}}', meant("Würfeln")),
    name_of_server('{⟨"Statusudate"⟩:{"Spieler":{"id":1}}}', meant("Statusupdate")),
    name_of_server('{⟨"Wurfelwurf"⟩:{"Spieler":1,"Wurf":[1,2]}}', meant("Würfelwurf")),
    name_of_server('{⟨"ok"⟩:{}}', meant("OK")),
    name_of_server('{⟨"Laengste Handelstrasse"⟩:{}}', meant("Längste Handelsstraße")),
    name_of_server(
        '{⟨"Handelsangebot abgebrochn"⟩:{"Spieler":1,"Handel id":7}}', meant("Handelsangebot abgebrochen")
    ),
    name_of_client('{⟨"Ping"⟩:{}}', '"Ping" is no message that a client sends')._replace(severity="warning"),
    name_of_client('{⟨""⟩:{}}', '"" is no message that a client sends')._replace(severity="warning"),
    name_of_server('{⟨"Weather"⟩:{"sunny":true}}', '"Weather" is no message that a server sends')._replace(
        severity="warning"
    ),
    name_of_client(
        '{⟨"Chatnachricht"⟩:{"Absender":1,"Nachricht":"hm"}}', "no message that a client sends, but a server"
    ),
    name_of_client('{⟨"OK"⟩:{}}', "no message that a client sends, but a server"),
    name_of_client(
        '{⟨"Würfelwurf"⟩:{"Spieler":1,"Wurf":[6,6]}}', "no message that a client sends, but a server"
    ),
    name_of_client(
        f'{{⟨"Bauvorgang"⟩:{{"Gebäude":{{"Eigentümer":1,"Typ":"Dorf","Ort":{DORF_TEXT}}}}}}}',
        "no message that a client sends, but a server",
    ),
    name_of_server(
        '{⟨"Spieler"⟩:{"Name":"Anna","Farbe":"Rot"}}', "no message that a server sends, but a client"
    ),
    name_of_server('{⟨"Würfeln"⟩:{}}', "no message that a server sends, but a client"),
    name_of_server(
        f'{{⟨"Bauen"⟩:{{"Typ":"Dorf","Ort":{DORF_TEXT}}}}}', "no message that a server sends, but a client"
    ),
]

STRUCTURE = [
    c2s('{"Würfeln":{},⟨"Zug beenden"⟩:{}}', "not-one-message", '"Zug beenden" stands beside "Würfeln"', ONE),
    c2s(
        '{"Spieler":{"Name":"Anna"},⟨"Farbe"⟩:"Rot"}',
        "not-one-message",
        '"Farbe" stands beside "Spieler"',
        ONE,
    ),
    c2s('{⟨"Typ"⟩:"Dorf","Ort":[]}', "not-one-message", '"Typ" stands beside "Ort"', ONE),
    s2c('{"OK":{},⟨"Fehler"⟩:{"Meldung":"x"}}', "not-one-message", '"Fehler" stands beside "OK"', ONE),
    s2c('{"OK":{},⟨"id"⟩:7}', "not-one-message", '"id" stands beside "OK"', ONE),
    c2s("⟨{}⟩", "not-one-message", "there is no message in this object", ONE),
    c2s('⟨["Würfeln",{}]⟩', "no-object", "stands where a message begins", MESSAGE),
    s2c("⟨[]⟩", "no-object", "[] stands where a message begins", MESSAGE),
    c2s('⟨"Würfeln"⟩', "no-object", '"Würfeln" stands where a message begins', MESSAGE),
    c2s("⟨42⟩", "no-object", "42 stands where a message begins", MESSAGE),
    c2s("⟨null⟩", "no-object", "null stands where a message begins", MESSAGE),
    c2s("⟨true⟩", "no-object", "true stands where a message begins", MESSAGE),
    c2s("⟨Würfeln⟩", "no-object", '"Würfeln" stands where a message begins', MESSAGE),
    c2s("⟨GET / HTTP/1.1⟩\r\n", "no-object", '"GET / HTTP/1.1" stands where', MESSAGE),
    c2s("⟨!NAME⟩", "no-object", '"!NAME" stands where', MESSAGE),
    value("c2s", '{"Würfeln":⟨null⟩}', "$.Würfeln: null is no object", "{}"),
    value("c2s", '{"Zug beenden":⟨[]⟩}', '$["Zug beenden"]: [] is no object', "{}"),
    value(
        "c2s",
        '{"Chatnachricht senden":⟨"hallo"⟩}',
        '$["Chatnachricht senden"]: "hallo" is no object',
        '{"Nachricht":…}',
    ),
    value("s2c", '{"Willkommen":⟨42⟩}', "$.Willkommen: 42 is no object", '{"id":…}'),
    value("s2c", '{"Ertrag":⟨[1,{"Holz":1}]⟩}', "$.Ertrag: [1,", '{"Spieler":…,"Rohstoffe":…}'),
    value(
        "s2c", '{"Serverantwort":⟨{"Meldung":"OK"}⟩}', '$.Serverantwort: {"Meldung":"OK"} is no text', "text"
    ),
    value("s2c", '{"OK":⟨true⟩}', "$.OK: true is no object", "{}"),
    value(
        "s2c",
        '{"Willkommen":{"id":⟨{"id":1}⟩}}',
        '$.Willkommen.id: {"id":1} is no whole number',
        "a positive number",
    ),
    value(
        "s2c",
        '{"Statusupdate":{"Spieler":⟨2⟩}}',
        "$.Statusupdate.Spieler: 2 is no object",
        '{"id":…,"Farbe":…',
    ),
    value(
        "s2c",
        '{"Spiel gestartet":{"Karte":⟨[]⟩}}',
        '$["Spiel gestartet"].Karte: [] is no object',
        '{"Felder":…',
    ),
    s2c(
        '{"Statusupdate":⟨{"id":2,"Status":"Warten"}⟩}',
        "missing-attribute",
        '$.Statusupdate: there is no "Spieler" among 2 attributes',
        '"Spieler":…',
    ),
    s2c(
        f'{{"Bauvorgang":⟨{{"Eigentümer":1,"Typ":"Dorf","Ort":{DORF_TEXT}}}⟩}}',
        "missing-attribute",
        '$.Bauvorgang: there is no "Gebäude" among 3',
        '"Gebäude":…',
    ),
    c2s(
        '{"Räuber versetzen":⟨{"x":0,"y":1}⟩}',
        "missing-attribute",
        '$["Räuber versetzen"]: there is no "Ort" among 2',
        '"Ort":…',
    ),
    value(
        "c2s",
        '{"Chatnachricht senden":{"Nachricht":⟨' + "[" * 65 + "]" * 65 + "⟩}}",
        '$["Chatnachricht senden"].Nachricht: [[[',
        "text",
    ),
    syntax(
        '{"Würfeln":' + "[" * 63 + "⟨[⟩" + "[" * 100_000 + "]" * 100_064 + "}",
        '"[" stands here',
        "no more than 64 objects and lists inside each other",
    ),
]

ATTRIBUTES = [
    c2s(
        '{"Chatnachricht senden":{⟨"Nachrich"⟩:"hm"}}',
        "unknown-attribute",
        '$["Chatnachricht senden"].Nachrich: "Nachrich" is no attribute here' + meant("Nachricht"),
        '"Nachricht":…',
    ),
    c2s(
        '{"Chatnachricht senden":{⟨"nachricht"⟩:"hm"}}',
        "unknown-attribute",
        meant("Nachricht"),
        '"Nachricht":…',
    ),
    c2s(
        f'{{"Bauen":{{⟨"Type"⟩:"Dorf","Ort":{DORF_TEXT}}}}}',
        "unknown-attribute",
        '$.Bauen.Type: "Type" is no attribute here' + meant("Typ"),
        '"Typ":…',
    ),
    c2s(f'{{"Bauen":{{"Typ":"Dorf",⟨"Orte"⟩:{DORF_TEXT}}}}}', "unknown-attribute", meant("Ort"), '"Ort":…'),
    c2s(
        '{"Räuber versetzen":{"Ort":{⟨"X"⟩:0,"y":1}}}',
        "unknown-attribute",
        '$["Räuber versetzen"].Ort.X: "X" is no attribute here' + meant("x"),
        '"x":…',
    ),
    c2s(
        '{"Handel abschließen":{⟨"Handel_id"⟩:7,"Mitspieler":2}}',
        "unknown-attribute",
        '$["Handel abschließen"].Handel_id: ',
        '"Handel id":…',
    ),
    c2s('{"Handel annehmen":{⟨"HandelID"⟩:7}}', "unknown-attribute", meant("Handel id"), '"Handel id":…'),
    c2s('{"Spieler":{"Name":"Anna",⟨"farbe"⟩:"Orange"}}', "unknown-attribute", meant("Farbe"), '"Farbe":…'),
    s2c(
        '{"Würfelwurf":{⟨"Spiler"⟩:1,"Wurf":[6,5]}}',
        "unknown-attribute",
        "$.Würfelwurf.Spiler: ",
        '"Spieler":…',
    ),
    s2c(
        '{"Statusupdate":{"Spieler":{"id":1,⟨"Stauts"⟩:"Spiel starten"}}}',
        "unknown-attribute",
        "$.Statusupdate.Spieler.Stauts: ",
        '"Status":…',
    ),
    s2c(
        f'{{"Bauvorgang":{{"Gebäude":{{⟨"Eigentumer"⟩:1,"Typ":"Dorf","Ort":{DORF_TEXT}}}}}}}',
        "unknown-attribute",
        meant("Eigentümer"),
        '"Eigentümer":…',
    ),
    c2s('{"Hallo":⟨{}⟩}', "missing-attribute", '$.Hallo: there is no "Version"', '"Version":…'),
    s2c(
        '{"Hallo":⟨{"Version":"x"}⟩}',
        "missing-attribute",
        '$.Hallo: there is no "Protokoll" among 1 attribute',
        '"Protokoll":…',
    ),
    c2s(
        f'{{"Bauen":⟨{{"Ort":{DORF_TEXT}}}⟩}}',
        "missing-attribute",
        '$.Bauen: there is no "Typ" among 1',
        '"Typ":…',
    ),
    c2s('{"Bauen":⟨{"Typ":"Dorf"}⟩}', "missing-attribute", '$.Bauen: there is no "Ort" among 1', '"Ort":…'),
    c2s(
        '{"Handel abschließen":⟨{"Handel id":7}⟩}',
        "missing-attribute",
        'there is no "Mitspieler" among 1',
        '"Mitspieler":…',
    ),
    s2c(
        '{"Handelsangebot":⟨{"Spieler":1,"Angebot":{"Erz":1},"Nachfrage":{"Lehm":1}}⟩}',
        "missing-attribute",
        '$.Handelsangebot: there is no "Handel id" among 3 attributes',
        '"Handel id":…',
    ),
    c2s(
        '{"Räuber versetzen":{"Ort":⟨{"x":1}⟩}}',
        "missing-attribute",
        '$["Räuber versetzen"].Ort: there is no "y" among 1',
        '"y":…',
    ),
    c2s(
        '{"Bauen":{"Typ":"Straße","Ort":[{"x":-2,"y":0},⟨{"x":-1}⟩]}}',
        "missing-attribute",
        '$.Bauen.Ort[1]: there is no "y"',
        '"y":…',
    ),
    s2c(
        '{"Würfelwurf":⟨{"Spieler":1}⟩}', "missing-attribute", '$.Würfelwurf: there is no "Wurf"', '"Wurf":…'
    ),
    s2c('{"Fehler":⟨{}⟩}', "missing-attribute", '$.Fehler: there is no "Meldung"', '"Meldung":…'),
    s2c(
        f'{{"Bauvorgang":{{"Gebäude":{{"Eigentümer":1,⟨"Eigentuemer"⟩:1,"Typ":"Dorf","Ort":{DORF_TEXT}}}}}}}',
        "twice",
        '$.Bauvorgang.Gebäude.Eigentuemer: "Eigentümer" is there twice',
        '{"Eigentümer":…',
    ),
]

VALUES = [
    value(
        "c2s", '{"Räuber versetzen":{"Ort":⟨"1,-1"⟩}}', '$["Räuber versetzen"].Ort: "1,-1" is no place', PLACE
    ),
    value("c2s", '{"Räuber versetzen":{"Ort":⟨[1,-1]⟩}}', "Ort: [1,-1] is no place", PLACE),
    value(
        "c2s",
        '{"Bauen":{"Typ":"Straße","Ort":[{"x":-2,"y":0},{"x":⟨"-1"⟩,"y":0}]}}',
        '$.Bauen.Ort[1].x: "-1" is no whole number',
        WHOLE,
    ),
    value(
        "c2s",
        '{"Bauen":{"Typ":"Straße","Ort":[{"x":-2,"y":⟨0.5⟩},{"x":-1,"y":0}]}}',
        "$.Bauen.Ort[0].y: 0.5 is no whole number",
        WHOLE,
    ),
    value(
        "c2s",
        '{"Bauen":{"Typ":"Straße","Ort":[{"x":-2,"y":0},{"x":-1,"y":⟨null⟩}]}}',
        "$.Bauen.Ort[1].y: null is no whole number",
        WHOLE,
    ),
    value(
        "c2s",
        '{"Räuber versetzen":{"Ort":{"x":⟨99999⟩,"y":0}}}',
        ".Ort.x: 99999 is not from -1000 to 1000",
        WHOLE,
    ),
    value(
        "c2s",
        f'{{"Bauen":{{"Typ":"Straße","Ort":⟨{DORF_TEXT}⟩}}}}',
        "$.Bauen.Ort: Straße stands between 2 fields, not 3",
        "two places",
    ),
    value(
        "c2s",
        f'{{"Bauen":{{"Typ":"Dorf","Ort":⟨{STRASSE_TEXT}⟩}}}}',
        "$.Bauen.Ort: Dorf stands between 3 fields, not 2",
        "three places",
    ),
    value(
        "c2s",
        f'{{"Bauen":{{"Typ":"Stadt","Ort":⟨{STRASSE_TEXT}⟩}}}}',
        "$.Bauen.Ort: Stadt stands between 3 fields, not 2",
        "three places",
    ),
    value(
        "c2s",
        '{"Bauen":{"Typ":"Dorf","Ort":⟨[{"x":0,"y":0}]⟩}}',
        "$.Bauen.Ort: there are 1 places",
        "two places or three places",
    ),
    value(
        "c2s",
        '{"Bauen":{"Typ":"Dorf","Ort":⟨[]⟩}}',
        "$.Bauen.Ort: there are 0 places",
        "two places or three places",
    ),
    value(
        "c2s",
        '{"Bauen":{"Typ":"Dorf","Ort":⟨{"x":0,"y":0}⟩}}',
        '$.Bauen.Ort: {"x":0,"y":0} is no list',
        "two places or three places",
    ),
    value(
        "c2s",
        f'{{"Straßenbaukarte ausspielen":{{"Straße 1":{STRASSE_TEXT},"Straße 2":⟨{DORF_TEXT}⟩}}}}',
        '$["Straßenbaukarte ausspielen"]["Straße 2"]: there are 3 places',
        "two places",
    ),
    value(
        "s2c",
        f'{{"Bauvorgang":{{"Gebäude":{{"Eigentümer":1,"Typ":"Straße","Ort":⟨{DORF_TEXT}⟩}}}}}}',
        "$.Bauvorgang.Gebäude.Ort: Straße stands between 2 fields",
        "two places",
    ),
    value(
        "c2s",
        f'{{"Bauen":{{"Typ":⟨"Burg"⟩,"Ort":{DORF_TEXT}}}}}',
        '$.Bauen.Typ: "Burg" is not known here',
        BUILDINGS,
    ),
    value(
        "c2s",
        f'{{"Bauen":{{"Typ":⟨"Strase"⟩,"Ort":{STRASSE_TEXT}}}}}',
        '$.Bauen.Typ: "Strase" is not known here' + meant("Straße"),
        BUILDINGS,
    ),
    value("c2s", f'{{"Bauen":{{"Typ":⟨"dorf"⟩,"Ort":{DORF_TEXT}}}}}', meant("Dorf"), BUILDINGS),
    value(
        "c2s",
        f'{{"Bauen":{{"Typ":⟨null⟩,"Ort":{DORF_TEXT}}}}}',
        "$.Bauen.Typ: null is not known here",
        BUILDINGS,
    ),
    value(
        "c2s",
        '{"Spieler":{"Name":"Anna","Farbe":⟨"Lila"⟩}}',
        '$.Spieler.Farbe: "Lila" is not known here',
        COLOURS,
    ),
    value(
        "c2s",
        '{"Spieler":{"Name":"Anna","Farbe":⟨"Blue"⟩}}',
        '$.Spieler.Farbe: "Blue" is not known here',
        COLOURS,
    ),
    value("c2s", '{"Spieler":{"Name":"Anna","Farbe":⟨"orange"⟩}}', meant("Orange"), COLOURS),
    value(
        "c2s",
        '{"Spieler":{"Name":"Anna","Farbe":⟨16711680⟩}}',
        "$.Spieler.Farbe: 16711680 is not known here",
        COLOURS,
    ),
    value("c2s", '{"Spieler":{"Name":⟨4711⟩,"Farbe":"Orange"}}', "$.Spieler.Name: 4711 is no text", "text"),
    value("c2s", '{"Chatnachricht senden":{"Nachricht":⟨["hm"]⟩}}', '.Nachricht: ["hm"] is no text', "text"),
    value("c2s", '{"Chatnachricht senden":{"Nachricht":⟨null⟩}}', ".Nachricht: null is no text", "text"),
    value(
        "s2c",
        '{"Statusupdate":{"Spieler":{"id":1,"Status":⟨"Schlafen"⟩}}}',
        '$.Statusupdate.Spieler.Status: "Schlafen" is not known here',
        'one of "Spiel starten", ',
    ),
    value(
        "s2c",
        '{"Statusupdate":{"Spieler":{"id":1,"Status":⟨"Strasse baun"⟩}}}',
        meant("Straße bauen"),
        'one of "Spiel starten", ',
    ),
    value(
        "s2c",
        '{"Statusupdate":{"Spieler":{"id":1,"Status":⟨"Handeln Oder Bauen"⟩}}}',
        meant("Handeln oder Bauen"),
        'one of "Spiel starten", ',
    ),
    value(
        "s2c",
        '{"Statusupdate":{"Spieler":{"id":⟨"1"⟩,"Status":"Warten"}}}',
        '$.Statusupdate.Spieler.id: "1" is no whole number',
        PLAYER,
    ),
    value(
        "s2c",
        '{"Statusupdate":{"Spieler":{"id":1,"Größte Rittermacht":⟨"true"⟩}}}',
        '$.Statusupdate.Spieler["Größte Rittermacht"]: "true" is neither true nor false',
        "true or false",
    ),
    value(
        "s2c",
        '{"Statusupdate":{"Spieler":{"id":1,"Längste Handelsstraße":⟨1⟩}}}',
        "1 is neither true nor false",
        "true or false",
    ),
    value(
        "s2c",
        '{"Statusupdate":{"Spieler":{"id":⟨null⟩,"Status":"Warten"}}}',
        ".id: null is no whole number",
        PLAYER,
    ),
    value(
        "s2c",
        '{"Willkommen":{"id":⟨-1⟩}}',
        "$.Willkommen.id: -1 is not from 0 to 2147483647",
        "a positive number",
    ),
    value(
        "s2c",
        '{"Willkommen":{"id":⟨2147483648⟩}}',
        "$.Willkommen.id: 2147483648 is not from 0",
        "a positive number",
    ),
    value(
        "s2c", '{"Willkommen":{"id":⟨1.0⟩}}', "$.Willkommen.id: 1.0 is no whole number", "a positive number"
    ),
    value(
        "s2c", '{"Willkommen":{"id":⟨1e0⟩}}', "$.Willkommen.id: 1.0 is no whole number", "a positive number"
    ),
    value(
        "s2c", '{"Willkommen":{"id":⟨true⟩}}', "$.Willkommen.id: true is no whole number", "a positive number"
    ),
    value("s2c", '{"Hallo":{"Version":"x","Protokoll":⟨1.0⟩}}', "$.Hallo.Protokoll: 1.0 is no", '"1.0"'),
    value("s2c", '{"Würfelwurf":{"Spieler":1,"Wurf":⟨11⟩}}', "$.Würfelwurf.Wurf: 11 is no list", "two dice"),
    value(
        "s2c",
        '{"Würfelwurf":{"Spieler":1,"Wurf":⟨[6,5,1]⟩}}',
        "$.Würfelwurf.Wurf: there are 3 values",
        "two dice",
    ),
    value(
        "s2c",
        '{"Würfelwurf":{"Spieler":1,"Wurf":[⟨7⟩,4]}}',
        "$.Würfelwurf.Wurf[0]: 7 is not from 1 to 6",
        "pips from 1 to 6",
    ),
    value(
        "s2c",
        '{"Würfelwurf":{"Spieler":1,"Wurf":[6,⟨"5"⟩]}}',
        '$.Würfelwurf.Wurf[1]: "5" is no whole number',
        "pips from 1 to 6",
    ),
    value(
        "s2c",
        '{"Ertrag":{"Spieler":3,"Rohstoffe":{"Holz":⟨"2"⟩,"Wolle":1}}}',
        '$.Ertrag.Rohstoffe.Holz: "2" is no whole number',
        WHOLE,
    ),
    value(
        "s2c",
        '{"Ertrag":{"Spieler":3,"Rohstoffe":{"Holz":⟨2.0⟩,"Wolle":1}}}',
        "$.Ertrag.Rohstoffe.Holz: 2.0 is no whole number",
        WHOLE,
    ),
    value(
        "s2c",
        '{"Ertrag":{"Spieler":3,"Rohstoffe":{"Holz":2,"Wolle":⟨null⟩}}}',
        "$.Ertrag.Rohstoffe.Wolle: null is no whole number",
        WHOLE,
    ),
    value(
        "s2c",
        '{"Ertrag":{"Spieler":3,"Rohstoffe":⟨["Holz","Wolle"]⟩}}',
        '$.Ertrag.Rohstoffe: ["Holz","Wolle"] is no count',
        RESOURCES,
    ),
    value(
        "s2c",
        '{"Spiel gestartet":{"Karte":{"Felder":[{"Ort":{"x":0,"y":0},"Typ":"Wald","Zahl":⟨13⟩}]}}}',
        '$["Spiel gestartet"].Karte.Felder[0].Zahl: 13 is not from 0 to 12',
        "a number from 2 to 12",
    ),
    value(
        "s2c",
        '{"Spiel gestartet":{"Karte":{"Felder":[{"Ort":{"x":0,"y":0},"Typ":⟨"Moor"⟩}]}}}',
        '.Felder[0].Typ: "Moor" is not known here',
        'one of "Ackerland", ',
    ),
    value(
        "s2c",
        '{"Spiel gestartet":{"Karte":{"Felder":[{"Ort":"a","Typ":"Meer"}],'
        '"Häfen":[{"Ort":[{"x":1,"y":2},{"x":0,"y":2}],"Typ":⟨"3:1"⟩}]}}}',
        '.Häfen[0].Typ: "3:1" is not known here',
        'one of "Holz Hafen", ',
    ),
    s2c(
        '{"Ertrag":{"Spieler":3,"Rohstoffe":{⟨"Gold"⟩:2}}}',
        "unknown-kind",
        '$.Ertrag.Rohstoffe.Gold: "Gold" is not known here',
        RESOURCES,
    ),
    s2c(
        '{"Statusupdate":{"Spieler":{"id":1,"Entwicklungskarten":{⟨"Siegpunkte"⟩:1}}}}',
        "unknown-kind",
        '$.Statusupdate.Spieler.Entwicklungskarten.Siegpunkte: "Siegpunkte" is not known here'
        + meant("Siegpunkt"),
        CARDS,
    ),
    value(
        "s2c",
        '{"Entwicklungskarte gekauft":{"Spieler":1,"Entwicklungskarte":⟨"Bibliothek"⟩}}',
        '$["Entwicklungskarte gekauft"].Entwicklungskarte: "Bibliothek" is not known here',
        "a development card, or 1 where it is hidden",
    ),
    c2s(
        '{"Handel anbieten":{"Angebot":{⟨"Ertz"⟩:1},"Nachfrage":{"Lehm":1}}}',
        "unknown-kind",
        '$["Handel anbieten"].Angebot.Ertz: "Ertz" is not known here' + meant("Erz"),
        OPEN,
    ),
    c2s(
        '{"Handel anbieten":{"Angebot":{"Erz":1},"Nachfrage":{⟨"lehm"⟩:1}}}',
        "unknown-kind",
        meant("Lehm"),
        OPEN,
    ),
    c2s(
        '{"Karten abgeben":{"Abgeben":{⟨"Unbekannt"⟩:4}}}',
        "unknown-kind",
        '"Unbekannt" is not known here',
        OPEN,
    ),
    value(
        "c2s",
        '{"Handel anbieten":{"Angebot":{"Erz":⟨-1⟩},"Nachfrage":{"Lehm":1}}}',
        '$["Handel anbieten"].Angebot.Erz: -1 is not from 0 to 2147483647',
        "a count",
    ),
    value(
        "c2s",
        '{"Seehandel":{"Angebot":{"Erz":4},"Nachfrage":{"Lehm":⟨-3⟩}}}',
        "$.Seehandel.Nachfrage.Lehm: -3 is not from 0",
        "a count",
    ),
    value(
        "c2s",
        '{"Karten abgeben":{"Abgeben":{"Erz":⟨-4⟩}}}',
        '$["Karten abgeben"].Abgeben.Erz: -4 is not from 0',
        "a count",
    ),
    value("c2s", '{"Erfindung":{"Rohstoffe":⟨2⟩}}', "$.Erfindung.Rohstoffe: 2 is no object", OPEN),
    value(
        "c2s",
        '{"Handel anbieten":{"Angebot":⟨"Erz"⟩,"Nachfrage":{"Lehm":1}}}',
        '.Angebot: "Erz" is no object',
        OPEN,
    ),
    value("c2s", '{"Monopol":{"Rohstoff":⟨"Gold"⟩}}', '$.Monopol.Rohstoff: "Gold" is not known here', KINDS),
    value(
        "c2s",
        '{"Monopol":{"Rohstoff":⟨{"Holz":1}⟩}}',
        '$.Monopol.Rohstoff: {"Holz":1} is not known here',
        KINDS,
    ),
    value(
        "c2s",
        '{"Handel abschließen":{"Handel id":7,"Mitspieler":⟨"Bärta"⟩}}',
        '.Mitspieler: "Bärta" is no whole number',
        PLAYER,
    ),
    value(
        "c2s", '{"Räuber versetzen":{"Ort":{"x":1,"y":-1},"Ziel":⟨-1⟩}}', ".Ziel: -1 is not from 0", PLAYER
    ),
    value(
        "c2s",
        '{"Handel annehmen":{"Handel id":7,"Annehmen":⟨"ja"⟩}}',
        '.Annehmen: "ja" is neither true nor false',
        "true or false",
    ),
]

SYNTAX = [
    syntax('{"Spieler":{"Name":"Anna"⟨"⟩Farbe":"Orange"}}', "a quotation mark stands here", NEXT_OR_END),
    syntax(
        '{"Bauen":{"Typ":"Straße","Ort":[{"x":0,"y":0}⟨{⟩"x":1,"y":0}]}}',
        '"{" stands here',
        NEXT_OR_END_OF_LIST,
    ),
    syntax('{"Spieler":{"Name":"Anna",⟨}⟩}', '"}" stands here', NAME),
    syntax('{"Bauen":{"Typ":"Straße","Ort":[{"x":0,"y":0},{"x":1,"y":0},⟨]⟩}}', '"]" stands here', "a value"),
    syntax('{"Spieler":{"Name":"Anna",⟨,⟩"Farbe":"Orange"}}', '"," stands here', NAME),
    syntax('{"Spieler":{⟨,⟩"Name":"Anna"}}', '"," stands here', NAME_OR_END),
    syntax('{"Spieler":{"Name":"Anna"⟨;⟩"Farbe":"Orange"}}', '";" stands here', NEXT_OR_END),
    syntax('{"Spieler"⟨{⟩"Name":"Anna"}}', '"{" stands here', '":"'),
    syntax('{"Spieler":{"Name"⟨"⟩Anna"}}', "a quotation mark stands here", '":"'),
    syntax('{"Spieler":⟨:⟩{"Name":"Anna"}}', '":" stands here', "a value"),
    syntax('{"Spieler"⟨=⟩{"Name":"Anna"}}', '"=" stands here', '":"'),
    syntax('{"Spieler":{"Name":⟨,⟩"Farbe":"Orange"}}', '"," stands here', "a value"),
    syntax('{"Spieler":{"Name":⟨}⟩}', '"}" stands here', "a value"),
    syntax('{"Spieler":{⟨Name⟩":"Anna"}}', '"Name" stands here', NAME_OR_END),
    syntax('{"Spieler":{"Name":⟨Anna⟩"}}', '"Anna" stands here', "a value"),
    syntax('{"Spieler":{"Name":"Anna,"⟨Farbe⟩":"Orange"}}', '"Farbe" stands here', NEXT_OR_END),
    syntax('{"Spieler":{"Name:"⟨Anna⟩"}}', '"Anna" stands here', '":"'),
    syntax('{"Spieler":{"Name":"Anna}}⟨⟩', BREAKS_OFF, REST_OF_TEXT),
    syntax('{"Chatnachricht senden":{"Nachricht":"er sagt "⟨hm⟩""}}', '"hm" stands here', NEXT_OR_END),
    syntax("{⟨'⟩Spieler':{'Name':'Anna'}}", '"\'" stands here', NAME_OR_END),
    syntax('{"Spieler":{"Name":⟨\'⟩Anna\'}}', '"\'" stands here', "a value"),
    syntax("{⟨“⟩Spieler”:{}}", '"“" stands here', NAME_OR_END),
    syntax("{⟨Würfeln⟩:{}}", '"Würfeln" stands here', NAME_OR_END),
    syntax('{"Spieler":{⟨Name⟩:"Anna"}}', '"Name" stands here', NAME_OR_END),
    syntax('{"Spieler":{"Farbe":⟨Orange⟩}}', '"Orange" stands here', "a value"),
    syntax('{"Spieler":{"Name":"Anna"}⟨⟩', BREAKS_OFF, NEXT_OR_END),
    syntax('{"Spieler":{"Name":"Anna"⟨⟩', BREAKS_OFF, NEXT_OR_END),
    syntax('{"Bauen":{"Typ":"Straße","Ort":[{"x":0,"y":0⟨]⟩}}', '"]" stands here', NEXT_OR_END),
    syntax(
        '{"Bauen":{"Typ":"Straße","Ort":[{"x":0,"y":0},{"x":1,"y":0}⟨}⟩}',
        '"}" stands here',
        NEXT_OR_END_OF_LIST,
    ),
    syntax('{"Bauen":{"Typ":"Straße","Ort":⟨(⟩{"x":0,"y":0},{"x":1,"y":0})}}', '"(" stands here', "a value"),
    syntax('{"Bauen":{"Typ":"Straße","Ort":["x"⟨:⟩0,"y":0}]}}', '":" stands here', NEXT_OR_END_OF_LIST),
    syntax('{⟨⟩{"Spieler":{"Name":"Anna","Farbe":"Orange"}}', BREAKS_OFF, NAME_OR_END),
    c2s('⟨"Spieler":{"Name":"Anna"}}⟩', "no-object", "stands where a message begins", MESSAGE),
    c2s('{"Spieler":{"Name":"Anna"}}⟨}⟩', "no-object", '"}" stands where a message begins', MESSAGE),
    c2s('{"Spieler":{"Name":"Anna"}}⟨,⟩', "no-object", '"," stands where a message begins', MESSAGE),
    syntax('{"Handel annehmen":{"Handel id":7,"Annehmen":⟨True⟩}}', '"True" stands here', "a value"),
    syntax('{"Spieler":{"Name":⟨None⟩}}', '"None" stands here', "a value"),
    syntax('{"Spieler":{"Name":⟨undefined⟩}}', '"undefined" stands here', "a value"),
    syntax('{"Spieler":{"Name":⟨nul⟩}}', '"nul" stands here', "a value"),
    syntax('{"Handel annehmen":{"Handel id":⟨NaN⟩}}', '"NaN" stands here', "a value"),
    syntax('{"Handel annehmen":{"Handel id":-⟨Infinity⟩}}', '"Infinity" stands here', "a digit"),
    syntax('{"Handel annehmen":{"Handel id":0⟨7⟩}}', '"7" stands here', NEXT_OR_END),
    syntax('{"Räuber versetzen":{"Ort":{"x":⟨+⟩1,"y":-1}}}', '"+" stands here', "a value"),
    syntax('{"Räuber versetzen":{"Ort":{"x":1.⟨,⟩"y":-1}}}', '"," stands here', "a digit"),
    syntax('{"Räuber versetzen":{"Ort":{"x":1,⟨5⟩,"y":-1}}}', '"5" stands here', NAME),
    syntax('{"Handel annehmen":{"Handel id":0⟨x07⟩}}', '"x07" stands here', NEXT_OR_END),
    syntax('{"Handel annehmen":{"Handel id":3⟨+⟩4}}', '"+" stands here', NEXT_OR_END),
    syntax(
        '{"Handel annehmen":{"Handel id":⟨' + "9" * 5000 + "⟩}}", "a number is too large", "a smaller number"
    ),
    syntax('{"Würfeln":{} ⟨/⟩* los */}', '"/" stands here', NEXT_OR_END),
    syntax('{"Würfeln":{ ⟨/⟩/ los }}', '"/" stands here', NAME_OR_END),
    syntax(
        r'{"Chatnachricht senden":{"Nachricht":"a\⟨q⟩ b"}}',
        '"q" stands here',
        'one of "\\/bfnrtu after the backslash',
    ),
    syntax(
        r'{"Chatnachricht senden":{"Nachricht":"C:\⟨Spiel⟩"}}',
        '"Spiel" stands here',
        'one of "\\/bfnrtu after the backslash',
    ),
    syntax(
        r'{"Chatnachricht senden":{"Nachricht":"\ufc⟨ ⟩r"}}', '" " stands here', "four hexadecimal digits"
    ),
    syntax(
        r'{"Chatnachricht senden":{"Nachricht":"\\ud83d ⟨\ud83d⟩!"}}',
        r"\ud83d is half a character",
        "the escapes of both halves",
    ),
    syntax('{"Chatnachricht senden":{"Nachricht":"eins⟨\t⟩zwei"}}', "a tab stands here", ESCAPE),
    syntax('{"Chatnachricht senden":{"Nachricht":"eins⟨\n⟩zwei"}}', "a line feed stands here", ESCAPE),
    syntax(
        '{"Chatnachricht senden":{"Nachricht":"eins⟨\r⟩\nzwei"}}', "a carriage return stands here", ESCAPE
    ),
    syntax(
        '{"Chatnachricht senden":{"Nachricht":"eins⟨\0⟩zwei"}}', "control character 0x00 stands here", ESCAPE
    ),
    syntax('{"Würfeln":⟨\a⟩{}}', "control character 0x07 stands here", "a value"),
    syntax('{"Würfeln":⟨\N{NO-BREAK SPACE}⟩{}}', '"\N{NO-BREAK SPACE}" stands here', "a value"),
]

CHARSETS = [
    c2s('{"W⟨ü⟩rfeln":{}}', "charset", "fc is no UTF-8", "UTF-8", "latin-1"),
    c2s('{"Spieler":{"Name":"J⟨ö⟩rg","Farbe":"Orange"}}', "charset", "f6 is no UTF-8", "UTF-8", "latin-1"),
    c2s('{"Spieler":{"Name":"Ren⟨é⟩"}}', "charset", "e9 is no UTF-8", "UTF-8", "latin-1"),
    s2c('{"Chatnachricht":{"Nachricht":"Gr⟨ü⟩ße"}}', "charset", "fc is no UTF-8", "UTF-8", "latin-1"),
    c2s('{"Spieler":{"Name":"J⟨ö⟩rg"}}', "charset", "94 is no UTF-8", "UTF-8", "cp437"),
    # Half a letter, and its other half.
    c2s('{"Spieler":{"Name":"J⟨\udcc3⟩rg"}}', "charset", "c3 is no UTF-8", "UTF-8"),
    c2s('{"Spieler":{"Name":"J⟨\udcb6⟩rg"}}', "charset", "b6 is no UTF-8", "UTF-8"),
    c2s('⟨\ufeff⟩{"Zug beenden":{}}', "byte-order-mark", "a byte order mark stands before", "UTF-8 without"),
    s2c('⟨\ufeff⟩{"OK":{}}', "byte-order-mark", "a byte order mark stands before", "UTF-8 without"),
    s2c('⟨\ufeff⟩{"Ping":{}}', "byte-order-mark", "a byte order mark stands before", "UTF-8 without"),
    c2s('⟨{"Zug beenden":{}}\n⟩', "utf-16", "this looks like UTF-16", "UTF-8", "utf-16-be"),
    c2s('⟨\ufeff{"Zug beenden":{}}\n⟩', "utf-16", "this looks like UTF-16", "UTF-8", "utf-16-be"),
    c2s('⟨{"Zug beenden":{}}\n⟩', "utf-16", "this looks like UTF-16", "UTF-8", "utf-32-be"),
]

HUGE = "x" * (FRAME_LIMIT + 1000)


def too_long(direction: Direction, text: str) -> Broken:
    """A frame that goes on beyond the limit."""
    end = "the end of the message"
    return Broken(direction, marked(line(text)), "too-long", "bytes without an end", end)


TOO_LONG = [
    too_long("c2s", f'⟨{{"Chatnachricht senden":{{"Nachricht":"{HUGE}"}}}}\n⟩'),
    too_long("c2s", f"⟨{HUGE}\n⟩"),
    too_long("s2c", f'⟨{{"{HUGE}":{{}}}}\n⟩'),
    too_long("s2c", f'⟨{{"OK":{{{" " * len(HUGE)}}}}}\n⟩'),
    too_long("c2s", '⟨{"Bauen":{"Typ":"Dorf","Ort":[' + '{"x":0,"y":0},' * 80_000 + '{"x":0,"y":0}]}}\n⟩'),
]


def of_the_table() -> list[Broken]:
    """The flawed messages of the table of cases."""
    return [
        Broken(case.direction, Marked(case.data, [(offset, length)]), code, "$", "")
        for case in FLAWED
        for code, offset, length in case.flaws
    ]


IN_PARTS: list[tuple[Direction, str, list[tuple[str, int, int]]]] = [
    (
        "s2c",
        '[{"OK":{}},{"OK":{}}]\n',
        [("no-object", 0, 1), ("no-object", 10, 1), ("no-object", 20, 1)],
    ),
    (
        "c2s",
        '{\n  "Spieler": {\n    "Name": "Anna"\n    "Farbe": "Orange"\n  }\n}\n',
        [("broken-json", 40, 1), ("no-object", 60, 1), ("no-object", 62, 1)],
    ),
    (
        "c2s",
        "{\0}\0\n\0",
        [("utf-16", 0, 5), ("no-object", 5, 1)],
    ),
    (
        "c2s",
        "Würfeln\nZug beenden\n",
        [("no-object", 0, 8), ("no-object", 9, 11)],
    ),
]
"""What is no object takes a line at the most, and no message that can be read: these are told in parts."""

HAND = [*MESSAGE_NAMES, *STRUCTURE, *ATTRIBUTES, *VALUES, *SYNTAX, *CHARSETS, *TOO_LONG]
