"""A table of licitovaný mariáš: three players around it, the game that is played, the cards before them.

The order of play moves on by one from hand to hand. Here everybody keeps his place: at the bottom sits the
player with the lowest id whose hand is known, the others follow clockwise. Between hands there are the groups
with their money; of a login server, who is there.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kiebitz.cli.pictures.canvas import Canvas, boxed, glyphs_for, shorten
from kiebitz.cli.pictures.cgml_groups import called, group_lines, group_name, last_hand, player_names
from kiebitz.cli.pictures.cgml_words import (
    bidding_line,
    card_face,
    card_letters,
    card_list,
    ending,
    game_words,
    laid_down,
    last_trick,
    level_words,
    marks,
    not_known,
    on_table,
    sorted_hand,
    story,
    taken,
    tricks_words,
)
from kiebitz.cli.pictures.felt import draw_felt
from kiebitz.cli.pictures.pen import Pen
from kiebitz.cli.pictures.scene import Scene
from kiebitz.cli.pictures.seating import Seat, Seating, seating
from kiebitz.cli.terminal.screen import LINE_BREAK, AnyConsole, ConsoleOptions, RenderResult, Text
from kiebitz.dissectors.cgml.cards import SEATS
from kiebitz.dissectors.records import Event

_CARD_WIDTH = 7
_CARD_HEIGHT = 3
_GAME_ROWS = 3
"""What is played, how often it is doubled, the talon."""

_FELT_ROWS = _GAME_ROWS + 1 + 2 * _CARD_HEIGHT
_SEAT_ROWS = 3
_IN_A_ROW = 4
"""Cards of a hand that stand side by side beside the table."""

_LISTED_LINES = 5
_SAID_LINES = 2


def draw_cgml(scene: Scene) -> CgmlPicture:
    """The picture of a table of licitovaný mariáš."""
    return CgmlPicture(scene)


class CgmlPicture:
    """A table as rich can print it, 18 rows high, or a list of its players where it is too narrow."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def __rich_console__(self, console: AnyConsole, options: ConsoleOptions) -> RenderResult:
        names = player_names(self.scene.state)
        order = [*self.scene.names, *sorted({*names} - {*self.scene.names})]
        glyphs = glyphs_for(options.encoding)
        pen = Pen(console, options.encoding, glyphs, [names.get(player, player) for player in order])
        look = _look(self.scene, names)
        width = min(options.max_width, 120)
        lines = _hand(look, width, pen) if look.part else last_hand(self.scene.events, names, width, pen)
        lines += group_lines(self.scene.state, names, look.group, width, pen)
        text = LINE_BREAK.join(lines or [pen.line("nobody is here yet", width)])
        text.no_wrap = True
        yield text


class _Look(msgspec.Struct, eq=False):
    """What of a hand is drawn; `part` is its state, empty between hands.

    `players` are the three as they are drawn: right, bottom, left; None for one who is not known.
    """

    part: dict[str, Any]
    group: str | None
    players: list[int | None]
    names: dict[str, str]
    money: dict[str, int]
    events: list[Event]

    def name(self, player: int | None) -> str:
        """What a player is called."""
        return called(player, self.names)


def _look(scene: Scene, names: dict[str, str]) -> _Look:
    number, part = scene.game()
    group: str | None = part.get("group")
    money = scene.state.get("groups", {}).get(group, {}).get("money", {})
    events = [event for event in scene.events if str(event.game_id) == number]
    return _Look(part, group, _around(part), names, money, events)


def _around(part: dict[str, Any]) -> list[int | None]:
    """The players as they are drawn."""
    winners = (trick["winner"] for trick in part.get("tricks", ()))
    heard_of = [*part.get("seats", ()), *map(int, part.get("hands", {})), *winners, *on_table(part)]
    players: list[int | None] = [*dict.fromkeys(heard_of)][:SEATS]
    players += [None] * (SEATS - len(players))
    known = [player for player in players if player is not None]
    shown = [player for player in known if "hand" in part.get("private", {}).get(str(player), {})]
    bottom = players.index(min(shown or known, default=None))
    return [players[(bottom + step) % SEATS] for step in (2, 0, 1)]


