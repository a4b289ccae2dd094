"""The players of a Catan table beside its board: turn, points, known and hidden cards.

The colours of Catan's fields, resources and players' pieces.

All are among the 256 colours of nearly every terminal.
"""

from __future__ import annotations

from collections.abc import Iterable

from kiebitz.cli.render.text.canvas import ASCII, shorten
from kiebitz.cli.render.text.pen import Pen
from kiebitz.cli.terminal.screen import Text
from kiebitz.dissectors.game.view import Line, Name
from kiebitz.dissectors.protocols.catan.grammar import OTHER_SPELLINGS
from kiebitz.dissectors.protocols.catan.view import MOST_PLAYERS, NOT_KNOWN, CatanSeat, CatanView, Piece
from kiebitz.dissectors.protocols.catan.words import LAND, ROHSTOFFE, WÜSTE

SEA = "#87d7ff"
COAST = "#ffd7af"
BORDER = "#444444"
BLACK, WHITE = "#000000", "#ffffff"
CHIP, HOT, LIT = "#ffffd7", "#d70000", "#ffff00"
"""Colours: a number's chip, the most frequent numbers, and the chip with the rolled number."""

HOTTEST = (6, 8)
"""The most frequent numbers."""

RESOURCES = {
    "Holz": "#008700",
    "Lehm": "#d7875f",
    "Wolle": "#87d75f",
    "Getreide": "#ffd75f",
    "Erz": "#afafaf",
}
FIELDS = {**{field: RESOURCES[resource] for field, resource in LAND.items()}, WÜSTE: "#ffffaf"}
UNKNOWN = "#d0d0d0"

PLAYERS = {
    "Rot": "#d70000",
    "Orange": "#ff8700",
    "Blau": "#0000d7",
    "Weiß": "#ffffff",
    "Grün": "#00d700",
    "Braun": "#875f00",
}
NO_COLOUR = "#8a8a8a"
"""The colour of a player who has not chosen one yet."""


def colour_of(seat: CatanSeat | None) -> str:
    """Return the colour of a player's pieces."""
    return PLAYERS.get(seat.colour, NO_COLOUR) if seat is not None else NO_COLOUR


def owner_marks(piece: Piece) -> tuple[str, str]:
    """Return the letter and the colour of a piece."""
    return piece.owner.letter if piece.owner is not None else "?", colour_of(piece.owner)


def ink(colour: str) -> str:
    """Return black or white, whichever is more readable on a colour."""
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return BLACK if 299 * red + 587 * green + 114 * blue > 120_000 else WHITE


def on_colour(colour: str) -> str:
    """Return the style of bold letters on a piece or a label of this colour."""
    return f"bold {ink(colour)} on {colour}"


def spell(pen: Pen, word: str, width: int = 200) -> str:
    """Return a word, without umlauts if the terminal has none."""
    return pen.words(OTHER_SPELLINGS.plain(word) if pen.glyphs is ASCII else word, width).plain


def short(resource: str, width: int) -> str:
    """Return a resource's name cut to `width` letters."""
    if len(resource) <= width:
        return resource
    return resource[:3] if width < 5 else f"{resource[: width - 1]}."


NARROWEST = 26
"""Minimum width of the table of hands, in columns."""

_COLUMNS = len(ROHSTOFFE) + 1
_WIDEST_COLUMN = 9
_WIDEST = _COLUMNS * _WIDEST_COLUMN + 2
_INDENT = 2
_LINES = 2
"""Maximum number of lines of a trade or another sentence."""

_MOST_FACTS = 3
"""Maximum number of lines of facts about a player."""

_MOST_TRADES = 4


def draw_panel(view: CatanView, width: int, pen: Pen, rows: int | None = None) -> list[Text]:
    """Return the panel in lines of at most `width` columns, with the spacing that `rows` allow."""
    width = min(width, _WIDEST)
    blocks = _blocks(view, width, _MOST_FACTS, pen)
    if rows is None:
        return [line for block in blocks for line in block]
    for most in range(_MOST_FACTS - 1, 0, -1):
        if sum(map(len, blocks)) > rows:
            blocks = _blocks(view, width, most, pen)
    loose = len(blocks) - 1 <= rows - sum(map(len, blocks))
    lines: list[Text] = []
    for block in blocks:
        lines += [Text(), *block] if loose and lines else block
    return lines


def _blocks(view: CatanView, width: int, most: int, pen: Pen) -> list[list[Text]]:
    """Return the parts of the panel; each player has at most `most` lines of facts."""
    blocks = [_headlines(view, width, pen)]
    if width >= NARROWEST:
        blocks.append([_header(width)])
    for seat in view.seats[:MOST_PLAYERS]:
        blocks.append(
            [
                _name_line(seat, seat.figures[0].words, width, pen),
                *_hand(seat, width, pen),
                *_facts((mark.text for mark in seat.marks), width, most, pen),
            ]
        )
    if view.more:
        blocks.append([pen.line(view.more, width, "dim")])
    return blocks


