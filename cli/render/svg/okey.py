"""An Okey table: four players with their racks, and between each two the exchange stack to the next one."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Literal, TypedDict

import msgspec

from kiebitz.cli.render.svg import okey_tiles
from kiebitz.cli.render.svg.idle_server import Gathered, put_gathering
from kiebitz.cli.render.svg.lettering import BESIDE, Anchor, many, put_fitted, put_lines
from kiebitz.cli.render.svg.okey_tiles import RACK_WIDE, WIDE
from kiebitz.cli.render.svg.pieces import text
from kiebitz.cli.render.svg.seats import plate
from kiebitz.cli.render.svg.shapes import label, shape
from kiebitz.cli.render.svg.state_validation import Key, Kinds, Number, drawn_game, sound_items
from kiebitz.cli.render.svg.svg_canvas import Fragment, Sheet, fragment, group
from kiebitz.cli.render.text.okey_words import (
    counted,
    just_put,
    not_known,
    seat_names,
    seat_to_move,
    tile_count,
)
from kiebitz.cli.render.text.scene import Scene
from kiebitz.dissectors.escaping import printable
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.okey.tiles import COLOURS, DECK, HIGHEST, SEATS, SLOTS, is_joker
from kiebitz.dissectors.protocols.okey.words import tile_words

_Tile = Annotated[str, msgspec.Meta(pattern=f"^([0-9]|1[0-{HIGHEST % 10}]):({'|'.join(COLOURS)})$")]
_Slots = list[_Tile | None]
_Seat = Annotated[int, msgspec.Meta(ge=0, lt=SEATS)]


class _Own(TypedDict, total=False):
    deck: _Slots
    drawn: _Tile | None


class _About(TypedDict, total=False):
    name: str
    tiles: Annotated[int, msgspec.Meta(ge=0, le=10**6)]


class _Lobby(TypedDict, total=False):
    players: list[str | None]
    ready: list[str]


class _Player(TypedDict, total=False):
    lobby: Number


_KINDS: Kinds = {
    "lobby": Number,
    "exchange": Annotated[_Slots, msgspec.Meta(min_length=SEATS, max_length=SEATS)],
    "seats": dict[Literal["0", "1", "2", "3"], _About],
    "private": dict[str, _Own],
    "turn": _Seat,
    "winner": str,
    "drawn_game": Any,
}
_DATA: dict[str, Kinds] = {"put": {"seat": _Seat, "tile": _Tile | None, "valid": bool}}

_PLATE_WIDE = 400


class _Place(msgspec.Struct, frozen=True):
    """Where a player's plate, rack and stack are: each its upper left corner."""

    plate: tuple[float, float]
    count: tuple[float, float]
    rack: tuple[float, float]
    stack: tuple[float, float]
    label: tuple[float, float]
    """Where the words begin that say whose stack it is."""


_MIDDLE = (1600 - RACK_WIDE) / 2
_WIDE = (
    _Place((_MIDDLE, 744), (_MIDDLE + 416, 776), (_MIDDLE, 578), (1180, 640), (1242, 664)),
    _Place((10, 282), (426, 314), (10, 336), (366, 640), (20, 664)),
    _Place((_MIDDLE, 8), (_MIDDLE + 416, 40), (_MIDDLE, 62), (366, 90), (20, 114)),
    _Place((954, 282), (1370, 314), (954, 336), (1180, 90), (1242, 114)),
)
"""From the player at the bottom on, clockwise: left, top, right."""

_TALL_STEP = 231.0


def draw_okey(scene: Scene, sheet: Sheet) -> None:
    """The game that is on, or the lobbies."""
    number, part, events = drawn_game(scene, _KINDS, _DATA)
    if not number:
        _put_lobbies(sheet, scene)
        return
    names = seat_names(part)
    own = part.get("private", {})
    first = next((seat for seat in range(SEATS) if "deck" in own.get(names[seat], {})), 0)
    around = [(first + step) % SEATS for step in range(SEATS)]
    sheet.say(f"Okey, lobby {part.get('lobby', '?')}")
    _put_middle(sheet, part, events, names)
    to_move = seat_to_move(part, events)
    put = just_put(events)
    for place, seat in zip(_places(sheet), around, strict=True):
        _put_player(sheet, place, part, names, seat, seat == to_move)
        _put_stack(sheet, place, part, names, seat, put)
    _put_besides(sheet, scene, names)


