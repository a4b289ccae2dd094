"""The players of a Catan table: a card for each, with an unchanging plate and small changing pieces."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from kiebitz.cli.render.svg.catan_board import marks
from kiebitz.cli.render.svg.catan_signs import OUTLINE, RESOURCES, draw_sign
from kiebitz.cli.render.svg.pieces import SMALL, Box, draw_arrow, draw_name, text
from kiebitz.cli.render.svg.shapes import Element, label, lines, polygon, shape
from kiebitz.cli.render.svg.svg_canvas import Fragment, Sheet, fragment, group
from kiebitz.cli.render.text.catan_colours import ink
from kiebitz.dissectors.game.view import counted
from kiebitz.dissectors.protocols.catan.view import NOT_KNOWN, CatanSeat, CatanView
from kiebitz.dissectors.protocols.catan.words import ROHSTOFFE

_FACTS = 27.0
"""Height of a line of facts."""

_GAP = 8.0
"""Gap between cards."""

_POINTS = 150.0
"""Width of the points beside a name."""

_TURN, _WON = "turn", "won"
_BACK = "#46618f"
_MOST_BACKS = 12

_STAR = [(0.0, -13.0), (3.5, -4.0), (13.0, -4.0), (5.5, 2.0), (8.0, 11.0)]
_STAR += [(0.0, 5.5), (-8.0, 11.0), (-5.5, 2.0), (-13.0, -4.0), (-3.5, -4.0)]


class Card(Box, frozen=True):
    """The area of a player's card."""

    @property
    def is_narrow(self) -> bool:
        """True if points do not fit beside the name."""
        return self.width < 500

    @property
    def loose(self) -> float:
        """Extra space between the rows of a card."""
        return 0.0 if self.is_narrow else max(0.0, min(18.0, (self.height - 122) / 3))