def draw_below(view: CatanView, width: int, pen: Pen) -> list[Text]:
    """Return the lines about the whole table: open trades and the bank."""
    lines = []
    for fact in view.facts[-_MOST_TRADES:]:
        lines += pen.wrap(_line(fact.title, view, pen), width, _LINES)
    if view.bank:
        lines += pen.wrap(Text(spell(pen, view.bank_words), "dim"), width, _LINES)
    return lines


def draw_lobby(view: CatanView, width: int, pen: Pen) -> list[Text]:
    """Return the lines about the lobby before the game."""
    lines = pen.wrap(Text(spell(pen, view.server), "dim"), width, 1) if view.server else []
    if not view.seats:
        return [*lines, pen.line("no players yet", width)]
    for seat in view.seats[:MOST_PLAYERS]:
        about = ", ".join(mark.text for mark in seat.marks)
        lines.append(_name_line(seat, spell(pen, about), min(width, _WIDEST), pen))
    return lines + ([pen.line(view.more, width, "dim")] if view.more else [])


def _headlines(view: CatanView, width: int, pen: Pen) -> list[Text]:
    """Return the state of the game and the dice."""
    between = " " if any(seat.state == "won" for seat in view.seats) else ": "
    told = Text(between).join(_line(line, view, pen) for line in view.story)
    lines = pen.wrap(told, width, _LINES)
    if view.dice is not None:
        dice = [face for face in view.dice.faces if isinstance(face, int)]
        rolled = Text.assemble("dice ", " + ".join(map(str, dice)), " = ", (str(sum(dice)), "bold"))
        lines += pen.wrap(rolled, width, 1)
    return lines


def _line(line: Line, view: CatanView, pen: Pen) -> Text:
    """Return a line with names in the colours of the pieces."""
    found = Text()
    for element in line:
        if isinstance(element, Name):
            name = pen.words(element.name, 14)
            name.stylize(on_colour(colour_of(next(s for s in view.seats if s.name == element.name))))
            found.append_text(name)
        else:
            found.append(spell(pen, str(element)))
    return found


def _header(width: int) -> Text:
    """Return the titles of the columns of hands."""
    line = Text()
    for resource in ROHSTOFFE:
        word = short(resource, _column(width) - 1)
        line.append(" " * (_column(width) - len(word)))
        line.append(word, on_colour(RESOURCES[resource]))
    return line.append("all".rjust(_column(width)), "dim")


def _column(width: int) -> int:
    return min(width // _COLUMNS, _WIDEST_COLUMN)


def _name_line(seat: CatanSeat, right: str, width: int, pen: Pen) -> Text:
    """Return a player's letter, colour and name, and the text at the right edge."""
    mark = {"turn": pen.glyphs.turn, "won": pen.glyphs.joker}.get(seat.state, " ")
    line = Text.assemble(
        (f"{mark} ", "bold"),
        (f" {seat.letter} ", on_colour(colour_of(seat))),
        " ",
    )
    right = shorten(right, max(0, width - line.cell_len - 2), pen.glyphs)
    line.append_text(pen.words(seat.name, max(0, width - line.cell_len - len(right) - 1)))
    line.append(" " * (width - line.cell_len - len(right)))
    return line.append(right)


def _hand(seat: CatanSeat, width: int, pen: Pen) -> list[Text]:
    """Return a player's resources in the columns of the header, or in words if there is no room."""
    if width < NARROWEST:
        kinds = zip(seat.counts, ROHSTOFFE, strict=True)
        known = ", ".join(f"{count} {name}" for count, name in kinds if count not in ("0", NOT_KNOWN))
        words = f"{seat.total} cards: {known or ('hidden' if NOT_KNOWN in seat.counts else NOT_KNOWN)}"
        return pen.wrap(Text(spell(pen, words)), width, 2 * _LINES)
    column = _column(width)
    line = Text()
    for count in seat.counts:
        line.append(shorten(count, column - 1, pen.glyphs).rjust(column), "dim" if count == NOT_KNOWN else "")
    return [line.append(shorten(seat.total, column - 1, pen.glyphs).rjust(column))]


def _facts(said: Iterable[str], width: int, most: int, pen: Pen) -> list[Text]:
    """Return facts about a player in at most `most` lines."""
    words = Text(", ".join(spell(pen, fact) for fact in said))
    lines = pen.wrap(words, width - _INDENT, most) if words else []
    return [Text(" " * _INDENT) + line for line in lines]
