"""Words of Catan in a terminal's characters."""

from __future__ import annotations

from kiebitz.cli.render.text.canvas import ASCII
from kiebitz.cli.render.text.pen import Pen
from kiebitz.dissectors.protocols.catan.grammar import OTHER_SPELLINGS


def spell(pen: Pen, word: str, width: int = 200) -> str:
    """Return a word, without umlauts if the terminal has none."""
    return pen.words(OTHER_SPELLINGS.plain(word) if pen.glyphs is ASCII else word, width).plain


def short(resource: str, width: int) -> str:
    """Return a resource's name cut to `width` letters."""
    if len(resource) <= width:
        return resource
    return resource[:3] if width < 5 else f"{resource[: width - 1]}."
