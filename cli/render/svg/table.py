"""Drawing of a view: the kind of table, and the description in words."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

from kiebitz.cli.render.svg.card_table import plate, put_card_table
from kiebitz.cli.render.svg.lettering import BESIDE, fact_words, group_words, many, plain, put_fitted
from kiebitz.cli.render.svg.plate_table import MOST_LISTED, put_plate_table
from kiebitz.cli.render.svg.rack_table import put_rack_table
from kiebitz.cli.render.svg.svg_canvas import (
    Element,
    Sheet,
    cached_fragment,
    felt,
    lines,
    shape,
    text,
)
from kiebitz.cli.render.text import draw
from kiebitz.cli.render.text.canvas import UNICODE, shorten
from kiebitz.cli.terminal.screen import Console
from kiebitz.dissectors.game.view import Group, Hand, Scene, Seat, View
from kiebitz.services.evidence.cells import cell_len

_MOST_HANDS = 4
_MOST_LINES = 70


def draw_view(view: View, sheet: Sheet) -> None:
    """Draw a view on an empty sheet."""
    hands = [seat.hand for seat in view.seats if seat.hand is not None]
    if view.idle:
        _put_idle_server(view, sheet)
    elif not hands or len(view.seats) > _MOST_HANDS or view.grid is not None:
        put_plate_table(view, sheet)
    elif any(hand.is_rack for hand in hands):
        put_rack_table(view, sheet)
    else:
        put_card_table(view, sheet)
    for words in [*_words(view)][:_MOST_LINES]:
        sheet.say(shorten(words[:800], 400, UNICODE) or "nothing is said")


def _words(view: View) -> Iterator[str]:
    """Yield the description of the drawing, one line per thing."""
    yield from filter(None, (view.idle, " · ".join(view.title)))
    if view.contract is not None:
        contract = (*view.contract.parts, *view.contract.additions)
        yield "game: " + ", ".join(filter(None, (*map(plain, contract), view.contract.level)))
    if view.story:
        yield ", ".join(map(plain, view.story))
    if view.dice is not None:
        dice = view.dice
        if dice.roll == "hidden" or (dice.roll != "none" and not dice.faces):
            yield "the dice are under the cup"
        elif dice.faces:
            where = "under the cup: " if dice.roll == "secret" else "dice: "
            yield where + ",".join(map(str, dice.faces))
    if view.grid is not None:
        for each in view.grid.all_boards:
            owner = f"{each.owner}, " if each.owner else ""
            for number, row in enumerate(each.rows, 1):
                cells = ("empty" if token is None else token.words for token in row)
                yield f"{owner}row {number}: " + ", ".join(cells)
    yield from (f"{plain(pile.label)}: {pile.words}" for pile in view.piles)
    yield from map(_seat_line, view.seats[:MOST_LISTED])
    if len(view.seats) > MOST_LISTED:
        yield f"and {len(view.seats) - MOST_LISTED} more players"
    yield from (f"stack {plain(seat.pile.label)}: {seat.pile.words}" for seat in view.seats if seat.pile)
    yield from (fact_words(fact, 12) for fact in view.facts)
    yield from filter(None, (view.unknown,))
    yield from (group_words(group, 12) for group in view.groups)


def _seat_line(seat: Seat) -> str:
    told = seat_words(seat)
    name = seat.name[:60] or '""'
    return f"{name}: {', '.join(told)}" if told else name


def seat_words(seat: Seat) -> list[str]:
    """Return the facts about a player."""
    told = [mark.text for mark in seat.marks]
    state = {"turn": "to move", "won": "has won"}.get(seat.state)
    if state is not None and state not in told:
        told.insert(0, state)
    if seat.says is not None and not seat.marks:
        told.append(f"{seat.says.verb} {seat.says.words}")
    told += [figure.words for figure in seat.figures]
    if seat.lies is not None:
        told.append(f"on the table {seat.lies.words}" + (", takes the trick" if seat.takes else ""))
    if seat.hand is not None:
        told += _hand_words(seat.hand)
    return told


def _hand_words(hand: Hand) -> Iterator[str]:
    held = [piece.words for piece in hand.pieces if piece is not None]
    if held:
        yield "holds " + many(held, 40)
    if hand.hidden is None and not hand.is_rack:
        yield "cards unknown"
    elif hand.hidden and not hand.is_rack:
        yield f"{hand.hidden} hidden card{'' if hand.hidden == 1 else 's'}"
    drawn = hand.pieces[hand.drawn] if hand.drawn is not None else None
    if drawn is not None:
        yield f"just drawn: {drawn.words}"


_EDGE = 40.0
_HEADING = 46.0
_PLATES = 106.0
"""Height of a row of plates with the words below."""

_ROW = 44.0
_LINES = 4
"""Maximum number of lines of a fact."""

_MOST = 12
"""Maximum number of players drawn of a group."""


def _put_idle_server(view: View, sheet: Sheet) -> None:
    """Draw a title, the groups with their players' plates, and facts, as far as there is room."""
    groups, title = view.groups, view.idle
    rows = [fact_words(fact, 6) for fact in view.facts]
    longest = max((len(each.members) for each in groups), default=0)
    columns = 2 if sheet.is_tall else 3 if longest <= 3 else 4
    room = sheet.width - 2 * _EDGE
    sheet.put(felt(sheet.width, sheet.height, 34, 4), 0, 0)
    put_fitted(sheet, title, (sheet.width / 2, 72), room, (40, 34), "k-ink bold middle")
    bottom = sheet.height - 60
    rows = [line for row in rows for line in lines(row[:1000], 28, room)[:_LINES]]
    needed = sum(_high(each, columns) for each in groups) + _ROW * len(rows)
    y = max(130.0, (sheet.height - needed) / 2)
    left = len(groups) + len(rows)
    for each in groups:
        if y + _high(each, columns) > bottom - (0 if left == 1 else _ROW):
            break
        y = _put_group(sheet, each, y, columns)
        left -= 1
    for row in rows:
        if y + _ROW > bottom - (0 if left == 1 else _ROW):
            break
        sheet.put(text(row, 28, room, "k-ink"), _EDGE, y + 30)
        y += _ROW
        left -= 1
    if left:
        sheet.put(text(f"and {left} more", 28, room, "k-faint"), _EDGE, min(y + 40, bottom))


