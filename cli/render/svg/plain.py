"""A table as its terminal picture, row by row, where a protocol has no drawing of its own."""

from __future__ import annotations

import io
import re
from functools import lru_cache

from kiebitz.cli.render.svg.shapes import shape
from kiebitz.cli.render.svg.svg_canvas import Fragment, Sheet, fragment, group
from kiebitz.cli.render.text import draw
from kiebitz.cli.terminal.screen import Console
from kiebitz.dissectors.game.view import Scene
from kiebitz.services.evidence.cells import cell_len

_SIZE = 26.0
"""Of the letters."""

_WIDE, _HIGH = 15.7, 34.0
"""A cell of the terminal."""

_FONT = "Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"


_WORD = re.compile(r"\S+")


def draw_plain(protocol: str, scene: Scene, sheet: Sheet) -> None:
    """Draw the rows for which there is room; the rest is told in a word."""
    console = Console(file=io.StringIO(), width=int(sheet.width / _WIDE), force_terminal=False)
    rows = ["".join(piece.text for piece in row) for row in console.render_lines(draw(protocol, scene))]
    room = int(sheet.height / _HIGH)
    if len(rows) > room:
        rows[room - 1 :] = [f"and {len(rows) - room + 1} lines more"]
    for number, row in enumerate(rows):
        if row.strip():
            sheet.say(row.strip())
            sheet.put(_row(row.rstrip()), 0, (number + 0.75) * _HIGH)


@lru_cache(maxsize=256)
def _row(row: str) -> Fragment:
    """A row of the terminal, each word in a place of its own.

    Viewers disagree over blanks, and over how wide a font is.
    """
    drawn = group()
    for word in _WORD.finditer(row):
        left = cell_len(row[: word.start()]) * _WIDE
        element = shape(drawn, "text", x=left, font_size=_SIZE, font_family=_FONT, class_="k-ink")
        element.text = word[0]
    return fragment(drawn)
