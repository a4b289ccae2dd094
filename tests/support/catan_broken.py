"""Table of malformed Catan messages, with the exact bytes of each expected diagnostic.

One message of the conversation in `catan_talk.py` is replaced by one with an error between ⟨ and ⟩.
"""

from __future__ import annotations

from typing import NamedTuple

from catan_cases import DORF_TEXT, MALFORMED, STRASSE_TEXT, Marked, line, marked
from catan_talk import conversation
from tables import rows_of

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
BREAKS_OFF = "the message ends too early"


class Broken(NamedTuple):
    """A message with one error and its expected diagnostic: `says` is a part of the text."""

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
        """The message of the conversation to replace: the first of the same name, if there is one."""
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
    return Broken("c2s", marked(line(text), charset), code, says, expected)


def s2c(text: str, code: str, says: str, expected: str, charset: str = "utf-8") -> Broken:
    return Broken("s2c", marked(line(text), charset), code, says, expected)


def name_of_client(text: str, says: str) -> Broken:
    return c2s(text, "unknown-message", says, OF_A_CLIENT)


def name_of_server(text: str, says: str) -> Broken:
    return s2c(text, "unknown-message", says, OF_A_SERVER)


def value(direction: Direction, text: str, says: str, expected: str) -> Broken:
    """Return a message with an invalid value."""
    return Broken(direction, marked(line(text)), "bad-value", says, expected)


def syntax(text: str, says: str, expected: str) -> Broken:
    """Return a client's message that is no JSON."""
    return c2s(text, "broken-json", says, expected)


def rows(table: str) -> list[Broken]:
    """Return the cases of a table, a row each: direction, code, message; part of the text; expectation.

    Expectations may be called by their names here, as may be places. An indented line continues its row.
    """
    found = []
    for row in rows_of(table, " | "):
        sent, says, expected = row.split(" | ")
        direction, code, text = sent.split(" ", 2)
        text = text.replace("DORF", DORF_TEXT).replace("STRASSE", STRASSE_TEXT)
        make = c2s if direction == "c2s" else s2c
        found.append(make(text, code, says, str(globals().get(expected, expected))))
    return found


MESSAGE_NAMES = [
    *rows("""
c2s unknown-message {⟨"Wurfeln"⟩:{}}
    "Wurfeln" is not a message that a client sends: did you mean "Würfeln"? | OF_A_CLIENT
c2s unknown-message {⟨"Würfel"⟩:{}} | : did you mean "Würfeln"? | OF_A_CLIENT
c2s unknown-message {⟨"Zug beeenden"⟩:{}} | : did you mean "Zug beenden"? | OF_A_CLIENT
c2s unknown-message {⟨"Buaen"⟩:{}} | : did you mean "Bauen"? | OF_A_CLIENT
c2s unknown-message {⟨"WÜRFELN"⟩:{}} | : did you mean "Würfeln"? | OF_A_CLIENT
c2s unknown-message {⟨"hallo"⟩:{"Version":"x"}} | : did you mean "Hallo"? | OF_A_CLIENT
c2s unknown-message {⟨"Würfeln "⟩:{}} | : did you mean "Würfeln"? | OF_A_CLIENT
c2s unknown-message {⟨"Zug_beenden"⟩:{}} | : did you mean "Zug beenden"? | OF_A_CLIENT
c2s unknown-message {⟨"SpielStarten"⟩:{}} | : did you mean "Spiel starten"? | OF_A_CLIENT
c2s unknown-message {⟨"Entwicklungskarten kaufen"⟩:{}}
    : did you mean "Entwicklungskarte kaufen"? | OF_A_CLIENT
c2s unknown-message {⟨"Handel abschlißen"⟩:{"Handel id":0,"Mitspieler":2}}
    : did you mean "Handel abschließen"? | OF_A_CLIENT
s2c unknown-message {⟨"Statusudate"⟩:{"Spieler":{"id":1}}} | : did you mean "Statusupdate"? | OF_A_SERVER
s2c unknown-message {⟨"Wurfelwurf"⟩:{"Spieler":1,"Wurf":[1,2]}} | : did you mean "Würfelwurf"? | OF_A_SERVER
s2c unknown-message {⟨"ok"⟩:{}} | : did you mean "OK"? | OF_A_SERVER
s2c unknown-message {⟨"Laengste Handelstrasse"⟩:{}} | : did you mean "Längste Handelsstraße"? | OF_A_SERVER
s2c unknown-message {⟨"Handelsangebot abgebrochn"⟩:{"Spieler":1,"Handel id":7}}
    : did you mean "Handelsangebot abgebrochen"? | OF_A_SERVER
c2s unknown-message {⟨"Chatnachricht"⟩:{"Absender":1,"Nachricht":"hm"}}
    not a message that a client sends, but a server | OF_A_CLIENT
c2s unknown-message {⟨"OK"⟩:{}} | not a message that a client sends, but a server | OF_A_CLIENT
c2s unknown-message {⟨"Würfelwurf"⟩:{"Spieler":1,"Wurf":[6,6]}}
    not a message that a client sends, but a server | OF_A_CLIENT
c2s unknown-message {⟨"Bauvorgang"⟩:{"Gebäude":{"Eigentümer":1,"Typ":"Dorf","Ort":DORF}}}
    not a message that a client sends, but a server | OF_A_CLIENT
s2c unknown-message {⟨"Spieler"⟩:{"Name":"Anna","Farbe":"Rot"}}
    not a message that a server sends, but a client | OF_A_SERVER
s2c unknown-message {⟨"Würfeln"⟩:{}} | not a message that a server sends, but a client | OF_A_SERVER
s2c unknown-message {⟨"Bauen"⟩:{"Typ":"Dorf","Ort":DORF}}
    not a message that a server sends, but a client | OF_A_SERVER
    """),
    name_of_client(r'{⟨"W\u00fcrfln"⟩:{}}', meant("Würfeln")),
    name_of_client('{⟨"Ping"⟩:{}}', '"Ping" is not a message that a client sends')._replace(
        severity="warning"
    ),
    name_of_client('{⟨""⟩:{}}', '"" is not a message that a client sends')._replace(severity="warning"),
    name_of_server('{⟨"Weather"⟩:{"sunny":true}}', '"Weather" is not a message that a server sends')._replace(
        severity="warning"
    ),
]