def _places(sheet: Sheet) -> tuple[_Place, ...]:
    if not sheet.is_tall:
        return _WIDE
    # Everybody below each other, in the order of play.
    found = []
    for number in range(SEATS):
        y = 158 + number * _TALL_STEP
        rack = (700 - RACK_WIDE) / 2
        found.append(
            _Place((rack, y), (rack + 352, y + 32), (rack, y + 54), (rack + RACK_WIDE - WIDE, y - 17), (0, 0))
        )
    return tuple(found)


def _put_player(
    sheet: Sheet, place: _Place, part: dict[str, Any], names: list[str], seat: int, to_move: bool
) -> None:
    """A player, and the rack with what is on it."""
    own = part.get("private", {}).get(names[seat], {})
    deck, drawn = own.get("deck"), own.get("drawn")
    count = tile_count(part, seat)
    wide = 340 if sheet.is_tall else _PLATE_WIDE
    sheet.put(plate(names[seat], to_move, wide), *place.plate)
    won = part.get("winner") == names[seat]
    told = "has won" if won else counted(count)
    sheet.put(text(told, BESIDE, 130, "k-ink", bold=won), *place.count)
    x, y = place.rack
    sheet.put(okey_tiles.rack(), x, y)
    words = ["to move"] if to_move else []
    words.append(told)
    if deck is None:
        if count:
            sheet.put(okey_tiles.backs(min(count, SLOTS)), x, y)
    else:
        marked = deck.index(drawn) if drawn is not None and drawn in deck else None
        for number, tile in enumerate(deck[:SLOTS]):
            if tile is not None:
                across, down = okey_tiles.place(number)
                sheet.put(okey_tiles.tile(_kind(tile)), x + across, y + down)
        if marked is not None and marked < SLOTS:
            across, down = okey_tiles.place(marked)
            sheet.put(okey_tiles.halo(), x + across, y + down)
        held = [tile_words(tile) for tile in deck if tile is not None]
        words.append("holds " + many(held, SLOTS))
        if drawn is not None:
            words.append(f"just drawn: {tile_words(drawn)}")
    sheet.say(printable(f"{names[seat][:60]}: {', '.join(words)}"))


def _put_stack(
    sheet: Sheet, place: _Place, part: dict[str, Any], names: list[str], seat: int, put: Event | None
) -> None:
    """The exchange stack from which a player draws; what was just put there is marked."""
    stacks = part.get("exchange")
    top = stacks[seat] if stacks is not None else None
    x, y = place.stack
    sheet.put(okey_tiles.tile(_kind(top)) if top is not None else okey_tiles.gap(), x, y)
    # Until the server has told the stacks anew, another tile lies there.
    if put is not None and (put.data["seat"] + 1) % SEATS == seat and top == put.data["tile"] is not None:
        sheet.put(okey_tiles.halo(), x, y)
    said = "not known" if stacks is None else "empty" if top is None else tile_words(top)
    sheet.say(printable(f"stack for {names[seat][:60]}: {said}"))
    if sheet.is_tall:
        sheet.put(text("stack", 24, 130, "k-faint", anchor="end"), x - 10, y + 30)
        return
    x, y = place.label
    left = x < 800
    at = x + 334 if left else x
    anchor: Anchor = "end" if left else "start"
    sheet.put(text("stack for", BESIDE, 334, "k-faint", anchor=anchor), at, y)
    put_fitted(sheet, names[seat] or '""', (at, y + 36), 334, (30, BESIDE), anchor=anchor)


