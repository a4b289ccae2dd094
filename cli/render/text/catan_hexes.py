"""Geometry of an island in a terminal's rows and columns: fields, edges and corners.

A field is a hexagon standing on a corner. A cell is twice as high as wide, so that a field of nine columns
and five rows looks about regular.
"""

from __future__ import annotations

import msgspec

from kiebitz.dissectors.protocols.catan.board import Hex, Spot, spot
from kiebitz.dissectors.protocols.catan.view import IslandView

Cell = tuple[int, int]
"""A column and a row."""

_BESIDE = 6
"""Columns at either side, for the harbours."""

_ABOVE = 1


class Size(msgspec.Struct, frozen=True):
    """Size of a field: half its width in columns; the rows of an upright and of a slanting edge."""

    half: int
    upright: int
    slope: int

    @property
    def pitch(self) -> int:
        """Distance in rows between two rows of fields."""
        return self.upright + self.slope


SIZES = (Size(6, 3, 2), Size(5, 2, 2), Size(4, 2, 1), Size(3, 2, 1))
"""Largest first."""


class Hexes:
    """The cells of an island with fields of this size."""

    def __init__(self, island: IslandView, size: Size) -> None:
        self._board = island.board
        self.size = size
        centres = [island.board.centre(place) for place in island.land]
        across = [x for x, _ in centres]
        up = [y for _, y in centres]
        self._left, self._top = min(across), max(up)
        self.width = (max(across) - self._left + 2) * size.half + 1 + 2 * _BESIDE
        self.height = (self._top - min(up)) * size.pitch + size.upright + 2 * size.slope + 1 + 2 * _ABOVE

    def field(self, place: Hex) -> Cell:
        """Return the column of a field's middle, and the row where its upright edges begin."""
        x, y = self._board.centre(place)
        return self._column(x), self._row(y)

    def corner(self, where: Spot) -> Cell:
        """Return the cell of a corner."""
        centres = [self._board.centre(place) for place in where]
        x = sum(x for x, _ in centres) // 3
        # Either two of the three fields are below the corner, or two are above it.
        y, above = divmod(sum(y for _, y in centres), 3)
        return self._column(x), self._row(y) - (self.size.slope if above == 2 else 0)

    def ends(self, edge: Spot) -> tuple[Cell, Cell]:
        """Return the corners of an edge, the upper one first."""
        one, other = sorted(map(self.corner, self._board.ends(edge)), key=lambda cell: cell[1])
        return one, other

    def edges(self, place: Hex) -> list[Spot]:
        """Return the six edges of a field."""
        return [spot((place, other)) for other in self._board.neighbours(place)]

    def _column(self, x: int) -> int:
        return _BESIDE + (x - self._left + 1) * self.size.half

    def _row(self, y: int) -> int:
        return _ABOVE + self.size.slope + (self._top - y) * self.size.pitch
