"""A Mäxchen table: the players around it in the order of play, the cup and the dice, what is to be beaten.

Dice that only their roller knows are drawn in the colour of the cup; a roll that is not known stays under the
cup. What a gap has made unknown is a question mark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from kiebitz.cli.pictures.canvas import (
    DIE_HEIGHT,
    Canvas,
    boxed,
    cup,
    die,
    glyphs_for,
)
from kiebitz.cli.pictures.felt import draw_felt
from kiebitz.cli.pictures.maexchen_words import between, not_known, player_to_move, told
from kiebitz.cli.pictures.pen import NAME_IN_WORDS, Pen
from kiebitz.cli.pictures.scene import Scene
from kiebitz.cli.pictures.seating import FELT_ROWS, SEAT_ROWS, Seat, Seating, seating
from kiebitz.cli.terminal.screen import LINE_BREAK, AnyConsole, ConsoleOptions, RenderResult, Text
from kiebitz.dissectors.maexchen.dice import MIA
from kiebitz.dissectors.records import Event

_CUP = "#af875f"
_LISTED_WIDTH = 26


def draw_maexchen(scene: Scene) -> MaexchenPicture:
    """The picture of a Mäxchen table."""
    return MaexchenPicture(scene)


class MaexchenPicture:
    """A table as rich can print it, 19 rows high where its players fit around it."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def __rich_console__(self, console: AnyConsole, options: ConsoleOptions) -> RenderResult:
        pen = Pen(console, options.encoding, glyphs_for(options.encoding), self.scene.names)
        look = _look(self.scene)
        width = min(options.max_width, 120)
        seats = seating(len(look.seated), width)
        body = _around(look, seats, pen) if seats is not None else _listed(look, width, pen)
        text = LINE_BREAK.join([body, *_besides(look, width, pen)])
        text.no_wrap = True
        yield text


class _Look(msgspec.Struct, eq=False):
    """What of a table's state is drawn; `part` is the round that is on, empty between rounds."""

    part: dict[str, Any]
    seated: list[str]
    spectators: list[str]
    absent: list[str]
    scores: dict[str, int]
    events: Sequence[Event]


def _look(scene: Scene) -> _Look:
    state = scene.state
    _, part = scene.game()
    known = state.get("players", {})
    scores = state.get("scores", {})
    spectators = [name for name, about in known.items() if about.get("spectator")]
    registered = sorted({*known} - {*spectators})
    seated = part.get("players", registered)
    absent = sorted({*registered, *scores} - {*seated} - {*spectators})
    return _Look(part, seated, sorted(spectators), absent, scores, scene.events)


def _around(look: _Look, seats: Seating, pen: Pen) -> Text:
    """The table with its players around it."""
    canvas = Canvas(seats.rows)
    unknown = not_known(look.part)
    draw_felt(canvas, seats, _round(look, pen), f"? {unknown}" if unknown else "", pen.glyphs)
    _draw_middle(canvas, look, seats, pen)
    announcer = look.part.get("announced", {}).get("name")
    for name, seat in zip(look.seated, seats.seats, strict=True):
        bubble = name == announcer and _room_for_bubble(seat, seats)
        for number, line in enumerate(_seat_lines(look, name, seat, bubble, pen)):
            canvas.put(seat.column(line.cell_len), seat.y + number, line)
        if bubble:
            _draw_bubble(canvas, look, seat, pen)
    return canvas.text()


def _round(look: _Look, pen: Pen) -> str:
    return pen.words(f"round {look.part.get('round', '?')}", 24).plain if look.part else ""


