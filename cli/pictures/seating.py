"""Where players sit around a table: pure geometry, in terminal cells.

Seats go round clockwise in the order of play, from the top left: the top edge, the right side, the bottom
edge, the left side.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Edge = Literal["top", "right", "bottom", "left"]

FELT_ROWS = 11
"""Rows inside the table's edge."""

TABLE_ROWS = FELT_ROWS + 2
SEAT_ROWS = 2
"""A seat has a name and, below it, what there is to say; at a crowded side both stand on one line."""

ROWS = SEAT_ROWS + TABLE_ROWS + SEAT_ROWS

_SEAT_WIDTH = 15
_TWO_LINED = 4
"""So many seats of two lines fit at a side."""


class Seat(msgspec.Struct, frozen=True):
    """A seat's place: its first cell, its width, and whether it has one line only."""

    edge: Edge
    x: int
    y: int
    width: int
    one_line: bool = False


class Seating(msgspec.Struct, frozen=True):
    """A table of `felt` columns, edges included, that starts at column `x`, and its seats."""

    x: int
    felt: int
    seats: list[Seat]


def seating(players: int, width: int) -> Seating | None:
    """Seat so many players in a picture of `width` columns; None where there is no room for them."""
    side = 17 if width < 100 else 22
    felt = width - 2 * side
    across = felt // _SEAT_WIDTH
    if felt < 46 or players > 2 * (across + FELT_ROWS):
        return None
    top, right, bottom, left = _share(players, across)
    seats = [
        *_row("top", top, 0, side, felt),
        *_column("right", right, side + felt + 1, side - 1),
        *reversed(_row("bottom", bottom, SEAT_ROWS + TABLE_ROWS, side, felt)),
        *reversed(_column("left", left, 0, side - 1)),
    ]
    return Seating(side, felt, seats)


def _share(players: int, across: int) -> tuple[int, int, int, int]:
    """How many sit at each edge: the long edges first, then the sides, as even as it goes."""
    if players <= 2:
        return (players + 1) // 2, 0, players // 2, 0
    sides = max(min(players - 2, 2), players - 2 * across)
    rest = players - sides
    return (rest + 1) // 2, (sides + 1) // 2, rest // 2, sides // 2


def _row(edge: Edge, seats: int, y: int, x: int, width: int) -> list[Seat]:
    if not seats:
        return []
    each = width // seats
    return [Seat(edge, x + number * each, y, each) for number in range(seats)]


def _column(edge: Edge, seats: int, x: int, width: int) -> list[Seat]:
    if not seats:
        return []
    one_line = seats > _TWO_LINED
    height = 1 if one_line else SEAT_ROWS
    each = FELT_ROWS / seats
    first = SEAT_ROWS + 1 + (each - height) / 2
    return [Seat(edge, x, int(first + number * each), width, one_line) for number in range(seats)]
