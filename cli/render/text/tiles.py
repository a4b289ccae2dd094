"""Okey's tiles and racks as text: ivory with coloured numbers, and a letter for each colour.

The letter serves terminals and eyes without colours: `12b` is the blue 12. A rack has two rows of places,
some of them empty; beside the table it is vertical.
"""

from __future__ import annotations

from collections.abc import Iterable

from kiebitz.cli.render.text.canvas import Glyphs
from kiebitz.cli.terminal.screen import Text
from kiebitz.dissectors.game.view import Hand, Piece, Tile

TILE_WIDTH = 3

RACK_COLUMNS = 12
"""Places in each of the two rows of a rack."""

_IVORY = "on #ffffd7"
_INKS = {"RED": "#d70000", "BLUE": "#0000d7", "YELLOW": "#af5f00", "BLACK": "#000000"}
"""Colours readable on ivory: a brownish yellow; black is readable on a black terminal, too."""

_JOKER = "#8700af"
_LETTERS = {"RED": "r", "BLUE": "b", "YELLOW": "y", "BLACK": "k"}


def tile_letters(tile: Tile, glyphs: Glyphs) -> Text:
    """Return a tile in its shortest form."""
    if not tile.number:
        return Text(glyphs.joker, f"bold {_JOKER} {_IVORY}")
    return Text(f"{tile.number}{_LETTERS[tile.colour]}", f"bold {_INKS[tile.colour]} {_IVORY}")


def tile_face(tile: Piece | None, glyphs: Glyphs) -> Text:
    """Return a tile, or an empty place, in `TILE_WIDTH` cells."""
    if not isinstance(tile, Tile):
        return Text(glyphs.dot.center(TILE_WIDTH), "dim")
    face = tile_letters(tile, glyphs)
    if not tile.number:
        face.pad(1)
    face.pad_left(TILE_WIDTH - face.cell_len)
    return face


def legend(glyphs: Glyphs) -> Text:
    """Return the legend of the letters."""
    colours = ", ".join(f"{letter} {colour.lower()}" for colour, letter in _LETTERS.items())
    return Text(f"tiles: {colours}, {glyphs.joker} joker, [ ] just drawn", "dim")


def rack(hand: Hand, glyphs: Glyphs) -> list[Text]:
    """Return a rack in two lines; the tile just drawn is in brackets."""
    return [_line(row, glyphs) for row in _rows(hand)]


def rack_on_end(hand: Hand, glyphs: Glyphs) -> list[Text]:
    """Return a rack in two columns, its upper row first."""
    return [_line(places, glyphs) for places in zip(*_rows(hand), strict=True)]


_Slot = tuple[Piece | None, bool]
"""The tile of a place, and whether it was just drawn."""


def _rows(hand: Hand) -> list[list[_Slot]]:
    places = [(tile, place == hand.drawn) for place, tile in enumerate(hand.pieces[: 2 * RACK_COLUMNS])]
    places += [(None, False)] * (2 * RACK_COLUMNS - len(places))
    return [places[:RACK_COLUMNS], places[RACK_COLUMNS:]]


def _line(places: Iterable[_Slot], glyphs: Glyphs) -> Text:
    line, closing = Text(), " "
    for tile, drawn in places:
        line.append("[" if drawn else closing, "bold")
        line.append_text(tile_face(tile, glyphs))
        closing = "]" if drawn else " "
    return line.append(closing, "bold")
