"""The ground of Catan's board: fields and roads, filled with colour or as outlines.

In colour a cell is two nearly square pixels, one above the other. Without colours the edges of fields are
lines, and a road is its player's small letter along them.
"""

from __future__ import annotations

from collections.abc import Iterator

from kiebitz.cli.render.text.canvas import ASCII, Cells, Glyphs
from kiebitz.cli.render.text.catan_colours import BORDER, COAST, FIELDS, SEA, UNKNOWN, on_colour, owner_marks
from kiebitz.cli.render.text.catan_hexes import Cell, Hexes
from kiebitz.dissectors.protocols.catan.board import Hex, Spot
from kiebitz.dissectors.protocols.catan.view import IslandView, Piece
from kiebitz.dissectors.protocols.catan.words import STRASSE

_UPPER_HALF = "▀"


# In colour.


def draw_colours(cells: Cells, island: IslandView, hexes: Hexes) -> None:
    """Fill the sea and the fields; draw the borders, and the roads on them."""
    pixels = [[SEA] * hexes.width for _ in range(2 * hexes.height)]
    for place in island.land:
        for x, y in _inside(place, hexes):
            pixels[y][x] = FIELDS.get(island.board.fields[place], UNKNOWN)
    for edge, colour in _edge_colours(island, hexes).items():
        for x, y in _line(edge, hexes):
            pixels[y][x] = colour
    for piece in island.pieces:
        if piece.kind == STRASSE:
            for x, y in _line(piece.where, hexes):
                pixels[y][x] = owner_marks(piece)[1]
    for row in range(hexes.height):
        for column, (upper, lower) in enumerate(zip(pixels[2 * row], pixels[2 * row + 1], strict=True)):
            cells.put(column, row, " " if upper == lower else _UPPER_HALF, f"{upper} on {lower}")


def _edge_colours(island: IslandView, hexes: Hexes) -> dict[Spot, str]:
    """Return the colour of every edge of the land, those at the coast last."""
    edges = {edge for place in island.land for edge in hexes.edges(place)}
    inland = {edge: all(map(island.board.is_land, edge)) for edge in edges}
    return {
        edge: BORDER if inland[edge] else COAST for edge in sorted(edges, key=lambda edge: not inland[edge])
    }


def _inside(place: Hex, hexes: Hexes) -> Iterator[Cell]:
    """Yield the pixels of a field."""
    x, y = hexes.field(place)
    half, upright, slope = hexes.size.half, 2 * hexes.size.upright, 2 * hexes.size.slope
    for row in range(-slope, upright + slope + 1):
        outside = max(-row, row - upright, 0)
        reach = half * (slope - outside) // slope
        for column in range(-reach, reach + 1):
            yield x + column, 2 * y + 1 + row


def _line(edge: Spot, hexes: Hexes) -> Iterator[Cell]:
    """Yield the pixels along an edge; corners are at the lower pixel of their cells."""
    (x1, y1), (x2, y2) = hexes.ends(edge)
    steps = max(abs(x2 - x1), 2 * (y2 - y1))
    for step in range(steps + 1):
        # Rounded in the same way on both sides of a field.
        across = (abs(x2 - x1) * step * 2 + steps) // (2 * steps)
        down = (2 * (y2 - y1) * step * 2 + steps) // (2 * steps)
        yield x1 + (across if x2 > x1 else -across), 2 * y1 + 1 + down


# As outlines.

_LINES = {False: "─│╭╮╯╰┴┬", True: "-|..''++"}
_STRAIGHT, _UPRIGHT, _TOP_LEFT, _TOP_RIGHT, _BOTTOM_RIGHT, _BOTTOM_LEFT, _UP, _DOWN = range(8)


def draw_outlines(cells: Cells, island: IslandView, hexes: Hexes, glyphs: Glyphs) -> None:
    """Draw the edges of fields as lines, and the roads on them."""
    lines = _LINES[glyphs is ASCII]
    corners: dict[Cell, set[Cell]] = {}
    for edge in {edge for place in island.land for edge in hexes.edges(place)}:
        ends = hexes.ends(edge)
        for one, other in (ends, ends[::-1]):
            corners.setdefault(one, set()).add(other)
        for x, y, shape in _steps(ends):
            cells.put(x, y, lines[shape])
    for corner, others in corners.items():
        cells.put(*corner, lines[_junction(corner, others)])
    for piece in island.pieces:
        if piece.kind == STRASSE:
            _draw_road(cells, piece, hexes)


def _draw_road(cells: Cells, road: Piece, hexes: Hexes) -> None:
    letter, colour = owner_marks(road)
    for x, y, _ in _steps(hexes.ends(road.where)):
        cells.put(x, y, letter.lower(), on_colour(colour))


def _steps(ends: tuple[Cell, Cell]) -> Iterator[tuple[int, int, int]]:
    """Yield the cells of an edge between its corners, with the shape of the line in each.

    A slanting edge goes down in steps, each turning halfway between two rows.
    """
    (x1, y1), (x2, y2) = ends
    if x1 == x2:
        yield from ((x1, y, _UPRIGHT) for y in range(y1 + 1, y2))
        return
    way = 1 if x2 > x1 else -1
    over, under = (_TOP_RIGHT, _BOTTOM_LEFT) if way == 1 else (_TOP_LEFT, _BOTTOM_RIGHT)
    rows = y2 - y1
    at = 1
    for row in range(rows):
        turn = (abs(x2 - x1) * (2 * row + 1) + rows) // (2 * rows)
        yield from ((x1 + way * column, y1 + row, _STRAIGHT) for column in range(at, turn))
        yield x1 + way * turn, y1 + row, over
        yield x1 + way * turn, y1 + row + 1, under
        at = turn + 1
    yield from ((x1 + way * column, y2, _STRAIGHT) for column in range(at, abs(x2 - x1)))


def _junction(corner: Cell, others: set[Cell]) -> int:
    """Return the shape of a corner with lines to these others."""
    x, y = corner
    left = any(other[0] < x for other in others)
    right = any(other[0] > x for other in others)
    up = any(other[0] == x and other[1] < y for other in others)
    down = any(other[0] == x and other[1] > y for other in others)
    shapes = {
        (True, True, True, False): _UP,
        (True, True, False, True): _DOWN,
        (True, False, True, False): _BOTTOM_RIGHT,
        (False, True, True, False): _BOTTOM_LEFT,
        (True, False, False, True): _TOP_RIGHT,
        (False, True, False, True): _TOP_LEFT,
    }
    return shapes.get((left, right, up, down), _STRAIGHT)
