"""Table of Catan's messages with their fields and diagnostics, with the exact bytes of each.

A message is written as it is sent. The marks ⟨ and ⟩ surround the bytes that a diagnostic is about; they are
not
sent.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from cases import Case
from tables import rows_of

from kiebitz.dissectors.model import Direction


class Marked(NamedTuple):
    """A text without its marks, and the marked parts, in the order in which they open."""

    data: bytes
    places: list[tuple[int, int]]


def marked(text: str, charset: str = "utf-8") -> Marked:
    r"""Return the bytes of a text, and offset and length of its marked parts; "\udcff" is the byte 0xff."""
    data = b""
    places: list[tuple[int, int]] = []
    opened: list[int] = []
    for part in re.split("([⟨⟩])", text):
        if part == "⟨":
            opened.append(len(places))
            places.append((len(data), 0))
        elif part == "⟩":
            number = opened.pop()
            start = places[number][0]
            places[number] = (start, len(data) - start)
        else:
            data += part.encode(charset, "surrogateescape")
    return Marked(data, places)


def line(text: str) -> str:
    """Return a text with a line feed at its end."""
    return text if text.rstrip("⟩").endswith("\n") else text + "\n"


def case(direction: Direction, name: str | None, text: str, fields: dict[str, Any], *codes: str) -> Case:
    """Return a message, the line feed behind it being left out, and a code for each mark."""
    data, places = marked(line(text))
    diagnostics = tuple((code, *place) for code, place in zip(codes, places, strict=True))
    return Case(data, direction, name, fields, diagnostics)


def c2s(name: str, body: str, fields: dict[str, Any] | None = None, *codes: str) -> Case:
    """Return a client's message; its fields are the body's own by default."""
    return case("c2s", name, f'{{"{name}":{body}}}', json.loads(body) if fields is None else fields, *codes)


def s2c(name: str, body: str, fields: dict[str, Any] | None = None, *codes: str) -> Case:
    """Return a server's message; its fields are the body's own by default."""
    return case("s2c", name, f'{{"{name}":{body}}}', json.loads(body) if fields is None else fields, *codes)


def at(x: int, y: int) -> dict[str, int]:
    return {"x": x, "y": y}


STRASSE_ORT = [at(-2, 0), at(-1, 0)]
DORF_TEXT = '[{"x":-2,"y":2},{"x":-1,"y":2},{"x":-1,"y":1}]'
STRASSE_TEXT = '[{"x":-2,"y":0},{"x":-1,"y":0}]'
ZWEITE_TEXT = '[{"x":-2,"y":1},{"x":-1,"y":0}]'
ZWEITE_ORT = [at(-2, 1), at(-1, 0)]
ALL_KINDS = '{"Holz":1,"Lehm":2,"Wolle":3,"Getreide":4,"Erz":5}'
ALL_CARDS = '{"Ritter":2,"Straßenbau":1,"Monopol":1,"Erfindung":0,"Siegpunkt":1}'

PARTS = {
    "DORF": DORF_TEXT,
    "STRASSE": STRASSE_TEXT,
    "ZWEITE": ZWEITE_TEXT,
    "ALL_KINDS": ALL_KINDS,
    "ALL_CARDS": ALL_CARDS,
}
"""Texts that a table refers to by name, as in <DORF>."""


def rows(table: str) -> list[Case]:
    """Return the cases of a table: direction and name, body, fields if not the body's own, codes of marks."""
    found = []
    for row in rows_of(table, " | "):
        row = re.sub("<([A-Z_]+)>", lambda part: PARTS[part[1]], row)
        head, body, fields, codes, *_ = [*row.split(" | "), "", ""]
        direction, name = head.split(" ", 1)
        values = json.loads(fields or re.sub("[⟨⟩]", "", body))
        found.append((c2s if direction == "c2s" else s2c)(name, body, values, *codes.split()))
    return found


