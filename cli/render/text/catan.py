"""The text picture of a Catan table: the board and the players, or before the game the lobby."""

from __future__ import annotations

from kiebitz.cli.render.text.canvas import Canvas
from kiebitz.cli.render.text.catan_board import draw_board
from kiebitz.cli.render.text.catan_hexes import SIZES, Hexes
from kiebitz.cli.render.text.catan_panel import NARROWEST, draw_below, draw_lobby, draw_panel
from kiebitz.cli.render.text.catan_words import spell
from kiebitz.cli.render.text.pen import Pen
from kiebitz.cli.render.text.picture import Picture
from kiebitz.cli.terminal.screen import Text
from kiebitz.dissectors.protocols.catan.view import CatanView, IslandView

_WIDEST = 150
_GAP = 1
_ROWS_AROUND = 5
"""Rows of a terminal used by the title, sentences and the prompt."""


class CatanPicture(Picture):
    """A Catan table; with four players 19 rows high on a terminal of 80 columns."""

    def __init__(self, view: CatanView) -> None:
        super().__init__(view.names)
        self._view = view

    def lines(self, pen: Pen, width: int) -> list[Text]:
        return (draw_lobby if self._view.is_lobby else _table)(self._view, min(width, _WIDEST), pen)


def _table(view: CatanView, width: int, pen: Pen) -> list[Text]:
    hexes = _hexes(view.island, width, pen) if view.island is not None else None
    if view.island is None or hexes is None:
        lines = draw_panel(view, width, pen)
    else:
        board = draw_board(view.island, hexes, pen)
        room = width - hexes.width - _GAP
        if room < NARROWEST:
            lines = board + draw_panel(view, width, pen)
        else:
            panel = draw_panel(view, room, pen, len(board))
            canvas = Canvas(max(len(board), len(panel)))
            canvas.put_lines(0, 0, board)
            canvas.put_lines(hexes.width + _GAP, 0, panel)
            lines = canvas.lines()
    lines += draw_below(view, width, pen)
    for remark in filter(None, (view.no_island, view.unknown)):
        lines += pen.wrap(Text(spell(pen, remark), "dim"), width, 2)
    return lines


def _hexes(island: IslandView, width: int, pen: Pen) -> Hexes | None:
    """Return the board with fields as large as the players leave room for; None if it does not fit."""
    height = pen.console.size.height - _ROWS_AROUND if pen.console.is_terminal else None
    sizes = [Hexes(island, size) for size in SIZES]
    for hexes in sizes:
        balanced = width - hexes.width - _GAP >= max(NARROWEST, width // 3 - 1)
        if balanced and (height is None or hexes.height <= height):
            return hexes
    return next((hexes for hexes in reversed(sizes) if hexes.width <= width), None)
