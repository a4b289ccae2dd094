"""A Catan table as a drawing: the board, the players with their hands, the dice, trades and the bank."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import Any

from kiebitz.cli.render.svg.catan_board import Ground, draw_key, put_board
from kiebitz.cli.render.svg.catan_players import goods, put_cards, state_of
from kiebitz.cli.render.svg.catan_signs import SEA
from kiebitz.cli.render.svg.pieces import SMALL, Box, text
from kiebitz.cli.render.svg.shapes import die, label, lines, shape
from kiebitz.cli.render.svg.svg_canvas import Fragment, Sheet, fragment, group
from kiebitz.cli.render.text.canvas import UNICODE, shorten
from kiebitz.cli.render.text.catan_look import MOST_PLAYERS, Island, Look, Player, look_at
from kiebitz.cli.render.text.catan_words import (
    NOT_KNOWN,
    bank,
    counted,
    facts,
    hand,
    headline,
    not_known,
    offers,
    points,
    readiness,
)
from kiebitz.dissectors.game.view import Scene
from kiebitz.dissectors.protocols.catan.board import Spot, spot
from kiebitz.dissectors.protocols.catan.words import DORF, ROHSTOFFE, STADT, STRASSE

_LINE = 32.0
_HEAD = 78.0
_DIE = 66.0
_MOST_TRADES = 2
_KINDS = {STRASSE: ("road", "roads"), DORF: ("village", "villages"), STADT: ("city", "cities")}


def draw_catan(scene: Scene, sheet: Sheet) -> None:
    """Draw a table: the board at the left with the players beside it, or above with the players below."""
    look = look_at(scene)
    players = look.players[:MOST_PLAYERS]
    if sheet.is_tall:
        high = 620.0 if len(players) < 5 else 540.0
        board, beside = Box(0, 0, 700, high), Box(5, high + 6, 690, 1090 - high)
    else:
        board, beside = Box(10, 10, 920, 780), Box(950, 10, 640, 780)
    if look.island is not None:
        ground = Ground(look.island, board.x, board.y, board.width, board.height)
        put_board(sheet, look.island, ground, _fresh(scene, look.island), 88 - 9 * len(players))
    else:
        _put_no_board(sheet, look, board)
    _put_headline(sheet, look, beside)
    foot = _put_foot(sheet, look, beside)
    top = beside.y + _HEAD
    if players:
        put_cards(sheet, look, players, Box(beside.x, top, beside.width, foot - top))
    _say(sheet, look)


def _fresh(scene: Scene, island: Island) -> Spot:
    """Where something has changed on the board since the last roll; empty if nothing has."""
    for event in reversed(scene.events):
        if event.kind == "rolled":
            break
        if event.kind in ("built", "robber"):
            where = _where(event.data.get("place" if event.kind == "built" else "to"))
            there = where == (island.robber,) or any(piece.where == where for piece in island.pieces)
            return where if there else ()
    return ()


def _where(told: Any) -> Spot:
    """A spot as events tell it, places with x and y; empty if it is none."""
    places = told if isinstance(told, list) else [told]
    if not all(isinstance(place, dict) and place.keys() >= {"x", "y"} for place in places):
        return ()
    return spot((place["x"], place["y"]) for place in places)


def _put_no_board(sheet: Sheet, look: Look, board: Box) -> None:
    """The sea and why there is no island, and the fields of which one is made."""
    why = look.no_island if look.part else "the game has not begun"
    sheet.put(_sea(why, look.server[:200], board.width, board.height), board.x, board.y)


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


def _put_headline(sheet: Sheet, look: Look, beside: Box) -> None:
    """The dice, and how the game stands."""
    x, y = beside.x, beside.y + 4
    if "dice" in look.part:
        for face in look.part["dice"][:2]:
            sheet.put(_die(face), x, y)
            x += _DIE + 8
        x += 8
    room = beside.x + beside.width - x - 10
    player, words = headline(look) if look.part else (None, counted(len(look.players), "player"))
    if player is not None:
        sheet.put(text(player.name[:80], 30, room, "k-ink", bold=True), x, y + 28)
        sheet.put(text(words, 28, room, "k-ink"), x, y + 63)
    elif words:
        sheet.put(text(words, 32, room, "k-ink", bold=True), x, y + 46)


@lru_cache(maxsize=32)
def _die(face: int) -> Fragment:
    drawn = group()
    die(drawn, (0, 0), face, _DIE)
    return fragment(drawn)


def _put_foot(sheet: Sheet, look: Look, beside: Box) -> float:
    """The bank, whose names are the key to the signs, and above it trades; gives where they begin."""
    bottom = beside.y + beside.height
    crowded = sheet.is_tall or len(look.players) > 4
    if look.part and not crowded:
        bottom -= 74
        each = (beside.width - 66) / len(ROHSTOFFE)
        sheet.put(text("bank", SMALL, 80, "k-faint"), beside.x, bottom + 30)
        for place, (count, name) in enumerate(zip(hand(look.part.get("bank")), ROHSTOFFE, strict=True)):
            sheet.put(goods(name, count, each, False, name), beside.x + 66 + each * place, bottom)
        bottom -= 6
    room = beside.width - 10
    said: list[str] = []
    for trade in _trades(look)[-(1 if crowded else _MOST_TRADES) :]:
        said += [trade[:200]] if crowded else lines(trade[:300], SMALL, room)[:2]
    said += filter(None, [_more(look), not_known(look.part)])
    for words in reversed(said):
        bottom -= _LINE
        sheet.put(text(words, SMALL, room, "k-ink"), beside.x, bottom + 24)
    return bottom - 4


def _more(look: Look) -> str:
    left_out = len(look.players) - MOST_PLAYERS
    return f"and {counted(left_out, 'more player')}" if left_out > 0 else ""


def _trades(look: Look) -> list[str]:
    said = []
    for player, words, accepted in offers(look):
        trade = f"{player.name if player is not None else NOT_KNOWN} {words}"
        if accepted:
            trade += f"; accepted by {', '.join(other.name for other in accepted)}"
        said.append(trade)
    return said


# In words.


def _say(sheet: Sheet, look: Look) -> None:
    said = []
    player, words = headline(look) if look.part else (None, f"{counted(len(look.players), 'player')}")
    said.append(f"{player.name}: {words}" if player is not None else words)
    if not look.part:
        said += ["the game has not begun", look.server]
    if "dice" in look.part:
        dice = look.part["dice"]
        said.append(f"dice: {' + '.join(map(str, dice))} = {sum(dice)}")
    built = Counter(
        (piece.owner.number, piece.kind)
        for piece in (look.island.pieces if look.island else ())
        if piece.owner
    )
    said += [_about(player, look, built) for player in look.players[:MOST_PLAYERS]]
    if look.part:
        said += [*_trades(look), bank(look.part), look.no_island, *_board(look.island), not_known(look.part)]
    for words in filter(None, [*said, _more(look)]):
        sheet.say(shorten(words[:800], 400, UNICODE))


def _about(player: Player, look: Look, built: Counter[tuple[int, str]]) -> str:
    colour = player.about.get("colour", "no colour yet")
    who = f"{player.name} ({player.letter}, {colour})"
    if not look.part:
        return f"{who}: {readiness(player)}"
    told = [{"turn": "to move", "won": "has won"}.get(state_of(look, player), ""), points(player)]
    total = player.about.get("resources", NOT_KNOWN)
    counts = zip(hand(player.resources), ROHSTOFFE, strict=True)
    known = ", ".join(f"{count} {name}" for count, name in counts if count != "0")
    told.append(f"{total} resources: {known or 'none'}" if player.resources else f"{total} resources: hidden")
    for kind, (one, several) in _KINDS.items():
        if count := built[player.number, kind]:
            told.append(f"{count} {one if count == 1 else several}")
    return f"{who}: {', '.join(filter(None, told + facts(player, look.part)))}"


def _board(island: Island | None) -> list[str]:
    if island is None:
        return []
    numbers = island.board.numbers
    fields = [f"{island.board.fields[place]} {numbers.get(place, '')}".strip() for place in island.land]
    said = [f"fields: {', '.join(fields)}"]
    if island.robber in island.land:
        at = island.robber
        said.append(f"the robber is at {island.board.fields[at]} {numbers.get(at, '')}".strip())
    return said