SOUND = [
    *rows("""
# 6 Verbindungsaufbau
s2c Hallo | {"Version":"...","Protokoll":"1.0"}
c2s Hallo | {"Version":"SwingClient 1.0 (SparsameWitze)"}
s2c Willkommen | {"id":42}
s2c Willkommen | {"id":2147483647}
# 7.5 Spieler
s2c Statusupdate | {"Spieler":{"id":42}}
s2c Statusupdate | {"Spieler":{"id":42,"Status":"Spiel starten"}}
# 8 Allgemeine Nachrichten
s2c OK | {}
s2c Fehler | {"Meldung":"Farbe bereits vergeben"}
s2c Fehler | {"Meldung":""}
c2s Chatnachricht senden | {"Nachricht":"Was ist gelb und hüpfte um den Teich?"}
s2c Chatnachricht | {"Absender":42,"Nachricht":"Was ist gelb?"}
s2c Chatnachricht | {"Nachricht":"Es geht los ✓ 😀"}
# 9 Konfiguration und Spielstart
c2s Spieler | {"Name":"Postfrosch","Farbe":"Orange"}
c2s Spieler | {"Name":"Jörg"}
c2s Spieler | {"Farbe":"Weiß"}
c2s Spiel starten | {}
s2c Spiel beendet | {"Nachricht":"Spieler Postfrosch hat das Spiel gewonnen.","Sieger":42}
# 10 Nachrichten des Servers im Spiel
s2c Würfelwurf | {"Spieler":42,"Wurf":[3,4]}
s2c Ertrag | {"Spieler":42,"Rohstoffe":{"Holz":1}}
s2c Ertrag | {"Spieler":42,"Rohstoffe":{}}
s2c Ertrag | {"Spieler":42,"Rohstoffe":1}
s2c Kosten | {"Spieler":42,"Rohstoffe":<ALL_KINDS>}
s2c Kosten | {"Spieler":42,"Rohstoffe":4}
s2c Räuber versetzt | {"Spieler":42,"Ort":{"x":0,"y":1},"Ziel":13}
s2c Räuber versetzt | {"Spieler":42,"Ort":{"x":0,"y":1}}
s2c Räuber versetzt | {"Ort":{"x":0,"y":-1}}
s2c Bauvorgang | {"Gebäude":{"Eigentümer":42,"Typ":"Straße","Ort":<STRASSE>}}
s2c Bauvorgang | {"Gebäude":{"Eigentümer":42,"Typ":"Stadt","Ort":<DORF>}}
s2c Entwicklungskarte gekauft | {"Spieler":42,"Entwicklungskarte":"Ritter"}
s2c Entwicklungskarte gekauft | {"Spieler":42,"Entwicklungskarte":1}
s2c Entwicklungskarte gekauft | {"Spieler":42}
s2c Längste Handelsstraße | {"Spieler":42}
s2c Längste Handelsstraße | {}
s2c Größte Rittermacht | {"Spieler":42}
# 11 Nachrichten des Clients im Spiel
c2s Würfeln | {}
c2s Karten abgeben | {"Abgeben":{"Holz":2,"Erz":2}}
c2s Räuber versetzen | {"Ort":{"x":0,"y":1},"Ziel":13}
c2s Räuber versetzen | {"Ort":{"x":0,"y":1}}
c2s Zug beenden | {}
c2s Bauen | {"Typ":"Dorf","Ort":<DORF>}
c2s Bauen | {"Typ":"Straße","Ort":<STRASSE>}
c2s Entwicklungskarte kaufen | {}
c2s Seehandel | {"Angebot":{"Holz":4},"Nachfrage":{"Getreide":1}}
# 12 Binnenhandel
c2s Handel anbieten | {"Angebot":{"Holz":1,"Lehm":1},"Nachfrage":{}}
s2c Handelsangebot | {"Spieler":42,"Handel id":0,"Angebot":{"Holz":1},"Nachfrage":{"Erz":1}}
c2s Handel annehmen | {"Handel id":0}
s2c Handelsangebot angenommen | {"Spieler":42,"Handel id":0}
c2s Handel abschließen | {"Handel id":0,"Mitspieler":2}
s2c Handel ausgeführt | {"Spieler":1,"Mitspieler":2}
c2s Handel abbrechen | {"Handel id":0}
s2c Handelsangebot abgebrochen | {"Spieler":42,"Handel id":0}
# 13 Entwicklungskarten ausspielen
c2s Ritter ausspielen | {"Ort":{"x":0,"y":1},"Ziel":13}
s2c Ritter ausspielen | {"Spieler":42,"Ort":{"x":0,"y":1},"Ziel":13}
c2s Straßenbaukarte ausspielen | {"Straße 1":<STRASSE>,"Straße 2":<ZWEITE>}
c2s Straßenbaukarte ausspielen | {"Straße 1":<STRASSE>}
s2c Straßenbaukarte ausspielen | {"Spieler":42,"Straße 1":<STRASSE>,"Straße 2":<ZWEITE>}
c2s Monopol | {"Rohstoff":"Holz"}
s2c Monopol | {"Spieler":42,"Rohstoff":"Holz"}
c2s Erfindung | {"Rohstoffe":{"Holz":1,"Erz":1}}
s2c Erfindung | {"Spieler":42,"Rohstoffe":{"Wolle":2}}
s2c Erfindung | {"Spieler":42,"Rohstoffe":2}
    """),
    s2c(
        "Statusupdate",
        '{"Spieler":{"id":42,"Farbe":"Orange","Name":"Postfrosch","Status":"Spiel starten","Siegpunkte":0,'
        '"Rohstoffe":0,"Rittermacht":0,"Entwicklungskarten":0,"Größte Rittermacht":false,'
        '"Längste Handelsstraße":false}}',
    ),
    s2c(
        "Statusupdate",
        f'{{"Spieler":{{"id":1,"Farbe":"Weiß","Rohstoffe":{ALL_KINDS},"Entwicklungskarten":{ALL_CARDS},'
        '"Größte Rittermacht":true}}',
    ),
    *(
        s2c("Statusupdate", f'{{"Spieler":{{"id":2,"Farbe":"{farbe}","Status":"{status}"}}}}')
        for farbe, status in (
            ("Rot", "Wartet auf Spielbeginn"),
            ("Orange", "Dorf bauen"),
            ("Blau", "Straße bauen"),
            ("Weiß", "Würfeln"),
            ("Grün", "Karten wegen Räuber abgeben"),
            ("Braun", "Räuber versetzen"),
            ("Rot", "Handeln oder Bauen"),
            ("Orange", "Bauen"),
            ("Blau", "Warten"),
            ("Weiß", "Verbindung verloren"),
        )
    ),
    c2s("Chatnachricht senden", r'{"Nachricht":"eins\nzwei\t\"{\\}\""}'),
    c2s("Chatnachricht senden", f'{{"Nachricht":"{"x" * 5000}"}}'),
    s2c(
        "Spiel gestartet",
        '{"Karte":{"Felder":[{"Ort":{"x":-2,"y":2},"Typ":"Ackerland","Zahl":2},'
        '{"Ort":{"x":0,"y":0},"Typ":"Wüste"},{"Ort":{"x":1,"y":2},"Typ":"Meer"},'
        '{"Ort":{"x":0,"y":1},"Typ":"Hügelland","Zahl":12},{"Ort":{"x":1,"y":0},"Typ":"Weideland","Zahl":6},'
        '{"Ort":{"x":1,"y":1},"Typ":"Wald","Zahl":8},{"Ort":{"x":0,"y":2},"Typ":"Gebirge","Zahl":5}],'
        f'"Gebäude":[{{"Eigentümer":42,"Typ":"Straße","Ort":{STRASSE_TEXT}}}],'
        '"Häfen":[{"Ort":[{"x":1,"y":2},{"x":0,"y":2}],"Typ":"Hafen"},'
        '{"Ort":[{"x":1,"y":2},{"x":1,"y":1}],"Typ":"Holz Hafen"}],"Räuber":{"x":0,"y":0}}}',
    ),
]
"""Messages in the specification's form, which encode to the same bytes."""

