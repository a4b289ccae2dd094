"""A Catan table as a drawing: the board, the players with their hands, the dice, trades and the bank."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

from kiebitz.cli.drawings.catan_board import Ground, put_board
from kiebitz.cli.drawings.catan_players import SMALL, Box, goods, put_cards, state_of, text
from kiebitz.cli.drawings.catan_signs import SEA
from kiebitz.cli.drawings.shapes import die, label, shape
from kiebitz.cli.drawings.sheet import Fragment, Sheet, fragment, group
from kiebitz.cli.pictures.canvas import UNICODE, shorten
from kiebitz.cli.pictures.catan_look import MOST_PLAYERS, Island, Look, Player, look_at
from kiebitz.cli.pictures.catan_words import (
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
from kiebitz.cli.pictures.catan_words import goods as goods_in_words
from kiebitz.cli.pictures.scene import Scene
from kiebitz.dissectors.catan.board import Spot, spot
from kiebitz.dissectors.catan.words import DORF, ROHSTOFFE, STADT, STRASSE

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
        board, beside = Box(0, 0, 700, high), Box(10, high + 6, 680, 1090 - high)
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
    """Where something has changed on the board last, in the turn that is on; empty if nothing has."""
    for event in reversed(scene.events):
        if event.kind == "rolled":
            break
        if event.kind in ("built", "robber"):
            at = event.data.get("place" if event.kind == "built" else "to")
            places = at if isinstance(at, list) else [at]
            if not all(isinstance(place, dict) and place.keys() >= {"x", "y"} for place in places):
                break
            where = spot((place["x"], place["y"]) for place in places)
            there = where in [piece.where for piece in island.pieces] or where == (island.robber,)
            return where if there else ()
    return ()


def _put_no_board(sheet: Sheet, look: Look, board: Box) -> None:
    """The sea alone, and why."""
    why = look.no_island if look.part else "the game has not begun"
    sheet.put(_sea(why, look.server[:200], board.width, board.height), board.x, board.y)


@lru_cache(maxsize=16)
def _sea(words: str, below: str, width: float, height: float) -> Fragment:
    drawn = group()
    shape(drawn, "rect", width=width, height=height, rx=18, fill=SEA)
    middle, room = width / 2, width - 60
    label(drawn, (middle, height / 2 - 10), words, 40, room, text_anchor="middle", fill="#111111")
    label(drawn, (middle, height / 2 + 44), below, 26, room, text_anchor="middle", fill="#111111")
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
    if player is None:
        sheet.put(text(words, 32, room, "k-ink", bold=True), x, y + 46)
        return
    sheet.put(text(player.name[:80], 30, room, "k-ink", bold=True), x, y + 28)
    sheet.put(text(words, 28, room, "k-ink"), x, y + 63)


@lru_cache(maxsize=32)
def _die(face: int) -> Fragment:
    drawn = group()
    die(drawn, (0, 0), face, _DIE)
    return fragment(drawn)


def _put_foot(sheet: Sheet, look: Look, beside: Box) -> float:
    """The bank, whose names are the key to the signs, and above it trades; gives where they begin."""
    bottom = beside.y + beside.height
    if not look.part:
        return bottom
    crowded = len(look.players) > 4
    if not sheet.is_tall and not crowded:
        bottom -= 74
        each = (beside.width - 84) / len(ROHSTOFFE)
        sheet.put(text("bank", SMALL, 80, "k-faint"), beside.x, bottom + 30)
        for place, (count, name) in enumerate(zip(hand(look.part.get("bank")), ROHSTOFFE, strict=True)):
            sheet.put(goods(name, count, each, False, name), beside.x + 84 + each * place, bottom)
        bottom -= 6
    said = _trades(look)[-(1 if crowded or sheet.is_tall else _MOST_TRADES) :]
    left_out = len(look.players) - MOST_PLAYERS
    said += [f"and {counted(left_out, 'more player')}"] if left_out > 0 else []
    said += filter(None, [not_known(look.part)])
    for words in reversed(said):
        bottom -= _LINE
        sheet.put(text(words[:300], SMALL, beside.width - 10, "k-ink"), beside.x, bottom + 24)
    return bottom - 4


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
    left_out = len(look.players) - MOST_PLAYERS
    said += [f"and {counted(left_out, 'more player')}"] if left_out > 0 else []
    for words in filter(None, said):
        sheet.say(shorten(words[:800], 400, UNICODE))


def _about(player: Player, look: Look, built: Counter[tuple[int, str]]) -> str:
    colour = player.about.get("colour", "no colour yet")
    who = f"{player.name} ({player.letter}, {colour})"
    if not look.part:
        return f"{who}: {readiness(player)}"
    told = [{"turn": "to move", "won": "has won"}.get(state_of(look, player), ""), points(player)]
    total = player.about.get("resources", NOT_KNOWN)
    told.append(f"{total} resources: {goods_in_words(player.resources) if player.resources else 'hidden'}")
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
