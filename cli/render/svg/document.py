"""Drawings as standalone SVG documents, which load no fonts or other files.

Fragments are written out where they are shown, as not every viewer supports `use`.
"""

from __future__ import annotations

from xml.etree import ElementTree

from kiebitz.cli.render.svg.shapes import FONT, Element, label, shape
from kiebitz.cli.render.svg.svg_canvas import Drawing
from kiebitz.cli.render.svg.theme import style

_EDGE = 30
_BAND = 64
"""Height of the title above, and of the caption below."""

_SVG = "http://www.w3.org/2000/svg"


def document(drawing: Drawing, title: str = "", caption: str = "") -> bytes:
    """Return a drawing as UTF-8, between a title and a caption if there are any; both are not escaped yet."""
    band = _BAND if title or caption else 0
    width, height = drawing.width, drawing.height + 2 * band
    root = svg(width, height)
    shape(root, "rect", width=width, height=height, class_="k-paper")
    room = width - 2 * _EDGE
    if band:
        label(root, (_EDGE, 44), title, 30, room, font_weight="bold", class_="k-ink")
        label(root, (_EDGE, height - 22), caption, 30, room, class_="k-ink")
    for piece in drawing.pieces:
        placed = shape(root, "g", transform=f"translate({piece.x:g} {piece.y + band:g})")
        placed.append(ElementTree.fromstring(drawing.fragments[piece.name]))
    document: bytes = ElementTree.tostring(root, "utf-8", xml_declaration=True)
    return document


def svg(width: float, height: float) -> Element:
    """Return an empty document with the colours of drawings."""
    root = ElementTree.Element(
        "svg",
        {
            "xmlns": _SVG,
            "viewBox": f"0 0 {width:g} {height:g}",
            "width": f"{width:g}",
            "height": f"{height:g}",
            "font-family": FONT,
        },
    )
    ElementTree.SubElement(root, "style").text = style()
    return root
