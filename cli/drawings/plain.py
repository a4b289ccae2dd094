"""A table as its terminal picture, row by row, where a protocol has no drawing of its own."""

from __future__ import annotations

import io

from kiebitz.cli.drawings.shapes import shape
from kiebitz.cli.drawings.sheet import Sheet, fragment, group
from kiebitz.cli.pictures import draw
from kiebitz.cli.pictures.scene import Scene
from kiebitz.cli.terminal.screen import Console

_SIZE = 26.0
"""Of the letters."""

_WIDE, _HIGH = 15.7, 34.0
"""A cell of the terminal."""

_FONT = "Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"


def draw_plain(protocol: str, scene: Scene, sheet: Sheet) -> None:
    """Draw the rows for which there is room; the rest is told in a word."""
    console = Console(file=io.StringIO(), width=int(sheet.width / _WIDE), force_terminal=False)
    rows = ["".join(piece.text for piece in row) for row in console.render_lines(draw(protocol, scene))]
    rows = [row.rstrip() for row in rows]
    room = int(sheet.height / _HIGH)
    if len(rows) > room:
        rows[room - 1 :] = [f"and {len(rows) - room + 1} lines more"]
    for number, row in enumerate(rows):
        sheet.say(row.strip())
        text = row.lstrip()
        if not text:
            continue
        drawn = group()
        element = shape(drawn, "text", font_size=_SIZE, font_family=_FONT, class_="k-ink")
        element.text = text
        sheet.put(fragment(drawn), (len(row) - len(text)) * _WIDE, (number + 0.75) * _HIGH)