DIALECTS = [
    *rows("""
s2c Hallo | {"Version":"E","Protokoll":1}
s2c Serverantwort | "OK" | {"Meldung": "OK"}
s2c Serverantwort | "(Received) Brick: +4" | {"Meldung": "(Received) Brick: +4"}
c2s Chatnachricht senden | {"Nachricht":"hallo","id":1337}
s2c Spiel beendet | {"Spieler":3}
c2s Bauen | {"Typ":"Straße","Ort":<STRASSE>,"Eigentümer":1}
c2s Handel annehmen | {"Handel id":7,"Annehmen":false}
s2c Handelsangebot angenommen | {"Mitspieler":2,"Handel id":7,"Annehmen":true}
s2c Handel ausgeführt | {"Spieler":1,"Mitspieler":2,"Handel id":7}
c2s Straßenbaukarte ausspielen | [<STRASSE>,<ZWEITE>] | {"Straße 1": <STRASSE>, "Straße 2": <ZWEITE>}
    """),
    case(
        "s2c",
        "Ritter ausspielen",
        '{"Ritter ausspielen":{"Ort":{"x":1,"y":1},"Ziel":3},"Spieler":0}',
        {"Spieler": 0, "Ort": at(1, 1), "Ziel": 3},
    ),
    case(
        "s2c",
        "Straßenbaukarte ausspielen",
        f'{{"Straßenbaukarte ausspielen":[{STRASSE_TEXT},{ZWEITE_TEXT}],"Spieler":0}}',
        {"Spieler": 0, "Straße 1": STRASSE_ORT, "Straße 2": ZWEITE_ORT},
    ),
    case(
        "s2c",
        "Straßenbaukarte ausspielen",
        f'{{"Spieler":0,"Straßenbaukarte ausspielen":[{STRASSE_TEXT}]}}',
        {"Spieler": 0, "Straße 1": STRASSE_ORT},
    ),
]
"""Variants that real programs send; each has its own row, and the table of the game adds a note."""