STRUCTURE = [
    *rows("""
c2s not-one-message {"Würfeln":{},⟨"Zug beenden"⟩:{}} | "Zug beenden" is in the same object as "Würfeln" | ONE
c2s not-one-message {"Spieler":{"Name":"Anna"},⟨"Farbe"⟩:"Rot"}
    "Farbe" is in the same object as "Spieler" | ONE
c2s not-one-message {⟨"Typ"⟩:"Dorf","Ort":[]} | "Typ" is in the same object as "Ort" | ONE
s2c not-one-message {"OK":{},⟨"Fehler"⟩:{"Meldung":"x"}} | "Fehler" is in the same object as "OK" | ONE
s2c not-one-message {"OK":{},⟨"id"⟩:7} | "id" is in the same object as "OK" | ONE
c2s not-one-message ⟨{}⟩ | this object contains no message | ONE
c2s no-object ⟨["Würfeln",{}]⟩ | is not the beginning of a message | MESSAGE
s2c no-object ⟨[]⟩ | [] is not the beginning of a message | MESSAGE
c2s no-object ⟨"Würfeln"⟩ | "Würfeln" is not the beginning of a message | MESSAGE
c2s no-object ⟨42⟩ | 42 is not the beginning of a message | MESSAGE
c2s no-object ⟨null⟩ | null is not the beginning of a message | MESSAGE
c2s no-object ⟨true⟩ | true is not the beginning of a message | MESSAGE
c2s no-object ⟨Würfeln⟩ | "Würfeln" is not the beginning of a message | MESSAGE
c2s no-object ⟨!NAME⟩ | "!NAME" is not the beginning | MESSAGE
c2s bad-value {"Würfeln":⟨null⟩} | $.Würfeln: null is not an object | {}
c2s bad-value {"Zug beenden":⟨[]⟩} | $["Zug beenden"]: [] is not an object | {}
c2s bad-value {"Chatnachricht senden":⟨"hallo"⟩}
    $["Chatnachricht senden"]: "hallo" is not an object | {"Nachricht":…}
s2c bad-value {"Willkommen":⟨42⟩} | $.Willkommen: 42 is not an object | {"id":…}
s2c bad-value {"Ertrag":⟨[1,{"Holz":1}]⟩} | $.Ertrag: [1, | {"Spieler":…,"Rohstoffe":…}
s2c bad-value {"Serverantwort":⟨{"Meldung":"OK"}⟩} | $.Serverantwort: {"Meldung":"OK"} is not a text | text
s2c bad-value {"OK":⟨true⟩} | $.OK: true is not an object | {}
s2c bad-value {"Willkommen":{"id":⟨{"id":1}⟩}}
    $.Willkommen.id: {"id":1} is not a whole number | a positive number
s2c bad-value {"Statusupdate":{"Spieler":⟨2⟩}}
    $.Statusupdate.Spieler: 2 is not an object | {"id":…,"Farbe":…
s2c bad-value {"Spiel gestartet":{"Karte":⟨[]⟩}}
    $["Spiel gestartet"].Karte: [] is not an object | {"Felder":…
s2c missing-attribute {"Statusupdate":⟨{"id":2,"Status":"Warten"}⟩}
    $.Statusupdate: there is no "Spieler" among 2 attributes | "Spieler":…
s2c missing-attribute {"Bauvorgang":⟨{"Eigentümer":1,"Typ":"Dorf","Ort":DORF}⟩}
    $.Bauvorgang: there is no "Gebäude" among 3 | "Gebäude":…
c2s missing-attribute {"Räuber versetzen":⟨{"x":0,"y":1}⟩}
    $["Räuber versetzen"]: there is no "Ort" among 2 | "Ort":…
    """),
    c2s("⟨GET / HTTP/1.1⟩\r\n", "no-object", '"GET / HTTP/1.1" is not the beginning', MESSAGE),
    value(
        "c2s",
        '{"Chatnachricht senden":{"Nachricht":⟨' + "[" * 65 + "]" * 65 + "⟩}}",
        '$["Chatnachricht senden"].Nachricht: [[[',
        "text",
    ),
    syntax(
        '{"Würfeln":' + "[" * 63 + "⟨[⟩" + "[" * 100_000 + "]" * 100_064 + "}",
        '"[" is unexpected here',
        "no more than 64 objects and lists inside each other",
    ),
]