def _high(each: Group, columns: int) -> float:
    return _HEADING + _PLATES * max(1, -(-min(len(each.members), _MOST) // columns))


def _put_group(sheet: Sheet, each: Group, y: float, columns: int) -> float:
    """Draw one group; return the beginning of the next."""
    step = (sheet.width - 2 * _EDGE) / columns
    more = len(each.members) - _MOST
    heading = each.title + (f" (and {more} more)" if more > 0 else "")
    sheet.put(text(heading, 28, sheet.width - 2 * _EDGE, "k-faint"), _EDGE, y + 28)
    for number, (name, said) in enumerate(each.members[:_MOST]):
        x, top = _EDGE + number % columns * step, y + _HEADING + number // columns * _PLATES
        sheet.put(plate(name, False, step - 16), x, top)
        if said:
            sheet.put(text(said, BESIDE, step - 20, "k-ink"), x + 14, top + 78)
    return y + _high(each, columns)


_SIZE = 26.0
"""Letter size."""

_WIDE, _HIGH = 15.7, 34.0
"""Size of a terminal cell."""

_FONT = "Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace"


_WORD = re.compile(r"\S+")


def draw_plain(protocol: str, scene: Scene, sheet: Sheet) -> None:
    """Draw the rows that fit, and mention the others."""
    console = Console(file=io.StringIO(), width=int(sheet.width / _WIDE), force_terminal=False)
    rows = ["".join(piece.text for piece in row) for row in console.render_lines(draw(protocol, scene))]
    room = int(sheet.height / _HIGH)
    if len(rows) > room:
        rows[room - 1 :] = [f"and {len(rows) - room + 1} lines more"]
    for number, row in enumerate(rows):
        if row.strip():
            sheet.say(row.strip())
            sheet.put(_row(row.rstrip()), 0, (number + 0.75) * _HIGH)


@cached_fragment(256)
def _row(drawn: Element, row: str) -> None:
    """Return a row of the terminal, each word at its own position.

    Viewers differ in how they treat blanks and in the width of fonts.
    """
    for word in _WORD.finditer(row):
        left = cell_len(row[: word.start()]) * _WIDE
        element = shape(drawn, "text", x=left, font_size=_SIZE, font_family=_FONT, class_="k-ink")
        element.text = word[0]
