"""The drawing of a Catan table: the board, the dice, trades, the bank, and a card for each player."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from kiebitz.cli.render.svg.catan_board import (
    OUTLINE,
    RESOURCES,
    SEA,
    Ground,
    draw_field_sign,
    draw_key,
    marks,
    put_board,
)
from kiebitz.cli.render.svg.lettering import plain
from kiebitz.cli.render.svg.svg_canvas import (
    SMALL,
    Box,
    Element,
    Sheet,
    cached_fragment,
    die,
    draw_arrow,
    draw_name,
    label,
    lines,
    polygon,
    rect,
    shape,
    text,
)
from kiebitz.cli.render.svg.table import seat_words
from kiebitz.cli.render.text.canvas import UNICODE, shorten
from kiebitz.cli.render.text.catan_panel import ink
from kiebitz.dissectors.game.view import counted
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.catan.board import Spot, spot
from kiebitz.dissectors.protocols.catan.view import MOST_PLAYERS, NOT_KNOWN, CatanSeat, CatanView, IslandView
from kiebitz.dissectors.protocols.catan.words import DORF, ROHSTOFFE, STADT, STRASSE

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
    score = text(player.figures[0].words, 26, _POINTS, "k-ink bold end")
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


@cached_fragment(256)
def _plate(
    drawn: Element, name: str, letter: str, colour: str, state: str, width: float, height: float
) -> None:
    """Return the card itself with name, letter and colour, marked if it is the player's turn."""
    edge = "k-card k-s-turn" if state else "k-card k-s-line"
    thick = 6.0 if state else 2.0
    rect(drawn, 3, 3, width - 6, height - 6, 12, class_=edge, stroke_width=thick)
    box = Card(0, 0, width, height)
    tile = 34.0 if box.is_narrow else 46.0
    high = tile if box.is_narrow else height - 24
    rect(drawn, 13, 12, tile, high, 8, fill=colour, stroke=OUTLINE, stroke_width=2)
    middle = (13 + tile / 2, 12 + high / 2 + 10)
    label(drawn, middle, letter, 28, "bold middle", fill=ink(colour))
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


@cached_fragment(512)
def goods(drawn: Element, resource: str, count: str, width: float, narrow: bool, name: str = "") -> None:
    """Return a resource's sign and count, dashed if hidden.

    If narrow, the count is below the sign; a `name` is below both.
    """
    size = _size(count, narrow)
    left = (width - size) / 2 if narrow else 0.0
    dashes = {"stroke_dasharray": "6 4"} if _is_hidden(count) else {}
    tile = shape(drawn, "g", opacity=0.3) if count == "0" else drawn
    colour = RESOURCES[resource]
    rect(tile, left, 0, size, size, 8, fill=colour, stroke=OUTLINE, stroke_width=1.5, **dashes)
    draw_field_sign(tile, resource, (left + size / 2, size / 2), 0.76 * size)
    _draw_count(drawn, count, width, narrow)
    if name:
        label(drawn, (0, 66), name, SMALL, "k-ink", width + 12)


@cached_fragment(128)
def _total(drawn: Element, count: str, width: float, narrow: bool) -> None:
    """Return the number of cards in a hand beside two backs."""
    size = _size(count, narrow)
    left = (width - size) / 2 if narrow else 0.0
    for shift in (0.0, 0.26):
        _draw_back(drawn, left + (0.06 + shift) * size, shift * size / 2, size)
    _draw_count(drawn, count, width, narrow)


@cached_fragment(128)
def _backs(drawn: Element, many: int, words: str, width: float) -> None:
    """Return a hand of which only the number of cards is known."""
    size = 40.0
    for place in range(many):
        _draw_back(drawn, 15.0 * place, 1, size)
    left = 15.0 * many + 0.62 * size
    label(drawn, (left if many else 0, 30), words, SMALL, "k-ink", width - left)


def _size(count: str, narrow: bool) -> float:
    """Return the size of a sign: smaller beside a long count."""
    return 30.0 if narrow else 40.0 if len(count) < 4 else 26.0


def _is_hidden(count: str) -> bool:
    return not count.lstrip("-").isdigit()


