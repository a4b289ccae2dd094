"""The board of Catan: one fragment for its unchanging ground, and small ones for what changes.

Signs distinguish fields and resources without colour; a field has the sign of its resource.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import atan2, degrees

from kiebitz.cli.render.svg.svg_canvas import (
    SMALL,
    Element,
    Point,
    Sheet,
    cached_fragment,
    circle,
    draw_sign,
    fragment,
    group,
    label,
    line,
    polygon,
    rect,
    shape,
)
from kiebitz.cli.render.text.catan_panel import HOTTEST, ink
from kiebitz.dissectors.protocols.catan.board import Board, Hex, Spot
from kiebitz.dissectors.protocols.catan.view import CatanSeat, IslandView, Piece
from kiebitz.dissectors.protocols.catan.words import HAFEN, LAND, STADT, STRASSE, WÜSTE

SEA, SHALLOWS, SAND = "#5aa9d6", "#8fcdec", "#f4e3b4"
OUTLINE = "#262626"
BLACK, WHITE = "#111111", "#ffffff"
CHIP, HOT, LIT = "#fffbe6", "#c4001a", "#ffe600"
"""Colours: a number's chip, the most frequent numbers, and the mark of the last change."""

RESOURCES = {
    "Holz": "#4f9d5b",
    "Lehm": "#d98559",
    "Wolle": "#a8d672",
    "Getreide": "#f4cf55",
    "Erz": "#a9b2bd",
}
FIELDS = {**{field: RESOURCES[resource] for field, resource in LAND.items()}, WÜSTE: "#ecdca4"}
UNKNOWN = "#d4d4d4"

PLAYERS = {
    "Rot": "#d3261c",
    "Orange": "#ff9326",
    "Blau": "#1d3fbf",
    "Weiß": "#ffffff",
    "Grün": "#1fb43c",
    "Braun": "#7a4a21",
}
NO_COLOUR = "#8a8a8a"


def draw_field_sign(parent: Element, what: str, at: Point, size: float) -> bool:
    """Draw the sign of a field or a resource in a square around a point; return False if it has none."""
    return draw_sign(parent, LAND.get(what, what), at, size / 20)


_HALF = 3**0.5 / 2
_BESIDE, _ABOVE = 0.98, 0.7
"""Width of the sea around the land, for harbours, in sides of a field."""

_TURNS = [(0, -1), (_HALF, -0.5), (_HALF, 0.5), (0, 1), (-_HALF, 0.5), (-_HALF, -0.5)]
"""Corners of a field, in sides of a field."""

_TOO_SMALL = 42.0
"""Fields with shorter sides have no numbers, and their buildings no letters."""

_CHIP_DOWN = 0.25
"""Distance of a number below the middle of its field, in sides of a field."""

_VILLAGE = [(-0.21, 0.2), (-0.21, -0.1), (0.0, -0.3), (0.21, -0.1), (0.21, 0.2)]
_CITY = [
    (-0.36, 0.26),
    (-0.36, -0.2),
    (-0.2, -0.42),
    (-0.04, -0.2),
    (-0.04, -0.1),
    (0.36, -0.1),
    (0.36, 0.26),
]
"""Corners of a building, in sides of a field."""


def marks(player: CatanSeat | None) -> tuple[str, str]:
    """Return the letter and the colour of a player's pieces."""
    if player is None:
        return "?", NO_COLOUR
    return player.letter, PLAYERS.get(player.colour, NO_COLOUR)


class Ground:
    """An island's position in a rectangle filled with sea; `side` is the length of a field's side."""

    def __init__(self, island: IslandView, x: float, y: float, width: float, height: float) -> None:
        self._x, self._y, self._width, self._height = x, y, width, height
        self._board = island.board
        self.side, self._middle = _measures(island, width, height)

    def at(self, where: Spot) -> Point:
        """Return the position of an edge or a corner; a field is given as a spot of its own."""
        return _at(self._board, where, self.side, self._middle, (self._x, self._y))

    def put(self, sheet: Sheet) -> None:
        """Draw the sea and the fields."""
        board = self._board
        ground = _ground(
            tuple(board.fields.items()),
            tuple(board.numbers.items()),
            tuple(board.harbours.items()),
            self._width,
            self._height,
        )
        sheet.put(ground, self._x, self._y)


