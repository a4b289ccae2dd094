"""What lies on a table of Mäxchen: the cup and the dice, announcements, and the players' plates."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from kiebitz.cli.drawings.shapes import Element, die, label, polygon, shape
from kiebitz.cli.drawings.sheet import Fragment, fragment, group
from kiebitz.dissectors.maexchen.dice import MIA

SMALL = 24.0
"""The least height of letters."""

_BOLD = 0.66
"""How wide a bold letter is in most fonts, in parts of its height."""

_LEATHER, _RIM, _INSIDE = "#9a5b2b", "#6e3d18", "#3f2410"
_OPEN, _SECRET = "#ffffff", "#f3d9ae"
_DIE = 110.0

Roll = Literal["none", "hidden", "secret", "open"]
"""Nobody has rolled; nobody knows what; only the roller knows; everybody sees it."""

DICE_SIZE = (440.0, 250.0)
"""Width and height of the cup with the dice."""

ANNOUNCED_SIZE = (250.0, 118.0)


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
    there = faces(dice) if roll in ("secret", "open") else []
    if not there:
        _draw_cup(place, 0, 0)
        if roll != "none":
            label(
                place,
                (0, 170),
                "?",
                120,
                fill="#fff4dc",
                font_weight="bold",
                text_anchor="middle",
            )
        return fragment(drawn)
    # Lifted where all may look below it; else its roller alone does.
    lying = shape(place, "g", transform="translate(-118 30) rotate(-24 0 110)")
    _draw_cup(lying, 0, 0)
    for number, face in enumerate(there):
        at = (-40 + number * (_DIE + 16), 110 - 46 * number)
        die(place, at, face, _DIE, _OPEN if roll == "open" else _SECRET)
    return fragment(drawn)


def _draw_cup(parent: Element, x: float, y: float) -> None:
    """The cup upside down, 220 high, its upper edge's middle at this place."""
    corners = "M-66,14Q-66,2-54,2H54Q66,2 66,14L92,190H-92Z"
    cup = shape(parent, "g", transform=f"translate({x:g} {y:g})")
    shape(cup, "path", d=corners, fill=_LEATHER, stroke=_INSIDE, stroke_width=3)
    shape(cup, "path", d="M-70,40H70L73,58H-73Z", fill=_RIM)
    shape(cup, "rect", x=-100, y=186, width=200, height=30, rx=12, fill=_RIM, stroke=_INSIDE, stroke_width=3)


@lru_cache(maxsize=512)
def announced(name: str, dice: str, is_last: bool, bluff: bool) -> Fragment:
    """What somebody announced, in a bubble, its upper left corner at the origin."""
    width, height = ANNOUNCED_SIZE
    drawn = group()
    edge = "k-card k-s-alarm" if bluff else "k-card k-s-turn" if is_last else "k-card k-s-line"
    thick = 5.0 if is_last else 2.0
    shape(
        drawn, "rect", x=3, y=3, width=width - 6, height=height - 24, rx=16, class_=edge, stroke_width=thick
    )
    if is_last:
        polygon(drawn, [(40, height - 22), (74, height - 22), (46, height - 2)], class_="k-turn")
    for number, face in enumerate(faces(dice)):
        die(drawn, (16 + 32 * 0 + number * 56, 36), face, 50)
    label(drawn, (16, 29), name or '""', SMALL, width - 30, class_="k-ink", font_weight="bold")
    words = "Mäxchen" if dice == MIA else dice
    size = SMALL if dice == MIA else 34.0
    label(drawn, (132, 72), words, size, width - 136, class_="k-ink", font_weight="bold")
    return fragment(drawn)


@lru_cache(maxsize=1024)
def plate(name: str, state: str, width: float, height: float) -> Fragment:
    """A player's place at the table; `state` is "turn", "lost" or empty."""
    drawn = group()
    edge = {"turn": "k-card k-s-turn", "lost": "k-card k-s-alarm"}.get(state, "k-card k-s-line")
    thick = 6.0 if state else 2.0
    shape(drawn, "rect", x=3, y=3, width=width - 6, height=height - 6, rx=12, class_=edge, stroke_width=thick)
    x = _draw_mark(drawn, state, 16, 27)
    room = width - x - 12
    size = max(SMALL, min(32.0, room / (_BOLD * max(1, len(name)))))
    label(drawn, (x, 38), name or '""', size, room, font_weight="bold", class_="k-ink")
    return fragment(drawn)


@lru_cache(maxsize=2048)
def row(name: str, points: str, state: str, width: float, height: float) -> Fragment:
    """A player on one line, where they are many."""
    drawn = group()
    edge = {"turn": "k-card k-s-turn", "lost": "k-card k-s-alarm"}.get(state, "k-card k-s-line")
    thick = 4.0 if state else 1.0
    shape(drawn, "rect", x=2, y=2, width=width - 4, height=height - 4, rx=6, class_=edge, stroke_width=thick)
    x = _draw_mark(drawn, state, 8, height / 2)
    base = height / 2 + 9
    room = width - x - 10 - len(points) * 15
    label(drawn, (x, base), name or '""', SMALL, room, class_="k-ink")
    label(
        drawn,
        (width - 9, base),
        points,
        SMALL,
        120,
        font_weight="bold",
        text_anchor="end",
        class_="k-ink",
    )
    return fragment(drawn)


def _draw_mark(parent: Element, state: str, x: float, y: float) -> float:
    """An arrow for the player to move, a cross for the one who lost; gives where words begin."""
    if state == "turn":
        polygon(parent, [(x, y - 11), (x + 18, y), (x, y + 11)], class_="k-turn")
    elif state == "lost":
        cross = f"M{x + 1:g},{y - 8:g}l16,16m0,-16l-16,16"
        shape(
            parent, "path", d=cross, class_="k-s-alarm", stroke_width=5, fill="none", stroke_linecap="round"
        )
    return x + (26 if state else 0)


@lru_cache(maxsize=1024)
def text(words: str, size: float, room: float, colour: str, bold: bool = False) -> Fragment:
    """A line of words that begins at its place."""
    drawn = group()
    weight = "bold" if bold else "normal"
    label(drawn, (0, 0), words, size, room, font_weight=weight, class_=colour)
    return fragment(drawn)


@lru_cache(maxsize=32)
def felt(width: float, height: float) -> Fragment:
    """The table itself."""
    drawn = group()
    shape(
        drawn,
        "rect",
        x=2,
        y=2,
        width=width - 4,
        height=height - 4,
        rx=36,
        class_="k-felt k-s-line",
        stroke_width=3,
    )
    return fragment(drawn)
