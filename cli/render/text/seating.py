"""The table with its felt, and the geometry of the seats around it, in terminal cells.

Seats follow the order of play clockwise from the top left: top edge, right side, bottom edge, left side. The
height of seats and table differs by game.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from kiebitz.cli.render.text.canvas import Canvas, Glyphs, shorten
from kiebitz.cli.terminal.screen import Text

Edge = Literal["top", "right", "bottom", "left"]

FELT_ROWS = 11
"""Rows inside the table's edge."""

SEAT_ROWS = 2
"""A seat has a name and words below it; at a crowded side both are on one line."""

_LEAST_FELT = 46
_LEAST_SIDE = 15
NARROWEST = _LEAST_FELT + 2 * _LEAST_SIDE
"""Minimum width of a table with its seats, in columns."""

_SEAT_WIDTH = 15
_TWO_LINED = 4
"""Maximum number of seats of two lines at a side."""


class SeatPlace(msgspec.Struct, frozen=True):
    """The position of a seat: its first cell, its width, and whether it has only one line."""

    edge: Edge
    x: int
    y: int
    width: int
    one_line: bool = False

    @property
    def beside(self) -> bool:
        """True if it is at a side of the table."""
        return self.edge in ("left", "right")

    def column(self, length: int) -> int:
        """Return the first column of a line: towards the table at the sides, otherwise centred."""
        room = self.width - length
        if self.edge == "left":
            return self.x + room
        return self.x if self.edge == "right" else self.x + room // 2


class Seating(msgspec.Struct, frozen=True):
    """A table of `felt` columns, edges included, at column `x` and row `y`, and its seats.

    It has `felt_rows` inside its edges, and the picture has `rows`.
    """

    x: int
    y: int
    felt: int
    felt_rows: int
    rows: int
    places: list[SeatPlace]


def seating(
    players: int, width: int, seat_rows: int = SEAT_ROWS, felt_rows: int = FELT_ROWS, top: bool = True
) -> Seating | None:
    """Seat players in a picture of `width` columns; return None if they do not fit.

    Without the `top` edge, three players sit evenly at the others.
    """
    side = 22 if width >= 100 else min(17, (width - _LEAST_FELT) // 2)
    felt = width - 2 * side
    across = felt // _SEAT_WIDTH
    edges = 2 if top else 1
    if width < NARROWEST or players > edges * across + 2 * felt_rows:
        return None
    sides = max(0, min(players - edges, 2), players - edges * across)
    above, right, below, left = _share(players, sides, top)
    y = seat_rows if top else 0
    places = [
        *_row("top", above, 0, side, felt),
        *_column("right", right, side + felt + 1, side - 1, y + 1, seat_rows, felt_rows),
        *reversed(_row("bottom", below, y + felt_rows + 2, side, felt)),
        *reversed(_column("left", left, 0, side - 1, y + 1, seat_rows, felt_rows)),
    ]
    return Seating(side, y, felt, felt_rows, y + felt_rows + 2 + seat_rows, places)


def _share(players: int, sides: int, top: bool) -> tuple[int, int, int, int]:
    """Return the number of players at each edge, `sides` of them at the sides, as even as possible."""
    rest = players - sides
    above = (rest + 1) // 2 if top else 0
    return above, (sides + 1) // 2, rest - above, sides // 2


def _row(edge: Edge, seats: int, y: int, x: int, width: int) -> list[SeatPlace]:
    if not seats:
        return []
    each = width // seats
    return [SeatPlace(edge, x + number * each, y, each) for number in range(seats)]


def _column(
    edge: Edge, seats: int, x: int, width: int, y: int, seat_rows: int, felt_rows: int
) -> list[SeatPlace]:
    if not seats:
        return []
    one_line = seats > _TWO_LINED
    height = 1 if one_line else seat_rows
    each = felt_rows / seats
    first = y + (each - height) / 2
    return [SeatPlace(edge, x, int(first + number * each), width, one_line) for number in range(seats)]


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

    def put_seat(self, place: SeatPlace, lines: Sequence[Text], side_row: int | None) -> None:
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
