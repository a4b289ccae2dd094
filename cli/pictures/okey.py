"""An Okey table: four players with their racks, and between each two the exchange stack from one to the next.

Everybody keeps his place: at the bottom sits the first whose rack is known, the others follow clockwise in
the order of play. Without a game there are the lobbies and who is in them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kiebitz.cli.pictures.canvas import Canvas, boxed, glyphs_for
from kiebitz.cli.pictures.felt import draw_felt
from kiebitz.cli.pictures.okey_tiles import (
    IN_A_ROW,
    TILE_WIDTH,
    laid_out,
    legend,
    rack,
    rack_on_end,
    tile_face,
    tile_words,
)
from kiebitz.cli.pictures.okey_words import counted, not_known, seat_names, seat_to_move, story, tile_count
from kiebitz.cli.pictures.pen import Pen
from kiebitz.cli.pictures.scene import Scene
from kiebitz.cli.pictures.seating import Edge, Seat, Seating, seating
from kiebitz.cli.terminal.screen import LINE_BREAK, AnyConsole, ConsoleOptions, RenderResult, Text
from kiebitz.dissectors.okey.tiles import SEATS, Slots
from kiebitz.dissectors.records import Event

_FELT_ROWS = IN_A_ROW
"""A rack on end stands beside the felt."""

_SEAT_ROWS = 3
_STACK_WIDTH = TILE_WIDTH + 4
_STACK_HEIGHT = 3
_LABEL = 16
_STORY_ROWS = 4
_LISTED_LINES = 5
_MOST_LOBBIES = 12

_STACKS: dict[Edge, tuple[Edge, Edge]] = {
    "top": ("top", "left"),
    "right": ("top", "right"),
    "bottom": ("bottom", "right"),
    "left": ("bottom", "left"),
}
"""In which corner the stack lies from which a player draws: where the player before him can reach it."""


def draw_okey(scene: Scene) -> OkeyPicture:
    """The picture of an Okey table."""
    return OkeyPicture(scene)


class OkeyPicture:
    """A table as rich can print it, 21 rows high, or a list of its players where it is too narrow."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def __rich_console__(self, console: AnyConsole, options: ConsoleOptions) -> RenderResult:
        look = _look(self.scene)
        names = [*self.scene.names, *sorted({*look.seats} - {*self.scene.names})]
        pen = Pen(console, options.encoding, glyphs_for(options.encoding), names)
        width = min(options.max_width, 120)
        if look.part:
            seats = seating(SEATS, width, _SEAT_ROWS, _FELT_ROWS)
            lines = [_around(look, seats, pen)] if seats is not None else _listed(look, width, pen)
            lines += _besides(look, width, pen)
        else:
            lines = _lobbies(look, width, pen)
        text = LINE_BREAK.join(lines)
        text.no_wrap = True
        yield text


class _Look(msgspec.Struct, eq=False):
    """What of a table's state is drawn; `part` is the game, empty where there is none.

    `seats` are the names by seat, `around` the seats as they are drawn: top, right, bottom, left.
    """

    part: dict[str, Any]
    seats: list[str]
    around: list[int]
    to_move: int | None
    events: list[Event]
    players: dict[str, dict[str, Any]]
    lobbies: dict[str, dict[str, Any]]
    others: list[str]
    """Lobbies in which another game is on."""


def _look(scene: Scene) -> _Look:
    state = scene.state
    number, part = scene.game()
    seats = seat_names(part)
    known = [seat for seat in range(SEATS) if _deck(part, seats[seat]) is not None]
    bottom = known[0] if known else 0
    events = [event for event in scene.events if str(event.game_id) == number]
    games = state.get("games", {})
    others = [str(games[other].get("lobby", "?")) for other in sorted(games, key=int) if other != number]
    return _Look(
        part,
        seats,
        [(bottom + step) % SEATS for step in (2, 3, 0, 1)],
        seat_to_move(part, events),
        events,
        state.get("players", {}),
        state.get("lobbies", {}),
        others,
    )


