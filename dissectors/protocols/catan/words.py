"""The words of the protocol, in the specification's spelling, in which the codec returns everything."""

from __future__ import annotations

ROHSTOFFE = ("Holz", "Lehm", "Wolle", "Getreide", "Erz")
KARTEN = ("Ritter", "Straßenbau", "Monopol", "Erfindung", "Siegpunkt")
"""The development cards, clause 7.7."""


LAND = {"Ackerland": "Getreide", "Hügelland": "Lehm", "Weideland": "Wolle", "Wald": "Holz", "Gebirge": "Erz"}
"""Resource of each terrain, clause 7.1."""

WÜSTE, MEER = "Wüste", "Meer"
FELDER = (*LAND, WÜSTE, MEER)

HAFEN = "Hafen"
HÄFEN = (*(f"{rohstoff} Hafen" for rohstoff in ROHSTOFFE), HAFEN)

STRASSE, DORF, STADT = "Straße", "Dorf", "Stadt"
GEBÄUDE = (STRASSE, DORF, STADT)

FARBEN = ("Rot", "Orange", "Blau", "Weiß", "Grün", "Braun")

STATUS = (
    "Spiel starten",
    "Wartet auf Spielbeginn",
    "Dorf bauen",
    "Straße bauen",
    "Würfeln",
    "Karten wegen Räuber abgeben",
    "Räuber versetzen",
    "Handeln oder Bauen",
    "Bauen",
    "Warten",
    "Verbindung verloren",
)
"""The states of a player, clause 7.5."""