LOOSE = [
    *rows("""
c2s Spieler | {"Farbe":"Rot","Name":"Anna"} | {"Name": "Anna", "Farbe": "Rot"}
c2s Bauen | {"Ort":<DORF>,"Typ":"Dorf"} | {"Typ": "Dorf", "Ort": <DORF>}
s2c Willkommen | {"id":⟨-0⟩} |  | unusual-value
s2c Bauvorgang | {⟨"Gebaeude"⟩:{"Eigentuemer":1,"Typ":"Strasse","Ort":<STRASSE>}}
    {"Gebäude": {"Eigentümer": 1, "Typ": "Straße", "Ort": <STRASSE>}} | spelling
s2c Statusupdate | {"Spieler":{"id":1,⟨"Größte Handelsstraße"⟩:true}}
    {"Spieler": {"id": 1, "Längste Handelsstraße": true}} | spelling
s2c Statusupdate | {"Spieler":{"id":1,"Entwicklungskarten":{⟨"Strassenbau"⟩:1}}}
    {"Spieler": {"id": 1, "Entwicklungskarten": {"Straßenbau": 1}}} | spelling
c2s Monopol | {"Rohstoff":⟨"LEHM"⟩} | {"Rohstoff": "Lehm"} | spelling
c2s Straßenbaukarte ausspielen | {⟨"Strasse 1"⟩:<STRASSE>} | {"Straße 1": <STRASSE>} | spelling
# Hidden cards.
s2c Statusupdate | {"Spieler":{"id":1,"Rohstoffe":{⟨"Unbekannt"⟩:17},"Entwicklungskarten":{"Unbekannt":2}}}
    {"Spieler": {"id": 1, "Rohstoffe": 17, "Entwicklungskarten": 2}} | unusual-value
s2c Ertrag | {"Spieler":1,"Rohstoffe":{"Holz":0,"Erz":0,⟨"Unbekannt"⟩:3}}
    {"Spieler": 1, "Rohstoffe": 3} | unusual-value
s2c Kosten | {"Spieler":1,"Rohstoffe":{"Holz":2,"Erz":1,⟨"Unbekannt"⟩:0}}
    {"Spieler": 1, "Rohstoffe": {"Holz": 2, "Erz": 1}} | unusual-value
s2c Entwicklungskarte gekauft | {"Spieler":1,"Entwicklungskarte":⟨"Unbekannt"⟩}
    {"Spieler": 1, "Entwicklungskarte": 1} | unusual-value
s2c Statusupdate | {"Spieler":{"id":1,"Rohstoffe":{"Holz":1,"Getreide":⟨-3⟩}}} |  | below-zero
# null for what is not there yet.
s2c Statusupdate | {"Spieler":{"id":1,"Farbe":null,"Name":null,"Status":"Warten"}}
    {"Spieler": {"id": 1, "Status": "Warten"}}
c2s Räuber versetzen | {"Ort":{"x":0,"y":1},"Ziel":null} | {"Ort": {"x": 0, "y": 1}}
s2c Entwicklungskarte gekauft | {"Spieler":1,"Entwicklungskarte":null} | {"Spieler": 1}
s2c Längste Handelsstraße | {"Spieler":null} | {}
s2c Chatnachricht | {"Absender":null,"Nachricht":"hm"} | {"Nachricht": "hm"}
# Unusual numbers and values.
s2c Willkommen | {"id":⟨0⟩} |  | unusual-value
s2c Spiel beendet | {"Nachricht":"Verbindung verloren","Sieger":⟨-1⟩} |  | unusual-value
s2c Hallo | {"Version":"x","Protokoll":⟨"0.4"⟩} |  | unusual-value
s2c Spiel gestartet | {"Karte":{"Felder":[{"Ort":⟨"a"⟩,"Typ":"Meer"},{"Ort":"B","Typ":"Meer"}]}}
     | unusual-value
# Unknown members are ignored.
s2c OK | {⟨"Grund"⟩:"x","Mehr":[1]} | {} | surplus-attribute
c2s Würfeln | {⟨"Spieler"⟩:1} | {} | surplus-attribute
c2s Hallo | {"Version":"x",⟨"Protokoll"⟩:"1.0"} | {"Version": "x"} | surplus-attribute
s2c Statusupdate | {"Spieler":{"id":1,⟨"Ping"⟩:{"ms":12.5}}} | {"Spieler": {"id": 1}} | surplus-attribute
c2s Bauen | {"Typ":"Straße","Ort":[{"x":-2,"y":0,⟨"z"⟩:2},{"x":-1,"y":0,"z":1}]}
    {"Typ": "Straße", "Ort": <STRASSE>} | surplus-attribute
    """),
    # Layout.
    case("s2c", "OK", '{"OK":{}}⟨\r\n⟩', {}, "crlf"),
    case("s2c", "OK", '⟨ \t⟩{"OK":{}}', {}, "blanks"),
    case("s2c", "OK", '{"OK":{}}⟨ \t ⟩', {}, "blanks"),
    case("s2c", "OK", '{"OK":{}}⟨ \r⟩', {}, "blanks"),
    case("s2c", "OK", '{ "OK" : { } }', {}),
    case("c2s", "Spieler", '{⟨\n⟩  "Spieler": {\n\t"Farbe": "Rot"}\n}', {"Farbe": "Rot"}, "line-feed-inside"),
    case(
        "c2s",
        "Spieler",
        '{⟨\r⟩\n"Spieler":{"Farbe":"Rot"}}⟨\r\n⟩',
        {"Farbe": "Rot"},
        "line-feed-inside",
        "crlf",
    ),
    # Other ways to write JSON.
    case("c2s", "Würfeln", r'{"W\u00fcrfeln":{}}', {}),
    c2s("Spieler", r'{"Name":"J\u00f6rg \ud83d\ude00\/"}'),
    c2s("Chatnachricht senden", r'{"Nachricht":"ä\u00e4"}'),
    # ASCII in place of umlauts, and other words.
    case("c2s", "Würfeln", '{⟨"Wuerfeln"⟩:{}}', {}, "spelling"),
    case(
        "s2c",
        "Würfelwurf",
        '{⟨"Wuerfelwurf"⟩:{"Spieler":1,"Wurf":[1,6]}}',
        {"Spieler": 1, "Wurf": [1, 6]},
        "spelling",
    ),
    case("s2c", "OK", '{⟨"Ok"⟩:{}}', {}, "spelling"),
    case("s2c", "Größte Rittermacht", '{⟨"Groesste Rittermacht"⟩:{"Spieler":1}}', {"Spieler": 1}, "spelling"),
    case("s2c", "Längste Handelsstraße", '{⟨"Laengste Handelsstrasse"⟩:{}}', {}, "spelling"),
    case(
        "c2s",
        "Handel abschließen",
        '{⟨"Handel abschliessen"⟩:{"Handel id":1,"Mitspieler":2}}',
        {"Handel id": 1, "Mitspieler": 2},
        "spelling",
    ),
    case(
        "s2c",
        "Handel ausgeführt",
        '{⟨"Handel ausgefuehrt"⟩:{"Spieler":1,"Mitspieler":2}}',
        {"Spieler": 1, "Mitspieler": 2},
        "spelling",
    ),
    case(
        "c2s",
        "Räuber versetzen",
        '{⟨"Raeuber versetzen"⟩:{"Ort":{"x":0,"y":1}}}',
        {"Ort": at(0, 1)},
        "spelling",
    ),
    s2c(
        "Spiel gestartet",
        '{"Karte":{"Felder":[{"Ort":{"x":0,"y":0},"Typ":⟨"Wueste"⟩},'
        '{"Ort":{"x":1,"y":0},"Typ":"Huegelland","Zahl":2}],"Gebaeude":[],"Haefen":[],'
        '"Raeuber":{"x":0,"y":0}}}',
        {
            "Karte": {
                "Felder": [
                    {"Ort": at(0, 0), "Typ": "Wüste"},
                    {"Ort": at(1, 0), "Typ": "Hügelland", "Zahl": 2},
                ],
                "Gebäude": [],
                "Häfen": [],
                "Räuber": at(0, 0),
            }
        },
        "spelling",
    ),
    *(
        s2c(
            "Statusupdate",
            f'{{"Spieler":{{"id":1,"Status":⟨"{sent}"⟩}}}}',
            {"Spieler": {"id": 1, "Status": status}},
            "spelling",
        )
        for sent, status in (
            ("Wuerfeln", "Würfeln"),
            ("Strasse bauen", "Straße bauen"),
            ("Raeuber versetzen", "Räuber versetzen"),
            ("Karten wegen Raeuber abgeben", "Karten wegen Räuber abgeben"),
            ("Karte wegen Raeuber abgeben", "Karten wegen Räuber abgeben"),
        )
    ),
    s2c(
        "Statusupdate",
        '{"Spieler":{"id":1,"Farbe":⟨"Weiss"⟩,"Groesste Rittermacht":false,"Laengste Handelsstrasse":true}}',
        {
            "Spieler": {
                "id": 1,
                "Farbe": "Weiß",
                "Größte Rittermacht": False,
                "Längste Handelsstraße": True,
            }
        },
        "spelling",
    ),
    # Several at once.
    case(
        "c2s",
        "Würfeln",
        '⟨ ⟩{⟨"Wuerfeln"⟩:{⟨"Spieler"⟩:1}}',
        {},
        "blanks",
        "spelling",
        "surplus-attribute",
    ),
]
"""Real programs send and take these; they get a note at the most."""

