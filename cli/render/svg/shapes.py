"""Shapes and text as SVG elements."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree import ElementTree

from kiebitz.cli.render.text.canvas import UNICODE, shorten
from kiebitz.cli.terminal.console import wrapped

Element = ElementTree.Element
Point = tuple[float, float]

FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"
LETTER_WIDTH = 0.58
"""Approximate width of a letter, relative to its height; the real one depends on the viewer's font."""

_LETTER = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]"
_RIGHT_TO_LEFT = re.compile(f"{_LETTER}+(?:[ '-]+{_LETTER}+)*")
"""Words written from right to left, with the blanks between them."""


def shape(parent: Element, tag: str, **attributes: str | float) -> Element:
    """Add a shape; `stroke_width` becomes `stroke-width`, `class_` becomes `class`. Numbers are rounded."""
    written = {
        name.rstrip("_").replace("_", "-"): value
        if isinstance(value, str)
        else f"{value:.2f}".rstrip("0").rstrip(".")
        for name, value in attributes.items()
    }
    return ElementTree.SubElement(parent, tag, written)


def polygon(parent: Element, points: Iterable[Point], **attributes: str | float) -> Element:
    """Add a closed shape with these corners."""
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return shape(parent, "polygon", points=corners, **attributes)


def line(parent: Element, start: Point, end: Point, **attributes: str | float) -> Element:
    """Add a straight line."""
    return shape(parent, "line", x1=start[0], y1=start[1], x2=end[0], y2=end[1], **attributes)


def label(
    parent: Element, at: Point, words: str, size: float, room: float = 1e4, **attributes: str | float
) -> Element:
    """Add a line of text, escaped and cut to an approximate width.

    Words written from right to left are isolated: else, numbers beside a name appear at its other side.
    """
    x, y = at
    element = shape(parent, "text", x=x, y=y, font_size=size, **attributes)
    cells = max(1, int(room / (LETTER_WIDTH * size)))
    element.text = _RIGHT_TO_LEFT.sub("\u2068\\g<0>\u2069", shorten(words[: 4 * cells], cells, UNICODE))
    return element


def lines(words: str, size: float, room: float) -> list[str]:
    """Return a text wrapped to an approximate width."""
    return wrapped(words, max(1, int(room / (LETTER_WIDTH * size))))


_PIPS = {
    1: [(0, 0)],
    2: [(-1, -1), (1, 1)],
    3: [(-1, -1), (0, 0), (1, 1)],
    4: [(-1, -1), (1, -1), (-1, 1), (1, 1)],
    5: [(-1, -1), (1, -1), (0, 0), (-1, 1), (1, 1)],
    6: [(-1, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (1, 1)],
}


def die(parent: Element, at: Point, face: int | str, size: float, ground: str = "#ffffff") -> None:
    """Add a die, its upper left corner at `at`; an impossible face is written as text."""
    x, y = at
    shape(
        parent,
        "rect",
        x=x,
        y=y,
        width=size,
        height=size,
        rx=size / 6,
        fill=ground,
        stroke="#333333",
        stroke_width=2,
    )
    pips = _PIPS.get(face, []) if isinstance(face, int) else []
    if not pips:
        label(
            parent,
            (x + size / 2, y + size * 0.66),
            str(face),
            size * 0.5,
            size,
            text_anchor="middle",
            fill="#000000",
        )
    for across, down in pips:
        shape(
            parent,
            "circle",
            cx=x + size * (0.5 + 0.26 * across),
            cy=y + size * (0.5 + 0.26 * down),
            r=size / 11,
        )
