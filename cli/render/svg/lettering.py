"""Lines of words that fit in their places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from kiebitz.cli.render.svg.pieces import BOLD, text
from kiebitz.cli.render.svg.shapes import LETTER_WIDTH, lines
from kiebitz.cli.render.svg.svg_canvas import Sheet
from kiebitz.dissectors.escaping import printable
from kiebitz.services.evidence.cells import cell_len

Anchor = Literal["start", "middle", "end"]

BESIDE = 26.0
"""Height of what is said beside."""


def fitting(words: str, room: float, sizes: Sequence[float], bold: bool = False) -> float:
    """The largest of these sizes, the largest first, in which words are not cut; or else the last."""
    cells = cell_len(printable(words[:200]))
    letter = BOLD if bold else LETTER_WIDTH
    return next((size for size in sizes if int(room / (letter * size)) >= cells), sizes[-1])


def put_fitted(
    sheet: Sheet,
    words: str,
    at: tuple[float, float],
    room: float,
    sizes: Sequence[float],
    *,
    ink: str = "k-ink",
    bold: bool = False,
    anchor: Anchor = "start",
) -> None:
    """Put a line of words, in the largest of these sizes in which they are not cut."""
    size = fitting(words, room, sizes, bold)
    # Words are cut as if their letters were of the usual width.
    usual = room * LETTER_WIDTH / BOLD if bold else room
    sheet.put(text(words, size, usual, ink, bold, anchor), *at)


def put_lines(
    sheet: Sheet,
    words: str,
    at: tuple[float, float],
    room: float,
    *,
    most: int = 2,
    size: float = BESIDE,
    anchor: Anchor = "start",
    ink: str = "k-ink",
    bold: bool = False,
) -> float:
    """Put words in at most so many lines, the first of them at this place; gives the next line's place.

    Where they need more lines the last one is cut.
    """
    x, y = at
    rows = lines(words[:1000], size, room)
    if len(rows) > most:
        rows[most - 1 :] = [" ".join(rows[most - 1 :])]
    for row in rows:
        sheet.put(text(row, size, room, ink, bold=bold, anchor=anchor), x, y)
        y += round(1.22 * size)
    return y


def many(things: Sequence[str], most: int) -> str:
    """Things on a line, and how many more there are."""
    shown = ", ".join(thing[:200] for thing in things[:most])
    return shown if len(things) <= most else f"{shown} and {len(things) - most} more"