def put_cards(sheet: Sheet, view: CatanView, players: Sequence[CatanSeat], box: Box) -> None:
    """Draw a card for each player, in two columns if the box is narrow and they are many."""
    columns = 2 if sheet.is_tall and len(players) > 3 else 1
    rows = -(-len(players) // columns)
    width = (box.width - (columns - 1) * _GAP) / columns
    height = round(min((box.height + _GAP) / rows - _GAP, 186.0), 1)
    for number, player in enumerate(players):
        row, column = divmod(number, columns)
        card = Card(box.x + column * (width + _GAP), box.y + row * (height + _GAP), width, height)
        (_put_guest if view.is_lobby else _put_card)(sheet, player, card)


def _put_guest(sheet: Sheet, player: CatanSeat, card: Card) -> None:
    """Draw a player before the game."""
    _put_plate(sheet, player, "", card)
    left, down = (14, 68) if card.is_narrow else (72, 80 + card.loose)
    about = [mark.text for mark in player.marks]
    for number, words in enumerate(about if card.is_narrow else [", ".join(about)]):
        line = text(words, SMALL, card.width - left - 14, "k-faint")
        sheet.put(line, card.x + left, card.y + down + 32 * number)


def _put_card(sheet: Sheet, player: CatanSeat, card: Card) -> None:
    _put_plate(sheet, player, player.state, card)
    loose = card.loose
    left, right = card.x + (14 if card.is_narrow else 72), card.x + card.width - 14
    score = text(player.figures[0].words, 26, _POINTS, "k-ink", bold=True, anchor="end")
    sheet.put(score, right, card.y + (70 if card.is_narrow else 37 + loose / 2))
    top, high = (77.0, 56.0) if card.is_narrow else (46 + loose, 42.0)
    if {*player.counts} == {NOT_KNOWN}:
        many = min(int(player.total), _MOST_BACKS) if player.total.lstrip("-").isdigit() else 1
        said = counted(player.total, "resource")
        sheet.put(_backs(max(0, many), said, right - left), left, card.y + top)
    else:
        cell = (right - left) / (len(player.counts) + 1)
        for place, (resource, count) in enumerate(zip(ROHSTOFFE, player.counts, strict=True)):
            sheet.put(goods(resource, count, cell, card.is_narrow), left + place * cell, card.y + top)
        sheet.put(_total(player.total, cell, card.is_narrow), left + len(player.counts) * cell, card.y + top)
    told = " · ".join(mark.text for mark in player.marks)
    top += high + loose / 2
    room = int((card.height - top) // _FACTS)
    if told and room > 0:
        sheet.put(_facts(told, right - left, min(room, 3)), left, card.y + top)


def _put_plate(sheet: Sheet, player: CatanSeat, state: str, card: Card) -> None:
    letter, colour = marks(player)
    sheet.put(_plate(player.name[:60], letter, colour, state, card.width, card.height), card.x, card.y)


@lru_cache(maxsize=256)
def _plate(name: str, letter: str, colour: str, state: str, width: float, height: float) -> Fragment:
    """Return the card itself with name, letter and colour, marked if it is the player's turn."""
    drawn = group()
    edge = "k-card k-s-turn" if state else "k-card k-s-line"
    thick = 6.0 if state else 2.0
    shape(drawn, "rect", x=3, y=3, width=width - 6, height=height - 6, rx=12, class_=edge, stroke_width=thick)
    box = Card(0, 0, width, height)
    tile = 34.0 if box.is_narrow else 46.0
    high = tile if box.is_narrow else height - 24
    edges: dict[str, str | float] = {"stroke": OUTLINE, "stroke_width": 2}
    shape(drawn, "rect", x=13, y=12, width=tile, height=high, rx=8, fill=colour, **edges)
    middle = (13 + tile / 2, 12 + high / 2 + 10)
    label(drawn, middle, letter, 28, fill=ink(colour), font_weight="bold", text_anchor="middle")
    x, base = (54.0, 37.0) if box.is_narrow else (72.0, 37 + box.loose / 2)
    # On narrow cards on the second line, so that the name has the first.
    mark_x, mark_y = (20.0, 61.0) if box.is_narrow else (x, base - 10)
    if state == _TURN:
        draw_arrow(drawn, mark_x, mark_y)
    elif state == _WON:
        polygon(drawn, [(mark_x + 12 + across, mark_y + down) for across, down in _STAR], class_="k-turn")
    x += 28 if state and not box.is_narrow else 0
    room = width - x - (8 if box.is_narrow else _POINTS + 14)
    draw_name(drawn, x, base, name, 30, room)
    return fragment(drawn)


@lru_cache(maxsize=512)
def goods(resource: str, count: str, width: float, narrow: bool, name: str = "") -> Fragment:
    """Return a resource's sign and count, dashed if hidden.

    If narrow, the count is below the sign; a `name` is below both.
    """
    drawn = group()
    size = _size(count, narrow)
    left = (width - size) / 2 if narrow else 0.0
    edges: dict[str, str | float] = {"stroke": OUTLINE, "stroke_width": 1.5}
    if _is_hidden(count):
        edges["stroke_dasharray"] = "6 4"
    tile = shape(drawn, "g", opacity=0.3) if count == "0" else drawn
    shape(tile, "rect", x=left, width=size, height=size, rx=8, fill=RESOURCES[resource], **edges)
    draw_sign(tile, resource, (left + size / 2, size / 2), 0.76 * size)
    _draw_count(drawn, count, width, narrow)
    if name:
        label(drawn, (0, 66), name, SMALL, width + 12, class_="k-ink")
    return fragment(drawn)


@lru_cache(maxsize=128)
def _total(count: str, width: float, narrow: bool) -> Fragment:
    """Return the number of cards in a hand beside two backs."""
    drawn = group()
    size = _size(count, narrow)
    left = (width - size) / 2 if narrow else 0.0
    for shift in (0.0, 0.26):
        _draw_back(drawn, left + (0.06 + shift) * size, shift * size / 2, size)
    _draw_count(drawn, count, width, narrow)
    return fragment(drawn)


@lru_cache(maxsize=128)
def _backs(many: int, words: str, width: float) -> Fragment:
    """Return a hand of which only the number of cards is known."""
    drawn = group()
    size = 40.0
    for place in range(many):
        _draw_back(drawn, 15.0 * place, 1, size)
    left = 15.0 * many + 0.62 * size
    label(drawn, (left if many else 0, 30), words, SMALL, width - left, class_="k-ink")
    return fragment(drawn)


def _size(count: str, narrow: bool) -> float:
    """Return the size of a sign: smaller beside a long count."""
    return 30.0 if narrow else 40.0 if len(count) < 4 else 26.0


def _is_hidden(count: str) -> bool:
    return not count.lstrip("-").isdigit()


def _draw_back(parent: Element, x: float, y: float, size: float) -> None:
    edges: dict[str, str | float] = {"stroke": "#ffffff", "stroke_width": 2}
    shape(parent, "rect", x=x, y=y, width=0.6 * size, height=0.86 * size, rx=4, fill=_BACK, **edges)


def _draw_count(parent: Element, count: str, width: float, narrow: bool) -> None:
    size = _size(count, narrow)
    nothing = count == "0"
    weight = "normal" if nothing else "bold"
    colour = "k-faint" if nothing or _is_hidden(count) else "k-ink"
    if narrow:
        at = (width / 2, size + 22)
        label(parent, at, count, SMALL, width, font_weight=weight, class_=colour, text_anchor="middle")
    else:
        letters = 28.0 if len(count) < 2 else 26.0 if len(count) < 3 else SMALL
        label(parent, (size + 7, 30), count, letters, width - size, font_weight=weight, class_=colour)


@lru_cache(maxsize=512)
def _facts(words: str, room: float, most: int) -> Fragment:
    """Return facts about a player in at most `most` lines."""
    drawn = group()
    said = lines(words[:400], SMALL, room)
    for number, line in enumerate(said[:most]):
        more = " …" if number == most - 1 and len(said) > most else ""
        label(drawn, (0, 23 + _FACTS * number), line + more, SMALL, room + 20, class_="k-ink")
    return fragment(drawn)