def _deck(part: dict[str, Any], name: str) -> Slots | None:
    deck: Slots | None = part.get("private", {}).get(name, {}).get("deck")
    return deck


def _stacks(look: _Look) -> Slots | None:
    """The topmost tile of each exchange stack."""
    stacks: Slots | None = look.part.get("exchange")
    return stacks


def _drawn(look: _Look, seat: int) -> str | None:
    """The tile that a player has drawn and may keep or put."""
    tile: str | None = look.part.get("private", {}).get(look.seats[seat], {}).get("drawn")
    return tile


# The table.


def _around(look: _Look, seats: Seating, pen: Pen) -> Text:
    """The table with its players around it."""
    canvas = Canvas(seats.rows)
    draw_felt(canvas, seats, f"lobby {look.part.get('lobby', '?')}", not_known(look.part), pen.glyphs)
    _draw_middle(canvas, look, seats, pen)
    for seat, place in zip(look.around, seats.seats, strict=True):
        _draw_stack(canvas, look, seat, place, seats, pen)
        if place.edge in ("left", "right"):
            top, lines = seats.y, _beside(look, seat, place.width, pen)
        else:
            lines = _above_or_below(look, seat, place, pen)
            top = seats.y - len(lines) if place.edge == "top" else place.y
        for number, line in enumerate(lines):
            canvas.put(place.column(line.cell_len), top + number, line)
    return canvas.text()


