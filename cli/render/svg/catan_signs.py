"""The colours of Catan's drawing, and signs that distinguish fields and resources without colour.

A field has the sign of its resource.
"""

from __future__ import annotations

from kiebitz.cli.render.svg.svg_canvas import Element, Point, draw_sign
from kiebitz.dissectors.protocols.catan.words import LAND, WÜSTE

SEA, SHALLOWS, SAND = "#5aa9d6", "#8fcdec", "#f4e3b4"
OUTLINE = "#262626"
BLACK, WHITE = "#111111", "#ffffff"
CHIP, HOT, LIT = "#fffbe6", "#c4001a", "#ffe600"
"""Colours: a number's chip, the most frequent numbers, and the mark of the last change."""

RESOURCES = {
    "Holz": "#4f9d5b",
    "Lehm": "#d98559",
    "Wolle": "#a8d672",
    "Getreide": "#f4cf55",
    "Erz": "#a9b2bd",
}
FIELDS = {**{field: RESOURCES[resource] for field, resource in LAND.items()}, WÜSTE: "#ecdca4"}
UNKNOWN = "#d4d4d4"

PLAYERS = {
    "Rot": "#d3261c",
    "Orange": "#ff9326",
    "Blau": "#1d3fbf",
    "Weiß": "#ffffff",
    "Grün": "#1fb43c",
    "Braun": "#7a4a21",
}
NO_COLOUR = "#8a8a8a"


def draw_field_sign(parent: Element, what: str, at: Point, size: float) -> bool:
    """Draw the sign of a field or a resource in a square around a point; return False if it has none."""
    return draw_sign(parent, LAND.get(what, what), at, size / 20)