def put_board(sheet: Sheet, island: IslandView, ground: Ground, fresh: Spot, apart: int) -> None:
    """Draw an island, with a mark at the `fresh` spot.

    If there are more buildings than `apart`, each player's are one fragment.
    """
    ground.put(sheet)
    side = ground.side
    if fresh:
        sheet.put(_mark(side), *ground.at(fresh))
    _put_lit(sheet, island, ground)
    if len(island.pieces) <= apart:
        for piece in island.pieces:
            sheet.put(_piece(*_look(piece, island, ground)), *ground.at(piece.where))
    else:
        _put_together(sheet, island, ground)
    if island.robber in island.board.fields and island.board.is_land(island.robber):
        x, y = ground.at((island.robber,))
        sheet.put(_robber(max(side, 54.0)), x + 0.53 * side, y + (_CHIP_DOWN - 0.04) * side)


def _put_lit(sheet: Sheet, island: IslandView, ground: Ground) -> None:
    """Draw the chips with the rolled number, except the robber's."""
    if island.rolled is None or ground.side < _TOO_SMALL:
        return
    for place, number in island.board.numbers.items():
        if number == island.rolled and place != island.robber and island.board.is_land(place):
            x, y = ground.at((place,))
            sheet.put(_chip(number, (0, 0), ground.side, LIT), x, y + _CHIP_DOWN * ground.side)


def _put_together(sheet: Sheet, island: IslandView, ground: Ground) -> None:
    owners: dict[int, list[Piece]] = {}
    for piece in island.pieces:
        owners.setdefault(piece.owner.number if piece.owner else -1, []).append(piece)
    # Houses cover the ends of roads.
    for kind in (True, False):
        for pieces in owners.values():
            drawn = group()
            for piece in pieces:
                if (piece.kind == STRASSE) == kind:
                    x, y = ground.at(piece.where)
                    place = shape(drawn, "g", transform=f"translate({x:.1f} {y:.1f})")
                    _draw_piece(place, *_look(piece, island, ground))
            if len(drawn):
                sheet.put(fragment(drawn), 0, 0)


def _measures(island: IslandView, width: float, height: float) -> tuple[float, Point]:
    """Return the length of a field's side and the island's origin in a rectangle of this size."""
    across, up = zip(*map(island.board.centre, island.land), strict=True)
    columns = (max(across) - min(across) + 2) * _HALF + 2 * _BESIDE
    rows = (max(up) - min(up)) * 1.5 + 2 + 2 * _ABOVE
    side = min(width / columns, height / rows, 130.0)
    middle = (max(across) + min(across)) / 2, (max(up) + min(up)) / 2
    return side, (width / 2 - middle[0] * _HALF * side, height / 2 + middle[1] * 1.5 * side)


def _at(board: Board, where: Spot, side: float, middle: Point, corner: Point = (0, 0)) -> Point:
    x, y = board.point(where)
    return corner[0] + middle[0] + x * _HALF * side, corner[1] + middle[1] - y * 1.5 * side


# Ground.


