"""The words for Okey's tiles and stacks, in sentences and in views."""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.grammar.sentences import UNKNOWN, coded, each
from kiebitz.dissectors.protocols.okey.tiles import COLOURS, is_joker

EMPTY = "–"
"""The sign for an exchange stack without a tile."""

stack_words = coded({"e": "the left stack", "m": "the main stack"})
"""The words for the stack that a tile is drawn from; the exchange stack to draw from is the left one."""


def tile_words(tile: Any) -> str:
    """Return a tile in words: `red 9`."""
    if not isinstance(tile, str):
        return UNKNOWN
    if is_joker(tile):
        # The joker's colour in the protocol has no meaning.
        return "joker"
    number, _, colour = tile.partition(":")
    return f"{colour.lower()} {number}" if colour in COLOURS else tile


deck_words = each(tile_words)
"""The words for the tiles of a deck."""

exchange_words = each(lambda tile: EMPTY if tile is None else tile_words(tile))
"""The words for the four exchange stacks: the tile on top of each."""
