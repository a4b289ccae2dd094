"""A Schafkopf table: the four players around it, the cards before them, and what is played.

Seats move on by one from round to round. Here everybody keeps his place: the same player sits at the bottom
all the time, and the others follow clockwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from kiebitz.cli.pictures.canvas import Canvas, boxed, glyphs_for
from kiebitz.cli.pictures.felt import draw_felt
from kiebitz.cli.pictures.pen import Pen
from kiebitz.cli.pictures.scene import Scene
from kiebitz.cli.pictures.schafkopf_words import (
    card_letters,
    card_words,
    cards_left,
    last_trick,
    marks,
    not_known,
    seat_to_move,
    sorted_hand,
    story,
    taken,
)
from kiebitz.cli.pictures.seating import Seat, Seating, seating
from kiebitz.cli.terminal.screen import LINE_BREAK, AnyConsole, ConsoleOptions, RenderResult, Text
from kiebitz.dissectors.records import Event
from kiebitz.dissectors.schafkopf.cards import SEATS

_CARD_HEIGHT = 3
_CARD_WIDTH = 11
_FELT_ROWS = 3 * _CARD_HEIGHT
_SEAT_ROWS = 3
_HIGHER = 2
"""At the sides there is more to say than fits in a seat's rows, so that it begins higher up."""

_IN_A_ROW = 3
"""Cards of a hand that stand side by side beside the table."""

_LISTED_LINES = 5


def draw_schafkopf(scene: Scene) -> SchafkopfPicture:
    """The picture of a Schafkopf table."""
    return SchafkopfPicture(scene)


