"""The cup and the dice, announcements, plates of players without hands, and rectangular boards."""

from __future__ import annotations

from functools import lru_cache

from kiebitz.cli.render.svg.svg_canvas import (
    BOLD,
    SMALL,
    Element,
    Fragment,
    Point,
    die,
    draw_arrow,
    draw_name,
    fragment,
    group,
    label,
    line,
    polygon,
    shape,
)
from kiebitz.dissectors.game.view import Call, Dice, Grid

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
        size = max(SMALL, min(28.0, room / (BOLD * max(1, len(name)))))
        label(drawn, (x, middle + 9), name or '""', size, room, class_="k-ink")
    else:
        draw_name(drawn, x, middle + 11, name, 32, room)
    return fragment(drawn)


SQUARE = 100.0
_COLOURS = ("#1747b5", "#c41622", "#1e6b2e", "#8a5a00", "#6a1f9c", "#444444")
"""Colours of the owners, in their order on the board."""


_ROW = 0.866
"""Height of a row of hexagons without the tips below, in widths of a hexagon."""

_TIP = 0.577
"""Half of the height of a hexagon in widths."""


def grid_size(grid: Grid) -> tuple[float, float]:
    """Return width and height of a board at scale 1."""
    columns, rows = max(1, max(map(len, grid.rows), default=1)), max(1, len(grid.rows))
    if grid.is_hex:
        return SQUARE * (columns + 0.5 * (rows > 1)), SQUARE * ((rows - 1) * _ROW + 2 * _TIP)
    return SQUARE * columns, SQUARE * rows


@lru_cache(maxsize=64)
def board(grid: Grid, scale: float) -> Fragment:
    """Return a board, the middle of its upper edge at the origin."""
    drawn = group()
    square = SQUARE * scale
    width, height = (length * scale for length in grid_size(grid))
    left = -width / 2
    if grid.is_hex:
        _draw_hexagons(drawn, grid, left, square)
    else:
        _draw_squares(drawn, grid, left, (width, height), square)
    owners = sorted({*(token.owner for token in grid.tokens), *(edge.owner for edge in grid.edges)} - {""})
    colours = {owner: _COLOURS[number % len(_COLOURS)] for number, owner in enumerate(owners)}
    for edge in grid.edges:
        x, y = left + edge.x * square, edge.y * square
        end = (x + square, y) if edge.side == "above" else (x, y + square)
        style = {"stroke": colours[edge.owner]} if edge.owner else {"class_": "k-s-ink"}
        line(drawn, (x, y), end, stroke_width=9, stroke_linecap="round", **style)
    for y, row in enumerate(grid.rows):
        for x, token in enumerate(row):
            at = _middle(grid, x, y, left, square)
            if (y, x) == grid.fresh:
                side = square - 10
                edge_style: dict[str, str | float] = {"fill": "none", "class_": "k-s-turn", "stroke_width": 5}
                corner = {"x": at[0] - side / 2, "y": at[1] - side / 2, "width": side, "height": side}
                shape(drawn, "rect", rx=6, **corner, **edge_style)
            if token is not None and token.owner:
                _draw_token(drawn, token.words, at, square, colours[token.owner])
            elif token is not None:
                # A part of the board.
                _write(drawn, token.words, at, square, class_="k-faint")
    return fragment(drawn)


def _middle(grid: Grid, x: int, y: int, left: float, square: float) -> Point:
    if grid.is_hex:
        return left + (x + 0.5 + 0.5 * (y % 2)) * square, (_TIP + y * _ROW) * square
    return left + (x + 0.5) * square, (y + 0.5) * square


def _draw_squares(parent: Element, grid: Grid, left: float, size: tuple[float, float], square: float) -> None:
    width, height = size
    edges: dict[str, str | float] = {"class_": "k-card k-s-ink", "stroke_width": 4}
    shape(parent, "rect", x=left, y=0, width=width, height=height, rx=6, **edges)
    inner: dict[str, str | float] = {"class_": "k-s-line", "stroke_width": 3}
    for down in range(1, len(grid.rows)):
        line(parent, (left, down * square), (left + width, down * square), **inner)
    for across in range(1, round(width / square)):
        line(parent, (left + across * square, 0), (left + across * square, height), **inner)


def _draw_hexagons(parent: Element, grid: Grid, left: float, square: float) -> None:
    for y, row in enumerate(grid.rows):
        for x in range(len(row)):
            across, down = _middle(grid, x, y, left, square)
            corners = [
                (across + 0.5 * right * square, down + tip * _TIP * square)
                for right, tip in ((0, -1), (1, -0.5), (1, 0.5), (0, 1), (-1, 0.5), (-1, -0.5))
            ]
            polygon(parent, corners, class_="k-card k-s-ink", stroke_width=3)


def _draw_token(parent: Element, words: str, at: Point, square: float, colour: str) -> None:
    x, y = at
    shape(parent, "circle", cx=x, cy=y, r=0.44 * square, fill="#fffdf5", stroke=colour, stroke_width=3)
    _write(parent, words, at, square, font_weight="bold", fill=colour)


def _write(parent: Element, words: str, at: Point, square: float, **style: str) -> None:
    """Write words in the middle of a square."""
    x, y = at
    room = square - 8
    size = max(SMALL, min(0.7 * square, room / (BOLD * max(1, len(words)))))
    label(parent, (x, y + 0.36 * size), words, size, room, text_anchor="middle", **style)
