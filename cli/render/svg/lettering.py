"""Lines of text that fit into a given width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from kiebitz.cli.render.svg.svg_canvas import BOLD, LETTER_WIDTH, Sheet, lines, text
from kiebitz.cli.render.text.canvas import UNICODE, shorten
from kiebitz.dissectors.escaping import printable
from kiebitz.dissectors.game.view import Element, Fact, Group, Line, Name, Span, Suit
from kiebitz.services.evidence.cells import cell_len

Anchor = Literal["start", "middle", "end"]

BESIDE = 26.0
"""Letter size of remarks."""


def put_fitted(
    sheet: Sheet,
    words: str,
    at: tuple[float, float],
    room: float,
    sizes: Sequence[float],
    style: str = "k-ink",
) -> None:
    """Write a line in the first of these sizes, which are descending, at which it is not cut, or the last."""
    is_bold = "bold" in style
    cells = cell_len(printable(words[:200]))
    letter = BOLD if is_bold else LETTER_WIDTH
    size = next((size for size in sizes if int(room / (letter * size)) >= cells), sizes[-1])
    # Text is cut for letters of average width.
    sheet.put(text(words, size, room * LETTER_WIDTH / BOLD if is_bold else room, style), *at)


def put_lines(
    sheet: Sheet,
    words: str,
    at: tuple[float, float],
    room: float,
    *,
    most: int = 2,
    size: float = BESIDE,
    style: str = "k-ink",
) -> float:
    """Write a text in at most `most` lines, the first at `at`; return the position of the next line.

    If it needs more lines, the last one is cut.
    """
    x, y = at
    rows = lines(words[:1000], size, room)
    if len(rows) > most:
        rows[most - 1 :] = [" ".join(rows[most - 1 :])]
    for row in rows:
        sheet.put(text(row, size, room, style), x, y)
        y += round(1.22 * size)
    return y


def many(things: Sequence[str], most: int) -> str:
    """Return items on one line, and the number of further ones."""
    shown = ", ".join(thing[:200] for thing in things[:most])
    return shown if len(things) <= most else f"{shown} and {len(things) - most} more"


_NAME = 24
"""Maximum length of a name within a sentence."""


def plain(line: Line) -> str:
    """Return a line as text without signs, names cut; not escaped yet."""
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
    """Return the class of a line's colour if all of it has one tone."""
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
