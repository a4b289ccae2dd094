"""The colours of Catan's drawing, and signs that distinguish fields and resources without colour.

A field has the sign of its resource.
"""

from __future__ import annotations

from kiebitz.cli.render.svg.svg_canvas import Element, Point, polygon, shape
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


def draw_sign(parent: Element, what: str, at: Point, size: float) -> bool:
    """Draw the sign of a field or a resource in a square around a point; return False if it has none."""
    drawing = _SIGNS.get(LAND.get(what, what))
    if drawing is None:
        return False
    x, y = at
    drawing(shape(parent, "g", transform=f"translate({x:.1f} {y:.1f}) scale({size / 20:.3g})"))
    return True


# Each in a square of 20 units around the origin.


def _tree(sign: Element) -> None:
    shape(sign, "rect", x=-1.5, y=5, width=3, height=5, fill="#5b3716")
    polygon(sign, [(0, -10), (6, -1), (-6, -1)], fill="#0d4420")
    polygon(sign, [(0, -5.5), (8.5, 6), (-8.5, 6)], fill="#0d4420")


def _bricks(sign: Element) -> None:
    for x, y in ((-9.5, 2.6), (0.5, 2.6), (-4.5, -3.2), (-9.5, -9), (0.5, -9)):
        shape(sign, "rect", x=x, y=y, width=9, height=4.9, rx=0.8, fill="#7c2a12")


def _sheep(sign: Element) -> None:
    for x in (-4.5, 2.5):
        shape(sign, "rect", x=x, y=3, width=2.2, height=6.5, fill=OUTLINE)
    fleece = "M-7,4C-11,3-10,-3-7,-3C-7,-7-1,-8 0,-6C3,-8 7,-5 6,-2C9,0 8,5 4,5C2,7-5,7-7,4Z"
    shape(sign, "path", d=fleece, fill="#ffffff", stroke="#6a7460", stroke_width=0.8)
    shape(sign, "ellipse", cx=7.4, cy=-3.6, rx=2.6, ry=3.4, fill=OUTLINE)


def _wheat(sign: Element) -> None:
    for lean in (-24, 0, 24):
        ear = shape(sign, "g", transform=f"rotate({lean} 0 10)", fill="#8a5300")
        shape(ear, "rect", x=-0.6, y=-4, width=1.2, height=14)
        shape(ear, "ellipse", cx=0, cy=-7.5, rx=1.5, ry=2.5)
        for y in (-4, 0):
            for x in (-1, 1):
                place = f"translate({x * 1.9} {y}) rotate({x * 28})"
                shape(ear, "ellipse", cx=0, cy=0, rx=1.4, ry=2.6, transform=place)


def _rock(sign: Element) -> None:
    polygon(sign, [(3.5, -4), (10, 9), (-3, 9)], fill="#5d6670")
    polygon(sign, [(-2.5, -9.5), (6, 9), (-10, 9)], fill="#3c444d")
    polygon(sign, [(-2.5, -9.5), (0.8, -2.3), (-1.2, -4), (-3, -1.5), (-5.6, -2.3)], fill="#ffffff")


def _cactus(sign: Element) -> None:
    plant = "M0,9V-8M0,3H-5.5V-3M0,0H5.5V-5.5"
    shape(
        sign,
        "path",
        d=plant,
        fill="none",
        stroke="#4d7c32",
        stroke_width=3.4,
        stroke_linecap="round",
        stroke_linejoin="round",
    )


_SIGNS = {
    "Holz": _tree,
    "Lehm": _bricks,
    "Wolle": _sheep,
    "Getreide": _wheat,
    "Erz": _rock,
    WÜSTE: _cactus,
}
