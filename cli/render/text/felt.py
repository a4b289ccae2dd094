"""The table: the edge of its felt with a title above and a remark below, and texts on it."""

from __future__ import annotations

from collections.abc import Sequence

from kiebitz.cli.render.text.canvas import Canvas, Glyphs, shorten
from kiebitz.cli.render.text.seating import Edge, Seating, SeatPlace
from kiebitz.cli.terminal.screen import Text

_FELT = "#5f875f"
_INSET = 2


class Felt(Canvas):
    """A canvas with a table on it; an empty title or remark does not interrupt its edge."""

    def __init__(self, seats: Seating, title: str, remark: str, glyphs: Glyphs) -> None:
        super().__init__(seats.rows)
        self.seats = seats
        top_left, top_right, bottom_right, bottom_left, line, side, *_ = glyphs.box
        inner = seats.felt - 2
        top, bottom = seats.y, seats.y + seats.felt_rows + 1
        self.put(seats.x, top, _edge(top_left, _label(title, inner, glyphs), inner, top_right, line))
        self.put(
            seats.x, bottom, _edge(bottom_left, _label(remark, inner, glyphs), inner, bottom_right, line)
        )
        for row in range(top + 1, bottom):
            self.put(seats.x, row, Text(side, _FELT))
            self.put(seats.x + seats.felt - 1, row, Text(side, _FELT))

    def put_inside(self, row: int, lines: Sequence[Text], edge: Edge | None = None) -> None:
        """Write lines from a row of the felt on, near its left or right edge, or centred."""
        for number, line in enumerate(lines, self.seats.y + 1 + row):
            right = self.seats.felt - line.cell_len
            x = _INSET if edge == "left" else right - _INSET if edge == "right" else right // 2
            self.put(self.seats.x + x, number, line)

    def put_seat(self, place: SeatPlace, lines: Sequence[Text], side_row: int | None = None) -> None:
        """Write lines at a seat; at a side they may begin `side_row` rows below the upper edge."""
        y = place.y
        if place.edge == "top":
            y = self.seats.y - len(lines)
        elif place.edge != "bottom" and side_row is not None:
            y = self.seats.y + side_row
        for number, line in enumerate(lines, y):
            self.put(place.column(line.cell_len), number, line)


def _label(words: str, inner: int, glyphs: Glyphs) -> str:
    return f" {shorten(words, inner - 4, glyphs)} " if words else ""


def _edge(left: str, label: str, inner: int, right: str, line: str) -> Text:
    before = (inner - len(label)) // 2
    return Text.assemble(
        (left + line * before, _FELT), (label, "bold"), (line * (inner - before - len(label)) + right, _FELT)
    )
