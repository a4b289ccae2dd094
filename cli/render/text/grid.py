"""A rectangular board on a terminal: squares between lines."""

from __future__ import annotations

from kiebitz.cli.render.text.canvas import ASCII
from kiebitz.cli.render.text.pen import Pen
from kiebitz.cli.terminal.screen import Text
from kiebitz.dissectors.game.view import Grid

_WIDEST = 9
_BOX = tuple("┌┬┐├┼┤└┴┘─│")
_ASCII_BOX = tuple("+++++++++-|")


def grid_lines(grid: Grid, pen: Pen, width: int) -> list[Text]:
    """Return a board of at most `width` columns; squares that do not fit are left out."""
    columns = max(1, max((len(row) for row in grid.rows), default=1))
    tokens = [token for row in grid.rows for token in row if token is not None]
    inner = max((pen.token(token, _WIDEST - 2).cell_len for token in tokens), default=1) + 2
    inner = max(3, min(inner, (width - 1) // columns - 1))
    columns = min(columns, max(1, (width - 1) // (inner + 1)))
    *corners, line, side = _ASCII_BOX if pen.glyphs is ASCII else _BOX
    top, between, bottom = (
        Text(corners[at] + corners[at + 1].join([line * inner] * columns) + corners[at + 2])
        for at in (0, 3, 6)
    )
    lines = [top]
    for number, row in enumerate(grid.rows):
        squares = Text(side)
        for column in range(columns):
            token = row[column] if column < len(row) else None
            face = pen.token(token, inner - 2) if token is not None else Text()
            left = (inner - face.cell_len) // 2
            face.pad_left(left)
            face.pad_right(inner - face.cell_len)
            if (number, column) == grid.fresh:
                face.stylize("reverse")
            squares.append_text(face).append(side)
        lines += [squares, between if number + 1 < len(grid.rows) else bottom]
    return lines
