"""Words of Catan as a terminal can show them."""

from __future__ import annotations

from kiebitz.cli.render.text.canvas import ASCII
from kiebitz.cli.render.text.pen import Pen
from kiebitz.dissectors.protocols.catan.words import in_ascii


def spelt(pen: Pen, word: str, width: int = 200) -> str:
    """A word as a terminal can show it: without umlauts if it has none."""
    return pen.words(in_ascii(word) if pen.glyphs is ASCII else word, width).plain


def short(resource: str, width: int) -> str:
    """A resource in so many letters."""
    if len(resource) <= width:
        return resource
    return resource[:3] if width < 5 else f"{resource[: width - 1]}."
