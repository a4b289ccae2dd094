"""Who sits where at a table of cards, wide and tall: plates with names, hands, and the cards that lie.

The player at the bottom is told first, the others follow clockwise: left, top, right; of three nobody is at
the top.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import msgspec

from kiebitz.cli.render.svg.cards import NARROW, Face, backs, backs_width, card, halo, height, place
from kiebitz.cli.render.svg.lettering import BESIDE, Anchor, put_fitted
from kiebitz.cli.render.svg.pieces import BOLD, draw_arrow, draw_name, felt, text
from kiebitz.cli.render.svg.shapes import LETTER_WIDTH, lines, shape
from kiebitz.cli.render.svg.svg_canvas import Fragment, Sheet, fragment, group
from kiebitz.dissectors.escaping import printable
from kiebitz.services.evidence.cells import cell_len

Edge = Literal["bottom", "left", "top", "right"]

_PLATE = 48
"""A plate's height."""

_TOGETHER = 1.2
"""So many more cards than have room side by side move together, to stay in their row."""

_LINE = 32
"""From one line of what is said to the next."""

_FAN = 340
"""So wide are hidden cards at most, one over the other."""


class Place(msgspec.Struct, frozen=True):
    """A player's room, how wide a card of the hand is, and where the card lies that is played."""

    edge: Edge
    x: float
    y: float
    width: float
    height: float
    card: tuple[float, float]


class Layout(msgspec.Struct, frozen=True):
    """A table: its felt as x, y, width and height; the seats from the bottom one on, clockwise.

    A hand's cards are `hand` wide, those that lie on the felt `lying`. `story` is the middle of
    what is going on, and the room that a line has.
    """

    felt: tuple[float, float, float, float]
    places: tuple[Place, ...]
    hand: float
    lying: float
    story: tuple[float, float, float]
    names_below: bool
    """Whether cards that lie have their players' names below."""


class Seated(msgspec.Struct, frozen=True):
    """A player: what is said of it, the cards that are known, and how many others it holds (None: unknown).

    `brief` says the figures in few letters. `lies` is the card before it, `just` whether that was played
    last, `takes` whether it takes the trick.
    """

    name: str
    to_move: bool
    marks: list[str]
    figures: list[str]
    brief: str
    cards: list[Face]
    hidden: int | None
    lies: Face | None
    just: bool
    takes: bool


def put_felt(sheet: Sheet, layout: Layout) -> None:
    """The table itself."""
    x, y, width, high = layout.felt
    sheet.put(felt(width, high, 34), x, y)


def put_story(sheet: Sheet, layout: Layout, said: Sequence[str], most: int) -> None:
    """What is going on, in at most so many lines amid the table, the first of them bold."""
    x, y, room = layout.story
    said = said[:most]
    y -= 17 * (len(said) - 1)
    for number, row in enumerate(said):
        put_fitted(sheet, row, (x, y), room, (32, 28, BESIDE), bold=number == 0, anchor="middle")
        y += 34
    sheet.say(printable(", ".join(row[:200] for row in said)) or "nothing is said")


def put_seated(sheet: Sheet, layout: Layout, players: Sequence[Seated], is_played: bool) -> None:
    """Everybody at the table, from the bottom one on; while it `is_played`, each has a place for a card."""
    for at, whole in zip(layout.places, players, strict=False):
        player = _within(whole, layout.hand, at)
        if is_played:
            _put_lying(sheet, layout, at, player)
        if at.edge in ("left", "right"):
            _put_beside(sheet, layout, at, player)
        else:
            _put_along(sheet, layout, at, player)
        sheet.say(_in_words(player))


@lru_cache(maxsize=256)
def plate(name: str, to_move: bool, width: float) -> Fragment:
    """A name plate, its upper left corner at the origin; who is to move has an arrow and a thick edge."""
    drawn = group()
    edge, thick = ("k-s-turn", 6) if to_move else ("k-s-line", 2)
    shape(drawn, "rect", width=width, height=_PLATE, rx=12, class_=f"k-card {edge}", stroke_width=thick)
    left = 14
    if to_move:
        draw_arrow(drawn, 14, 24)
        left = 42
    draw_name(drawn, left, 35, name, 34, width - left - 14)
    return fragment(drawn)


def _put_lying(sheet: Sheet, layout: Layout, at: Place, player: Seated) -> None:
    x, y = at.card
    wide = layout.lying
    if player.lies is None:
        sheet.put(place(wide), x, y)
    else:
        sheet.put(card(player.lies, wide), x, y)
        if player.takes or player.just:
            sheet.put(halo(wide, player.takes), x, y)
    if layout.names_below:
        foot = y + height(wide) + 34
        ink = "k-turn" if player.to_move or player.takes else "k-faint"
        sheet.put(text(player.name or '""', 24, wide + 56, ink, anchor="middle"), x + wide / 2, foot)


def _put_beside(sheet: Sheet, layout: Layout, at: Place, player: Seated) -> None:
    """A player at a side: each thing below the other."""
    sheet.put(plate(player.name, player.to_move, at.width), at.x, at.y)
    hand = _rows(player, layout.hand, at.width) * (height(layout.hand) + _gap(layout.hand))
    most = max(2, int((at.height - _PLATE - hand) / _LINE))
    marks = lines(", ".join(player.marks), BESIDE, at.width) if player.marks else []
    said = [(words, True) for words in marks] + [
        (words, False) for words in _figures(player, at.width, most - len(marks))
    ]
    y = at.y + _PLATE + _LINE
    for words, bold in said[: most - 1] + said[most - 1 :][-1:]:
        put_fitted(sheet, words, (at.x, y), at.width, (BESIDE, 24), bold=bold and _fits_bold(words, at.width))
        y += _LINE
    y += 14 - _LINE
    _put_hand(sheet, layout.hand, (at.x, y), (at.width, at.y + at.height - y), player, "start")


