"""The text picture of a Catan table: the board and the players, or before the game the lobby."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from kiebitz.cli.render.text.canvas import ASCII, Canvas, Cells, Glyphs
from kiebitz.cli.render.text.catan_panel import (
    BLACK,
    BORDER,
    CHIP,
    COAST,
    FIELDS,
    HOT,
    HOTTEST,
    LIT,
    NARROWEST,
    RESOURCES,
    SEA,
    UNKNOWN,
    WHITE,
    draw_below,
    draw_lobby,
    draw_panel,
    ink,
    on_colour,
    owner_marks,
    short,
    spell,
)
from kiebitz.cli.render.text.pen import Pen
from kiebitz.cli.terminal.screen import Text
from kiebitz.dissectors.protocols.catan.board import Hex, Spot, spot
from kiebitz.dissectors.protocols.catan.view import CatanView, IslandView, Piece
from kiebitz.dissectors.protocols.catan.words import HAFEN, STADT, STRASSE

_WIDEST = 150
_GAP = 1
_ROWS_AROUND = 5
"""Rows of a terminal used by the title, sentences and the prompt."""


def draw_catan(view: CatanView, pen: Pen, width: int) -> list[Text]:
    """Return the lines of a table; with four players 19 rows high on a terminal of 80 columns."""
    width = min(width, _WIDEST)
    if view.is_lobby:
        return draw_lobby(view, width, pen)
    hexes = _hexes(view.island, width, pen) if view.island is not None else None
    if view.island is None or hexes is None:
        lines = draw_panel(view, width, pen)
    else:
        board = _draw_board(view.island, hexes, pen)
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


def _hexes(island: IslandView, width: int, pen: Pen) -> _Hexes | None:
    """Return the board with fields as large as the players leave room for; None if it does not fit."""
    height = pen.console.size.height - _ROWS_AROUND if pen.console.is_terminal else None
    sizes = [_Hexes(island, size) for size in _SIZES]
    for hexes in sizes:
        balanced = width - hexes.width - _GAP >= max(NARROWEST, width // 3 - 1)
        if balanced and (height is None or hexes.height <= height):
            return hexes
    return next((hexes for hexes in reversed(sizes) if hexes.width <= width), None)


_WORDS = {"Ackerland": "Acker", "Hügelland": "Hügel", "Weideland": "Weide", "Gebirge": "Berge"}
_ROBBER = {False: "▟█▙", True: "/#\\"}
_HALVES = "▐ ▌"
_HARBOUR_CORNER = {False: "•", True: "o"}
_HARBOUR_WIDTH = 5


def _draw_board(island: IslandView, hexes: _Hexes, pen: Pen) -> list[Text]:
    """Return the board as lines of `hexes.width` columns."""
    cells = Cells(hexes.width, hexes.height)
    if _in_colour(pen):
        _draw_colours(cells, island, hexes)
    else:
        _draw_outlines(cells, island, hexes, pen.glyphs)
    for place in island.land:
        _draw_field(cells, island, place, hexes, pen)
    for edge, sea, kind in island.harbours:
        _draw_harbour(cells, edge, sea, kind, hexes, pen)
    for piece in island.pieces:
        if piece.kind != STRASSE:
            _draw_building(cells, piece, hexes, pen)
    return cells.lines()


def _in_colour(pen: Pen) -> bool:
    """Return True if fields are filled with colour; otherwise they have outlines."""
    return pen.console.color_system is not None and not pen.console.no_color and pen.glyphs is not ASCII


def _draw_field(cells: Cells, island: IslandView, place: Hex, hexes: _Hexes, pen: Pen) -> None:
    """Draw the robber, the resource and the number of a field."""
    x, y = hexes.field(place)
    field = island.board.fields[place]
    colours = _in_colour(pen)
    if place == island.robber:
        cells.put(x - 1, y, _ROBBER[pen.glyphs is ASCII], BLACK if colours else "")
    word = spell(pen, _WORDS.get(field, field), 2 * hexes.size.half - 1)
    cells.put(x - len(word) // 2, y + 1, word, ink(FIELDS.get(field, UNKNOWN)) if colours else "")
    number = island.board.numbers.get(place)
    if number is None:
        return
    yields = number == island.rolled and place != island.robber
    style = f"{'bold ' if yields or number in HOTTEST else ''}{HOT if number in HOTTEST else BLACK}"
    chip = _chip(number, yields, pen)
    cells.put(x - len(chip) // 2, y + 2, chip, f"{style} on {LIT if yields else CHIP}")


def _chip(number: int, yields: bool, pen: Pen) -> str:
    """Return a number as written on its field: without colours, 6, 8 and the rolled number are marked."""
    words = str(number)[:3]
    if _in_colour(pen):
        return f" {words} "[:4]
    if yields:
        return f">{words}<"[:3]
    return f"*{words}*" if number in HOTTEST else words


def _draw_harbour(cells: Cells, edge: Spot, sea: Hex, kind: str, hexes: _Hexes, pen: Pen) -> None:
    """Draw a harbour's rate and kind in the sea, and a mark at its two corners."""
    resource = kind.removesuffix(HAFEN).strip()
    for column, row in hexes.ends(edge):
        cells.put(
            column, row, _HARBOUR_CORNER[pen.glyphs is ASCII], f"bold {BLACK}" if _in_colour(pen) else ""
        )
    style = on_colour(RESOURCES.get(resource, WHITE))
    words = ["2:1", spell(pen, short(resource, _HARBOUR_WIDTH), _HARBOUR_WIDTH)] if resource else ["3:1"]
    (left, top), (right, _) = hexes.ends(edge)
    x, y = hexes.field(sea)
    if left == right:
        # At the sea beside the land the label begins at the edge.
        for row, line in enumerate(words, top + 1):
            cells.put(left + 1 if x > left else left - len(line), row, line, style)
        return
    for step, line in enumerate(words):
        row = y + hexes.size.upright - step if y < top else y + step
        cells.put(x - len(line) // 2, row, line, style)


def _draw_building(cells: Cells, piece: Piece, hexes: _Hexes, pen: Pen) -> None:
    """Draw a village as its player's letter, a city with walls around it."""
    x, y = hexes.corner(piece.where)
    letter, colour = owner_marks(piece)
    if piece.kind == STADT:
        cells.put(x - 1, y, f"[{letter}]", on_colour(colour))
        return
    if _in_colour(pen):
        cells.put(x - 1, y, _HALVES, colour)
    cells.put(x, y, letter, on_colour(colour))


_UPPER_HALF = "▀"


# In colour.


def _draw_colours(cells: Cells, island: IslandView, hexes: _Hexes) -> None:
    """Fill the sea and the fields; draw the borders, and the roads on them.

    A cell is two nearly square pixels, one above the other.
    """
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


def _edge_colours(island: IslandView, hexes: _Hexes) -> dict[Spot, str]:
    """Return the colour of every edge of the land, those at the coast last."""
    edges = {edge for place in island.land for edge in hexes.edges(place)}
    inland = {edge: all(map(island.board.is_land, edge)) for edge in edges}
    return {
        edge: BORDER if inland[edge] else COAST for edge in sorted(edges, key=lambda edge: not inland[edge])
    }


def _inside(place: Hex, hexes: _Hexes) -> Iterator[_Cell]:
    """Yield the pixels of a field."""
    x, y = hexes.field(place)
    half, upright, slope = hexes.size.half, 2 * hexes.size.upright, 2 * hexes.size.slope
    for row in range(-slope, upright + slope + 1):
        outside = max(-row, row - upright, 0)
        reach = half * (slope - outside) // slope
        for column in range(-reach, reach + 1):
            yield x + column, 2 * y + 1 + row


def _line(edge: Spot, hexes: _Hexes) -> Iterator[_Cell]:
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


def _draw_outlines(cells: Cells, island: IslandView, hexes: _Hexes, glyphs: Glyphs) -> None:
    """Draw the edges of fields as lines, and the roads on them."""
    lines = _LINES[glyphs is ASCII]
    corners: dict[_Cell, set[_Cell]] = {}
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


def _draw_road(cells: Cells, road: Piece, hexes: _Hexes) -> None:
    letter, colour = owner_marks(road)
    for x, y, _ in _steps(hexes.ends(road.where)):
        cells.put(x, y, letter.lower(), on_colour(colour))


def _steps(ends: tuple[_Cell, _Cell]) -> Iterator[tuple[int, int, int]]:
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


def _junction(corner: _Cell, others: set[_Cell]) -> int:
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


_Cell = tuple[int, int]
"""A column and a row."""

_BESIDE = 6
"""Columns at either side, for the harbours."""

_ABOVE = 1


class _Size(msgspec.Struct, frozen=True):
    """Size of a field: half its width in columns; the rows of an upright and of a slanting edge."""

    half: int
    upright: int
    slope: int

    @property
    def pitch(self) -> int:
        """Distance in rows between two rows of fields."""
        return self.upright + self.slope


_SIZES = (_Size(6, 3, 2), _Size(5, 2, 2), _Size(4, 2, 1), _Size(3, 2, 1))
"""Largest first."""


class _Hexes:
    """The cells of an island with fields of this size.

    A field is a hexagon standing on a corner. A cell is twice as high as wide, so a field of nine columns
    and five rows looks about regular.
    """

    def __init__(self, island: IslandView, size: _Size) -> None:
        self._board = island.board
        self.size = size
        centres = [island.board.centre(place) for place in island.land]
        across = [x for x, _ in centres]
        up = [y for _, y in centres]
        self._left, self._top = min(across), max(up)
        self.width = (max(across) - self._left + 2) * size.half + 1 + 2 * _BESIDE
        self.height = (self._top - min(up)) * size.pitch + size.upright + 2 * size.slope + 1 + 2 * _ABOVE

    def field(self, place: Hex) -> _Cell:
        """Return the column of a field's middle, and the row where its upright edges begin."""
        x, y = self._board.centre(place)
        return self._column(x), self._row(y)

    def corner(self, where: Spot) -> _Cell:
        """Return the cell of a corner."""
        centres = [self._board.centre(place) for place in where]
        x = sum(x for x, _ in centres) // 3
        # Either two of the three fields are below the corner, or two are above it.
        y, above = divmod(sum(y for _, y in centres), 3)
        return self._column(x), self._row(y) - (self.size.slope if above == 2 else 0)

    def ends(self, edge: Spot) -> tuple[_Cell, _Cell]:
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
