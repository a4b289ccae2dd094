"""The board of Catan as a vector drawing: fields with their numbers, harbours, and what the players built."""

from __future__ import annotations

from kiebitz.cli.drawings.shapes import Element, Point, label, line, polygon, shape
from kiebitz.cli.pictures.catan_colours import (
    BLACK,
    CHIP,
    COAST,
    FIELDS,
    HOT,
    HOTTEST,
    LIT,
    RESOURCES,
    SEA,
    UNKNOWN,
    WHITE,
    ink,
)
from kiebitz.cli.pictures.catan_look import Island, Piece, owner_marks
from kiebitz.dissectors.catan.board import Place, Spot
from kiebitz.dissectors.catan.words import HAFEN, STADT, STRASSE

_HALF = 3**0.5 / 2
_SEA_BESIDE, _SEA_ABOVE = 1.0, 0.7
"""Sea around the land, for the harbours, in sides of a field."""

_OUTLINE = "#262626"

_VILLAGE = [(-0.2, 0.2), (-0.2, -0.06), (0.0, -0.25), (0.2, -0.06), (0.2, 0.2)]
_CITY = [
    (-0.34, 0.24),
    (-0.34, -0.16),
    (-0.17, -0.36),
    (0.0, -0.16),
    (0.0, -0.06),
    (0.34, -0.06),
    (0.34, 0.24),
]
"""Corners of a house, in sides of a field."""


def draw_board(parent: Element, island: Island, x: float, y: float, width: float, height: float) -> None:
    """Draw the sea in this rectangle, and the island in the middle of it as large as it fits."""
    shape(parent, "rect", x=x, y=y, width=width, height=height, rx=18, fill=SEA)
    _Drawing(parent, island, x, y, width, height).draw()


