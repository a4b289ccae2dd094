"""Okey's tiles and racks as fragments; each colour also has a sign below its number."""

from __future__ import annotations

from kiebitz.cli.render.svg.svg_canvas import (
    Element,
    cached_fragment,
    circle,
    label,
    line,
    polygon,
    rect,
    shape,
)
from kiebitz.dissectors.game.view import Tile

WIDE, HIGH = 50.0, 70.0
"""Size of a tile."""

IN_A_ROW = 12
PLACES = 2 * IN_A_ROW
_STEP, _ROW = 52.0, 73.0
_FRAME = 6.0

RACK_WIDE, RACK_HIGH = IN_A_ROW * _STEP + 2 * _FRAME, 2 * _ROW + 2 * _FRAME

_IVORY, _EDGE = "#fff9e3", "#7a6a48"
COLOURS = {"RED": "#c41622", "BLUE": "#1747b5", "YELLOW": "#a86a00", "BLACK": "#16181b"}
_JOKER = "#6a1f9c"


def place(number: int) -> tuple[float, float]:
    """Return the position of a rack's place (counted from 0), relative to the rack's upper left corner."""
    row, column = divmod(number, IN_A_ROW)
    return _FRAME + column * _STEP + (_STEP - WIDE) / 2, _FRAME + row * _ROW + (_ROW - HIGH) / 2


@cached_fragment(2)
def rack(drawn: Element) -> None:
    """Return an empty rack."""
    rect(drawn, 0, 0, RACK_WIDE, RACK_HIGH, 10, fill="#8b5e34", stroke="#5d3c1d", stroke_width=3)
    for row in (0, 1):
        y = _FRAME + row * _ROW
        rect(drawn, _FRAME, y, IN_A_ROW * _STEP, _ROW - 2, 5, fill="#6f4724")
    for number in range(PLACES):
        x, y = place(number)
        circle(drawn, x + WIDE / 2, y + HIGH - 14, 3, fill="#a87b4e")


@cached_fragment(128)
def tile(drawn: Element, tile: Tile) -> None:
    """Return a tile's face, its upper left corner at the origin."""
    rect(drawn, 0, 0, WIDE, HIGH, 7, fill=_IVORY, stroke=_EDGE, stroke_width=2)
    if not tile.number:
        draw_star(drawn, (WIDE / 2, HIGH / 2 + 1), 21)
        return
    ink = COLOURS[tile.colour]
    label(drawn, (WIDE / 2, 35), str(tile.number), 33, "middle bold", fill=ink)
    draw_sign(drawn, tile.colour, (WIDE / 2, 52), 11)


@cached_fragment(32)
def backs(drawn: Element, count: int) -> None:
    """Return hidden tiles on a rack whose upper left corner is the origin."""
    for number in range(min(count, PLACES)):
        x, y = place(number)
        rect(drawn, x, y, WIDE, HIGH, 7, fill="#d9c9a0", stroke=_EDGE, stroke_width=2)
        shape(drawn, "path", d=f"M{x + 14:g} {y + 35:g}h22", stroke=_EDGE, stroke_width=3)


@cached_fragment(2)
def heap(drawn: Element) -> None:
    """Return the main stack of hidden tiles, the top one at the origin."""
    for up in (12, 8, 4, 0):
        rect(drawn, -up, up, WIDE, HIGH, 7, fill="#d9c9a0", stroke=_EDGE, stroke_width=2)


@cached_fragment(2)
def gap(drawn: Element) -> None:
    """Return the mark of an empty place for a tile."""
    rect(
        drawn, 0, 0, WIDE, HIGH, 7, fill="none", class_="k-s-faint", stroke_width=2.5, stroke_dasharray="3 7"
    )


@cached_fragment(4)
def halo(drawn: Element) -> None:
    """Return the frame of a tile that was just moved."""
    rect(drawn, -1, -1, WIDE + 2, HIGH + 2, 8, fill="none", stroke="#00a3ff", stroke_width=6)
    polygon(drawn, [(WIDE / 2 - 12, -13), (WIDE / 2 + 12, -13), (WIDE / 2, 3)], fill="#00a3ff")


def draw_sign(parent: Element, colour: str, at: tuple[float, float], size: float) -> None:
    """Draw a colour's sign with a radius of `size`: a disc, a triangle, a square, a cross."""
    x, y = at
    ink = COLOURS[colour]
    if colour == "RED":
        circle(parent, x, y, size * 0.9, fill=ink)
    elif colour == "BLUE":
        polygon(parent, [(x, y - size), (x + size * 1.1, y + size), (x - size * 1.1, y + size)], fill=ink)
    elif colour == "YELLOW":
        side = size * 1.7
        rect(parent, x - side / 2, y - side / 2, side, side, fill=ink)
    else:
        for step in (-1, 1):
            line(
                parent,
                (x - size, y - step * size),
                (x + size, y + step * size),
                stroke=ink,
                stroke_width=size / 2,
            )


def draw_star(parent: Element, at: tuple[float, float], size: float) -> None:
    """Draw the joker's sign."""
    x, y = at
    points = []
    for number in range(10):
        turn = complex(0, -1) * complex(0.80901699, 0.58778525) ** number
        out = turn * size * (1 if number % 2 == 0 else 0.45)
        points.append((x + out.real, y + out.imag))
    polygon(parent, points, fill=_JOKER)


@cached_fragment(2)
def legend(drawn: Element, across: int) -> None:
    """Return the legend of the signs, `across` of them side by side."""
    for number, colour in enumerate((*COLOURS, "joker")):
        x, y = number % across * 132.0, number // across * 38.0
        circle(drawn, x + 16, y - 9, 17, fill=_IVORY, stroke=_EDGE, stroke_width=2)
        if colour == "joker":
            draw_star(drawn, (x + 16, y - 9), 13)
        else:
            draw_sign(drawn, colour, (x + 16, y - 9), 9)
        label(drawn, (x + 40, y), colour.lower(), 24, "k-faint", 100)