@cached_fragment(16)
def _ground(
    drawn: Element,
    fields: tuple[tuple[Hex, str], ...],
    numbers: tuple[tuple[Hex, int], ...],
    harbours: tuple[tuple[Spot, str], ...],
    width: float,
    height: float,
) -> None:
    """Return a rectangle of sea, its upper left corner at the origin, with the fields in its middle."""
    board = Board(dict(fields), dict(numbers), dict(harbours))
    island = IslandView(board, None, [], None)
    side, middle = _measures(island, width, height)
    rect(drawn, 0, 0, width, height, 18, fill=SEA)
    centres = {place: _at(board, (place,), side, middle) for place in island.land}
    outlines = "".join(f"M{_path(_hexagon(centre, side))}Z" for centre in centres.values())
    for colour, beyond in ((SHALLOWS, 0.7), (SAND, 0.26)):
        shape(
            drawn,
            "path",
            d=outlines,
            fill=colour,
            stroke=colour,
            stroke_width=beyond * side,
            stroke_linejoin="round",
        )
    for edge, sea, kind in island.harbours:
        ends = [_at(board, end, side, middle) for end in board.ends(edge)]
        coast, open_sea = (_at(board, where, side, middle) for where in (edge, (sea,)))
        _draw_harbour(drawn, coast, open_sea, ends, kind.removesuffix(HAFEN).strip(), side)
    for place, centre in centres.items():
        _draw_field(drawn, board.fields[place], board.numbers.get(place), centre, side)


def draw_key(parent: Element, x: float, y: float, width: float) -> None:
    """Draw the legend of the fields in two rows: their names and resources."""
    side = width / 6.4
    for number, (field, yielded) in enumerate([*LAND.items(), (WÜSTE, "")]):
        row, column = divmod(number, 3)
        at = (x + (column + 0.5) * width / 3, y + (1.06 + 2.12 * row) * side)
        polygon(parent, _hexagon(at, side), fill=FIELDS[field], stroke=SAND, stroke_width=0.06 * side)
        draw_field_sign(parent, field, (at[0], at[1] - 0.42 * side), 0.56 * side)
        for words, down, style in ((field, 0.2, "bold middle"), (yielded, 0.52, "middle")):
            label(parent, (at[0], at[1] + down * side), words, SMALL, style, 1.7 * side, fill=BLACK)


def _hexagon(centre: Point, side: float) -> list[Point]:
    return [(centre[0] + across * side, centre[1] + down * side) for across, down in _TURNS]


def _path(points: Iterable[Point]) -> str:
    return "L".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _draw_field(parent: Element, field: str, number: int | None, centre: Point, side: float) -> None:
    colour = FIELDS.get(field, UNKNOWN)
    polygon(parent, _hexagon(centre, side), fill=colour, stroke=SAND, stroke_width=0.07 * side)
    x, y = centre
    up, size = (0.4, 0.5) if number is not None else (0.0, 0.8)
    if not draw_field_sign(parent, field, (x, y - up * side), size * side) and side >= _TOO_SMALL:
        size = max(SMALL, 0.27 * side)
        label(parent, (x, y - 0.4 * side), field, size, "middle", 1.58 * side, fill=ink(colour))
    if number is not None and side >= _TOO_SMALL:
        _draw_chip(parent, number, (x, y + _CHIP_DOWN * side), side, CHIP)


def _draw_chip(parent: Element, number: int, at: Point, side: float, ground: str) -> None:
    """Draw a number with its pips: the number of throws that give it."""
    x, y = at
    colour = HOT if number in HOTTEST else BLACK
    radius = max(20.0, 0.35 * side)
    lit = ground == LIT
    circle(
        parent,
        x,
        y,
        radius * (1.12 if lit else 1),
        fill=ground,
        stroke=OUTLINE,
        stroke_width=5 if lit else 1.5,
    )
    size = max(SMALL, 0.42 * side)
    label(parent, (x, y + 0.27 * size), str(number), size, "bold middle", 2.4 * radius, fill=colour)
    pips = max(0, 6 - abs(7 - number))
    for pip in range(pips):
        left = x + (pip - (pips - 1) / 2) * 0.26 * radius
        circle(parent, left, y + 0.66 * radius, 0.09 * radius, fill=colour)


