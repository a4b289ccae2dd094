"""Okey's tiles and racks as they are drawn: ivory with coloured numbers, and a letter for each colour.

The letter is there for terminals and eyes without colours: `12b` is the blue 12. A rack has two rows of
places, some of them empty; beside the table it stands on end, so that its rows are columns.
"""

from __future__ import annotations

from collections.abc import Iterable

from kiebitz.cli.render.text.canvas import Glyphs
from kiebitz.cli.terminal.screen import Text
from kiebitz.dissectors.protocols.okey.tiles import SLOTS, Slots, is_joker, tiles

TILE_WIDTH = 3

IN_A_ROW = SLOTS // 2
"""Places in each of the two rows of a rack."""

_IVORY = "on #ffffd7"
_INKS = {"RED": "#d70000", "BLUE": "#0000d7", "YELLOW": "#af5f00", "BLACK": "#000000"}
"""On ivory a brownish yellow can be read, and black on a black terminal, too."""

_JOKER = "#8700af"
_LETTERS = {"RED": "r", "BLUE": "b", "YELLOW": "y", "BLACK": "k"}


def tile_words(tile: str, glyphs: Glyphs) -> Text:
    """A tile, as short as it goes."""
    if is_joker(tile):
        # The colour that the protocol gives it means nothing.
        return Text(glyphs.joker, f"bold {_JOKER} {_IVORY}")
    number, _, colour = tile.partition(":")
    return Text(number + _LETTERS[colour], f"bold {_INKS[colour]} {_IVORY}")


def tile_face(tile: str | None, glyphs: Glyphs) -> Text:
    """A tile, or an empty place, in `TILE_WIDTH` cells."""
    if tile is None:
        return Text(glyphs.dot.center(TILE_WIDTH), "dim")
    face = tile_words(tile, glyphs)
    if is_joker(tile):
        face.pad(1)
    face.pad_left(TILE_WIDTH - face.cell_len)
    return face


def legend(glyphs: Glyphs) -> Text:
    """What the letters on the tiles mean."""
    colours = ", ".join(f"{letter} {colour.lower()}" for colour, letter in _LETTERS.items())
    return Text(f"tiles: {colours}, {glyphs.joker} joker, [ ] just drawn", "dim")


def rack(deck: Slots, drawn: str | None, glyphs: Glyphs) -> list[Text]:
    """A rack in two lines; the tile just drawn is in brackets."""
    return [_line(row, glyphs) for row in _rows(deck, drawn)]


def rack_on_end(deck: Slots, drawn: str | None, glyphs: Glyphs) -> list[Text]:
    """A rack in two columns, its upper row first."""
    return [_line(places, glyphs) for places in zip(*_rows(deck, drawn), strict=True)]


def laid_out(deck: Slots, glyphs: Glyphs) -> Text:
    """A rack's tiles beside each other, for a picture that is too narrow for a rack."""
    return Text(" ").join(tile_words(tile, glyphs) for tile in tiles(deck))


_Place = tuple[str | None, bool]
"""A place's tile, and whether that was just drawn."""


def _rows(deck: Slots, drawn: str | None) -> list[list[_Place]]:
    # Of two tiles that are alike nobody can say which was drawn; the first stands for both.
    marked = deck.index(drawn) if drawn is not None and drawn in deck else None
    places = [(tile, place == marked) for place, tile in enumerate(deck[:SLOTS])]
    places += [(None, False)] * (SLOTS - len(places))
    return [places[:IN_A_ROW], places[IN_A_ROW:]]


def _line(places: Iterable[_Place], glyphs: Glyphs) -> Text:
    line, closing = Text(), " "
    for tile, drawn in places:
        line.append("[" if drawn else closing, "bold")
        line.append_text(tile_face(tile, glyphs))
        closing = "]" if drawn else " "
    return line.append(closing, "bold")
