"""The cup and the dice, bubbles with announcements, and plates of players without hands."""

from __future__ import annotations

from functools import lru_cache

from kiebitz.cli.render.svg.pieces import BOLD, SMALL, draw_arrow, draw_name
from kiebitz.cli.render.svg.shapes import Element, die, label, polygon, shape
from kiebitz.cli.render.svg.svg_canvas import Fragment, fragment, group
from kiebitz.dissectors.game.view import Call, Dice

_LEATHER, _RIM, _INSIDE = "#9a5b2b", "#6e3d18", "#3f2410"
_SECRET = "#f3d9ae"
_DIE = 110.0

DICE_SIZE = (440.0, 250.0)
"""Width and height of the cup with the dice."""

ANNOUNCED_SIZE = (304.0, 118.0)

ONE_LINE = 70.0
"""Height below which a plate has one line."""

_POINTS = 32.0
"""Width of the points on such a plate."""

_MARKS = {"lost": "l16,16m0,-16l-16,16", "joined": "m0,9l6,7l11,-16"}
"""A cross, and a tick."""


@lru_cache(maxsize=256)
def dice_and_cup(dice: Dice, scale: float) -> Fragment:
    """Return the cup and the dice in their current state, the middle of the upper edge at the origin."""
    drawn = group()
    place = shape(drawn, "g", transform=f"scale({scale:.3g})")
    faces = dice.faces[:3]
    if dice.roll == "open" and faces:
        _draw_cup(shape(place, "g", transform="translate(-112 34) rotate(-24 0 110)"))
        for number, face in enumerate(faces):
            die(place, (-44 + number * (_DIE + 16), 110 - 46 * number), face, _DIE)
    elif dice.roll == "secret" and faces:
        # Only the player who rolled sees the dice under the cup.
        _draw_cup(place, 0.55)
        for number, face in enumerate(faces):
            die(place, (-82 + number * 84, 96), face, 80, _SECRET)
    else:
        _draw_cup(place)
        if dice.roll != "none":
            label(place, (0, 170), "?", 120, fill="#fff4dc", font_weight="bold", text_anchor="middle")
    return fragment(drawn)


def _draw_cup(parent: Element, opacity: float = 1) -> None:
    """Draw the cup upside down, 220 high, the middle of its upper edge at the origin."""
    cup = shape(parent, "g", opacity=opacity)
    edges: dict[str, str | float] = {"stroke": _INSIDE, "stroke_width": 3}
    shape(cup, "path", d="M-66,14Q-66,2-54,2H54Q66,2 66,14L92,190H-92Z", fill=_LEATHER, **edges)
    shape(cup, "path", d="M-70,40H70L73,58H-73Z", fill=_RIM)
    shape(cup, "rect", x=-100, y=186, width=200, height=30, rx=12, fill=_RIM, **edges)


@lru_cache(maxsize=1024)
def announcement(call: Call, is_last: bool, scale: float) -> Fragment:
    """Return a bubble with an announcement, its upper left corner at the origin."""
    width, height = ANNOUNCED_SIZE
    drawn = group()
    place = shape(drawn, "g", transform=f"scale({scale:.3g})")
    colour = "line" if not is_last else "alarm" if call.tone == "bad" else "turn"
    style: dict[str, str | float] = {"class_": f"k-card k-s-{colour}", "stroke_width": 5 if is_last else 2}
    shape(place, "rect", x=3, y=3, width=width - 6, height=height - 24, rx=16, **style)
    if is_last:
        polygon(place, [(40, height - 22), (74, height - 22), (46, height - 2)], class_=f"k-{colour}")
    for number, face in enumerate(call.dice[:2]):
        die(place, (16 + number * 56, 36), face, 50)
    label(place, (14, 29), call.name or '""', SMALL, width - 20, class_="k-ink")
    left = 132 if call.dice else 14
    size = max(SMALL, min(34.0, (width - left - 10) / (0.8 * max(1, len(call.words)))))
    label(place, (left, 72), call.words, size, width - left - 2, class_="k-ink", font_weight="bold")
    return fragment(drawn)


@lru_cache(maxsize=1024)
def plate(name: str, state: str, width: float, height: float) -> Fragment:
    """Return a player's plate, with one line if it is low; `state` is that of a `Seat`."""
    drawn = group()
    low = height < ONE_LINE
    colour = {"turn": "turn", "won": "turn", "lost": "alarm"}.get(state, "line")
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
        x = 27.0 if state == "turn" or state in _MARKS else 9.0
    elif state == "turn" or state in _MARKS:
        x += 26
    room = width - x - (8 + _POINTS if low else 12)
    if low:
        label(drawn, (x, middle + 9), name or '""', _size(name, room), room, class_="k-ink")
    else:
        draw_name(drawn, x, middle + 11, name, 32, room)
    return fragment(drawn)


def _size(name: str, room: float) -> float:
    """Return the letter size at which a name fits on one line."""
    return max(SMALL, min(28.0, room / (BOLD * max(1, len(name)))))