ATTRIBUTES = [
    *rows("""
c2s unknown-attribute {"Chatnachricht senden":{⟨"nachricht"⟩:"hm"}}
    : did you mean "Nachricht"? | "Nachricht":…
c2s unknown-attribute {"Bauen":{⟨"Type"⟩:"Dorf","Ort":DORF}}
    $.Bauen.Type: "Type" is not an attribute here: did you mean "Typ"? | "Typ":…
c2s unknown-attribute {"Bauen":{"Typ":"Dorf",⟨"Orte"⟩:DORF}} | : did you mean "Ort"? | "Ort":…
c2s unknown-attribute {"Räuber versetzen":{"Ort":{⟨"X"⟩:0,"y":1}}}
    $["Räuber versetzen"].Ort.X: "X" is not an attribute here: did you mean "x"? | "x":…
c2s unknown-attribute {"Handel annehmen":{⟨"HandelID"⟩:7}} | : did you mean "Handel id"? | "Handel id":…
c2s unknown-attribute {"Spieler":{"Name":"Anna",⟨"farbe"⟩:"Orange"}} | : did you mean "Farbe"? | "Farbe":…
s2c unknown-attribute {"Bauvorgang":{"Gebäude":{⟨"Eigentumer"⟩:1,"Typ":"Dorf","Ort":DORF}}}
    : did you mean "Eigentümer"? | "Eigentümer":…
c2s missing-attribute {"Hallo":⟨{}⟩} | $.Hallo: there is no "Version" | "Version":…
s2c missing-attribute {"Hallo":⟨{"Version":"x"}⟩}
    $.Hallo: there is no "Protokoll" among 1 attribute | "Protokoll":…
c2s missing-attribute {"Bauen":⟨{"Ort":DORF}⟩} | $.Bauen: there is no "Typ" among 1 | "Typ":…
c2s missing-attribute {"Bauen":⟨{"Typ":"Dorf"}⟩} | $.Bauen: there is no "Ort" among 1 | "Ort":…
c2s missing-attribute {"Handel abschließen":⟨{"Handel id":7}⟩}
    there is no "Mitspieler" among 1 | "Mitspieler":…
s2c missing-attribute {"Handelsangebot":⟨{"Spieler":1,"Angebot":{"Erz":1},"Nachfrage":{"Lehm":1}}⟩}
    $.Handelsangebot: there is no "Handel id" among 3 attributes | "Handel id":…
c2s missing-attribute {"Räuber versetzen":{"Ort":⟨{"x":1}⟩}}
    $["Räuber versetzen"].Ort: there is no "y" among 1 | "y":…
c2s missing-attribute {"Bauen":{"Typ":"Straße","Ort":[{"x":-2,"y":0},⟨{"x":-1}⟩]}}
    $.Bauen.Ort[1]: there is no "y" | "y":…
s2c missing-attribute {"Würfelwurf":⟨{"Spieler":1}⟩} | $.Würfelwurf: there is no "Wurf" | "Wurf":…
s2c missing-attribute {"Fehler":⟨{}⟩} | $.Fehler: there is no "Meldung" | "Meldung":…
s2c twice {"Bauvorgang":{"Gebäude":{"Eigentümer":1,⟨"Eigentuemer"⟩:1,"Typ":"Dorf","Ort":DORF}}}
    $.Bauvorgang.Gebäude.Eigentuemer: "Eigentümer" is given twice | {"Eigentümer":…
    """),
    c2s(
        '{"Chatnachricht senden":{⟨"Nachrich"⟩:"hm"}}',
        "unknown-attribute",
        '$["Chatnachricht senden"].Nachrich: "Nachrich" is not an attribute here' + meant("Nachricht"),
        '"Nachricht":…',
    ),
    c2s(
        '{"Handel abschließen":{⟨"Handel_id"⟩:7,"Mitspieler":2}}',
        "unknown-attribute",
        '$["Handel abschließen"].Handel_id: ',
        '"Handel id":…',
    ),
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
]

