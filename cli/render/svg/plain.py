"""A table as rows of its text picture, for protocols without a drawing."""

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
"""Letter size."""

_WIDE, _HIGH = 15.7, 34.0
"""Size of a terminal cell."""

_FONT = "Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"


_WORD = re.compile(r"\S+")


def draw_plain(protocol: str, scene: Scene, sheet: Sheet) -> None:
    """Draw the rows that fit, and mention the others."""
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
    """Return a row of the terminal, each word at its own position.

    Viewers differ in how they treat blanks and in the width of fonts.
    """
    drawn = group()
    for word in _WORD.finditer(row):
        left = cell_len(row[: word.start()]) * _WIDE
        element = shape(drawn, "text", x=left, font_size=_SIZE, font_family=_FONT, class_="k-ink")
        element.text = word[0]
    return fragment(drawn)