# The table.


def _hand(look: _Look, width: int, pen: Pen) -> list[Text]:
    """A hand, and below it what was bid and played."""
    seats = seating(SEATS, width, _SEAT_ROWS, _FELT_ROWS, top=False)
    lines = [_table(look, seats, pen)] if seats is not None else _listed(look, width, pen)

    def name(player: int | None) -> Text:
        return pen.name(look.name(player))

    said = (
        bidding_line(look.part, name, pen.glyphs),
        laid_down(look.part, name, pen.glyphs),
        last_trick(look.part, name, pen.glyphs),
        not_known(look.part),
    )
    for line in said:
        if line is not None:
            lines += pen.wrap(line, width, _SAID_LINES)
    return lines


def _table(look: _Look, seats: Seating, pen: Pen) -> Text:
    """The table with its players around it."""
    canvas = Canvas(seats.rows)
    draw_felt(canvas, seats, _title(look, pen), "", pen.glyphs)
    for number, line in enumerate(_game(look, pen)):
        canvas.put(seats.x + (seats.felt - line.cell_len) // 2, seats.y + 1 + number, line)
    _draw_story(canvas, look, seats, pen)
    for player, place in zip(look.players, seats.seats, strict=True):
        beside = place.edge != "bottom"
        lines = _beside(look, player, place.width, pen) if beside else _below(look, player, place, pen)
        for number, line in enumerate(lines[: seats.felt_rows + 2]):
            canvas.put(place.column(line.cell_len), (seats.y if beside else place.y) + number, line)
        _draw_card(canvas, look, player, place, seats, pen)
    return canvas.text()


def _title(look: _Look, pen: Pen) -> str:
    return f"group {group_name(look.group)} {pen.glyphs.dot} hand {look.part.get('hand', '?')}"


def _game(look: _Look, pen: Pen) -> list[Text]:
    """What is played, how often it is doubled, and the talon: a line for each, which may be empty."""
    part = look.part
    declarer = part.get("private", {}).get(str(part.get("declarer")), {})
    talon = Text()
    if "talon" in declarer:
        talon = Text.assemble(("talon ", "dim"), card_list(declarer["talon"], pen.glyphs))
    elif "talon" in part:
        talon = Text.assemble(("talon ", "dim"), shorten(pen.glyphs.back * part["talon"], 12, pen.glyphs))
    return [game_words(part, pen.glyphs), Text(level_words(part.get("flek", "1"), pen.glyphs), "bold"), talon]


def _draw_story(canvas: Canvas, look: _Look, seats: Seating, pen: Pen) -> None:
    """What is going on, amid the cards."""
    room = min(40, seats.felt - 2 * (_CARD_WIDTH + 3))
    lines = pen.wrap(_story(look, pen), room, _CARD_HEIGHT)
    for number, line in enumerate(lines):
        y = seats.y + 1 + _GAME_ROWS + 1 + number
        canvas.put(seats.x + (seats.felt - line.cell_len) // 2, y, line)


def _story(look: _Look, pen: Pen) -> Text:
    return story(look.part, look.events, lambda player: pen.name(look.name(player)), pen.words, pen.glyphs)


def _draw_card(
    canvas: Canvas, look: _Look, player: int | None, place: Seat, seats: Seating, pen: Pen
) -> None:
    """The card that a player has laid before him; the one that has taken the trick stands out."""
    card = on_table(look.part).get(player) if player is not None else None
    if card is None:
        return
    over = taken(look.part)
    style = "" if over is None else "bold" if over["winner"] == player else "dim"
    x = {"left": seats.x + 2, "right": seats.x + seats.felt - 2 - _CARD_WIDTH}
    below = seats.y + 1 + _FELT_ROWS - _CARD_HEIGHT
    canvas.put_lines(
        x.get(place.edge, seats.x + (seats.felt - _CARD_WIDTH) // 2),
        below if place.edge == "bottom" else below - _CARD_HEIGHT,
        boxed(card_face(card, pen.glyphs), pen.glyphs, style),
    )


def _below(look: _Look, player: int | None, place: Seat, pen: Pen) -> list[Text]:
    """The player at the bottom, his hand towards the table."""
    between = f" {pen.glyphs.dot} "
    said = Text(between).join([Text(), *_marks(look, player)])
    name = pen.marked(look.name(player), _is_to_move(look, player), 24)
    hand = pen.wrap(Text(" ").join(_cards(look, player, pen)), place.width, 1)
    return [*hand, name + said, pen.line(between.join(_figures(look, player)), place.width)]


def _beside(look: _Look, player: int | None, width: int, pen: Pen) -> list[Text]:
    """A player at a side of the table: each thing on a line of its own."""
    return [
        pen.marked(look.name(player), _is_to_move(look, player), width),
        *_marks(look, player),
        *(pen.line(figure, width) for figure in _figures(look, player)),
        *_in_columns(_cards(look, player, pen)),
    ]


def _in_columns(cards: list[Text]) -> list[Text]:
    """A hand in rows of equal width, its cards below each other."""
    widest = max((card.cell_len for card in cards), default=0)
    for card in cards:
        card.pad_right(widest - card.cell_len)
    rows = [Text(" ").join(cards[first : first + _IN_A_ROW]) for first in range(0, len(cards), _IN_A_ROW)]
    for row in rows:
        row.pad_right(rows[0].cell_len - row.cell_len)
    return rows


def _listed(look: _Look, width: int, pen: Pen) -> list[Text]:
    """The players below each other, for a picture that is too narrow for a table."""
    lines = [pen.line(_title(look, pen), width, "bold")]
    told = [*filter(None, _game(look, pen)), _story(look, pen)]
    right, bottom, left = look.players
    for player in (bottom, left, right):
        facts = _marks(look, player)
        card = on_table(look.part).get(player) if player is not None else None
        if card is not None:
            facts.append(card_letters(card, pen.glyphs) + Text(" on the table"))
        if hand := _cards(look, player, pen):
            facts.append(Text("holds ") + Text(" ").join(hand))
        facts += map(Text, _figures(look, player))
        name = pen.marked(look.name(player), _is_to_move(look, player), min(width, 24))
        told.append(Text.assemble(name, ": ", Text(", ").join(facts)))
    for line in told:
        lines += pen.wrap(line, width, _LISTED_LINES)
    return lines


def _is_to_move(look: _Look, player: int | None) -> bool:
    return player is not None and look.part.get("turn") == player and ending(look.events) is None


def _marks(look: _Look, player: int | None) -> list[Text]:
    return marks(look.part, player) if player is not None else []


def _figures(look: _Look, player: int | None) -> list[str]:
    """A player's id, by which events call him, his tricks, and what he has won or lost."""
    if player is None:
        return []
    figures = [f"id {player}"]
    if tricks := tricks_words(look.part, player):
        figures.append(tricks)
    end = ending(look.events)
    if end is not None and end.kind == "result" and str(player) in end.data["money"]:
        figures.append(f"this hand {end.data['money'][str(player)]:+d}")
    if str(player) in look.money:
        figures.append(f"money {look.money[str(player)]}")
    return figures


def _cards(look: _Look, player: int | None, pen: Pen) -> list[Text]:
    """The cards that a player holds: their faces if they are known, or else their backs."""
    known = look.part.get("private", {}).get(str(player), {}).get("hand")
    if known is not None:
        return [card_letters(card, pen.glyphs) for card in sorted_hand(known, look.part)]
    left = look.part.get("hands", {}).get(str(player))
    if left is None:
        return [Text("? cards")]
    backs = shorten(pen.glyphs.back * left, 12, pen.glyphs)
    return [Text(f"{backs} {left}")] if left > 0 else []