def _draw_middle(canvas: Canvas, look: _Look, seats: Seating, pen: Pen) -> None:
    """The dice, and beside them what is going on."""
    shape = _dice(look.part, pen)
    width = shape[0].cell_len
    room = seats.felt - 2 - width - 4
    story = pen.wrap(_story(look, pen), min(room, 40), DIE_HEIGHT)
    longest = max((line.cell_len for line in story), default=0)
    x = seats.x + 1 + max(1, (seats.felt - 2 - width - 2 - longest) // 2)
    y = SEAT_ROWS + 1 + (FELT_ROWS - DIE_HEIGHT) // 2
    canvas.put_lines(x, y, shape)
    canvas.put_lines(x + width + 2, y + (DIE_HEIGHT - len(story)) // 2, story)


def _story(look: _Look, pen: Pen) -> Text:
    if look.part:
        return told(look.part, look.events, pen.name, pen.words)
    return between(look.events, pen.name, pen.words)


def _dice(part: dict[str, Any], pen: Pen) -> list[Text]:
    """The dice as they lie there: open, known to their roller, or under the cup."""
    roller = part.get("rolling") or part.get("announced", {}).get("name")
    secret = part.get("private", {}).get(roller, {}).get("dice")
    actual = part.get("actual")
    faces = (actual or secret or "").split(",")
    if len(faces) != 2:
        return cup("? ?" if roller is not None else "", pen.glyphs, _CUP)
    style = "bold" if actual is not None else _CUP
    left, right = (die(pen.words(face, 5).plain, pen.glyphs, style) for face in faces)
    return [Text(" ").join(pair) for pair in zip(left, right, strict=True)]


def _room_for_bubble(seat: Seat, seats: Seating) -> bool:
    """At the long edges a bubble stands on the table, at the sides above its player."""
    return seat.edge in ("top", "bottom") or sum(other.edge == seat.edge for other in seats.seats) <= 2


def _draw_bubble(canvas: Canvas, look: _Look, seat: Seat, pen: Pen) -> None:
    """The announcement to beat, as its player's words."""
    style = _announcement_style(look.part)
    dice = look.part["announced"]["dice"]
    words = Text(pen.words(f"{dice} Mäxchen!" if dice == MIA else dice, 18).plain, style)
    bubble = boxed(words, pen.glyphs, style, "up" if seat.edge == "top" else "down")
    y = {"top": SEAT_ROWS + 1, "bottom": SEAT_ROWS + FELT_ROWS - 2}.get(seat.edge, seat.y - len(bubble))
    canvas.put_lines(seat.column(bubble[0].cell_len), y, bubble)


def _announcement_style(part: dict[str, Any]) -> str:
    own = part.get("private", {}).get(part["announced"]["name"], {})
    return "bold red" if own.get("bluff") else "bold"


def _seat_lines(look: _Look, name: str, seat: Seat, bubble: bool, pen: Pen) -> list[Text]:
    """A player's name, marked if it is his turn, and what there is to say of him."""
    doing = _doing(look.part, name, bubble, pen)
    points = _points(look, name)
    to_move = player_to_move(look.part) == name
    if seat.one_line:
        remark = doing if doing and not to_move else Text(points)
        return [Text.assemble(pen.marked(name, to_move, seat.width - remark.cell_len - 1), " ", remark)]
    if points and not doing:
        points += " point" if points == "1" else " points"
    between_them = f" {pen.glyphs.dot} " if points and doing else ""
    return [pen.marked(name, to_move, seat.width - 2), Text.assemble(points, between_them, doing)]


def _points(look: _Look, name: str) -> str:
    """A player's points; before the first points are told nobody misses them."""
    return str(look.scores.get(name, "?")) if look.scores else ""


def _doing(part: dict[str, Any], name: str, bubble: bool, pen: Pen) -> Text:
    """What a player does, in a word or two; empty if he does nothing."""
    announces = part.get("announced", {}).get("name") == name
    playing = part.get("phase") == "started"
    if name in part.get("lost", {}).get("names", ()):
        return Text("lost", "bold red")
    if playing and part.get("seer") == name:
        return Text("wants to see", "bold")
    if playing and part.get("rolling") == name:
        return Text("rolls", "bold")
    if announces and not bubble:
        return Text(f'"{pen.words(part["announced"]["dice"], 8)}"', _announcement_style(part))
    if announces and part.get("private", {}).get(name, {}).get("bluff"):
        return Text("bluffs", "bold red")
    if player_to_move(part) == name:
        return Text("next?" if "turn" in part.get("inferred", ()) else "to move", "bold")
    return Text("joins", "green") if part.get("private", {}).get(name, {}).get("joined") else Text()


def _listed(look: _Look, width: int, pen: Pen) -> Text:
    """The players in columns, for a picture too narrow or players too many to sit around a table."""
    across = max(1, width // _LISTED_WIDTH)
    each = width // across
    seat = Seat("left", 0, 0, each, one_line=True)
    canvas = Canvas(-(-len(look.seated) // across))
    for number, name in enumerate(look.seated):
        canvas.put(number % across * each, number // across, _seat_lines(look, name, seat, False, pen)[0])
    title = Text(_round(look, pen), "bold")
    unknown = not_known(look.part)
    remark = pen.line(f"? {unknown}", width) if unknown else Text()
    shape = _dice(look.part, pen)
    room = width - shape[0].cell_len - 2
    if room < NAME_IN_WORDS:
        middle = LINE_BREAK.join(pen.wrap(_story(look, pen), width, DIE_HEIGHT))
    else:
        story = pen.wrap(_story(look, pen), room, DIE_HEIGHT)
        beside = Canvas(DIE_HEIGHT)
        beside.put_lines(0, 0, shape)
        beside.put_lines(shape[0].cell_len + 2, 0, story)
        middle = beside.text()
    return LINE_BREAK.join([title, canvas.text(), middle, remark])


def _besides(look: _Look, width: int, pen: Pen) -> list[Text]:
    """Who else is there: players who are not in this round, and those who watch."""
    lines = []
    if look.absent:
        lines.append(pen.listing("not in this round: ", look.absent, look.scores, width))
    if look.spectators:
        lines.append(pen.listing("watching: ", look.spectators, {}, width))
    return lines
