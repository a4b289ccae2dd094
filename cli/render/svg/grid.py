"""A rectangular board: squares with tokens."""

from __future__ import annotations

from functools import lru_cache

from kiebitz.cli.render.svg.pieces import BOLD, SMALL
from kiebitz.cli.render.svg.shapes import Element, Point, label, line, polygon, shape
from kiebitz.cli.render.svg.svg_canvas import Fragment, fragment, group
from kiebitz.dissectors.game.view import Grid

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
    tokens = [token for row in grid.rows for token in row if token is not None]
    owners = sorted({*(token.owner for token in tokens), *(edge.owner for edge in grid.edges)} - {""})
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
