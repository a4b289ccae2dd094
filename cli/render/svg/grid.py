"""A rectangular board: squares with tokens."""

from __future__ import annotations

from functools import lru_cache

from kiebitz.cli.render.svg.pieces import BOLD, SMALL
from kiebitz.cli.render.svg.shapes import Element, Point, label, line, shape
from kiebitz.cli.render.svg.svg_canvas import Fragment, fragment, group
from kiebitz.dissectors.game.view import Grid

SQUARE = 100.0
_COLOURS = ("#1747b5", "#c41622", "#1e6b2e", "#8a5a00", "#6a1f9c", "#444444")
"""Colours of the owners, in their order on the board."""


def grid_size(grid: Grid) -> tuple[float, float]:
    """Return width and height of a board at scale 1."""
    return SQUARE * max(1, max(map(len, grid.rows), default=1)), SQUARE * max(1, len(grid.rows))


@lru_cache(maxsize=64)
def board(grid: Grid, scale: float) -> Fragment:
    """Return a board, the middle of its upper edge at the origin."""
    drawn = group()
    square = SQUARE * scale
    width, height = (length * scale for length in grid_size(grid))
    left = -width / 2
    edges: dict[str, str | float] = {"class_": "k-card k-s-ink", "stroke_width": 4}
    shape(drawn, "rect", x=left, y=0, width=width, height=height, rx=6, **edges)
    inner: dict[str, str | float] = {"class_": "k-s-line", "stroke_width": 3}
    for down in range(1, len(grid.rows)):
        line(drawn, (left, down * square), (left + width, down * square), **inner)
    for across in range(1, round(width / square)):
        line(drawn, (left + across * square, 0), (left + across * square, height), **inner)
    owners = sorted({token.owner for row in grid.rows for token in row if token is not None and token.owner})
    for y, row in enumerate(grid.rows):
        for x, token in enumerate(row):
            at = (left + (x + 0.5) * square, (y + 0.5) * square)
            if (y, x) == grid.fresh:
                side = square - 10
                edge: dict[str, str | float] = {"fill": "none", "class_": "k-s-turn", "stroke_width": 5}
                corner = {"x": at[0] - side / 2, "y": at[1] - side / 2, "width": side, "height": side}
                shape(drawn, "rect", rx=6, **corner, **edge)
            if token is not None and token.owner:
                colour = _COLOURS[owners.index(token.owner) % len(_COLOURS)]
                _draw_token(drawn, token.words, at, square, colour)
            elif token is not None:
                # A part of the board.
                _write(drawn, token.words, at, square, class_="k-faint")
    return fragment(drawn)


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
