"""Drawings of a table for slides, pages and files: one for each protocol, all asked the same way.

A drawing is pure, as a picture for the terminal is (`cli.pictures`), and gets the same `Scene`.
"""

from __future__ import annotations

from collections.abc import Callable

from kiebitz.cli.drawings.catan import draw_catan
from kiebitz.cli.drawings.cgml import draw_cgml
from kiebitz.cli.drawings.maexchen import draw_maexchen
from kiebitz.cli.drawings.okey import draw_okey
from kiebitz.cli.drawings.plain import draw_plain
from kiebitz.cli.drawings.schafkopf import draw_schafkopf
from kiebitz.cli.drawings.sheet import Drawing, Shape, Sheet
from kiebitz.cli.pictures.scene import Scene

DRAWINGS: dict[str, Callable[[Scene, Sheet], None]] = {
    "catan": draw_catan,
    "cgml": draw_cgml,
    "maexchen": draw_maexchen,
    "okey": draw_okey,
    "schafkopf": draw_schafkopf,
}
"""By protocol: draws a scene on an empty sheet."""


def draw(protocol: str, scene: Scene, shape: Shape) -> Drawing:
    """The drawing of a table of this protocol; of a protocol that nobody has drawn yet, its plain state."""
    sheet = Sheet(shape)
    drawing = DRAWINGS.get(protocol)
    if drawing is not None:
        drawing(scene, sheet)
    else:
        draw_plain(protocol, scene, sheet)
    return sheet.drawing()
