"""The colours of Catan's fields, resources and players' pieces.

All are among the 256 colours of nearly every terminal.
"""

from __future__ import annotations

from kiebitz.dissectors.protocols.catan.view import CatanSeat, Piece
from kiebitz.dissectors.protocols.catan.words import LAND, WÜSTE

SEA = "#87d7ff"
COAST = "#ffd7af"
BORDER = "#444444"
BLACK, WHITE = "#000000", "#ffffff"
CHIP, HOT, LIT = "#ffffd7", "#d70000", "#ffff00"
"""Colours: a number's chip, the most frequent numbers, and the chip with the rolled number."""

HOTTEST = (6, 8)
"""The most frequent numbers."""

RESOURCES = {
    "Holz": "#008700",
    "Lehm": "#d7875f",
    "Wolle": "#87d75f",
    "Getreide": "#ffd75f",
    "Erz": "#afafaf",
}
FIELDS = {**{field: RESOURCES[resource] for field, resource in LAND.items()}, WÜSTE: "#ffffaf"}
UNKNOWN = "#d0d0d0"

PLAYERS = {
    "Rot": "#d70000",
    "Orange": "#ff8700",
    "Blau": "#0000d7",
    "Weiß": "#ffffff",
    "Grün": "#00d700",
    "Braun": "#875f00",
}
NO_COLOUR = "#8a8a8a"
"""The colour of a player who has not chosen one yet."""


def colour_of(seat: CatanSeat | None) -> str:
    """Return the colour of a player's pieces."""
    return PLAYERS.get(seat.colour, NO_COLOUR) if seat is not None else NO_COLOUR


def owner_marks(piece: Piece) -> tuple[str, str]:
    """Return the letter and the colour of a piece."""
    return piece.owner.letter if piece.owner is not None else "?", colour_of(piece.owner)


def ink(colour: str) -> str:
    """Return black or white, whichever is more readable on a colour."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return BLACK if 299 * red + 587 * green + 114 * blue > 120_000 else WHITE


def on_colour(colour: str) -> str:
    """Return the style of bold letters on a piece or a label of this colour."""
    return f"bold {ink(colour)} on {colour}"
