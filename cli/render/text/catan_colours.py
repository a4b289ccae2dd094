"""The colours of Catan: fields, resources, and the pieces of the players, who are known by theirs.

All are of the 256 colours that nearly every terminal has.
"""

from __future__ import annotations

from kiebitz.dissectors.protocols.catan.view import CatanSeat, Piece
from kiebitz.dissectors.protocols.catan.words import LAND, WÜSTE

SEA = "#87d7ff"
COAST = "#ffd7af"
BORDER = "#444444"
BLACK, WHITE = "#000000", "#ffffff"
CHIP, HOT, LIT = "#ffffd7", "#d70000", "#ffff00"
"""A number's chip, the ink of the hottest numbers, and the chip whose number was rolled."""

HOTTEST = (6, 8)
"""The numbers that come most often."""

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
"""Of a player who has not chosen a colour yet."""


def colour_of(seat: CatanSeat | None) -> str:
    """The colour of a player's pieces."""
    return PLAYERS.get(seat.colour, NO_COLOUR) if seat is not None else NO_COLOUR


def owner_marks(piece: Piece) -> tuple[str, str]:
    """The letter and the colour of a piece."""
    return piece.owner.letter if piece.owner is not None else "?", colour_of(piece.owner)


def ink(colour: str) -> str:
    """Black or white, whichever is better to read on a colour."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return BLACK if 299 * red + 587 * green + 114 * blue > 120_000 else WHITE


def on_colour(colour: str) -> str:
    """The style of bold letters on a piece or a label of this colour."""
    return f"bold {ink(colour)} on {colour}"