def _draw_back(parent: Element, x: float, y: float, size: float) -> None:
    rect(parent, x, y, 0.6 * size, 0.86 * size, 4, fill=_BACK, stroke="#ffffff", stroke_width=2)


def _draw_count(parent: Element, count: str, width: float, narrow: bool) -> None:
    size = _size(count, narrow)
    nothing = count == "0"
    weight = "" if nothing else "bold "
    colour = "k-faint" if nothing or _is_hidden(count) else "k-ink"
    if narrow:
        at = (width / 2, size + 22)
        label(parent, at, count, SMALL, f"{weight}{colour} middle", width)
    else:
        letters = 28.0 if len(count) < 2 else 26.0 if len(count) < 3 else SMALL
        label(parent, (size + 7, 30), count, letters, f"{weight}{colour}", width - size)


@cached_fragment(512)
def _facts(drawn: Element, words: str, room: float, most: int) -> None:
    """Return facts about a player in at most `most` lines."""
    said = lines(words[:400], SMALL, room)
    for number, line in enumerate(said[:most]):
        more = " …" if number == most - 1 and len(said) > most else ""
        label(drawn, (0, 23 + _FACTS * number), line + more, SMALL, "k-ink", room + 20)


_LINE = 32.0
_HEAD = 78.0
_DIE = 66.0
_MOST_TRADES = 2
_KINDS = {STRASSE: ("road", "roads"), DORF: ("village", "villages"), STADT: ("city", "cities")}


def draw_catan(view: CatanView, events: Sequence[Event], sheet: Sheet) -> None:
    """Draw a table: the board with the players beside it or, on a tall sheet, below it."""
    players = view.seats[:MOST_PLAYERS]
    if sheet.is_tall:
        high = 620.0 if len(players) < 5 else 540.0
        board, beside = Box(0, 0, 700, high), Box(5, high + 6, 690, 1090 - high)
    else:
        board, beside = Box(10, 10, 920, 780), Box(950, 10, 640, 780)
    if view.island is not None:
        ground = Ground(view.island, board.x, board.y, board.width, board.height)
        put_board(sheet, view.island, ground, _fresh(events, view.island), 88 - 9 * len(players))
    else:
        why = "the game has not begun" if view.is_lobby else view.no_island
        sheet.put(_sea(why, view.server[:200], board.width, board.height), board.x, board.y)
    _put_headline(sheet, view, beside)
    foot = _put_foot(sheet, view, beside)
    top = beside.y + _HEAD
    if players:
        put_cards(sheet, view, players, Box(beside.x, top, beside.width, foot - top))
    _say(sheet, view)


def _fresh(events: Sequence[Event], island: IslandView) -> Spot:
    """Return where the board has changed since the last roll; empty if it has not."""
    for event in reversed(events):
        if event.kind == "rolled":
            break
        if event.kind in ("built", "robber"):
            where = _event_spot(event.data.get("place" if event.kind == "built" else "to"))
            there = where == (island.robber,) or any(piece.where == where for piece in island.pieces)
            return where if there else ()
    return ()


def _event_spot(told: Any) -> Spot:
    """Return the spot named in an event, a list of places with x and y; empty if it is invalid."""
    places = told if isinstance(told, list) else [told]
    if not all(isinstance(place, dict) and place.keys() >= {"x", "y"} for place in places):
        return ()
    return spot((place["x"], place["y"]) for place in places)


@cached_fragment(16)
def _sea(drawn: Element, words: str, below: str, width: float, height: float) -> None:
    rect(drawn, 0, 0, width, height, 18, fill=SEA)
    y = 70.0
    for said, size in ((words, 40), (below, 26)):
        for line in lines(said, size, width - 60)[:2]:
            label(drawn, (width / 2, y), line, size, "middle", width, fill="#111111")
            y += 1.3 * size
    wide = min(width - 60, (height - 190) * 1.48)
    draw_key(drawn, (width - wide) / 2, 186, wide)


