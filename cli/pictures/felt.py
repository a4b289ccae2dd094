"""The table itself: the edge of its felt, with a title above and a remark below."""

from __future__ import annotations

from kiebitz.cli.pictures.canvas import Canvas, Glyphs, shorten
from kiebitz.cli.pictures.seating import Seating
from kiebitz.cli.terminal.screen import Text

_FELT = "#5f875f"


def draw_felt(canvas: Canvas, seats: Seating, title: str, remark: str, glyphs: Glyphs) -> None:
    """Draw the edge; an empty title or remark leaves it whole."""
    top_left, top_right, bottom_right, bottom_left, line, side, *_ = glyphs.box
    inner = seats.felt - 2
    top, bottom = seats.y, seats.y + seats.felt_rows + 1
    canvas.put(seats.x, top, _edge(top_left, _label(title, inner, glyphs), inner, top_right, line))
    canvas.put(seats.x, bottom, _edge(bottom_left, _label(remark, inner, glyphs), inner, bottom_right, line))
    for row in range(top + 1, bottom):
        canvas.put(seats.x, row, Text(side, _FELT))
        canvas.put(seats.x + seats.felt - 1, row, Text(side, _FELT))


def _label(words: str, inner: int, glyphs: Glyphs) -> str:
    return f" {shorten(words, inner - 4, glyphs)} " if words else ""


def _edge(left: str, label: str, inner: int, right: str, line: str) -> Text:
    before = (inner - len(label)) // 2
    return Text.assemble(
        (left + line * before, _FELT), (label, "bold"), (line * (inner - before - len(label)) + right, _FELT)
    )