def _put_along(sheet: Sheet, layout: Layout, at: Place, player: Seated) -> None:
    """A player at a long edge: the hand towards the table, beside the plate what is said."""
    hand = _rows(player, layout.hand, at.width) * (height(layout.hand) + _gap(layout.hand))
    above = at.edge == "bottom"
    y = at.y + hand + 4 if above else at.y
    wide = min(at.width / 2 - 22, 400)
    room = min(at.width - wide - 20, 420)
    x = at.x + (at.width - wide - 20 - room) / 2
    sheet.put(plate(player.name, player.to_move, wide), x, y)
    said = [(", ".join(player.marks), True)] if player.marks else []
    said += [(words, False) for words in _figures(player, room, 2 - len(said))]
    line = y + (33 if len(said) < 2 else 20)
    for words, bold in said:
        put_fitted(
            sheet, words, (x + wide + 20, line), room, (28, BESIDE, 24), bold=bold and _fits_bold(words, room)
        )
        line += 30
    at_hand = at.y if above else y + _PLATE + 8
    _put_hand(sheet, layout.hand, (at.x, at_hand), (at.width, at.height), player, "middle")


def _within(player: Seated, width: float, at: Place) -> Seated:
    """A player with as many cards as there is room for; no game deals more."""
    rows = max(1, int((at.height - _PLATE) / (height(width) + _gap(width))))
    columns = _columns(1, width, at.width)
    most = rows * columns if rows > 1 else int(_TOGETHER * columns)
    more = len(player.cards) + bool(player.hidden) - most
    if more <= 0:
        return player
    figures = [*player.figures, f"and {more} more cards"]
    return msgspec.structs.replace(
        player, cards=player.cards[: len(player.cards) - more], figures=figures, brief=figures[-1]
    )


def _figures(player: Seated, room: float, most: int) -> list[str]:
    """A player's figures, on one line or each on its own, or in brief where there is no room for that."""
    together = " · ".join(player.figures)
    if not together:
        return []
    if cell_len(printable(together[:200])) * LETTER_WIDTH * 24 <= room:
        return [together]
    return player.figures if len(player.figures) <= most else [player.brief]


def _fits_bold(words: str, room: float) -> bool:
    return cell_len(printable(words[:200])) * BOLD * 24 <= room


def _gap(width: float) -> float:
    """Between cards of a hand."""
    return 3 if width < NARROW else 6


def _columns(shown: int, width: float, room: float) -> int:
    """How many cards stand side by side; for a row of one or two more they move together."""
    gap = _gap(width)
    columns = max(1, int((room + gap) / (width + gap)))
    return shown if columns < shown <= _TOGETHER * columns else columns


def _rows(player: Seated, width: float, room: float) -> int:
    shown = len(player.cards) + (1 if player.hidden else 0)
    return max(1, -(-shown // _columns(shown, width, room)))


def _put_hand(
    sheet: Sheet,
    width: float,
    at: tuple[float, float],
    within: tuple[float, float],
    player: Seated,
    anchor: Anchor,
) -> None:
    """The cards that are known, then the backs of the others; rows that lack room move together."""
    x, y = at
    room, high = within
    gap = _gap(width)
    if not player.cards:
        if player.hidden is None:
            words = text("cards unknown", BESIDE, room, "k-faint", anchor=anchor)
            sheet.put(words, x + {"start": 0, "middle": room / 2, "end": room}[anchor], y + 40)
        elif player.hidden > 0:
            fan = min(room, _FAN)
            left = _left(anchor, x, backs_width(player.hidden, width, fan), room)
            sheet.put(backs(player.hidden, width, fan), left, y)
        return
    hidden = player.hidden or 0
    pieces = [card(face, width) for face in player.cards]
    if hidden:
        pieces.append(backs(hidden, width, width))
    columns = _columns(len(pieces), width, room)
    step = width + gap if columns < 2 else min(width + gap, (room - width) / (columns - 1))
    rows = -(-len(pieces) // columns)
    down = min(height(width) + gap, (high - height(width)) / max(1, rows - 1))
    for first in range(0, len(pieces), columns):
        row = pieces[first : first + columns]
        left = _left(anchor, x, (len(row) - 1) * step + width, room)
        for number, piece in enumerate(row):
            sheet.put(piece, left + number * step, y)
        y += down


def _left(anchor: Anchor, x: float, width: float, room: float) -> float:
    return x + {"start": 0.0, "middle": (room - width) / 2, "end": room - width}[anchor]


def _in_words(player: Seated) -> str:
    """A player on one line."""
    told = ["to move"] if player.to_move else []
    told += [*player.marks, *player.figures]
    if player.lies is not None:
        told.append(f"on the table {player.lies.words}" + (", takes the trick" if player.takes else ""))
    if player.cards:
        told.append("holds " + ", ".join(face.words for face in player.cards))
    if player.hidden:
        told.append(f"{player.hidden} hidden card{'' if player.hidden == 1 else 's'}")
    elif player.hidden is None:
        told.append("cards unknown")
    return printable(f"{player.name[:60] or 'nameless'}: " + ", ".join(told))
