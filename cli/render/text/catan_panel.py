"""The players of a Catan table beside its board: who is to move, points, hands and what is hidden of them."""

from __future__ import annotations

from collections.abc import Iterable

from kiebitz.cli.render.text.canvas import shorten
from kiebitz.cli.render.text.catan_colours import RESOURCES, on_colour
from kiebitz.cli.render.text.catan_look import MOST_PLAYERS, Look, Player
from kiebitz.cli.render.text.catan_words import (
    NOT_KNOWN,
    bank,
    counted,
    facts,
    goods,
    hand,
    headline,
    offers,
    points,
    readiness,
    short,
    spelt,
)
from kiebitz.cli.render.text.pen import Pen
from kiebitz.cli.terminal.screen import Text
from kiebitz.dissectors.protocols.catan.words import ROHSTOFFE

NARROWEST = 26
"""Columns that the table of hands needs."""

_COLUMNS = len(ROHSTOFFE) + 1
_WIDEST_COLUMN = 9
_WIDEST = _COLUMNS * _WIDEST_COLUMN + 2
_INDENT = 2
_LINES = 2
"""Lines that a trade and other sentences may take."""

_MOST_FACTS = 3
"""Lines of what is said of a player."""

_MOST_TRADES = 4


def draw_panel(look: Look, width: int, pen: Pen, rows: int | None = None) -> list[Text]:
    """The panel in lines of at most `width` columns, set as loosely as so many `rows` allow."""
    width = min(width, _WIDEST)
    blocks = _blocks(look, width, _MOST_FACTS, pen)
    if rows is None:
        return [line for block in blocks for line in block]
    for most in range(_MOST_FACTS - 1, 0, -1):
        if sum(map(len, blocks)) > rows:
            blocks = _blocks(look, width, most, pen)
    loose = len(blocks) - 1 <= rows - sum(map(len, blocks))
    lines: list[Text] = []
    for block in blocks:
        lines += [Text(), *block] if loose and lines else block
    return lines


def _blocks(look: Look, width: int, most: int, pen: Pen) -> list[list[Text]]:
    """The parts of the panel; of each player at most so many lines of facts."""
    blocks = [_headlines(look, width, pen)]
    if width >= NARROWEST:
        blocks.append([_header(width)])
    for player in look.players[:MOST_PLAYERS]:
        to_move = player.number == look.part.get("turn")
        blocks.append(
            [
                _name_line(player, to_move, points(player), width, pen),
                *_hand(player, width, pen),
                *_said(facts(player, look.part), width, most, pen),
            ]
        )
    if more := _more(look):
        blocks.append([pen.line(more, width, "dim")])
    return blocks


def draw_below(look: Look, width: int, pen: Pen) -> list[Text]:
    """What belongs to the whole table: the open trades and the bank."""
    lines = []
    for player, words, accepted in list(offers(look))[-_MOST_TRADES:]:
        trade = Text.assemble(_name(player, pen), " ", spelt(pen, words))
        if accepted:
            trade.append("; accepted by ")
            trade.append_text(Text(", ").join(_name(other, pen) for other in accepted))
        lines += pen.wrap(trade, width, _LINES)
    if words := bank(look.part):
        lines += pen.wrap(Text(spelt(pen, words), "dim"), width, _LINES)
    return lines


def draw_lobby(look: Look, width: int, pen: Pen) -> list[Text]:
    """Who is there before the game."""
    lines = pen.wrap(Text(spelt(pen, look.server), "dim"), width, 1) if look.server else []
    if not look.players:
        return [*lines, pen.line("nobody is here yet", width)]
    for player in look.players[:MOST_PLAYERS]:
        about = f"{player.about.get('colour', 'no colour yet')}, {readiness(player)}"
        lines.append(_name_line(player, False, spelt(pen, about), min(width, _WIDEST), pen))
    return lines + ([pen.line(_more(look), width, "dim")] if _more(look) else [])


def _more(look: Look) -> str:
    left = len(look.players) - MOST_PLAYERS
    return f"and {counted(left, 'more player')}" if left > 0 else ""


def _headlines(look: Look, width: int, pen: Pen) -> list[Text]:
    """How the game stands, and the dice."""
    player, words = headline(look)
    line = Text(spelt(pen, words))
    if player is not None:
        line = Text.assemble(_name(player, pen), " " if "winner" in look.part else ": ", line)
    lines = pen.wrap(line, width, _LINES)
    if "dice" in look.part:
        dice = look.part["dice"]
        rolled = Text.assemble("dice ", " + ".join(map(str, dice)), " = ", (str(sum(dice)), "bold"))
        lines += pen.wrap(rolled, width, 1)
    return lines


def _header(width: int) -> Text:
    """What the columns of the hands are."""
    line = Text()
    for resource in ROHSTOFFE:
        word = short(resource, _column(width) - 1)
        line.append(" " * (_column(width) - len(word)))
        line.append(word, on_colour(RESOURCES[resource]))
    return line.append("all".rjust(_column(width)), "dim")


def _column(width: int) -> int:
    return min(width // _COLUMNS, _WIDEST_COLUMN)


def _name_line(player: Player, to_move: bool, right: str, width: int, pen: Pen) -> Text:
    """A player's letter in his colour, his name, and what stands at the right edge."""
    line = Text.assemble(
        (f"{pen.glyphs.turn} " if to_move else "  ", "bold"),
        (f" {player.letter} ", on_colour(player.colour)),
        " ",
    )
    right = shorten(right, max(0, width - line.cell_len - 2), pen.glyphs)
    line.append_text(pen.words(player.name, max(0, width - line.cell_len - len(right) - 1)))
    line.append(" " * (width - line.cell_len - len(right)))
    return line.append(right)


def _name(player: Player | None, pen: Pen) -> Text:
    """A name amid words, in its player's colour."""
    if player is None:
        return Text(NOT_KNOWN)
    name = pen.words(player.name, 14)
    name.stylize(on_colour(player.colour))
    return name


def _hand(player: Player, width: int, pen: Pen) -> list[Text]:
    """The resources of a player in the columns of the header; in words where there is no room for these."""
    total = player.about.get("resources", NOT_KNOWN)
    if width < NARROWEST:
        words = f"{total} cards: {goods(player.resources) if player.resources else 'hidden'}"
        return pen.wrap(Text(spelt(pen, words)), width, 2 * _LINES)
    column = _column(width)
    line = Text()
    for count in hand(player.resources):
        line.append(shorten(count, column - 1, pen.glyphs).rjust(column), "dim" if count == NOT_KNOWN else "")
    return [line.append(shorten(str(total), column - 1, pen.glyphs).rjust(column))]


def _said(said: Iterable[str], width: int, most: int, pen: Pen) -> list[Text]:
    """What there is to say of a player, in at most so many lines."""
    words = Text(", ".join(spelt(pen, fact) for fact in said))
    lines = pen.wrap(words, width - _INDENT, most) if words else []
    return [Text(" " * _INDENT) + line for line in lines]