VALUES = [
    *rows("""
c2s bad-value {"Räuber versetzen":{"Ort":⟨"1,-1"⟩}} | $["Räuber versetzen"].Ort: "1,-1" is not a place | PLACE
c2s bad-value {"Räuber versetzen":{"Ort":⟨[1,-1]⟩}} | Ort: [1,-1] is not a place | PLACE
c2s bad-value {"Bauen":{"Typ":"Straße","Ort":[{"x":-2,"y":0},{"x":⟨"-1"⟩,"y":0}]}}
    $.Bauen.Ort[1].x: "-1" is not a whole number | WHOLE
c2s bad-value {"Bauen":{"Typ":"Straße","Ort":[{"x":-2,"y":⟨0.5⟩},{"x":-1,"y":0}]}}
    $.Bauen.Ort[0].y: 0.5 is not a whole number | WHOLE
c2s bad-value {"Bauen":{"Typ":"Straße","Ort":[{"x":-2,"y":0},{"x":-1,"y":⟨null⟩}]}}
    $.Bauen.Ort[1].y: null is not a whole number | WHOLE
c2s bad-value {"Räuber versetzen":{"Ort":{"x":⟨99999⟩,"y":0}}}
    .Ort.x: 99999 is not from -1000 to 1000 | WHOLE
c2s bad-value {"Bauen":{"Typ":"Straße","Ort":⟨DORF⟩}}
    $.Bauen.Ort: Straße needs 2 fields, not 3 | two places
c2s bad-value {"Bauen":{"Typ":"Dorf","Ort":⟨STRASSE⟩}}
    $.Bauen.Ort: Dorf needs 3 fields, not 2 | three places
c2s bad-value {"Bauen":{"Typ":"Stadt","Ort":⟨STRASSE⟩}}
    $.Bauen.Ort: Stadt needs 3 fields, not 2 | three places
c2s bad-value {"Bauen":{"Typ":"Dorf","Ort":⟨[{"x":0,"y":0}]⟩}}
    $.Bauen.Ort: there are 1 places | two places or three places
c2s bad-value {"Bauen":{"Typ":"Dorf","Ort":⟨[]⟩}}
    $.Bauen.Ort: there are 0 places | two places or three places
c2s bad-value {"Bauen":{"Typ":"Dorf","Ort":⟨{"x":0,"y":0}⟩}}
    $.Bauen.Ort: {"x":0,"y":0} is not a list | two places or three places
c2s bad-value {"Straßenbaukarte ausspielen":{"Straße 1":STRASSE,"Straße 2":⟨DORF⟩}}
    $["Straßenbaukarte ausspielen"]["Straße 2"]: there are 3 places | two places
s2c bad-value {"Bauvorgang":{"Gebäude":{"Eigentümer":1,"Typ":"Straße","Ort":⟨DORF⟩}}}
    $.Bauvorgang.Gebäude.Ort: Straße needs 2 fields | two places
c2s bad-value {"Bauen":{"Typ":⟨"Burg"⟩,"Ort":DORF}} | $.Bauen.Typ: "Burg" is not known here | BUILDINGS
c2s bad-value {"Bauen":{"Typ":⟨"Strase"⟩,"Ort":STRASSE}}
    $.Bauen.Typ: "Strase" is not known here: did you mean "Straße"? | BUILDINGS
c2s bad-value {"Bauen":{"Typ":⟨"dorf"⟩,"Ort":DORF}} | : did you mean "Dorf"? | BUILDINGS
c2s bad-value {"Bauen":{"Typ":⟨null⟩,"Ort":DORF}} | $.Bauen.Typ: null is not known here | BUILDINGS
c2s bad-value {"Spieler":{"Name":"Anna","Farbe":⟨"Lila"⟩}}
    $.Spieler.Farbe: "Lila" is not known here | COLOURS
c2s bad-value {"Spieler":{"Name":"Anna","Farbe":⟨"Blue"⟩}}
    $.Spieler.Farbe: "Blue" is not known here | COLOURS
c2s bad-value {"Spieler":{"Name":"Anna","Farbe":⟨"orange"⟩}} | : did you mean "Orange"? | COLOURS
c2s bad-value {"Spieler":{"Name":"Anna","Farbe":⟨16711680⟩}}
    $.Spieler.Farbe: 16711680 is not known here | COLOURS
c2s bad-value {"Spieler":{"Name":⟨4711⟩,"Farbe":"Orange"}} | $.Spieler.Name: 4711 is not a text | text
c2s bad-value {"Chatnachricht senden":{"Nachricht":⟨["hm"]⟩}} | .Nachricht: ["hm"] is not a text | text
c2s bad-value {"Chatnachricht senden":{"Nachricht":⟨null⟩}} | .Nachricht: null is not a text | text
s2c bad-value {"Statusupdate":{"Spieler":{"id":⟨"1"⟩,"Status":"Warten"}}}
    $.Statusupdate.Spieler.id: "1" is not a whole number | PLAYER
s2c bad-value {"Statusupdate":{"Spieler":{"id":1,"Größte Rittermacht":⟨"true"⟩}}}
    $.Statusupdate.Spieler["Größte Rittermacht"]: "true" is neither true nor false | true or false
s2c bad-value {"Statusupdate":{"Spieler":{"id":1,"Längste Handelsstraße":⟨1⟩}}}
    1 is neither true nor false | true or false
s2c bad-value {"Statusupdate":{"Spieler":{"id":⟨null⟩,"Status":"Warten"}}}
    .id: null is not a whole number | PLAYER
s2c bad-value {"Willkommen":{"id":⟨-1⟩}}
    $.Willkommen.id: -1 is not from 0 to 2147483647 | a positive number
s2c bad-value {"Willkommen":{"id":⟨2147483648⟩}}
    $.Willkommen.id: 2147483648 is not from 0 | a positive number
s2c bad-value {"Willkommen":{"id":⟨1.0⟩}} | $.Willkommen.id: 1.0 is not a whole number | a positive number
s2c bad-value {"Willkommen":{"id":⟨1e0⟩}} | $.Willkommen.id: 1.0 is not a whole number | a positive number
s2c bad-value {"Willkommen":{"id":⟨true⟩}} | $.Willkommen.id: true is not a whole number | a positive number
s2c bad-value {"Hallo":{"Version":"x","Protokoll":⟨1.0⟩}} | $.Hallo.Protokoll: 1.0 is not | "1.0"
s2c bad-value {"Würfelwurf":{"Spieler":1,"Wurf":⟨11⟩}} | $.Würfelwurf.Wurf: 11 is not a list | two dice
s2c bad-value {"Würfelwurf":{"Spieler":1,"Wurf":⟨[6,5,1]⟩}}
    $.Würfelwurf.Wurf: there are 3 values | two dice
s2c bad-value {"Würfelwurf":{"Spieler":1,"Wurf":[⟨7⟩,4]}}
    $.Würfelwurf.Wurf[0]: 7 is not from 1 to 6 | pips from 1 to 6
s2c bad-value {"Würfelwurf":{"Spieler":1,"Wurf":[6,⟨"5"⟩]}}
    $.Würfelwurf.Wurf[1]: "5" is not a whole number | pips from 1 to 6
s2c bad-value {"Ertrag":{"Spieler":3,"Rohstoffe":{"Holz":⟨"2"⟩,"Wolle":1}}}
    $.Ertrag.Rohstoffe.Holz: "2" is not a whole number | WHOLE
s2c bad-value {"Ertrag":{"Spieler":3,"Rohstoffe":{"Holz":⟨2.0⟩,"Wolle":1}}}
    $.Ertrag.Rohstoffe.Holz: 2.0 is not a whole number | WHOLE
s2c bad-value {"Ertrag":{"Spieler":3,"Rohstoffe":{"Holz":2,"Wolle":⟨null⟩}}}
    $.Ertrag.Rohstoffe.Wolle: null is not a whole number | WHOLE
s2c bad-value {"Ertrag":{"Spieler":3,"Rohstoffe":⟨["Holz","Wolle"]⟩}}
    $.Ertrag.Rohstoffe: ["Holz","Wolle"] is not a count | RESOURCES
s2c bad-value {"Spiel gestartet":{"Karte":{"Felder":[{"Ort":{"x":0,"y":0},"Typ":"Wald","Zahl":⟨13⟩}]}}}
    $["Spiel gestartet"].Karte.Felder[0].Zahl: 13 is not from 0 to 12 | a number from 2 to 12
s2c unknown-kind {"Ertrag":{"Spieler":3,"Rohstoffe":{⟨"Gold"⟩:2}}}
    $.Ertrag.Rohstoffe.Gold: "Gold" is not known here | RESOURCES
c2s unknown-kind {"Handel anbieten":{"Angebot":{⟨"Ertz"⟩:1},"Nachfrage":{"Lehm":1}}}
    $["Handel anbieten"].Angebot.Ertz: "Ertz" is not known here: did you mean "Erz"? | OPEN
c2s unknown-kind {"Handel anbieten":{"Angebot":{"Erz":1},"Nachfrage":{⟨"lehm"⟩:1}}}
    : did you mean "Lehm"? | OPEN
c2s unknown-kind {"Karten abgeben":{"Abgeben":{⟨"Unbekannt"⟩:4}}} | "Unbekannt" is not known here | OPEN
c2s bad-value {"Handel anbieten":{"Angebot":{"Erz":⟨-1⟩},"Nachfrage":{"Lehm":1}}}
    $["Handel anbieten"].Angebot.Erz: -1 is not from 0 to 2147483647 | a count
c2s bad-value {"Seehandel":{"Angebot":{"Erz":4},"Nachfrage":{"Lehm":⟨-3⟩}}}
    $.Seehandel.Nachfrage.Lehm: -3 is not from 0 | a count
c2s bad-value {"Karten abgeben":{"Abgeben":{"Erz":⟨-4⟩}}}
    $["Karten abgeben"].Abgeben.Erz: -4 is not from 0 | a count
c2s bad-value {"Erfindung":{"Rohstoffe":⟨2⟩}} | $.Erfindung.Rohstoffe: 2 is not an object | OPEN
c2s bad-value {"Handel anbieten":{"Angebot":⟨"Erz"⟩,"Nachfrage":{"Lehm":1}}}
    .Angebot: "Erz" is not an object | OPEN
c2s bad-value {"Monopol":{"Rohstoff":⟨"Gold"⟩}} | $.Monopol.Rohstoff: "Gold" is not known here | KINDS
c2s bad-value {"Monopol":{"Rohstoff":⟨{"Holz":1}⟩}}
    $.Monopol.Rohstoff: {"Holz":1} is not known here | KINDS
c2s bad-value {"Handel abschließen":{"Handel id":7,"Mitspieler":⟨"Bärta"⟩}}
    .Mitspieler: "Bärta" is not a whole number | PLAYER
c2s bad-value {"Räuber versetzen":{"Ort":{"x":1,"y":-1},"Ziel":⟨-1⟩}} | .Ziel: -1 is not from 0 | PLAYER
c2s bad-value {"Handel annehmen":{"Handel id":7,"Annehmen":⟨"ja"⟩}}
    .Annehmen: "ja" is neither true nor false | true or false
    """),
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
]