def _draw_harbour(
    parent: Element, coast: Point, sea: Point, ends: list[Point], resource: str, side: float
) -> None:
    """Draw a harbour with a pier to each of its corners."""
    x, y = (a + (b - a) * 0.61 for a, b in zip(coast, sea, strict=True))
    for end in ends:
        line(parent, (x, y), end, stroke="#8a6238", stroke_width=0.09 * side, stroke_linecap="round")
    radius = 0.4 * side
    ground = RESOURCES.get(resource, WHITE)
    circle(parent, x, y, radius, fill=ground, stroke=OUTLINE, stroke_width=1.5)
    size = max(SMALL, 0.3 * side)
    rate = "2:1" if resource else "3:1"
    has_words = side >= 60 or (not resource and side >= _TOO_SMALL)
    if resource:
        draw_field_sign(parent, resource, (x, y + (0.36 * radius if has_words else 0)), radius * 0.85)
    if has_words:
        base = y + (-0.18 * radius if resource else 0.36 * size)
        label(parent, (x, base), rate, size, "bold middle", fill=BLACK)


# Changing parts.


_chip = cached_fragment(64)(_draw_chip)


@cached_fragment(16)
def _mark(drawn: Element, side: float) -> None:
    """Return the mark of the last change."""
    circle(drawn, 0, 0, 0.42 * side, fill=LIT, stroke=OUTLINE, stroke_width=2)


@cached_fragment(16)
def _robber(drawn: Element, side: float) -> None:
    edge: dict[str, str | float] = {"fill": OUTLINE, "stroke": WHITE, "stroke_width": 0.035 * side}
    body = [(-0.22, 0.34), (-0.1, -0.1), (0.1, -0.1), (0.22, 0.34)]
    polygon(drawn, [(side * x, side * y) for x, y in body], stroke_linejoin="round", **edge)
    circle(drawn, 0, -0.2 * side, 0.16 * side, **edge)


def _look(piece: Piece, island: IslandView, ground: Ground) -> tuple[str, str, str, int, float]:
    """Return what a piece is drawn from: letter, colour, kind, slope of a road, side of a field."""
    slope = 0
    if piece.kind == STRASSE:
        (x1, y1), (x2, y2) = (ground.at(end) for end in island.board.ends(piece.where))
        slope = round(degrees(atan2(y2 - y1, x2 - x1))) % 180
    return *marks(piece.owner), piece.kind, slope, ground.side


def _draw_piece(parent: Element, letter: str, colour: str, kind: str, slope: int, side: float) -> None:
    if kind == STRASSE:
        _draw_road(parent, letter, colour, slope, side)
    else:
        _draw_house(parent, letter, colour, kind, side)


_piece = cached_fragment(384)(_draw_piece)


def _draw_road(parent: Element, letter: str, colour: str, slope: int, side: float) -> None:
    """Draw a road in the middle of its edge, with room for houses at the ends."""
    has_letter = side >= _TOO_SMALL
    long, wide = 0.66 * side, max(21.0, 0.25 * side) if has_letter else 0.25 * side
    rect(
        parent,
        -long / 2,
        -wide / 2,
        long,
        wide,
        0.3 * wide,
        transform=f"rotate({slope})",
        fill=colour,
        stroke=OUTLINE,
        stroke_width=2,
    )
    if has_letter:
        _draw_letter(parent, letter, colour, 0.36 * SMALL, SMALL)


def _draw_house(parent: Element, letter: str, colour: str, kind: str, side: float) -> None:
    has_letter = side >= _TOO_SMALL
    scale = max(side, 74.0) if has_letter else side
    corners = _CITY if kind == STADT else _VILLAGE
    polygon(
        parent,
        [(scale * across, scale * down) for across, down in corners],
        fill=colour,
        stroke=OUTLINE,
        stroke_width=2.5,
        stroke_linejoin="round",
    )
    if has_letter:
        _draw_letter(parent, letter, colour, 0.17 * scale, max(SMALL, 0.3 * scale))


def _draw_letter(parent: Element, letter: str, colour: str, down: float, size: float) -> None:
    label(parent, (0, down), letter, size, "bold middle", fill=ink(colour))
