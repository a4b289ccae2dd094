"""Drawings of a table for slides, pages and files: one for each protocol, all asked the same way.

A drawing is pure, as a picture for the terminal is (`cli.render.text`), and gets the same `Scene`. That of a
protocol is loaded when its first table is drawn.
"""

from __future__ import annotations

from pkgutil import resolve_name

from kiebitz.cli.render.svg.svg_canvas import Drawing, Shape, Sheet
from kiebitz.cli.render.text.scene import Scene

DRAWINGS = {
    "catan": "kiebitz.cli.render.svg.catan:draw_catan",
    "cgml": "kiebitz.cli.render.svg.cgml:draw_cgml",
    "maexchen": "kiebitz.cli.render.svg.maexchen:draw_maexchen",
    "okey": "kiebitz.cli.render.svg.okey:draw_okey",
    "schafkopf": "kiebitz.cli.render.svg.schafkopf:draw_schafkopf",
}
"""By protocol: where the function is that draws a scene on an empty sheet."""


def draw(protocol: str, scene: Scene, shape: Shape) -> Drawing:
    """The drawing of a table of this protocol; of a protocol that nobody has drawn yet, its plain state."""
    sheet = Sheet(shape)
    if protocol in DRAWINGS:
        resolve_name(DRAWINGS[protocol])(scene, sheet)
    else:
        from kiebitz.cli.render.svg.plain import draw_plain

        draw_plain(protocol, scene, sheet)
    return sheet.drawing()