def _put_middle(sheet: Sheet, part: dict[str, Any], events: list[Event], names: list[str]) -> None:
    """The main stack, and what is going on."""
    said = _story(part, events, names)
    remark = not_known(part)
    empty = "drawn_game" in part
    sheet.say(printable(", ".join(said)))
    sheet.say("main stack: empty" if empty else "main stack: tiles are left")
    if remark:
        sheet.say(remark)
    anchor: Anchor = "start" if sheet.is_tall else "middle"
    heap = okey_tiles.gap() if empty else okey_tiles.heap()
    lobby = f"lobby {part.get('lobby', '?')}"
    if sheet.is_tall:
        sheet.put(heap, 38, 14)
        x, y, room = 112.0, 44.0, 570.0
        sheet.put(text(lobby, BESIDE, 200, "k-faint", anchor="end"), 664, 40)
    else:
        sheet.put(heap, 775, 352)
        sheet.put(text("main stack", BESIDE, 290, "k-faint", anchor="middle"), 800, 330)
        sheet.put(text(remark or lobby, BESIDE, 290, "k-faint", anchor="middle"), 800, 560)
        x, y, room = 800.0, 478.0, 290.0
    for number, row in enumerate(said[:2]):
        within = room - (200 if sheet.is_tall and number == 0 else 0)
        put_fitted(sheet, row, (x, y), within, (34, 30, BESIDE), bold=number == 0, anchor=anchor)
        y += 38


def _story(part: dict[str, Any], events: list[Event], names: list[str]) -> list[str]:
    """What is going on, in two lines."""
    if "winner" in part:
        return [part["winner"] or '""', "has won"]
    if "drawn_game" in part:
        return ["nobody has won", "the stack is empty"]
    put = just_put(events)
    if put is not None:
        tile = put.data["tile"]
        return [names[put.data["seat"]], f"has put {tile_words(tile) if tile is not None else '?'}"]
    seat = seat_to_move(part, events)
    if seat is None:
        return ["whose turn?"]
    task = {DECK: "is to draw a tile", DECK + 1: "is to put a tile"}
    return [names[seat] or '""', task.get(tile_count(part, seat) or 0, "is to move")]


def _kind(tile: str) -> str:
    """Jokers are all alike."""
    return "0:RED" if is_joker(tile) else tile


def _put_besides(sheet: Sheet, scene: Scene, names: list[str]) -> None:
    """What the signs mean, and who else is there."""
    if sheet.is_tall:
        sheet.put(_legend(len(COLOURS) + 1), 32, 1090)
    else:
        sheet.put(_legend(2), 1330, 718)
    players = sound_items(scene.state.get("players"), _Player)
    elsewhere = sorted({*players} - {*names})
    if elsewhere:
        words = f"not in this game: {many([name[:30] for name in elsewhere], 4)}"
        sheet.say(printable(words))
        if not sheet.is_tall:
            put_lines(sheet, words, (20, 250), 440, ink="k-faint")


@lru_cache(maxsize=2)
def _legend(across: int) -> Fragment:
    """The signs on tiles, so many of them side by side."""
    drawn = group()
    for number, colour in enumerate((*COLOURS, "joker")):
        x, y = number % across * 132.0, number // across * 38.0
        shape(drawn, "circle", cx=x + 16, cy=y - 9, r=17, fill="#fff9e3", stroke="#7a6a48", stroke_width=2)
        if colour == "joker":
            okey_tiles.draw_star(drawn, (x + 16, y - 9), 13)
        else:
            okey_tiles.draw_sign(drawn, colour, (x + 16, y - 9), 9)
        label(drawn, (x + 40, y), colour.lower(), 24, 100, class_="k-faint")
    return fragment(drawn)


def _put_lobbies(sheet: Sheet, scene: Scene) -> None:
    """The lobbies with their players, and who is in none."""
    lobbies = sound_items(scene.state.get("lobbies"), _Lobby, Key)
    groups = []
    for number in sorted(lobbies, key=int):
        about = lobbies[number]
        ready = about.get("ready", [])
        players = [name for name in about.get("players", []) if name is not None]
        said = [(name, "ready" if name in ready else "") for name in players]
        groups.append(Gathered(f"lobby {number}, {len(players)} of {SEATS}", said))
    known = sound_items(scene.state.get("players"), _Player)
    outside = sorted(name for name, about in known.items() if "lobby" not in about)
    if outside:
        groups.append(Gathered("in no lobby", [(name, "") for name in outside]))
    put_gathering(sheet, "Okey: no game yet" if groups else "Okey: nobody is here", groups)
