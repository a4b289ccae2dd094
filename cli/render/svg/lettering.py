"""Lines of words that fit in their places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from kiebitz.cli.render.svg.pieces import BOLD, text
from kiebitz.cli.render.svg.shapes import LETTER_WIDTH, lines
from kiebitz.cli.render.svg.svg_canvas import Sheet
from kiebitz.cli.render.text.canvas import UNICODE, shorten
from kiebitz.dissectors.escaping import printable
from kiebitz.dissectors.game.view import Element, Fact, Group, Line, Name, Span, Suit
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


_NAME = 24
"""A name amid words has no more letters."""


def plain(line: Line) -> str:
    """Return a line's words without its signs, names cut; not yet escaped."""
    return "".join(map(_words, line))


def _words(element: Element) -> str:
    match element:
        case str():
            return element
        case Span():
            return element.text
        case Name():
            return shorten(element.name, _NAME, UNICODE) or '""'
        case Suit():
            return element.name
        case tuple():
            return ", ".join(piece.words for piece in element)
    return element.words


def ink(line: Line) -> str:
    """Return the class of a line's colour, which is that of a tone it has all over."""
    if len(line) == 1 and isinstance(line[0], Span):
        return {"bad": "k-alarm", "faint": "k-faint"}.get(line[0].tone, "k-ink")
    return "k-ink"


def fact_words(fact: Fact, most: int) -> str:
    """Return a fact on one line: the heading, the first items, and the number of further ones."""
    title = plain(fact.title)
    return f"{title}: {many([*map(plain, fact.items)], most)}" if fact.items else title


def group_words(group: Group, most: int) -> str:
    """Return a group on one line."""
    members = [
        shorten(name, _NAME, UNICODE) + (f" ({said[:40]})" if said else "") for name, said in group.members
    ]
    return f"{group.title[:80]}: {many(members, most) or 'nobody'}"
