"""What a terminal would show, as an SVG drawing that looks the same in every viewer.

Viewers disagree over blanks and over how wide a font is. So each word has a place of its own, no text begins
or ends with a blank, and what frames and backs are made of is drawn as lines and areas.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from kiebitz.cli.drawings.document import svg as sheet
from kiebitz.cli.drawings.shapes import Element, line, shape
from kiebitz.cli.terminal.cells import cell_len
from kiebitz.cli.terminal.screen import GROUND, Look, Segment, look_of

_WIDE, _HIGH = 10.0, 20.0
"""A cell of the terminal."""

_FONT = "Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"
_FONT_SIZE = 16.4
_BASE = 15.0
"""Where letters stand in a cell, from its top."""

_EDGE = 16.0
_TITLE = 30.0

_ENDS = {
    "─": "lr",
    "│": "ud",
    "╭": "rd",
    "╮": "ld",
    "╯": "lu",
    "╰": "ru",
    "┬": "lrd",
    "┴": "lru",
    "├": "udr",
    "┤": "udl",
    "┼": "udlr",
}
"""Of what frames are made of: to which sides of its cell it leads."""

_SHADES = {"░": 0.25, "▒": 0.5, "▓": 0.75, "█": 1.0}

_PIECES = re.compile(rf"[{''.join(_ENDS)}]|[{''.join(_SHADES)}]+|[^\s{''.join((*_ENDS, *_SHADES))}]+")
"""What is drawn as one: a piece of a frame, an area, or a word."""


def draw_terminal_svg(rows: Sequence[Iterable[Segment]], columns: int, title: str) -> Element:
    """Rows of a terminal of so many columns, below a title, as a document. All texts are escaped already."""
    width, height = columns * _WIDE + 2 * _EDGE, len(rows) * _HIGH + 2 * _EDGE + _TITLE
    document = sheet(round(width), round(height))
    document.set("font-family", _FONT)
    shape(document, "rect", x=0, y=0, width=width, height=height, rx=8, fill=GROUND)
    heading = shape(
        document,
        "text",
        x=width / 2,
        y=_EDGE + 12,
        font_size=17,
        font_weight="bold",
        fill=look_of(None).ink,
        text_anchor="middle",
        font_family="sans-serif",
    )
    heading.text = title
    for number, row in enumerate(rows):
        _draw_row(document, [*row], _EDGE + _TITLE + number * _HIGH)
    return document


def _draw_row(document: Element, row: Sequence[Segment], top: float) -> None:
    left = _EDGE
    texts: list[tuple[float, str, Look]] = []
    for segment in row:
        if segment.control:
            continue
        look = look_of(segment.style)
        width = cell_len(segment.text) * _WIDE
        if look.ground is not None and width:
            # A little more than the cells, so that no hair stays between them.
            shape(
                document,
                "rect",
                x=left,
                y=top,
                width=width + 0.3,
                height=_HIGH + 0.3,
                fill=look.ground,
            )
        texts.append((left, segment.text, look))
        left += width
    for start, text, look in texts:
        for at, piece in _pieces(text):
            _draw_piece(document, start + at * _WIDE, top, piece, look)


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """What is drawn as one, and at which cell of the text it begins."""
    for found in _PIECES.finditer(text):
        yield cell_len(text[: found.start()]), found[0]


def _draw_piece(document: Element, left: float, top: float, piece: str, look: Look) -> None:
    if piece in _ENDS:
        _draw_frame(document, left, top, _ENDS[piece], look)
    elif piece[0] in _SHADES:
        shape(
            document,
            "rect",
            x=left + 1,
            y=top + 2,
            width=len(piece) * _WIDE - 2,
            height=_HIGH - 4,
            rx=2,
            fill=look.ink,
            fill_opacity=_SHADES[piece[0]],
        )
    else:
        bold = {"font_weight": "bold"} if look.bold else {}
        element = shape(document, "text", x=left, y=top + _BASE, font_size=_FONT_SIZE, fill=look.ink, **bold)
        element.text = piece


def _draw_frame(document: Element, left: float, top: float, ends: str, look: Look) -> None:
    middle = (left + _WIDE / 2, top + _HIGH / 2)
    sides = {
        "l": (left, middle[1]),
        "r": (left + _WIDE, middle[1]),
        "u": (middle[0], top),
        "d": (middle[0], top + _HIGH),
    }
    for end in ends:
        line(document, middle, sides[end], stroke=look.ink, stroke_width=1.5, stroke_linecap="round")
