"""A board on a terminal: squares or hexagons between lines."""

from __future__ import annotations

from collections.abc import Mapping

from kiebitz.cli.render.text.canvas import ASCII, Canvas
from kiebitz.cli.render.text.pen import Pen
from kiebitz.cli.terminal.screen import Text
from kiebitz.dissectors.game.view import Edge, Grid

_WIDEST = 9
_GAP = 3
"""Columns between two boards."""

_CORNERS = " ╶╴─╷┌┐┬╵└┘┴│├┤┼"
"""Characters by the lines that meet there: 8 above, 4 below, 2 left, 1 right."""

_Key = tuple[int, int, str]


class _Board:
    """The lines of a board; `step` is the width of a cell with one of its sides."""

    def __init__(self, grid: Grid, pen: Pen, width: int) -> None:
        self._grid = grid
        self._pen = pen
        self._is_ascii = pen.glyphs is ASCII
        columns = max(1, max((len(row) for row in grid.rows), default=1))
        inner = max((pen.token(token, _WIDEST - 2).cell_len for token in grid.tokens), default=1) + 2
        room = 2 * width // (2 * columns + 1) if grid.is_hex else (width - 1) // columns
        inner = max(3, min(inner, room - 1))
        # So that half a cell is a whole number of characters.
        inner -= grid.is_hex and inner % 2 == 0
        self._step = inner + 1
        self._columns = min(columns, max(1, (width - 1 - self._shift(1)) // self._step))
        self._edges: Mapping[_Key, Edge] = {(edge.x, edge.y, edge.side): edge for edge in grid.edges}

    def _shift(self, row: int) -> int:
        return self._step // 2 if self._grid.is_hex and row % 2 else 0

    def lines(self) -> list[Text]:
        """Return the lines from above to below."""
        count = len(self._grid.rows)
        lines = [self._pen.name(self._grid.owner)] if self._grid.owner else []
        lines.append(self._between(0))
        for row in range(count):
            lines += [self._cells(row), self._between(row + 1)]
        return lines

    def _between(self, row: int) -> Text:
        """Return the line above a row."""
        count = len(self._grid.rows)
        sides = [
            {self._shift(each) + column * self._step for column in range(self._columns + 1)}
            if 0 <= each < count
            else set()
            for each in (row - 1, row)
        ]
        both = sides[0] | sides[1]
        first, last = min(both), max(both)
        line = Text(" " * first)
        for at in range(first, last + 1):
            meets = 8 * (at in sides[0]) + 4 * (at in sides[1]) + 2 * (at > first) + (at < last)
            edge = None if at in both else self._edges.get((at // self._step, row, "above"))
            if edge is not None:
                line.append_text(self._pen.coloured("=" if self._is_ascii else "━", edge.owner))
            elif self._is_ascii:
                line.append("+" if at in both else "-")
            else:
                line.append(_CORNERS[meets])
        return line

    def _cells(self, row: int) -> Text:
        line = Text(" " * self._shift(row))
        given = self._grid.rows[row]
        inner = self._step - 1
        for column in range(self._columns):
            line.append_text(self._side(column, row))
            token = given[column] if column < len(given) else None
            face = self._pen.token(token, inner - 2) if token is not None else Text()
            face.pad_left((inner - face.cell_len) // 2)
            face.pad_right(inner - face.cell_len)
            if (row, column) == self._grid.fresh:
                face.stylize("reverse")
            line.append_text(face)
        return line.append_text(self._side(self._columns, row))

    def _side(self, column: int, row: int) -> Text:
        edge = self._edges.get((column, row, "left"))
        if edge is not None:
            return self._pen.coloured("#" if self._is_ascii else "┃", edge.owner)
        return Text("|" if self._is_ascii else "│")


def grid_lines(grid: Grid, pen: Pen, width: int) -> list[Text]:
    """Return boards in at most `width` columns, beside each other if all cells fit, else below each other.

    Cells that do not fit are left out.
    """
    boards = [_Board(each, pen, width).lines() for each in grid.all_boards]
    widths = [max(line.cell_len for line in lines) for lines in boards]
    if sum(widths) + _GAP * (len(widths) - 1) > width:
        return [line for lines in boards for line in lines]
    canvas = Canvas(max(map(len, boards)))
    left = 0
    for lines, wide in zip(boards, widths, strict=True):
        canvas.put_lines(left, 0, lines)
        left += wide + _GAP
    return canvas.lines()