SYNTAX = [
    *rows("""
c2s broken-json {"Spieler":{"Name":"Anna"⟨"⟩Farbe":"Orange"}}
    a quotation mark is unexpected here | NEXT_OR_END
c2s broken-json {"Bauen":{"Typ":"Straße","Ort":[{"x":0,"y":0}⟨{⟩"x":1,"y":0}]}}
    "{" is unexpected here | NEXT_OR_END_OF_LIST
c2s broken-json {"Spieler":{"Name":"Anna",⟨}⟩} | "}" is unexpected here | NAME
c2s broken-json {"Bauen":{"Typ":"Straße","Ort":[{"x":0,"y":0},{"x":1,"y":0},⟨]⟩}}
    "]" is unexpected here | a value
c2s broken-json {"Spieler":{"Name":"Anna",⟨,⟩"Farbe":"Orange"}} | "," is unexpected here | NAME
c2s broken-json {"Spieler":{⟨,⟩"Name":"Anna"}} | "," is unexpected here | NAME_OR_END
c2s broken-json {"Spieler":{"Name":"Anna"⟨;⟩"Farbe":"Orange"}} | ";" is unexpected here | NEXT_OR_END
c2s broken-json {"Spieler"⟨{⟩"Name":"Anna"}} | "{" is unexpected here | ":"
c2s broken-json {"Spieler":{"Name"⟨"⟩Anna"}} | a quotation mark is unexpected here | ":"
c2s broken-json {"Spieler":⟨:⟩{"Name":"Anna"}} | ":" is unexpected here | a value
c2s broken-json {"Spieler"⟨=⟩{"Name":"Anna"}} | "=" is unexpected here | ":"
c2s broken-json {"Spieler":{"Name":⟨,⟩"Farbe":"Orange"}} | "," is unexpected here | a value
c2s broken-json {"Spieler":{"Name":⟨}⟩} | "}" is unexpected here | a value
c2s broken-json {"Spieler":{⟨Name⟩":"Anna"}} | "Name" is unexpected here | NAME_OR_END
c2s broken-json {"Spieler":{"Name":⟨Anna⟩"}} | "Anna" is unexpected here | a value
c2s broken-json {"Spieler":{"Name":"Anna,"⟨Farbe⟩":"Orange"}} | "Farbe" is unexpected here | NEXT_OR_END
c2s broken-json {"Spieler":{"Name:"⟨Anna⟩"}} | "Anna" is unexpected here | ":"
c2s broken-json {"Spieler":{"Name":"Anna}}⟨⟩ | the message ends too early | REST_OF_TEXT
c2s broken-json {"Chatnachricht senden":{"Nachricht":"er sagt "⟨hm⟩""}}
    "hm" is unexpected here | NEXT_OR_END
c2s broken-json {⟨'⟩Spieler':{'Name':'Anna'}} | "'" is unexpected here | NAME_OR_END
c2s broken-json {"Spieler":{"Name":⟨'⟩Anna'}} | "'" is unexpected here | a value
c2s broken-json {⟨“⟩Spieler”:{}} | "“" is unexpected here | NAME_OR_END
c2s broken-json {⟨Würfeln⟩:{}} | "Würfeln" is unexpected here | NAME_OR_END
c2s broken-json {"Spieler":{⟨Name⟩:"Anna"}} | "Name" is unexpected here | NAME_OR_END
c2s broken-json {"Spieler":{"Farbe":⟨Orange⟩}} | "Orange" is unexpected here | a value
c2s broken-json {"Spieler":{"Name":"Anna"}⟨⟩ | the message ends too early | NEXT_OR_END
c2s broken-json {"Spieler":{"Name":"Anna"⟨⟩ | the message ends too early | NEXT_OR_END
c2s broken-json {"Bauen":{"Typ":"Straße","Ort":[{"x":0,"y":0⟨]⟩}} | "]" is unexpected here | NEXT_OR_END
c2s broken-json {"Bauen":{"Typ":"Straße","Ort":[{"x":0,"y":0},{"x":1,"y":0}⟨}⟩}
    "}" is unexpected here | NEXT_OR_END_OF_LIST
c2s broken-json {"Bauen":{"Typ":"Straße","Ort":⟨(⟩{"x":0,"y":0},{"x":1,"y":0})}}
    "(" is unexpected here | a value
c2s broken-json {"Bauen":{"Typ":"Straße","Ort":["x"⟨:⟩0,"y":0}]}}
    ":" is unexpected here | NEXT_OR_END_OF_LIST
c2s broken-json {⟨⟩{"Spieler":{"Name":"Anna","Farbe":"Orange"}} | the message ends too early | NAME_OR_END
c2s no-object ⟨"Spieler":{"Name":"Anna"}}⟩ | is not the beginning of a message | MESSAGE
c2s no-object {"Spieler":{"Name":"Anna"}}⟨}⟩ | "}" is not the beginning of a message | MESSAGE
c2s no-object {"Spieler":{"Name":"Anna"}}⟨,⟩ | "," is not the beginning of a message | MESSAGE
c2s broken-json {"Handel annehmen":{"Handel id":7,"Annehmen":⟨True⟩}} | "True" is unexpected here | a value
c2s broken-json {"Spieler":{"Name":⟨None⟩}} | "None" is unexpected here | a value
c2s broken-json {"Spieler":{"Name":⟨undefined⟩}} | "undefined" is unexpected here | a value
c2s broken-json {"Spieler":{"Name":⟨nul⟩}} | "nul" is unexpected here | a value
c2s broken-json {"Handel annehmen":{"Handel id":⟨NaN⟩}} | "NaN" is unexpected here | a value
c2s broken-json {"Handel annehmen":{"Handel id":-⟨Infinity⟩}} | "Infinity" is unexpected here | a digit
c2s broken-json {"Handel annehmen":{"Handel id":0⟨7⟩}} | "7" is unexpected here | NEXT_OR_END
c2s broken-json {"Räuber versetzen":{"Ort":{"x":⟨+⟩1,"y":-1}}} | "+" is unexpected here | a value
c2s broken-json {"Räuber versetzen":{"Ort":{"x":1.⟨,⟩"y":-1}}} | "," is unexpected here | a digit
c2s broken-json {"Räuber versetzen":{"Ort":{"x":1,⟨5⟩,"y":-1}}} | "5" is unexpected here | NAME
c2s broken-json {"Handel annehmen":{"Handel id":0⟨x07⟩}} | "x07" is unexpected here | NEXT_OR_END
c2s broken-json {"Handel annehmen":{"Handel id":3⟨+⟩4}} | "+" is unexpected here | NEXT_OR_END
c2s broken-json {"Würfeln":{} ⟨/⟩* los */} | "/" is unexpected here | NEXT_OR_END
c2s broken-json {"Würfeln":{ ⟨/⟩/ los }} | "/" is unexpected here | NAME_OR_END
    """),
    syntax(
        '{"Handel annehmen":{"Handel id":⟨' + "9" * 5000 + "⟩}}", "a number is too large", "a smaller number"
    ),
    syntax(
        r'{"Chatnachricht senden":{"Nachricht":"a\⟨q⟩ b"}}',
        '"q" is unexpected here',
        'one of "\\/bfnrtu after the backslash',
    ),
    syntax(
        r'{"Chatnachricht senden":{"Nachricht":"C:\⟨Spiel⟩"}}',
        '"Spiel" is unexpected here',
        'one of "\\/bfnrtu after the backslash',
    ),
    syntax(
        r'{"Chatnachricht senden":{"Nachricht":"\ufc⟨ ⟩r"}}',
        '" " is unexpected here',
        "four hexadecimal digits",
    ),
    syntax(
        r'{"Chatnachricht senden":{"Nachricht":"\\ud83d ⟨\ud83d⟩!"}}',
        r"\ud83d is half of a surrogate pair",
        "the escapes of both halves",
    ),
    syntax('{"Chatnachricht senden":{"Nachricht":"eins⟨\t⟩zwei"}}', "a tab is unexpected here", ESCAPE),
    syntax('{"Chatnachricht senden":{"Nachricht":"eins⟨\n⟩zwei"}}', "a line feed is unexpected here", ESCAPE),
    syntax(
        '{"Chatnachricht senden":{"Nachricht":"eins⟨\r⟩\nzwei"}}',
        "a carriage return is unexpected here",
        ESCAPE,
    ),
    syntax(
        '{"Chatnachricht senden":{"Nachricht":"eins⟨\0⟩zwei"}}',
        "control character 0x00 is unexpected here",
        ESCAPE,
    ),
    syntax('{"Würfeln":⟨\a⟩{}}', "control character 0x07 is unexpected here", "a value"),
    syntax('{"Würfeln":⟨\N{NO-BREAK SPACE}⟩{}}', '"\N{NO-BREAK SPACE}" is unexpected here', "a value"),
]