class _Drawing:
    """A board being drawn; `side` is the length of a field's side."""

    def __init__(
        self, parent: Element, island: Island, x: float, y: float, width: float, height: float
    ) -> None:
        self.parent = parent
        self.island = island
        across, up = zip(*map(island.board.centre, island.land), strict=True)
        columns = (max(across) - min(across) + 2) * _HALF + 2 * _SEA_BESIDE
        rows = (max(up) - min(up)) * 1.5 + 2 + 2 * _SEA_ABOVE
        self.side = min(width / columns, height / rows)
        middle = (max(across) + min(across)) / 2, (max(up) + min(up)) / 2
        self._origin = (
            x + width / 2 - middle[0] * _HALF * self.side,
            y + height / 2 + middle[1] * 1.5 * self.side,
        )

    def draw(self) -> None:
        land = self.island.land
        for place in land:
            self._hexagon(
                place, fill=COAST, stroke=COAST, stroke_width=0.26 * self.side, stroke_linejoin="round"
            )
        for place in land:
            fill = FIELDS.get(self.island.board.fields[place], UNKNOWN)
            self._hexagon(place, fill=fill, stroke=COAST, stroke_width=0.07 * self.side)
        for edge, sea, kind in self.island.harbours:
            self._draw_harbour(edge, sea, kind)
        for place in land:
            self._draw_field(place)
        for piece in self.island.pieces:
            if piece.kind == STRASSE:
                self._draw_road(piece)
            else:
                self._draw_house(piece)
        if self.island.robber in land:
            self._draw_robber(self.island.robber)

    def _at(self, where: Spot) -> Point:
        """Where an edge or a corner lies; a field is the spot of it alone."""
        x, y = self.island.board.point(where)
        return self._origin[0] + x * _HALF * self.side, self._origin[1] - y * 1.5 * self.side

    def _hexagon(self, place: Place, **attributes: str | float) -> None:
        x, y = self._at((place,))
        turns = [(0, -1), (_HALF, -0.5), (_HALF, 0.5), (0, 1), (-_HALF, 0.5), (-_HALF, -0.5)]
        polygon(
            self.parent,
            [(x + self.side * across, y + self.side * down) for across, down in turns],
            **attributes,
        )

    def _draw_field(self, place: Place) -> None:
        """What the field is, and its number."""
        x, y = self._at((place,))
        side = self.side
        field = self.island.board.fields[place]
        colour = FIELDS.get(field, UNKNOWN)
        label(
            self.parent,
            (x, y - 0.42 * side),
            field,
            0.2 * side,
            1.6 * side,
            fill=ink(colour),
            text_anchor="middle",
        )
        number = self.island.board.numbers.get(place)
        if number is not None:
            self._draw_number(number, (x, y + 0.14 * side), place != self.island.robber)

    def _draw_number(self, number: int, at: Point, free: bool) -> None:
        """A number's chip: below it as many pips as throws of the dice give it."""
        x, y = at
        side = self.side
        lit = free and number == self.island.rolled
        colour = HOT if number in HOTTEST else BLACK
        shape(
            self.parent,
            "circle",
            cx=x,
            cy=y,
            r=0.34 * side,
            fill=LIT if lit else CHIP,
            stroke=_OUTLINE,
            stroke_width=0.05 * side if lit else 0.02 * side,
        )
        label(
            self.parent,
            (x, y + 0.07 * side),
            str(number),
            0.32 * side,
            0.8 * side,
            fill=colour,
            font_weight="bold",
            text_anchor="middle",
        )
        pips = max(0, 6 - abs(7 - number))
        for pip in range(pips):
            left = x + (pip - (pips - 1) / 2) * 0.085 * side
            shape(self.parent, "circle", cx=left, cy=y + 0.2 * side, r=0.03 * side, fill=colour)

    def _draw_robber(self, place: Place) -> None:
        """The robber, beside the number if his field has one."""
        x, y = self._at((place,))
        side = self.side
        x, y = x + (0.52 * side if place in self.island.board.numbers else 0), y + 0.08 * side
        body = [(-0.2, 0.34), (-0.09, -0.1), (0.09, -0.1), (0.2, 0.34)]
        polygon(
            self.parent,
            [(x + side * across, y + side * down) for across, down in body],
            fill=_OUTLINE,
            stroke=WHITE,
            stroke_width=0.03 * side,
            stroke_linejoin="round",
        )
        shape(
            self.parent,
            "circle",
            cx=x,
            cy=y - 0.18 * side,
            r=0.15 * side,
            fill=_OUTLINE,
            stroke=WHITE,
            stroke_width=0.03 * side,
        )

    def _draw_harbour(self, edge: Spot, sea: Place, kind: str) -> None:
        """A harbour in the sea, with a pier to each of the corners that use it."""
        side = self.side
        (x1, y1), (x2, y2) = self._at(edge), self._at((sea,))
        x, y = x1 + (x2 - x1) * 0.62, y1 + (y2 - y1) * 0.62
        for corner in self.island.board.ends(edge):
            line(
                self.parent,
                (x, y),
                self._at(corner),
                stroke="#af875f",
                stroke_width=0.09 * side,
                stroke_linecap="round",
            )
        resource = kind.removesuffix(HAFEN).strip()
        colour = RESOURCES.get(resource, WHITE)
        shape(
            self.parent,
            "circle",
            cx=x,
            cy=y,
            r=0.37 * side,
            fill=colour,
            stroke=_OUTLINE,
            stroke_width=0.02 * side,
        )
        rate, down = ("2:1", 0.0) if resource else ("3:1", 0.1)
        for words, below, size in ((rate, down, 0.28), (resource, 0.2, 0.14)):
            label(
                self.parent,
                (x, y + below * side),
                words,
                size * side,
                side,
                fill=ink(colour),
                font_weight="bold",
                text_anchor="middle",
            )

    def _draw_road(self, road: Piece) -> None:
        one, other = (self._at(corner) for corner in self.island.board.ends(road.where))
        # It leaves room for the houses at its ends.
        inset = [(a + (b - a) * 0.14, c + (d - c) * 0.14) for (a, c), (b, d) in ((one, other), (other, one))]
        for colour, width in ((_OUTLINE, 0.19), (owner_marks(road)[1], 0.13)):
            line(
                self.parent,
                inset[0],
                inset[1],
                stroke=colour,
                stroke_width=width * self.side,
                stroke_linecap="round",
            )

    def _draw_house(self, house: Piece) -> None:
        letter, colour = owner_marks(house)
        x, y = self._at(house.where)
        corners = _CITY if house.kind == STADT else _VILLAGE
        polygon(
            self.parent,
            [(x + self.side * across, y + self.side * down) for across, down in corners],
            fill=colour,
            stroke=_OUTLINE,
            stroke_width=0.035 * self.side,
            stroke_linejoin="round",
        )
        label(
            self.parent,
            (x, y + 0.15 * self.side),
            letter,
            0.22 * self.side,
            fill=ink(colour),
            font_weight="bold",
            text_anchor="middle",
        )
