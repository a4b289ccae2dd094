"""The drawing of a Catan table: the board, the players with their hands, the dice, trades and the bank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from kiebitz.cli.render.svg.catan_board import Ground, draw_key, put_board
from kiebitz.cli.render.svg.catan_players import goods, put_cards
from kiebitz.cli.render.svg.catan_signs import SEA
from kiebitz.cli.render.svg.lettering import plain
from kiebitz.cli.render.svg.pieces import SMALL, Box, text
from kiebitz.cli.render.svg.shapes import die, label, lines, shape
from kiebitz.cli.render.svg.svg_canvas import Fragment, Sheet, fragment, group
from kiebitz.cli.render.svg.table import seat_words
from kiebitz.cli.render.text.canvas import UNICODE, shorten
from kiebitz.dissectors.game.view import counted
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.catan.board import Spot, spot
from kiebitz.dissectors.protocols.catan.view import MOST_PLAYERS, CatanSeat, CatanView, IslandView
from kiebitz.dissectors.protocols.catan.words import DORF, ROHSTOFFE, STADT, STRASSE

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
        _put_no_board(sheet, view, board)
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


def _put_no_board(sheet: Sheet, view: CatanView, board: Box) -> None:
    """Draw the sea, the reason why there is no island, and the fields of islands."""
    why = "the game has not begun" if view.is_lobby else view.no_island
    sheet.put(_sea(why, view.server[:200], board.width, board.height), board.x, board.y)


@lru_cache(maxsize=16)
def _sea(words: str, below: str, width: float, height: float) -> Fragment:
    drawn = group()
    shape(drawn, "rect", width=width, height=height, rx=18, fill=SEA)
    y = 70.0
    for said, size in ((words, 40), (below, 26)):
        for line in lines(said, size, width - 60)[:2]:
            label(drawn, (width / 2, y), line, size, width, text_anchor="middle", fill="#111111")
            y += 1.3 * size
    wide = min(width - 60, (height - 190) * 1.48)
    draw_key(drawn, (width - wide) / 2, 186, wide)
    return fragment(drawn)


def _put_headline(sheet: Sheet, view: CatanView, beside: Box) -> None:
    """Draw the dice and the state of the game."""
    x, y = beside.x, beside.y + 4
    if view.dice is not None:
        for face in view.dice.faces[:2]:
            sheet.put(_die(face), x, y)
            x += _DIE + 8
        x += 8
    room = beside.x + beside.width - x - 10
    head, *others = _headline(view)
    if others:
        sheet.put(text(head[:80], 30, room, "k-ink", bold=True), x, y + 28)
        sheet.put(text(others[0], 28, room, "k-ink"), x, y + 63)
    elif head:
        sheet.put(text(head, 32, room, "k-ink", bold=True), x, y + 46)


def _headline(view: CatanView) -> list[str]:
    return [counted(len(view.seats), "player")] if view.is_lobby else [*map(plain, view.story)]


@lru_cache(maxsize=32)
def _die(face: int | str) -> Fragment:
    drawn = group()
    die(drawn, (0, 0), face, _DIE)
    return fragment(drawn)


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
