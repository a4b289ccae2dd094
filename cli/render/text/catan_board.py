"""The board of Catan on a terminal: in full colour, or as outlines without colours."""

from __future__ import annotations

from kiebitz.cli.render.text.canvas import ASCII, Cells
from kiebitz.cli.render.text.catan_colours import (
    BLACK,
    CHIP,
    FIELDS,
    HOT,
    HOTTEST,
    LIT,
    RESOURCES,
    UNKNOWN,
    WHITE,
    ink,
    on_colour,
    owner_marks,
)
from kiebitz.cli.render.text.catan_ground import draw_colours, draw_outlines
from kiebitz.cli.render.text.catan_hexes import Hexes
from kiebitz.cli.render.text.catan_words import short, spell
from kiebitz.cli.render.text.pen import Pen
from kiebitz.cli.terminal.screen import Text
from kiebitz.dissectors.protocols.catan.board import Hex, Spot
from kiebitz.dissectors.protocols.catan.view import IslandView, Piece
from kiebitz.dissectors.protocols.catan.words import HAFEN, STADT, STRASSE

_WORDS = {"Ackerland": "Acker", "Hügelland": "Hügel", "Weideland": "Weide", "Gebirge": "Berge"}
_ROBBER = {False: "▟█▙", True: "/#\\"}
_HALVES = "▐ ▌"
_HARBOUR_CORNER = {False: "•", True: "o"}
_HARBOUR_WIDTH = 5


def draw_board(island: IslandView, hexes: Hexes, pen: Pen) -> list[Text]:
    """Return the board as lines of `hexes.width` columns."""
    cells = Cells(hexes.width, hexes.height)
    if in_colour(pen):
        draw_colours(cells, island, hexes)
    else:
        draw_outlines(cells, island, hexes, pen.glyphs)
    for place in island.land:
        _draw_field(cells, island, place, hexes, pen)
    for edge, sea, kind in island.harbours:
        _draw_harbour(cells, edge, sea, kind, hexes, pen)
    for piece in island.pieces:
        if piece.kind != STRASSE:
            _draw_building(cells, piece, hexes, pen)
    return cells.lines()


def in_colour(pen: Pen) -> bool:
    """Return True if fields are filled with colour; otherwise they have outlines."""
    return pen.console.color_system is not None and not pen.console.no_color and pen.glyphs is not ASCII


def _draw_field(cells: Cells, island: IslandView, place: Hex, hexes: Hexes, pen: Pen) -> None:
    """Draw the robber, the resource and the number of a field."""
    x, y = hexes.field(place)
    field = island.board.fields[place]
    colours = in_colour(pen)
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
    if in_colour(pen):
        return f" {words} "[:4]
    if yields:
        return f">{words}<"[:3]
    return f"*{words}*" if number in HOTTEST else words


def _draw_harbour(cells: Cells, edge: Spot, sea: Hex, kind: str, hexes: Hexes, pen: Pen) -> None:
    """Draw a harbour's rate and kind in the sea, and a mark at its two corners."""
    resource = kind.removesuffix(HAFEN).strip()
    for column, row in hexes.ends(edge):
        cells.put(
            column, row, _HARBOUR_CORNER[pen.glyphs is ASCII], f"bold {BLACK}" if in_colour(pen) else ""
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


def _draw_building(cells: Cells, piece: Piece, hexes: Hexes, pen: Pen) -> None:
    """Draw a village as its player's letter, a city with walls around it."""
    x, y = hexes.corner(piece.where)
    letter, colour = owner_marks(piece)
    if piece.kind == STADT:
        cells.put(x - 1, y, f"[{letter}]", on_colour(colour))
        return
    if in_colour(pen):
        cells.put(x - 1, y, _HALVES, colour)
    cells.put(x, y, letter, on_colour(colour))
