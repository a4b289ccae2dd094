"""The cup and the dice, announcements, plates of players without hands, and rectangular boards."""

from __future__ import annotations

from kiebitz.cli.render.svg.svg_canvas import (
    BOLD,
    SMALL,
    Element,
    Point,
    cached_fragment,
    circle,
    die,
    draw_arrow,
    draw_name,
    draw_sign,
    label,
    line,
    polygon,
    rect,
    shape,
)
from kiebitz.dissectors.game.view import Call, Dice, Grid

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


@cached_fragment(256)
def dice_and_cup(drawn: Element, dice: Dice, scale: float) -> None:
    """Return the cup and the dice in their current state, the middle of the upper edge at the origin."""
    place = shape(drawn, "g", transform=f"scale({scale:.3g})")
    faces = dice.faces[:3]
    if dice.roll == "open" and faces:
        draw_sign(shape(place, "g", transform="translate(-112 34) rotate(-24 0 110)"), "cup", (0, 0))
        for number, face in enumerate(faces):
            die(place, (-44 + number * (_DIE + 16), 110 - 46 * number), face, _DIE)
    elif dice.roll == "secret" and faces:
        # Only the player who rolled sees the dice under the cup.
        draw_sign(place, "cup", (0, 0), opacity=0.55)
        for number, face in enumerate(faces):
            die(place, (-82 + number * 84, 96), face, 80, _SECRET)
    else:
        draw_sign(place, "cup", (0, 0))
        if dice.roll != "none":
            label(place, (0, 170), "?", 120, "bold middle", fill="#fff4dc")


@cached_fragment(1024)
def announcement(drawn: Element, call: Call, is_last: bool, scale: float) -> None:
    """Return a bubble with an announcement, its upper left corner at the origin."""
    width, height = ANNOUNCED_SIZE
    place = shape(drawn, "g", transform=f"scale({scale:.3g})")
    colour = "line" if not is_last else "alarm" if call.tone == "bad" else "turn"
    thick = 5 if is_last else 2
    rect(place, 3, 3, width - 6, height - 24, 16, class_=f"k-card k-s-{colour}", stroke_width=thick)
    if is_last:
        polygon(place, [(40, height - 22), (74, height - 22), (46, height - 2)], class_=f"k-{colour}")
    for number, face in enumerate(call.dice[:2]):
        die(place, (16 + number * 56, 36), face, 50)
    label(place, (14, 29), call.name or '""', SMALL, "k-ink", width - 20)
    left = 132 if call.dice else 14
    size = max(SMALL, min(34.0, (width - left - 10) / (0.8 * max(1, len(call.words)))))
    label(place, (left, 72), call.words, size, "k-ink bold", width - left - 2)


@cached_fragment(1024)
def plate(drawn: Element, name: str, state: str, width: float, height: float) -> None:
    """Return a player's plate, with one line if it is low; `state` is that of a `Seat`."""
    low = height < ONE_LINE
    colour = {"turn": "turn", "won": "turn", "lost": "alarm"}.get(state, "line")
    thick = 2.0 if colour == "line" else 4.0 if low else 6.0
    corner, style = 6 if low else 12, f"k-card k-s-{colour}"
    rect(drawn, 3, 2, width - 6, height - 4, corner, class_=style, stroke_width=thick)
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
        label(drawn, (x, middle + 9), name or '""', size, "k-ink", room)
    else:
        draw_name(drawn, x, middle + 11, name, 32, room)


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


@cached_fragment(64)
def board(drawn: Element, grid: Grid, scale: float) -> None:
    """Return a board, the middle of its upper edge at the origin."""
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
                x_y = at[0] - side / 2, at[1] - side / 2
                rect(drawn, *x_y, side, side, 6, fill="none", class_="k-s-turn", stroke_width=5)
            if token is not None and token.owner:
                colour = colours[token.owner]
                circle(drawn, *at, 0.44 * square, fill="#fffdf5", stroke=colour, stroke_width=3)
                _write(drawn, token.words, at, square, font_weight="bold", fill=colour)
            elif token is not None:
                # A part of the board.
                _write(drawn, token.words, at, square, class_="k-faint")


def _middle(grid: Grid, x: int, y: int, left: float, square: float) -> Point:
    if grid.is_hex:
        return left + (x + 0.5 + 0.5 * (y % 2)) * square, (_TIP + y * _ROW) * square
    return left + (x + 0.5) * square, (y + 0.5) * square


def _draw_squares(parent: Element, grid: Grid, left: float, size: tuple[float, float], square: float) -> None:
    width, height = size
    rect(parent, left, 0, width, height, 6, class_="k-card k-s-ink", stroke_width=4)
    rows = [((left, y * square), (left + width, y * square)) for y in range(1, len(grid.rows))]
    columns = [left + x * square for x in range(1, round(width / square))]
    for ends in (*rows, *(((x, 0.0), (x, height)) for x in columns)):
        line(parent, *ends, class_="k-s-line", stroke_width=3)


def _draw_hexagons(parent: Element, grid: Grid, left: float, square: float) -> None:
    for y, row in enumerate(grid.rows):
        for x in range(len(row)):
            across, down = _middle(grid, x, y, left, square)
            corners = [
                (across + 0.5 * right * square, down + tip * _TIP * square)
                for right, tip in ((0, -1), (1, -0.5), (1, 0.5), (0, 1), (-1, 0.5), (-1, -0.5))
            ]
            polygon(parent, corners, class_="k-card k-s-ink", stroke_width=3)


def _write(parent: Element, words: str, at: Point, square: float, **style: str) -> None:
    """Write words in the middle of a square."""
    x, y = at
    room = square - 8
    size = max(SMALL, min(0.7 * square, room / (BOLD * max(1, len(words)))))
    label(parent, (x, y + 0.36 * size), words, size, "middle", room, **style)