class SchafkopfPicture:
    """A table as rich can print it, 17 rows high, or a list of its players where it is too narrow."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def __rich_console__(self, console: AnyConsole, options: ConsoleOptions) -> RenderResult:
        look = _look(self.scene)
        names = [*self.scene.names, *sorted({*look.seats} - {*self.scene.names})]
        pen = Pen(console, options.encoding, glyphs_for(options.encoding), names)
        width = min(options.max_width, 120)
        lines = _besides(look, width, pen)
        if look.part:
            seats = seating(SEATS, width, _SEAT_ROWS, _FELT_ROWS)
            lines.insert(0, _around(look, seats, pen) if seats is not None else _listed(look, width, pen))
        text = LINE_BREAK.join(lines)
        text.no_wrap = True
        yield text


class _Look(msgspec.Struct, eq=False):
    """What of a table's state is drawn; `part` is the round that is on, empty before the first one.

    `seats` are the names by seat, `around` the seats as they are drawn: top, right, bottom, left.
    """

    part: dict[str, Any]
    seats: list[str]
    around: list[int]
    to_move: int | None
    here: list[str]
    gone: list[str]
    accounts: dict[str, int]
    stock: int | None
    events: list[Event]


def _look(scene: Scene) -> _Look:
    state = scene.state
    game, part = scene.game()
    seats = part.get("seats") or [f"seat {seat}" for seat in range(SEATS)]
    bottom = next((seats.index(name) for name in scene.names if name in seats), 0)
    players = state.get("players", {})
    here = {name for name, about in players.items() if about.get("here")}
    return _Look(
        part,
        seats,
        [(bottom + step) % SEATS for step in (2, 3, 0, 1)],
        seat_to_move(part, seats),
        sorted(here),
        sorted({*players} - here),
        state.get("accounts", {}),
        state.get("stock"),
        [event for event in scene.events if str(event.game_id) == game],
    )


def _around(look: _Look, seats: Seating, pen: Pen) -> Text:
    """The table with its players around it."""
    canvas = Canvas(seats.rows)
    draw_felt(canvas, seats, _title(look, pen), not_known(look.part), pen.glyphs)
    _draw_story(canvas, look, seats, pen)
    for seat, place in zip(look.around, seats.seats, strict=True):
        if place.edge in ("left", "right"):
            top, lines = place.y - _HIGHER, _beside(look, seat, place.width, pen)
        else:
            lines = _above_or_below(look, seat, place, pen)
            top = seats.y - len(lines) if place.edge == "top" else place.y
        for number, line in enumerate(lines):
            canvas.put(place.column(line.cell_len), top + number, line)
        _draw_card(canvas, look, seat, place, seats, pen)
    return canvas.text()


def _title(look: _Look, pen: Pen) -> str:
    facts = [f"round {look.part.get('round', '?')}"]
    if look.stock is not None:
        facts.append(f"stock {look.stock}")
    return f" {pen.glyphs.dot} ".join(facts)


def _draw_story(canvas: Canvas, look: _Look, seats: Seating, pen: Pen) -> None:
    """What is going on, amid the cards."""
    room = min(40, seats.felt - 2 * (_CARD_WIDTH + 3))
    lines = pen.wrap(_story(look, pen), room, _CARD_HEIGHT)
    top = seats.y + 1 + _CARD_HEIGHT + (_CARD_HEIGHT - len(lines)) // 2
    for number, line in enumerate(lines):
        canvas.put(seats.x + (seats.felt - line.cell_len) // 2, top + number, line)


def _story(look: _Look, pen: Pen) -> Text:
    # Short enough for a name and the word beside it to stand on one line.
    return story(look.part, look.events, lambda name: pen.name(name, 12))


def _draw_card(canvas: Canvas, look: _Look, seat: int, place: Seat, seats: Seating, pen: Pen) -> None:
    """The card that a player has laid before him; the one that takes the trick stands out."""
    card = look.part.get("table", {}).get(str(seat))
    if card is None:
        return
    over = taken(look.part)
    style = "" if over is None else "bold" if over["winner"] == look.seats[seat] else "dim"
    x = {"left": seats.x + 2, "right": seats.x + seats.felt - 2 - _CARD_WIDTH}
    y = {"top": 0, "bottom": 2 * _CARD_HEIGHT}
    canvas.put_lines(
        x.get(place.edge, seats.x + (seats.felt - _CARD_WIDTH) // 2),
        seats.y + 1 + y.get(place.edge, _CARD_HEIGHT),
        boxed(card_words(card, pen.glyphs), pen.glyphs, style),
    )


def _above_or_below(look: _Look, seat: int, place: Seat, pen: Pen) -> list[Text]:
    """A player at a long edge, in up to three lines, the hand towards the table."""
    between = f" {pen.glyphs.dot} "
    said = Text(", ").join(_marks(look, seat))
    room = place.width - (said.cell_len + len(between) if said else 0)
    name = pen.marked(look.seats[seat], look.to_move == seat, min(room, 24))
    who = [Text.assemble(name, between, said) if said else name]
    if figures := _figures(look, seat):
        who.append(pen.line(between.join(figures), place.width))
    hand = [Text(" ").join(cards)] if (cards := _hand(look, seat, pen)) else []
    return who + hand if place.edge == "top" else hand + who


def _beside(look: _Look, seat: int, width: int, pen: Pen) -> list[Text]:
    """A player at a side of the table: each thing on a line of its own."""
    said = Text(", ").join(_marks(look, seat))
    hand = _hand(look, seat, pen)
    rows = [hand[first : first + _IN_A_ROW] for first in range(0, len(hand), _IN_A_ROW)]
    return [
        pen.marked(look.seats[seat], look.to_move == seat, width),
        *(pen.wrap(said, width, 3) if said else ()),
        *(pen.line(figure, width) for figure in _figures(look, seat)),
        *(Text(" ").join(row) for row in rows),
    ]


def _listed(look: _Look, width: int, pen: Pen) -> Text:
    """The players below each other, for a picture that is too narrow for a table."""
    lines = [pen.line(_title(look, pen), width, "bold")]
    lines += pen.wrap(_story(look, pen), width, _LISTED_LINES)
    for seat in range(SEATS):
        facts = _marks(look, seat)
        card = look.part.get("table", {}).get(str(seat))
        if card is not None:
            facts.append(card_letters(card, pen.glyphs) + Text(" on the table"))
        hand = _hand(look, seat, pen)
        if hand:
            facts.append(Text("holds ") + Text(" ").join(hand))
        facts += map(Text, _figures(look, seat))
        name = pen.marked(look.seats[seat], look.to_move == seat, min(width, 24))
        line = Text.assemble(name, ": " if facts else "", Text(", ").join(facts))
        lines += pen.wrap(line, width, _LISTED_LINES)
    if remark := not_known(look.part):
        lines.append(pen.line(remark, width))
    return LINE_BREAK.join(lines)


def _marks(look: _Look, seat: int) -> list[Text]:
    name = look.seats[seat]
    left = [Text("has left", "red")] if name in look.gone else []
    return left + marks(look.part, name)


def _figures(look: _Look, seat: int) -> list[str]:
    """A player's account, if it was told (a bot's never is), and his points, once there are any."""
    name = look.seats[seat]
    figures = [f"account {look.accounts[name]}"] if name in look.accounts else []
    if look.part.get("tricks"):
        points = look.part.get("points", {}).get(name, "?")
        figures.append(f"{points} point" if points == 1 else f"{points} points")
    return figures


def _hand(look: _Look, seat: int, pen: Pen) -> list[Text]:
    """The cards that a player holds: the faces that are known, and the backs of the others."""
    left = cards_left(look.part, seat)
    known = look.part.get("private", {}).get(look.seats[seat], {}).get("hand")
    if known is not None:
        faces = [card_letters(card, pen.glyphs) for card in sorted_hand(known, look.part.get("mode"))]
        hidden = (left or 0) - len(faces)
        return [*faces, Text(pen.glyphs.back * hidden)] if hidden > 0 else faces
    if left is None:
        return [Text("? cards")]
    return [Text(f"{pen.glyphs.back * left} {left} card" + "s" * (left > 1))] if left > 0 else []


def _besides(look: _Look, width: int, pen: Pen) -> list[Text]:
    """What stands below the table: the last trick, and who else is there."""
    lines = []
    trick = last_trick(look.part, pen.name, pen.glyphs)
    if trick is not None:
        lines += pen.wrap(trick, width, 1)
    seated: Sequence[str] = look.seats if look.part else ()
    waiting = [name for name in look.here if name not in seated]
    gone = [name for name in look.gone if name not in seated]
    if not look.part:
        lines.append(Text("no round yet"))
    if waiting:
        lines.append(
            pen.listing("not in this round: " if look.part else "here: ", waiting, look.accounts, width)
        )
    if gone:
        lines.append(pen.listing("left: ", gone, look.accounts, width))
    return lines
