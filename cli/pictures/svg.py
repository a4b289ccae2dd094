"""Pictures of a table as SVG, for slides: a drawing of its own where a protocol has one, else the terminal's.

Both stand alone: they load no fonts, and nothing else either.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from xml.etree import ElementTree

from kiebitz.cli.pictures import Scene, draw
from kiebitz.cli.pictures.catan_svg import draw_catan_svg
from kiebitz.cli.pictures.terminal_svg import draw_terminal_svg
from kiebitz.cli.terminal.screen import Console, Group, Text
from kiebitz.storage.escaping import printable

DRAWINGS: dict[str, Callable[[Scene, str, str], ElementTree.Element]] = {"catan": draw_catan_svg}
"""By protocol: a scene, a title and a caption, both still as they came, to an SVG document."""

_COLUMNS = 100


def draw_svg(protocol: str, scene: Scene, title: str, caption: str) -> bytes:
    """A table as an SVG document, in UTF-8."""
    drawing = DRAWINGS.get(protocol)
    drawn = drawing(scene, title, caption) if drawing else _terminal(protocol, scene, title, caption)
    document: bytes = ElementTree.tostring(drawn, "utf-8", xml_declaration=True)
    return document


def _terminal(protocol: str, scene: Scene, title: str, caption: str) -> ElementTree.Element:
    """What a terminal would show."""
    console = Console(
        file=io.StringIO(), width=_COLUMNS, force_terminal=True, color_system="truecolor", no_color=False
    )
    picture = Group(draw(protocol, scene), Text(caption, "dim"))
    rows = console.render_lines(picture, pad=False)
    return draw_terminal_svg(rows, _COLUMNS, printable(title))
