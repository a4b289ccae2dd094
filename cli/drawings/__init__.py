"""Drawings of a table for slides, pages and files: one for each protocol, all asked the same way.

A drawing is pure, as a picture for the terminal is (`cli.pictures`), and gets the same `Scene`. That of a
protocol is loaded when its first table is drawn.
"""

from __future__ import annotations

from pkgutil import resolve_name

from kiebitz.cli.drawings.sheet import Drawing, Shape, Sheet
from kiebitz.cli.pictures.scene import Scene

DRAWINGS = {
    "catan": "kiebitz.cli.drawings.catan:draw_catan",
    "cgml": "kiebitz.cli.drawings.cgml:draw_cgml",
    "maexchen": "kiebitz.cli.drawings.maexchen:draw_maexchen",
    "okey": "kiebitz.cli.drawings.okey:draw_okey",
    "schafkopf": "kiebitz.cli.drawings.schafkopf:draw_schafkopf",
}
"""By protocol: where the function is that draws a scene on an empty sheet."""


def draw(protocol: str, scene: Scene, shape: Shape) -> Drawing:
    """The drawing of a table of this protocol; of a protocol that nobody has drawn yet, its plain state."""
    sheet = Sheet(shape)
    if protocol in DRAWINGS:
        resolve_name(DRAWINGS[protocol])(scene, sheet)
    else:
        from kiebitz.cli.drawings.plain import draw_plain

        draw_plain(protocol, scene, sheet)
    return sheet.drawing()