def _draw_middle(canvas: Canvas, look: _Look, seats: Seating, pen: Pen) -> None:
    """The main stack, and what is going on."""
    empty = "drawn_game" in look.part
    back = Text((" " if empty else pen.glyphs.back) * TILE_WIDTH)
    x = seats.x + (seats.felt - _STACK_WIDTH) // 2
    canvas.put_lines(x, seats.y + 1, boxed(back, pen.glyphs, "dim"))
    canvas.put(x - 1, seats.y + 1 + _STACK_HEIGHT, Text("main stack", "dim"))
    lines = pen.wrap(_story(look, pen), 40, _STORY_ROWS)
    top = seats.y + 1 + (_FELT_ROWS - len(lines)) // 2
    for number, line in enumerate(lines):
        canvas.put(seats.x + (seats.felt - line.cell_len) // 2, top + number, line)


def _story(look: _Look, pen: Pen) -> Text:
    return story(look.part, look.events, pen.name, pen.glyphs)


def _draw_stack(canvas: Canvas, look: _Look, seat: int, place: Seat, seats: Seating, pen: Pen) -> None:
    """The exchange stack from which a player draws, and whose it is."""
    edge, side = _STACKS[place.edge]
    label = Text.assemble(("for ", "dim"), pen.name(look.seats[seat], _LABEL - 4))
    left, right = seats.x + 2, seats.x + seats.felt - 2
    top = seats.y + 1 if edge == "top" else seats.y + 1 + _FELT_ROWS - _STACK_HEIGHT
    canvas.put_lines(
        left if side == "left" else right - _STACK_WIDTH,
        top,
        boxed(_topmost(look, seat, pen), pen.glyphs, ""),
    )
    canvas.put(
        left if side == "left" else right - label.cell_len,
        top + _STACK_HEIGHT if edge == "top" else top - 1,
        label,
    )


def _topmost(look: _Look, seat: int, pen: Pen) -> Text:
    """The topmost tile of an exchange stack, or that it is empty."""
    stacks = _stacks(look)
    return tile_face(stacks[seat], pen.glyphs) if stacks is not None else Text("?".center(TILE_WIDTH))


def _above_or_below(look: _Look, seat: int, place: Seat, pen: Pen) -> list[Text]:
    """A player at a long edge, his rack towards the table."""
    count = counted(tile_count(look.part, seat))
    name = pen.marked(look.seats[seat], look.to_move == seat, 24)
    who = [Text.assemble(name, f" {pen.glyphs.dot} {count}")]
    deck = _deck(look.part, look.seats[seat])
    tiles = (
        rack(deck, _drawn(look, seat), pen.glyphs)
        if deck is not None
        else _hidden(look, seat, place.width, pen)
    )
    return who + tiles if place.edge == "top" else tiles + who


def _beside(look: _Look, seat: int, width: int, pen: Pen) -> list[Text]:
    """A player at a side of the table, his rack on end."""
    deck = _deck(look.part, look.seats[seat])
    who = [pen.marked(look.seats[seat], look.to_move == seat, width)]
    count = [pen.line(counted(tile_count(look.part, seat)), width)]
    if deck is not None:
        return who + rack_on_end(deck, _drawn(look, seat), pen.glyphs) + count
    return who + _hidden(look, seat, width, pen) + count


def _hidden(look: _Look, seat: int, width: int, pen: Pen) -> list[Text]:
    """A rack that nobody has seen: the backs of its tiles."""
    count = tile_count(look.part, seat)
    return [pen.line(pen.glyphs.back * count, width)] if count else []


# A table without room.


def _listed(look: _Look, width: int, pen: Pen) -> list[Text]:
    """The players below each other, each with what he can draw, for a picture too narrow for a table."""
    lines = [pen.line(f"lobby {look.part.get('lobby', '?')}", width, "bold")]
    lines += pen.wrap(_story(look, pen), width, _LISTED_LINES)
    for seat in range(SEATS):
        name = pen.marked(look.seats[seat], look.to_move == seat, min(width, 24))
        line = Text.assemble(name, f": {counted(tile_count(look.part, seat))}")
        deck = _deck(look.part, look.seats[seat])
        if deck is not None:
            line.append_text(Text(", ") + laid_out(deck, pen.glyphs))
        stacks = _stacks(look)
        if stacks is not None and (top := stacks[seat]) is not None:
            line.append_text(Text("; on the stack before him ") + tile_words(top, pen.glyphs))
        lines += pen.wrap(line, width, _LISTED_LINES)
    if remark := not_known(look.part):
        lines.append(pen.line(remark, width))
    return lines


# Who else is there.


def _besides(look: _Look, width: int, pen: Pen) -> list[Text]:
    """What stands below the table: other players and games, and what the letters on the tiles mean."""
    lines = []
    elsewhere = {name: about for name, about in look.players.items() if name not in look.seats}
    if elsewhere:
        where = {name: f"(lobby {about['lobby']})" for name, about in elsewhere.items() if "lobby" in about}
        lines.append(pen.listing("not in this game: ", sorted(elsewhere), where, width))
    if look.others:
        games = f"other games: lobby {', '.join(look.others)}"
        lines.append(pen.line(games, width, "dim"))
    return [*lines, *pen.wrap(legend(pen.glyphs), width, 2)]


def _lobbies(look: _Look, width: int, pen: Pen) -> list[Text]:
    """The lobbies with their players, and who is in none."""
    numbers = sorted(look.lobbies, key=int)
    lines = []
    for number in numbers[:_MOST_LOBBIES]:
        lines += _lobby(number, look.lobbies[number], width, pen)
    if len(numbers) > _MOST_LOBBIES:
        lines.append(Text(f"and {len(numbers) - _MOST_LOBBIES} more lobbies", "dim"))
    outside = sorted(name for name, about in look.players.items() if "lobby" not in about)
    if outside:
        lines.append(pen.listing("in no lobby: ", outside, {}, width))
    if not lines:
        lines.append(Text("nobody is here"))
    return lines


def _lobby(number: str, about: dict[str, Any], width: int, pen: Pen) -> list[Text]:
    ready = about.get("ready", ())
    players = [
        Text.assemble(pen.name(name), " (ready)" if name in ready else "")
        for name in about["players"]
        if name is not None
    ]
    line = Text(f"lobby {number}, {len(players)} of {SEATS}: ", "dim")
    return pen.wrap(Text.assemble(line, Text(", ").join(players)), width, SEATS)
