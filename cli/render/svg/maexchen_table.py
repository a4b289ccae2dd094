"""What lies on a table of Mäxchen: the cup and the dice, announcements, and the players' plates."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from kiebitz.cli.render.svg.pieces import BOLD, SMALL, draw_arrow, draw_name
from kiebitz.cli.render.svg.shapes import Element, die, label, polygon, shape
from kiebitz.cli.render.svg.svg_canvas import Fragment, fragment, group
from kiebitz.dissectors.protocols.maexchen.dice import MIA

_LEATHER, _RIM, _INSIDE = "#9a5b2b", "#6e3d18", "#3f2410"
_SECRET = "#f3d9ae"
_DIE = 110.0

Roll = Literal["none", "hidden", "secret", "open"]
"""Nobody has rolled; nobody knows what; only the roller knows; everybody sees it."""

DICE_SIZE = (440.0, 250.0)
"""Width and height of the cup with the dice."""

ANNOUNCED_SIZE = (304.0, 118.0)

ONE_LINE = 70.0
"""Plates that are lower have one line."""

_POINTS = 32.0
"""Room for the points on such a plate."""

_MARKS = {"lost": "l16,16m0,-16l-16,16", "joins": "m0,9l6,7l11,-16"}
"""A cross, and a tick."""


def faces(dice: str) -> list[int | str]:
    """The two dice of a roll, as `5,3`; empty if it is no roll."""
    found = dice.split(",")[:3]
    if len(found) != 2:
        return []
    return [int(face) if len(face) == 1 and face in "123456" else face.strip()[:4] for face in found]


@lru_cache(maxsize=256)
def thrown(dice: str, roll: Roll, scale: float) -> Fragment:
    """The cup and the dice as they lie there, around the middle of the upper edge."""
    drawn = group()
    place = shape(drawn, "g", transform=f"scale({scale:.3g})")
    there = faces(dice)
    if roll == "open" and there:
        _draw_cup(shape(place, "g", transform="translate(-112 34) rotate(-24 0 110)"))
        for number, face in enumerate(there):
            die(place, (-44 + number * (_DIE + 16), 110 - 46 * number), face, _DIE)
    elif roll == "secret" and there:
        # Their roller looks below it, and nobody else.
        _draw_cup(place, 0.55)
        for number, face in enumerate(there):
            die(place, (-82 + number * 84, 96), face, 80, _SECRET)
    else:
        _draw_cup(place)
        if roll != "none":
            label(place, (0, 170), "?", 120, fill="#fff4dc", font_weight="bold", text_anchor="middle")
    return fragment(drawn)


def _draw_cup(parent: Element, opacity: float = 1) -> None:
    """The cup upside down, 220 high, around the middle of its upper edge."""
    cup = shape(parent, "g", opacity=opacity)
    edges: dict[str, str | float] = {"stroke": _INSIDE, "stroke_width": 3}
    shape(cup, "path", d="M-66,14Q-66,2-54,2H54Q66,2 66,14L92,190H-92Z", fill=_LEATHER, **edges)
    shape(cup, "path", d="M-70,40H70L73,58H-73Z", fill=_RIM)
    shape(cup, "rect", x=-100, y=186, width=200, height=30, rx=12, fill=_RIM, **edges)


@lru_cache(maxsize=1024)
def announced(name: str, dice: str, state: str, scale: float) -> Fragment:
    """What somebody announced, in a bubble, its upper left corner at the origin.

    The last one has `state` "last", or "bluff" where that is known to be one.
    """
    width, height = ANNOUNCED_SIZE
    drawn = group()
    place = shape(drawn, "g", transform=f"scale({scale:.3g})")
    colour = {"last": "turn", "bluff": "alarm"}.get(state, "line")
    style: dict[str, str | float] = {"class_": f"k-card k-s-{colour}", "stroke_width": 5.0 if state else 2.0}
    shape(place, "rect", x=3, y=3, width=width - 6, height=height - 24, rx=16, **style)
    if state:
        polygon(place, [(40, height - 22), (74, height - 22), (46, height - 2)], class_=f"k-{colour}")
    for number, face in enumerate(faces(dice)):
        die(place, (16 + number * 56, 36), face, 50)
    label(place, (14, 29), name or '""', SMALL, width - 20, class_="k-ink")
    words, size = ("Mäxchen", SMALL) if dice == MIA else (dice, 34.0)
    label(place, (132, 72), words, size, width - 134, class_="k-ink", font_weight="bold")
    return fragment(drawn)


@lru_cache(maxsize=1024)
def plate(name: str, state: str, width: float, height: float) -> Fragment:
    """A player's place at the table, on one line if it is low.

    The `state` is "turn", "lost", "joins" or empty.
    """
    drawn = group()
    low = height < ONE_LINE
    colour = {"turn": "turn", "lost": "alarm"}.get(state, "line")
    thick = 2.0 if colour == "line" else 4.0 if low else 6.0
    style: dict[str, str | float] = {"class_": f"k-card k-s-{colour}", "stroke_width": thick}
    shape(drawn, "rect", x=3, y=2, width=width - 6, height=height - 4, rx=6 if low else 12, **style)
    x, middle = (6.0, height / 2) if low else (16.0, height / 2 - 23)
    if state == "turn":
        draw_arrow(drawn, x, middle)
    elif state in _MARKS:
        path = f"M{x + 1:g},{middle - 8:g}{_MARKS[state]}"
        ink = "k-s-alarm" if state == "lost" else "k-s-ink"
        shape(drawn, "path", d=path, class_=ink, stroke_width=5, fill="none", stroke_linecap="round")
    if low:
        x = 27.0 if state else 9.0
    elif state == "turn" or state in _MARKS:
        x += 26
    room = width - x - (8 + _POINTS if low else 12)
    if low:
        label(drawn, (x, middle + 9), name or '""', _size(name, room), room, class_="k-ink")
    else:
        draw_name(drawn, x, middle + 11, name, 32, room)
    return fragment(drawn)


def _size(name: str, room: float) -> float:
    """Of the letters of a name on one line."""
    return max(SMALL, min(28.0, room / (BOLD * max(1, len(name)))))
