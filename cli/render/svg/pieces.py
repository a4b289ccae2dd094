"""Parts of the drawings of several games: areas of a sheet, lines of text."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from kiebitz.cli.render.svg.shapes import Element, label, polygon, shape
from kiebitz.cli.render.svg.svg_canvas import Fragment, fragment, group

SMALL = 24.0
"""Smallest letters that can be read from the seats of a room."""

BOLD = 0.66
"""Width of a bold letter in most fonts, relative to its height."""


class Box(msgspec.Struct, frozen=True):
    """A rectangle on a sheet."""

    x: float
    y: float
    width: float
    height: float


@lru_cache(maxsize=2048)
def text(
    words: str, size: float, room: float, colour: str, bold: bool = False, anchor: str = "start"
) -> Fragment:
    """Return a line of text anchored at its position; the colour is a class of the theme."""
    drawn = group()
    weight = "bold" if bold else "normal"
    label(drawn, (0, 0), words, size, room, font_weight=weight, text_anchor=anchor, class_=colour)
    return fragment(drawn)


def draw_name(parent: Element, x: float, base: float, name: str, largest: float, room: float) -> None:
    """Draw a player's name as large as it fits, bold if there is room."""
    size = max(SMALL, min(largest, room / (BOLD * max(1, len(name)))))
    weight = "bold" if size > SMALL else "normal"
    label(parent, (x, base), name or '""', size, room, font_weight=weight, class_="k-ink")


def draw_arrow(parent: Element, x: float, middle: float) -> None:
    """Draw the arrow of the player to move, 18 wide; it does not rely on colour."""
    polygon(parent, [(x, middle - 11), (x + 18, middle), (x, middle + 11)], class_="k-turn")


@lru_cache(maxsize=64)
def felt(width: float, height: float, radius: float, inset: float = 0.0) -> Fragment:
    """Return the table's felt, inset in a rectangle."""
    drawn = group()
    shape(
        drawn,
        "rect",
        x=inset,
        y=inset,
        width=width - 2 * inset,
        height=height - 2 * inset,
        rx=radius,
        class_="k-felt k-s-line",
        stroke_width=3,
    )
    return fragment(drawn)