CHARSETS = [
    c2s('{"W⟨ü⟩rfeln":{}}', "charset", "fc is not UTF-8", "UTF-8", "latin-1"),
    c2s('{"Spieler":{"Name":"J⟨ö⟩rg","Farbe":"Orange"}}', "charset", "f6 is not UTF-8", "UTF-8", "latin-1"),
    c2s('{"Spieler":{"Name":"Ren⟨é⟩"}}', "charset", "e9 is not UTF-8", "UTF-8", "latin-1"),
    s2c('{"Chatnachricht":{"Nachricht":"Gr⟨ü⟩ße"}}', "charset", "fc is not UTF-8", "UTF-8", "latin-1"),
    c2s('{"Spieler":{"Name":"J⟨ö⟩rg"}}', "charset", "94 is not UTF-8", "UTF-8", "cp437"),
    # Half a letter, and its other half.
    c2s('{"Spieler":{"Name":"J⟨\udcc3⟩rg"}}', "charset", "c3 is not UTF-8", "UTF-8"),
    c2s('{"Spieler":{"Name":"J⟨\udcb6⟩rg"}}', "charset", "b6 is not UTF-8", "UTF-8"),
    c2s('⟨\ufeff⟩{"Zug beenden":{}}', "byte-order-mark", "a byte order mark precedes", "UTF-8 without"),
    s2c('⟨\ufeff⟩{"OK":{}}', "byte-order-mark", "a byte order mark precedes", "UTF-8 without"),
    s2c('⟨\ufeff⟩{"Ping":{}}', "byte-order-mark", "a byte order mark precedes", "UTF-8 without"),
    c2s('⟨{"Zug beenden":{}}\n⟩', "utf-16", "this looks like UTF-16", "UTF-8", "utf-16-be"),
    c2s('⟨\ufeff{"Zug beenden":{}}\n⟩', "utf-16", "this looks like UTF-16", "UTF-8", "utf-16-be"),
    c2s('⟨{"Zug beenden":{}}\n⟩', "utf-16", "this looks like UTF-16", "UTF-8", "utf-32-be"),
]

HUGE = "x" * (FRAME_LIMIT + 1000)


def too_long(direction: Direction, text: str) -> Broken:
    """Return a frame longer than the limit."""
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
    """Return the malformed messages of the table of cases."""
    return [
        Broken(case.direction, Marked(case.data, [(offset, length)]), code, "$", "")
        for case in MALFORMED
        for code, offset, length in case.diagnostics
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
"""Bytes that are no object, reported in parts: each of at most a line, without a readable message."""

HAND = [*MESSAGE_NAMES, *STRUCTURE, *ATTRIBUTES, *VALUES, *SYNTAX, *CHARSETS, *TOO_LONG]
