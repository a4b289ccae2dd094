"""Pictures of a table as SVG, for slides: a drawing of its own where a protocol has one, else the terminal's.

Both stand alone: they load no fonts, and nothing else either.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from xml.etree import ElementTree

from cli.pictures import Scene, draw
from cli.pictures.catan_svg import draw_catan_svg
from cli.screen import Console, Text
from storage.escaping import printable

DRAWINGS: dict[str, Callable[[Scene, str, str], ElementTree.Element]] = {"catan": draw_catan_svg}
"""By protocol: a scene, a title and a caption, both still as they came, to an SVG document."""

_COLUMNS = 100

_FORMAT = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
    <style>
    .{unique_id}-matrix {{
        font-family: Menlo, Consolas, 'DejaVu Sans Mono', monospace;
        font-size: {char_height}px;
        line-height: {line_height}px;
    }}
    .{unique_id}-title {{ font-family: sans-serif; font-size: 18px; font-weight: bold; }}
    {styles}
    </style>
    <defs>
    <clipPath id="{unique_id}-clip-terminal">
      <rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
    </clipPath>
    {lines}
    </defs>
    {chrome}
    <g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
    {backgrounds}
    <g class="{unique_id}-matrix">
    {matrix}
    </g>
    </g>
</svg>
"""
"""Rich's own, without the fonts that it takes from the web."""


def draw_svg(protocol: str, scene: Scene, title: str, caption: str) -> bytes:
    """A table as an SVG document, in UTF-8."""
    drawing = DRAWINGS.get(protocol)
    if drawing is None:
        return _terminal(protocol, scene, title, caption).encode()
    document: bytes = ElementTree.tostring(drawing(scene, title, caption), "utf-8", xml_declaration=True)
    return document


def _terminal(protocol: str, scene: Scene, title: str, caption: str) -> str:
    """What a terminal would show."""
    console = Console(
        file=io.StringIO(),
        width=_COLUMNS,
        record=True,
        force_terminal=True,
        color_system="truecolor",
        no_color=False,
    )
    console.print(draw(protocol, scene))
    console.print(Text(caption, "dim"))
    return console.export_svg(title=printable(title), code_format=_FORMAT, unique_id="kiebitz")