IGNORED = [
    case("c2s", None, "⟨\n⟩", {}, "empty-line"),
    case("s2c", None, "⟨\r\n⟩", {}, "empty-line"),
    case("c2s", None, "⟨ \t\n⟩", {}, "empty-line"),
]
"""Lines that say nothing, and that most peers pass over."""


def wrong(direction: Direction, text: str, code: str) -> Case:
    """Return a message with one violation of its row; the name is at its usual place."""
    name = text.split('"', 2)[1]
    return case(direction, name, text, {}, code)


_BAD_ROAD = '[{"x":-2,"y":0},{"x":-1,"y":0},{"x":-1,"y":1}]'

MALFORMED = [
    # 6 Verbindungsaufbau
    wrong("s2c", '{"Hallo":⟨{"Version":"x"}⟩}', "missing-attribute"),
    wrong("s2c", '{"Hallo":{"Version":"x","Protokoll":⟨2⟩}}', "bad-value"),
    wrong("s2c", '{"Hallo":{"Version":⟨1⟩,"Protokoll":"1.0"}}', "bad-value"),
    wrong("c2s", '{"Hallo":⟨"SwingClient"⟩}', "bad-value"),
    wrong("c2s", '{"Hallo":{⟨"version"⟩:"x"}}', "unknown-attribute"),
    wrong("s2c", '{"Willkommen":{"id":⟨-1⟩}}', "bad-value"),
    wrong("s2c", '{"Willkommen":{"id":⟨2147483648⟩}}', "bad-value"),
    wrong("s2c", '{"Willkommen":{⟨"ID"⟩:42}}', "unknown-attribute"),
    wrong("s2c", '{"Willkommen":⟨42⟩}', "bad-value"),
    # 7.5 Spieler
    wrong("s2c", '{"Statusupdate":{"Spieler":⟨42⟩}}', "bad-value"),
    wrong("s2c", '{"Statusupdate":{"Spieler":⟨{"Name":"Anna"}⟩}}', "missing-attribute"),
    wrong("s2c", '{"Statusupdate":⟨{"id":42,"Status":"Warten"}⟩}', "missing-attribute"),
    wrong("s2c", '{"Statusupdate":{"Spieler":{"id":⟨null⟩}}}', "bad-value"),
    wrong("s2c", '{"Statusupdate":{"Spieler":{"id":1,"Farbe":⟨"Lila"⟩}}}', "bad-value"),
    wrong("s2c", '{"Statusupdate":{"Spieler":{"id":1,"Name":⟨7⟩}}}', "bad-value"),
    wrong("s2c", '{"Statusupdate":{"Spieler":{"id":1,"Status":⟨"Schlafen"⟩}}}', "bad-value"),
    wrong("s2c", '{"Statusupdate":{"Spieler":{"id":1,"Siegpunkte":⟨"3"⟩}}}', "bad-value"),
    wrong("s2c", '{"Statusupdate":{"Spieler":{"id":1,"Rittermacht":⟨-1⟩}}}', "bad-value"),
    wrong("s2c", '{"Statusupdate":{"Spieler":{"id":1,"Größte Rittermacht":⟨0⟩}}}', "bad-value"),
    wrong("s2c", '{"Statusupdate":{"Spieler":{"id":1,"Längste Handelsstraße":⟨"false"⟩}}}', "bad-value"),
    wrong("s2c", '{"Statusupdate":{"Spieler":{"id":1,"Rohstoffe":{⟨"Gold"⟩:1}}}}', "unknown-kind"),
    wrong("s2c", '{"Statusupdate":{"Spieler":{"id":1,"Rohstoffe":⟨"drei"⟩}}}', "bad-value"),
    wrong("s2c", '{"Statusupdate":{"Spieler":{"id":1,"Rohstoffe":⟨[1]⟩}}}', "bad-value"),
    wrong("s2c", '{"Statusupdate":{"Spieler":{"id":1,"Entwicklungskarten":{"Ritter":⟨-1⟩}}}}', "bad-value"),
    wrong("s2c", '{"Statusupdate":{"Spieler":{"id":1,"Entwicklungskarten":⟨-1⟩}}}', "bad-value"),
    wrong("s2c", '{"Statusupdate":{"Spieler":{"id":1,"Rohstoffe":{"Holz":1,"Unbekannt":⟨3⟩}}}}', "bad-value"),
    wrong("s2c", '{"Statusupdate":{"Spieler":{"id":1,"Name":"A",⟨"Farb"⟩:"Rot"}}}', "unknown-attribute"),
    # 8 Allgemeine Nachrichten
    wrong("s2c", '{"OK":⟨true⟩}', "bad-value"),
    wrong("s2c", '{"OK":⟨[]⟩}', "bad-value"),
    wrong("s2c", '{"Fehler":⟨{}⟩}', "missing-attribute"),
    wrong("s2c", '{"Fehler":⟨"nein"⟩}', "bad-value"),
    wrong("s2c", '{"Serverantwort":⟨{"Meldung":"OK"}⟩}', "bad-value"),
    wrong("c2s", '{"Chatnachricht senden":{"Nachricht":⟨null⟩}}', "bad-value"),
    wrong("c2s", '{"Chatnachricht senden":{⟨"Nachrict"⟩:"hallo"}}', "unknown-attribute"),
    wrong("s2c", '{"Chatnachricht":{"Absender":⟨"Anna"⟩,"Nachricht":"hallo"}}', "bad-value"),
    # 9 Konfiguration und Spielstart
    wrong("c2s", '{"Spieler":{"Name":"Anna","Farbe":⟨"rot"⟩}}', "bad-value"),
    wrong("c2s", '{"Spiel starten":⟨""⟩}', "bad-value"),
    wrong("s2c", '{"Spiel gestartet":{"Karte":⟨[]⟩}}', "bad-value"),
    wrong("s2c", '{"Spiel gestartet":{"Karte":⟨{}⟩}}', "missing-attribute"),
    wrong("s2c", '{"Spiel gestartet":{"Karte":{"Felder":⟨[]⟩}}}', "bad-value"),
    wrong("s2c", '{"Spiel gestartet":{"Karte":{"Felder":⟨{"x":0,"y":0}⟩}}}', "bad-value"),
    wrong("s2c", '{"Spiel gestartet":{"Karte":{"Felder":[⟨{"Typ":"Wald"}⟩]}}}', "missing-attribute"),
    wrong(
        "s2c",
        '{"Spiel gestartet":{"Karte":{"Felder":[{"Ort":{"x":0,"y":0},"Typ":"Wald","Zahl":⟨13⟩}]}}}',
        "bad-value",
    ),
    wrong(
        "s2c",
        '{"Spiel gestartet":{"Karte":{"Felder":[{"Ort":⟨"abc"⟩,"Typ":"Meer"}]}}}',
        "bad-value",
    ),
    wrong(
        "s2c",
        '{"Spiel gestartet":{"Karte":{"Felder":[{"Ort":"a","Typ":"Meer"}],"Räuber":⟨"a"⟩}}}',
        "bad-value",
    ),
    wrong(
        "s2c",
        '{"Spiel gestartet":{"Karte":{"Felder":[{"Ort":{"x":0,"y":0},"Typ":"Wald"}],'
        '"Häfen":[{"Ort":[{"x":1,"y":2},{"x":0,"y":2}],"Typ":⟨"Gold Hafen"⟩}]}}}',
        "bad-value",
    ),
    wrong("s2c", '{"Spiel beendet":⟨{"Nachricht":"Ende"}⟩}', "missing-attribute"),
    wrong("s2c", '{"Spiel beendet":{"Sieger":⟨-2⟩}}', "bad-value"),
    # 10 Nachrichten des Servers im Spiel
    wrong("s2c", '{"Würfelwurf":{"Spieler":1,"Wurf":⟨7⟩}}', "bad-value"),
    wrong("s2c", '{"Würfelwurf":{"Spieler":1,"Wurf":⟨[3]⟩}}', "bad-value"),
    wrong("s2c", '{"Würfelwurf":{"Spieler":1,"Wurf":[3,⟨7⟩]}}', "bad-value"),
    wrong("s2c", '{"Würfelwurf":{"Spieler":1,"Wurf":[⟨3.0⟩,4]}}', "bad-value"),
    wrong("s2c", '{"Ertrag":{"Spieler":1,"Rohstoffe":{"Holz":⟨null⟩}}}', "bad-value"),
    wrong("s2c", '{"Ertrag":⟨{"Rohstoffe":{"Holz":1}}⟩}', "missing-attribute"),
    wrong("s2c", '{"Kosten":{"Spieler":⟨true⟩,"Rohstoffe":1}}', "bad-value"),
    wrong("s2c", '{"Kosten":{"Spieler":1,"Rohstoffe":⟨1.5⟩}}', "bad-value"),
    wrong("s2c", '{"Räuber versetzt":{"Spieler":1,"Ort":⟨[0,1]⟩}}', "bad-value"),
    wrong("s2c", '{"Räuber versetzt":{"Spieler":1,"Ort":⟨{"x":0}⟩}}', "missing-attribute"),
    wrong("s2c", '{"Räuber versetzt":{"Spieler":1,"Ort":{"x":0,"y":⟨"1"⟩}}}', "bad-value"),
    wrong("s2c", '{"Räuber versetzt":{"Spieler":1,"Ort":{"x":0,"y":⟨1001⟩}}}', "bad-value"),
    wrong(
        "s2c", f'{{"Bauvorgang":⟨{{"Eigentümer":1,"Typ":"Dorf","Ort":{DORF_TEXT}}}⟩}}', "missing-attribute"
    ),
    wrong(
        "s2c",
        f'{{"Bauvorgang":{{"Gebäude":{{"Eigentümer":1,"Typ":⟨"Burg"⟩,"Ort":{DORF_TEXT}}}}}}}',
        "bad-value",
    ),
    wrong("s2c", f'{{"Bauvorgang":{{"Gebäude":⟨{{"Typ":"Dorf","Ort":{DORF_TEXT}}}⟩}}}}', "missing-attribute"),
    wrong("s2c", '{"Entwicklungskarte gekauft":{"Spieler":1,"Entwicklungskarte":⟨2⟩}}', "bad-value"),
    wrong("s2c", '{"Entwicklungskarte gekauft":{"Spieler":1,"Entwicklungskarte":⟨"Rittr"⟩}}', "bad-value"),
    wrong("s2c", '{"Längste Handelsstraße":⟨null⟩}', "bad-value"),
    wrong("s2c", '{"Größte Rittermacht":{"Spieler":⟨"42"⟩}}', "bad-value"),
    # 11 Nachrichten des Clients im Spiel
    wrong("c2s", '{"Würfeln":⟨null⟩}', "bad-value"),
    wrong("c2s", '{"Karten abgeben":{"Abgeben":⟨4⟩}}', "bad-value"),
    wrong("c2s", '{"Karten abgeben":{"Abgeben":{"Holz":⟨-1⟩}}}', "bad-value"),
    wrong("c2s", '{"Karten abgeben":{"Abgeben":{⟨"Unbekannt"⟩:4}}}', "unknown-kind"),
    wrong("c2s", '{"Räuber versetzen":⟨{"x":0,"y":1}⟩}', "missing-attribute"),
    wrong("c2s", '{"Räuber versetzen":{"Ort":{"x":⟨0.5⟩,"y":1}}}', "bad-value"),
    wrong("c2s", '{"Räuber versetzen":{"Ort":{"x":0,"y":1},"Ziel":⟨-1⟩}}', "bad-value"),
    wrong("c2s", '{"Zug beenden":⟨0⟩}', "bad-value"),
    wrong("c2s", f'{{"Bauen":{{"Typ":⟨"Strase"⟩,"Ort":{STRASSE_TEXT}}}}}', "bad-value"),
    wrong("c2s", f'{{"Bauen":{{"Typ":"Straße","Ort":⟨{_BAD_ROAD}⟩}}}}', "bad-value"),
    wrong("c2s", f'{{"Bauen":{{"Typ":"Dorf","Ort":⟨{STRASSE_TEXT}⟩}}}}', "bad-value"),
    wrong("c2s", '{"Bauen":{"Typ":"Dorf","Ort":⟨[]⟩}}', "bad-value"),
    wrong("c2s", '{"Bauen":{"Typ":"Dorf","Ort":⟨{"x":0,"y":0}⟩}}', "bad-value"),
    wrong("c2s", '{"Bauen":⟨{"Typ":"Dorf"}⟩}', "missing-attribute"),
    wrong("c2s", '{"Seehandel":{"Angebot":{⟨"Hols"⟩:4},"Nachfrage":{"Erz":1}}}', "unknown-kind"),
    wrong("c2s", '{"Seehandel":⟨{"Angebot":{"Holz":4}}⟩}', "missing-attribute"),
    wrong("c2s", '{"Seehandel":{"Angebot":⟨["Holz"]⟩,"Nachfrage":{"Erz":1}}}', "bad-value"),
    # 12 Binnenhandel
    wrong("c2s", '{"Handel anbieten":{"Angebot":{"Holz":⟨"1"⟩},"Nachfrage":{"Erz":1}}}', "bad-value"),
    wrong("c2s", '{"Handel anbieten":{"Angebot":⟨1⟩,"Nachfrage":{"Erz":1}}}', "bad-value"),
    wrong(
        "s2c",
        '{"Handelsangebot":{"Spieler":1,⟨"Handelid"⟩:0,"Angebot":{"Holz":1},"Nachfrage":{"Erz":1}}}',
        "unknown-attribute",
    ),
    wrong("c2s", '{"Handel annehmen":{"Handel id":⟨"0"⟩}}', "bad-value"),
    wrong("c2s", '{"Handel annehmen":{"Handel id":0,"Annehmen":⟨1⟩}}', "bad-value"),
    wrong("s2c", '{"Handelsangebot angenommen":⟨{"Handel id":0}⟩}', "missing-attribute"),
    wrong("c2s", '{"Handel abschließen":⟨{"Handel id":0}⟩}', "missing-attribute"),
    wrong("s2c", '{"Handel ausgeführt":{"Spieler":1,"Mitspieler":⟨[2]⟩}}', "bad-value"),
    wrong("c2s", '{"Handel abbrechen":⟨{}⟩}', "missing-attribute"),
    wrong("s2c", '{"Handelsangebot abgebrochen":{"Spieler":1,"Handel id":⟨-1⟩}}', "bad-value"),
    # 13 Entwicklungskarten ausspielen
    wrong("c2s", '{"Ritter ausspielen":⟨{"Ziel":13}⟩}', "missing-attribute"),
    wrong("s2c", '{"Ritter ausspielen":{"Spieler":1,"Ort":{"x":0,"y":⟨null⟩}}}', "bad-value"),
    wrong("c2s", f'{{"Straßenbaukarte ausspielen":{{"Straße 1":⟨{DORF_TEXT}⟩}}}}', "bad-value"),
    wrong("c2s", f'{{"Straßenbaukarte ausspielen":⟨{{"Straße 2":{STRASSE_TEXT}}}⟩}}', "missing-attribute"),
    wrong("c2s", '{"Monopol":{"Rohstoff":⟨"Gold"⟩}}', "bad-value"),
    wrong("s2c", '{"Monopol":⟨{"Rohstoff":"Holz"}⟩}', "missing-attribute"),
    wrong("c2s", '{"Erfindung":{"Rohstoffe":⟨2⟩}}', "bad-value"),
    wrong("s2c", '{"Erfindung":{"Spieler":1,"Rohstoffe":{"Holz":⟨1.0⟩}}}', "bad-value"),
]
"""Messages with one error each, for which the sender is to blame."""


