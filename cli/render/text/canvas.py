"""A canvas of terminal cells, and shapes for it: dice, the cup, boxes with text.

Widths are in cells: a wide character takes two. Every shape exists in Unicode and in ASCII, for terminals
that cannot show the former.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain, groupby
from operator import itemgetter

import msgspec

from kiebitz.cli.terminal.console import can_write
from kiebitz.cli.terminal.screen import LINE_BREAK, Style, Text
from kiebitz.dissectors.escaping import printable
from kiebitz.services.evidence.cells import cell_len, set_cell_size


class Glyphs(msgspec.Struct, frozen=True):
    """The characters of pictures.

    `box` has the corners clockwise from the top left, horizontal, vertical, and tails pointing up and down.
    `suits` are acorn, leaf, heart, bell, all of the same width: emoji, the French signs in their place, or
    letters. `back` is a hidden card or tile.
    """

    box: tuple[str, ...]
    pip: str
    slopes: tuple[str, str]
    turn: str
    ellipsis: str
    dot: str
    suits: tuple[str, ...]
    back: str
    joker: str
    times: str


UNICODE = Glyphs(tuple("╭╮╯╰─│┴┬"), "●", ("╱", "╲"), "▶", "…", "·", tuple("♣♠♥♦"), "▒", "★", "×")
OWN_SUITS = msgspec.structs.replace(UNICODE, suits=("🌰", "🍃", "♥ ", "🔔"))
"""The suits of the German pack: a chestnut is nearest to an acorn. A heart takes one cell in every terminal,
so it has a blank.
"""

ASCII = Glyphs(tuple("++++-|^v"), "o", ("/", "\\"), ">", "..", "-", tuple("EGHS"), "#", "*", "x")

SUIT_STYLES = ("bold", "bold #008700", "bold #d70000", "bold #d78700")
"""The colours of a tournament pack; its black is the terminal's text colour."""


def glyphs_for(encoding: str, emoji: bool = False) -> Glyphs:
    """Return the glyphs that an encoding can write, with emoji if the terminal shows them."""
    best = OWN_SUITS if emoji else UNICODE
    if can_write("".join(chain.from_iterable(msgspec.structs.astuple(best))), encoding):
        return best
    return ASCII if best is UNICODE else glyphs_for(encoding)


def without_accents(words: str) -> str:
    """Return a text of our own in ASCII letters."""
    return unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode()


class Canvas:
    """Rows of styled text at given positions; texts on one row must not overlap."""

    def __init__(self, height: int) -> None:
        self._rows: list[list[tuple[int, Text]]] = [[] for _ in range(height)]

    def put(self, x: int, y: int, text: Text) -> None:
        """Write one line from column `x` of row `y` on."""
        self._rows[y].append((x, text))

    def put_lines(self, x: int, y: int, lines: Sequence[Text]) -> None:
        """Write lines below each other."""
        for number, line in enumerate(lines):
            self.put(x, y + number, line)

    def lines(self) -> list[Text]:
        """Return the rows from the top."""
        return [self._row(row) for row in self._rows]

    def text(self) -> Text:
        """Return all rows as one text."""
        return LINE_BREAK.join(self.lines())

    @staticmethod
    def _row(pieces: list[tuple[int, Text]]) -> Text:
        row = Text()
        for x, piece in sorted(pieces, key=lambda piece: piece[0]):
            row.append(" " * max(0, x - row.cell_len))
            row.append_text(piece)
        return row


class Cells:
    """Cells that can be drawn over, one narrow character in each.

    A text keeps the background of its cells unless it has its own.
    """

    def __init__(self, width: int, height: int) -> None:
        self._rows = [[(" ", Style.null())] * width for _ in range(height)]

    def put(self, x: int, y: int, text: str, style: str = "") -> None:
        """Write a text from column `x` of row `y` on; the part outside is dropped."""
        for column, character in enumerate(text, x):
            if 0 <= y < len(self._rows) and 0 <= column < len(self._rows[y]):
                self._rows[y][column] = (character, _over(self._rows[y][column][1], style))

    def lines(self) -> list[Text]:
        """Return the rows from the top."""
        return [Text.assemble(*map(_run, groupby(row, itemgetter(1)))) for row in self._rows]


@lru_cache
def _over(ground: Style, style: str) -> Style:
    return Style(bgcolor=ground.bgcolor) + Style.parse(style)


def _run(cells: tuple[Style, Iterable[tuple[str, Style]]]) -> tuple[str, Style]:
    """Join neighbouring cells of one style."""
    style, run = cells
    return "".join(character for character, _ in run), style


def shorten(text: str, width: int, glyphs: Glyphs) -> str:
    """Return a text escaped and cut to `width` cells, with an ellipsis."""
    text = printable(text)
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(0, width - len(glyphs.ellipsis))).rstrip() + glyphs.ellipsis


def boxed(words: Text, glyphs: Glyphs, style: str, tail: str | None = None) -> list[Text]:
    """Return text in a box of three rows; a bubble if it has a tail, "up" or "down"."""
    top_left, top_right, bottom_right, bottom_left, line, side, up, down = glyphs.box
    width = words.cell_len + 2
    middle = (width - 1) // 2
    rest = line * (width - 1 - middle)
    top = line * middle + (up if tail == "up" else line) + rest
    bottom = line * middle + (down if tail == "down" else line) + rest
    return [
        Text(top_left + top + top_right, style),
        Text.assemble((side + " ", style), words, (" " + side, style)),
        Text(bottom_left + bottom + bottom_right, style),
    ]


DIE_HEIGHT = 5

_PIPS = {
    1: ("       ", "   *   ", "       "),
    2: (" *     ", "       ", "     * "),
    3: (" *     ", "   *   ", "     * "),
    4: (" *   * ", "       ", " *   * "),
    5: (" *   * ", "   *   ", " *   * "),
    6: (" *   * ", " *   * ", " *   * "),
}


def die(face: int | str, glyphs: Glyphs, style: str) -> list[Text]:
    """Return a big die of 9 by `DIE_HEIGHT` cells; an impossible face is written as text."""
    pips = _PIPS.get(face) if isinstance(face, int) else None
    rows = pips or ("       ", shorten(str(face), 5, glyphs).center(7), "       ")
    top_left, top_right, bottom_right, bottom_left, line, side, *_ = glyphs.box
    return [
        Text(top_left + line * 7 + top_right, style),
        *(Text(side + row.replace("*", glyphs.pip) + side, style) for row in rows),
        Text(bottom_left + line * 7 + bottom_right, style),
    ]


def cup(words: str, glyphs: Glyphs, style: str) -> list[Text]:
    """Return the cup upside down, 13 by `DIE_HEIGHT` cells, with up to five characters on it."""
    top_left, top_right, bottom_right, bottom_left, line, side, *_ = glyphs.box
    left, right = glyphs.slopes
    return [
        Text(f"   {top_left}{line * 5}{top_right}   ", style),
        Text(f"   {side}     {side}   ", style),
        Text(f"  {left}{words.center(7)}{right}  ", style),
        Text(f" {left}{' ' * 9}{right} ", style),
        Text(f" {bottom_left}{line * 9}{bottom_right} ", style),
    ]
