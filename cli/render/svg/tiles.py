"""Okey's tiles and racks as fragments; each colour also has a sign below its number."""

from __future__ import annotations

from functools import lru_cache

from kiebitz.cli.render.svg.svg_canvas import Element, Fragment, fragment, group, label, line, polygon, shape
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


@lru_cache(maxsize=2)
def rack() -> Fragment:
    """Return an empty rack."""
    drawn = group()
    shape(
        drawn,
        "rect",
        width=RACK_WIDE,
        height=RACK_HIGH,
        rx=10,
        fill="#8b5e34",
        stroke="#5d3c1d",
        stroke_width=3,
    )
    for row in (0, 1):
        y = _FRAME + row * _ROW
        shape(drawn, "rect", x=_FRAME, y=y, width=IN_A_ROW * _STEP, height=_ROW - 2, rx=5, fill="#6f4724")
    for number in range(PLACES):
        x, y = place(number)
        shape(drawn, "circle", cx=x + WIDE / 2, cy=y + HIGH - 14, r=3, fill="#a87b4e")
    return fragment(drawn)


@lru_cache(maxsize=128)
def tile(tile: Tile) -> Fragment:
    """Return a tile's face, its upper left corner at the origin."""
    drawn = group()
    shape(drawn, "rect", width=WIDE, height=HIGH, rx=7, fill=_IVORY, stroke=_EDGE, stroke_width=2)
    if not tile.number:
        draw_star(drawn, (WIDE / 2, HIGH / 2 + 1), 21)
        return fragment(drawn)
    ink = COLOURS[tile.colour]
    label(drawn, (WIDE / 2, 35), str(tile.number), 33, text_anchor="middle", font_weight="bold", fill=ink)
    draw_sign(drawn, tile.colour, (WIDE / 2, 52), 11)
    return fragment(drawn)


@lru_cache(maxsize=32)
def backs(count: int) -> Fragment:
    """Return hidden tiles on a rack whose upper left corner is the origin."""
    drawn = group()
    for number in range(min(count, PLACES)):
        x, y = place(number)
        shape(
            drawn,
            "rect",
            x=x,
            y=y,
            width=WIDE,
            height=HIGH,
            rx=7,
            fill="#d9c9a0",
            stroke=_EDGE,
            stroke_width=2,
        )
        shape(drawn, "path", d=f"M{x + 14:g} {y + 35:g}h22", stroke=_EDGE, stroke_width=3)
    return fragment(drawn)


@lru_cache(maxsize=2)
def heap() -> Fragment:
    """Return the main stack of hidden tiles, the top one at the origin."""
    drawn = group()
    for up in (12, 8, 4, 0):
        shape(
            drawn,
            "rect",
            x=-up,
            y=up,
            width=WIDE,
            height=HIGH,
            rx=7,
            fill="#d9c9a0",
            stroke=_EDGE,
            stroke_width=2,
        )
    return fragment(drawn)


@lru_cache(maxsize=2)
def gap() -> Fragment:
    """Return the mark of an empty place for a tile."""
    drawn = group()
    shape(
        drawn,
        "rect",
        width=WIDE,
        height=HIGH,
        rx=7,
        fill="none",
        class_="k-s-faint",
        stroke_width=2.5,
        stroke_dasharray="3 7",
    )
    return fragment(drawn)


@lru_cache(maxsize=4)
def halo() -> Fragment:
    """Return the frame of a tile that was just moved."""
    drawn = group()
    shape(
        drawn,
        "rect",
        x=-1,
        y=-1,
        width=WIDE + 2,
        height=HIGH + 2,
        rx=8,
        fill="none",
        stroke="#00a3ff",
        stroke_width=6,
    )
    polygon(drawn, [(WIDE / 2 - 12, -13), (WIDE / 2 + 12, -13), (WIDE / 2, 3)], fill="#00a3ff")
    return fragment(drawn)


def draw_sign(parent: Element, colour: str, at: tuple[float, float], size: float) -> None:
    """Draw a colour's sign with a radius of `size`: a disc, a triangle, a square, a cross."""
    x, y = at
    ink = COLOURS[colour]
    if colour == "RED":
        shape(parent, "circle", cx=x, cy=y, r=size * 0.9, fill=ink)
    elif colour == "BLUE":
        polygon(parent, [(x, y - size), (x + size * 1.1, y + size), (x - size * 1.1, y + size)], fill=ink)
    elif colour == "YELLOW":
        side = size * 1.7
        shape(parent, "rect", x=x - side / 2, y=y - side / 2, width=side, height=side, fill=ink)
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


@lru_cache(maxsize=2)
def legend(across: int) -> Fragment:
    """Return the legend of the signs, `across` of them side by side."""
    drawn = group()
    for number, colour in enumerate((*COLOURS, "joker")):
        x, y = number % across * 132.0, number // across * 38.0
        shape(drawn, "circle", cx=x + 16, cy=y - 9, r=17, fill=_IVORY, stroke=_EDGE, stroke_width=2)
        if colour == "joker":
            draw_star(drawn, (x + 16, y - 9), 13)
        else:
            draw_sign(drawn, colour, (x + 16, y - 9), 9)
        label(drawn, (x + 40, y), colour.lower(), 24, 100, class_="k-faint")
    return fragment(drawn)