def _put_headline(sheet: Sheet, view: CatanView, beside: Box) -> None:
    """Draw the dice and the state of the game."""
    x, y = beside.x, beside.y + 4
    if view.dice is not None:
        for face in view.dice.faces[:2]:
            sheet.put(_die((0, 0), face, _DIE), x, y)
            x += _DIE + 8
        x += 8
    room = beside.x + beside.width - x - 10
    head, *others = _headline(view)
    if others:
        sheet.put(text(head[:80], 30, room, "k-ink bold"), x, y + 28)
        sheet.put(text(others[0], 28, room, "k-ink"), x, y + 63)
    elif head:
        sheet.put(text(head, 32, room, "k-ink bold"), x, y + 46)


def _headline(view: CatanView) -> list[str]:
    return [counted(len(view.seats), "player")] if view.is_lobby else [*map(plain, view.story)]


_die = cached_fragment(32)(die)


def _put_foot(sheet: Sheet, view: CatanView, beside: Box) -> float:
    """Draw the bank, which is the legend of the signs, and trades above it; return their upper edge."""
    bottom = beside.y + beside.height
    crowded = sheet.is_tall or len(view.seats) > 4
    if not view.is_lobby and not crowded:
        bottom -= 74
        each = (beside.width - 66) / len(ROHSTOFFE)
        sheet.put(text("bank", SMALL, 80, "k-faint"), beside.x, bottom + 30)
        for place, (count, name) in enumerate(zip(view.bank or "?" * len(ROHSTOFFE), ROHSTOFFE, strict=True)):
            sheet.put(goods(name, count, each, False, name), beside.x + 66 + each * place, bottom)
        bottom -= 6
    room = beside.width - 10
    said: list[str] = []
    for trade in _trades(view)[-(1 if crowded else _MOST_TRADES) :]:
        said += [trade[:200]] if crowded else lines(trade[:300], SMALL, room)[:2]
    said += filter(None, [view.more, view.unknown])
    for words in reversed(said):
        bottom -= _LINE
        sheet.put(text(words, SMALL, room, "k-ink"), beside.x, bottom + 24)
    return bottom - 4


def _trades(view: CatanView) -> list[str]:
    return [plain(fact.title) for fact in view.facts]


# Description in words.


def _say(sheet: Sheet, view: CatanView) -> None:
    for words in filter(None, (*_words(view), view.more)):
        sheet.say(shorten(words[:800], 400, UNICODE))


def _words(view: CatanView) -> Iterable[str]:
    yield ": ".join(_headline(view))
    if view.is_lobby:
        yield from ("the game has not begun", view.server)
    if view.dice is not None:
        faces = [face for face in view.dice.faces if isinstance(face, int)]
        yield f"dice: {' + '.join(map(str, faces))} = {sum(faces)}"
    pieces = view.island.pieces if view.island is not None else ()
    built = Counter((piece.owner.number, piece.kind) for piece in pieces if piece.owner is not None)
    yield from (_about(seat, built) for seat in view.seats[:MOST_PLAYERS])
    if not view.is_lobby:
        yield from (*_trades(view), view.bank_words, view.no_island, *_board(view.island), view.unknown)


def _about(seat: CatanSeat, built: Counter[tuple[int, str]]) -> str:
    who = f"{seat.name} ({seat.letter}, {seat.colour or 'no colour yet'})"
    told = seat_words(seat)
    for kind, (one, several) in _KINDS.items():
        if count := built[seat.number, kind]:
            told.append(f"{count} {one if count == 1 else several}")
    if seat.counts:
        counts = zip(seat.counts, ROHSTOFFE, strict=True)
        known = ", ".join(f"{count} {name}" for count, name in counts if count != "0") or "none"
        told.append(f"{seat.total} resources: {'hidden' if {*seat.counts} == {'?'} else known}")
    return f"{who}: {', '.join(told)}"


def _board(island: IslandView | None) -> list[str]:
    if island is None:
        return []
    numbers = island.board.numbers
    fields = [f"{island.board.fields[place]} {numbers.get(place, '')}".strip() for place in island.land]
    said = [f"fields: {', '.join(fields)}"]
    if island.robber in island.land:
        at = island.robber
        said.append(f"the robber is at {island.board.fields[at]} {numbers.get(at, '')}".strip())
    return said
