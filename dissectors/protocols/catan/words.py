"""The words of the protocol, in the specification's spelling, in which the codec returns everything."""

from __future__ import annotations

ROHSTOFFE = ("Holz", "Lehm", "Wolle", "Getreide", "Erz")
KARTEN = ("Ritter", "Straßenbau", "Monopol", "Erfindung", "Siegpunkt")
"""The development cards, clause 7.7."""


LAND = {
    "Ackerland": "Getreide",
    "Hügelland": "Lehm",
    "Weideland": "Wolle",
    "Wald": "Holz",
    "Gebirge": "Erz",
}
"""Resource of each terrain, clause 7.1."""

WÜSTE, MEER = "Wüste", "Meer"
FELDER = (*LAND, WÜSTE, MEER)

HAFEN = "Hafen"
HÄFEN = (*(f"{rohstoff} Hafen" for rohstoff in ROHSTOFFE), HAFEN)

STRASSE, DORF, STADT = "Straße", "Dorf", "Stadt"
GEBÄUDE = (STRASSE, DORF, STADT)

FARBEN = ("Rot", "Orange", "Blau", "Weiß", "Grün", "Braun")

SPIEL_STARTEN = "Spiel starten"
WARTET_AUF_BEGINN = "Wartet auf Spielbeginn"
DORF_BAUEN = "Dorf bauen"
STRASSE_BAUEN = "Straße bauen"
WÜRFELN = "Würfeln"
KARTEN_ABGEBEN = "Karten wegen Räuber abgeben"
RÄUBER_VERSETZEN = "Räuber versetzen"
HANDELN_ODER_BAUEN = "Handeln oder Bauen"
BAUEN = "Bauen"
WARTEN = "Warten"
VERBINDUNG_VERLOREN = "Verbindung verloren"
STATUS = (
    SPIEL_STARTEN,
    WARTET_AUF_BEGINN,
    DORF_BAUEN,
    STRASSE_BAUEN,
    WÜRFELN,
    KARTEN_ABGEBEN,
    RÄUBER_VERSETZEN,
    HANDELN_ODER_BAUEN,
    BAUEN,
    WARTEN,
    VERBINDUNG_VERLOREN,
)
"""Clause 7.5."""

LÄNGSTE_HANDELSSTRASSE = "Längste Handelsstraße"
GRÖSSTE_RITTERMACHT = "Größte Rittermacht"