def broken(direction: Direction, text: str, code: str) -> Case:
    """Bytes in which no message can be made out."""
    return case(direction, None, text, {}, code)


NO_MESSAGE = [
    broken("c2s", "⟨{}⟩", "not-one-message"),
    broken("c2s", "⟨[]⟩", "no-object"),
    broken("c2s", '⟨"Würfeln"⟩', "no-object"),
    broken("c2s", "⟨42⟩", "no-object"),
    broken("c2s", "⟨null⟩", "no-object"),
    broken("c2s", "⟨Würfeln⟩", "no-object"),
    broken("c2s", '{"Würfeln":{},⟨"Zug beenden"⟩:{}}', "not-one-message"),
    broken("s2c", '{"OK":{},⟨"id"⟩:1}', "not-one-message"),
    broken("c2s", '{⟨"Wurfeln"⟩:{}}', "unknown-message"),
    broken("c2s", '{⟨"würfeln"⟩:{}}', "unknown-message"),
    broken("c2s", '{⟨"Würfelwurf"⟩:{"Spieler":1,"Wurf":[1,2]}}', "unknown-message"),
    broken("s2c", '{⟨"Bauen"⟩:{}}', "unknown-message"),
    broken("s2c", '{⟨"Würfeln"⟩:{}}', "unknown-message"),
    broken("c2s", "{⟨'⟩Würfeln':{}}", "broken-json"),
    broken("c2s", "{⟨Würfeln⟩:{}}", "broken-json"),
    broken("c2s", '{"Würfeln"⟨{⟩}}', "broken-json"),
    broken("c2s", '{"Würfeln":{}⟨⟩', "broken-json"),
    broken("c2s", '{"Würfeln":{},⟨}⟩', "broken-json"),
    broken("s2c", '{"Willkommen":{"id":⟨NaN⟩}}', "broken-json"),
    broken("s2c", '{"Willkommen":{"id":0⟨1⟩}}', "broken-json"),
    broken("c2s", '{"W⟨\udcfc⟩rfeln":{}}', "charset"),
]
"""Data in which no message can be found; each is an error of its sender."""

UNKNOWN = [
    broken("c2s", '{⟨"Ping"⟩:{}}', "unknown-message"),
    broken("s2c", '{⟨"Wetter"⟩:{"Sonne":true}}', "unknown-message"),
]
"""Messages that are like none: clause 3 allows extensions, so it is a warning."""
