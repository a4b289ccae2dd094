"""A card table, wide and tall: plates with names, hands, cards on the table, and the contract.

The player at the bottom comes first, the others follow clockwise: left, top, right; of three players, none
is at the top. The corners show the last trick, the bids, and the people who are not playing.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from kiebitz.cli.render.svg.cards import NARROW, backs, backs_width, card, halo, height, place, sign
from kiebitz.cli.render.svg.lettering import (
    BESIDE,
    Anchor,
    fact_words,
    group_words,
    plain,
    put_fitted,
    put_lines,
)
from kiebitz.cli.render.svg.svg_canvas import (
    BOLD,
    LETTER_WIDTH,
    Element,
    Sheet,
    cached_fragment,
    draw_arrow,
    draw_name,
    felt,
    lines,
    rect,
    text,
)
from kiebitz.dissectors.escaping import printable
from kiebitz.dissectors.game.view import Card, Fact, Figure, Hand, Seat, View
from kiebitz.services.evidence.cells import cell_len

Edge = Literal["bottom", "left", "top", "right"]

_PLATE = 48
"""Height of a plate."""

_OVERLAP_FACTOR = 1.2
"""Up to this factor more cards than fit into a row overlap instead of starting another row."""

_LINE = 32
"""Height of a line of the story."""

_FAN = 340
"""Maximum width of overlapping hidden cards."""

_SHOWN = 82
"""Width of cards in a corner."""

_BIDS = 5
_ROWS = 6
"""Lines of a corner."""


class SeatArea(msgspec.Struct, frozen=True):
    """The area of a player, and the position of the card they play."""

    edge: Edge
    x: float
    y: float
    width: float
    height: float
    card: tuple[float, float]


class Corner(msgspec.Struct, frozen=True):
    """An area for facts: its first line, and its width."""

    x: float
    y: float
    width: float


class Layout(msgspec.Struct, frozen=True):
    """A table: its felt as x, y, width and height; the seats clockwise from the bottom.

    `hand` and `lying` are the widths of cards in a hand and on the felt. `story` is the middle of the
    story and the width of its lines, of which there are `story_lines` between cards.
    """

    felt: tuple[float, float, float, float]
    places: tuple[SeatArea, ...]
    hand: float
    lying: float
    story: tuple[float, float, float]
    story_lines: int
    title: tuple[float, float, float, Anchor]
    contract: Corner
    additions: Corner | None = None
    """The lines below the contract; on a tall sheet there is at most one."""
    talon: tuple[float, float] | None = None
    """Upper right corner of the talon's last card."""
    left: Corner | None = None
    """Bids, and people who are not at the table."""
    right: Corner | None = None
    """The last trick."""
    foot: tuple[float, int] = (0, 0)
    """Beginning and number of the lines for facts on a tall sheet; there cards on the felt have names
    below.
    """


_WIDE_OF_FOUR = Layout(
    felt=(430, 196, 740, 408),
    places=(
        SeatArea("bottom", 430, 614, 740, 186, (745, 442)),
        SeatArea("left", 20, 206, 390, 400, (448, 324)),
        SeatArea("top", 430, 8, 740, 186, (745, 206)),
        SeatArea("right", 1190, 206, 390, 400, (1042, 324)),
    ),
    hand=92,
    lying=110,
    story=(800, 411, 460),
    story_lines=2,
    title=(20, 40, 390, "start"),
    contract=Corner(20, 92, 390),
    additions=Corner(20, 132, 390),
    left=Corner(20, 660, 390),
    right=Corner(1190, 40, 390),
)
_TALL_OF_FOUR = Layout(
    felt=(10, 584, 680, 290),
    places=(
        SeatArea("bottom", 10, 882, 680, 170, (384, 686)),
        SeatArea("left", 10, 232, 334, 348, (46, 674)),
        SeatArea("top", 10, 58, 680, 170, (212, 664)),
        SeatArea("right", 356, 232, 334, 348, (546, 674)),
    ),
    hand=78,
    lying=108,
    story=(350, 634, 640),
    story_lines=2,
    title=(690, 36, 305, "end"),
    contract=Corner(10, 38, 370),
    foot=(1088, 1),
)
_WIDE_OF_THREE = Layout(
    felt=(430, 10, 740, 540),
    places=(
        SeatArea("bottom", 262, 566, 1076, 186, (741, 380)),
        SeatArea("left", 20, 10, 390, 560, (456, 290)),
        SeatArea("right", 1190, 10, 390, 560, (1026, 290)),
    ),
    hand=84,
    lying=118,
    story=(800, 310, 440),
    story_lines=3,
    title=(462, 52, 480, "start"),
    contract=Corner(462, 108, 510),
    additions=Corner(462, 158, 500),
    talon=(1140, 64),
    left=Corner(20, 596, 240),
    right=Corner(1342, 596, 240),
)
_TALL_OF_THREE = Layout(
    felt=(10, 474, 680, 396),
    places=(
        SeatArea("bottom", 10, 880, 680, 150, (281, 616)),
        SeatArea("left", 10, 104, 334, 366, (56, 590)),
        SeatArea("right", 356, 104, 334, 366, (506, 590)),
    ),
    hand=64,
    lying=138,
    story=(350, 540, 640),
    story_lines=3,
    title=(690, 38, 270, "end"),
    contract=Corner(10, 40, 406),
    additions=Corner(10, 82, 680),
    foot=(1062, 2),
)
_SEATED = {1: (0,), 2: (0, 2)}
"""Seats at a table for four, by number of players."""


def put_card_table(view: View, sheet: Sheet) -> None:
    """Draw up to four players with their hands around a table."""
    if len(view.seats) == 3:
        layout = _TALL_OF_THREE if sheet.is_tall else _WIDE_OF_THREE
    else:
        layout = _TALL_OF_FOUR if sheet.is_tall else _WIDE_OF_FOUR
    x, y, width, high = layout.felt
    sheet.put(felt(width, high, 34), x, y)
    is_played = view.contract is not None or any(seat.lies for seat in view.seats)
    _put_contract(sheet, layout, view)
    _put_story(sheet, layout, view, is_played)
    places = [layout.places[number] for number in _SEATED.get(len(view.seats), range(len(layout.places)))]
    for at, seat in zip(places, view.seats, strict=True):
        player = _with_fitting_cards(seat, layout.hand, at)
        if is_played:
            _put_lying(sheet, layout, at, player)
        if at.edge in ("left", "right"):
            _put_beside(sheet, layout, at, player)
        else:
            _put_along(sheet, layout, at, player)
    _put_facts(sheet, layout, view)


def _put_contract(sheet: Sheet, layout: Layout, view: View) -> None:
    """Draw the contract, its multiplier, the talon, and what is unknown."""
    x, y, room, anchor = layout.title
    sheet.put(text(" · ".join(view.title)[:200], BESIDE, room, f"k-faint {anchor}"), x, y)
    contract = view.contract
    words = ", ".join(map(plain, contract.parts)) if contract is not None else "no game yet"
    at, room = layout.contract, layout.contract.width
    x = at.x
    if contract is not None and contract.suit is not None:
        sheet.put(sign(contract.suit.sign, (0, 0), 0.44), x + 22, at.y - 13)
        x, room = x + 54, room - 54
    put_fitted(sheet, words, (x, at.y), room, (40, 36, 32, 29, BESIDE), "k-ink bold")
    said = [contract.level, *map(plain, contract.additions)] if contract is not None else []
    if layout.talon is None:
        said += [f"{plain(pile.label)}: {pile.words}" for pile in view.piles]
    else:
        _put_talon(sheet, layout.talon, view)
    said = [words for words in said if words]
    below = layout.additions
    if below is None:
        return
    if sheet.is_tall:
        if said:
            put_fitted(sheet, " · ".join(said), (below.x, below.y), below.width, (28, BESIDE, 24))
        return
    y = below.y
    for words in said:
        put_fitted(sheet, words, (below.x, y), below.width, (32, 28, BESIDE), "k-ink bold")
        y += 42
    if view.unknown and layout.right is not None and layout.right.y < below.y:
        put_lines(sheet, view.unknown, (below.x, y), below.width, style="k-faint")


def _put_talon(sheet: Sheet, at: tuple[float, float], view: View) -> None:
    right, y = at
    for pile in view.piles[:1]:
        sheet.put(text(plain(pile.label), BESIDE, 180, "k-faint end"), right, y - 12)
        faces = [piece for piece in pile.pieces if isinstance(piece, Card)][:3]
        for number, face in enumerate(reversed(faces), 1):
            sheet.put(card(face, _SHOWN), right + 6 - (_SHOWN + 6) * number, y)
        if not faces and pile.hidden:
            sheet.put(backs(pile.hidden, _SHOWN, 120), right - 120, y)


def _put_story(sheet: Sheet, layout: Layout, view: View, is_played: bool) -> None:
    """Draw the story in a few lines in the middle, the first of them bold."""
    x, y, room = layout.story
    said = [words for words in map(plain, view.story) if words]
    if sheet.is_tall and view.unknown:
        said.append(view.unknown)
    said = said[: layout.story_lines if is_played else 3]
    y -= 17 * (len(said) - 1)
    for number, row in enumerate(said):
        put_fitted(
            sheet, row, (x, y), room, (32, 28, BESIDE), "k-ink middle" if number else "k-ink bold middle"
        )
        y += 34


def _put_facts(sheet: Sheet, layout: Layout, view: View) -> None:
    """Draw the last trick in one corner, bids and other people in the other."""
    shown = [fact for fact in view.facts if _cards(fact)][-1:]
    listed = [fact for fact in view.facts if not _cards(fact)]
    if layout.left is None or layout.right is None:
        y, most = layout.foot
        for fact in [*shown, *listed][:1]:
            last = Fact(fact.title, fact.items[-4:] if most > 1 else ())
            put_lines(sheet, fact_words(last, 4), (10, y), 680, most=most, style="k-faint")
        return
    for fact in shown:
        _put_cards(sheet, layout.right, fact, [view.unknown] if layout.talon is not None else [])
    if not shown and view.unknown and layout.talon is not None:
        put_lines(sheet, view.unknown, (layout.right.x, layout.right.y), layout.right.width, style="k-faint")
    rows = []
    for fact in listed[:1]:
        bids = [*map(plain, fact.items)]
        more = [f"… {len(bids) - _BIDS + 1} more"] if len(bids) > _BIDS else []
        rows = [plain(fact.title), *more, *bids[len(bids) - _BIDS + len(more) if more else 0 :]]
    rows = rows or [group_words(group, 5) for group in view.groups if layout.talon is None]
    at, y = layout.left, layout.left.y
    for row in rows[:_ROWS]:
        if y < sheet.height - 8:
            y = put_lines(sheet, row, (at.x, y), at.width, size=24, most=1 if listed else 2, style="k-faint")


def _cards(fact: Fact) -> list[Card]:
    elements = (element for item in fact.items for element in item if isinstance(element, tuple))
    return [piece for pieces in elements for piece in pieces if isinstance(piece, Card)]


def _put_cards(sheet: Sheet, at: Corner, fact: Fact, remarks: list[str]) -> None:
    """Draw the cards of the last trick, or their names if there is no room."""
    cards = _cards(fact)
    y = put_lines(sheet, plain(fact.title), (at.x, at.y), at.width, size=24, style="k-faint")
    if len(cards) * (_SHOWN + 8) <= at.width:
        for number, face in enumerate(cards):
            sheet.put(card(face, _SHOWN), at.x + number * (_SHOWN + 8), at.y + 44)
        return
    for row in [*(face.words for face in cards), *remarks][: _ROWS - 1]:
        if row and y < sheet.height - 8:
            y = put_lines(sheet, row, (at.x, y), at.width, size=24, most=1, style="k-faint")


@cached_fragment(256)
def plate(drawn: Element, name: str, to_move: bool, width: float) -> None:
    """Return a name plate, its upper left corner at the origin.

    An arrow and a thick edge mark the player to move.
    """
    edge, thick = ("k-s-turn", 6) if to_move else ("k-s-line", 2)
    rect(drawn, 0, 0, width, _PLATE, 12, class_=f"k-card {edge}", stroke_width=thick)
    left = 14
    if to_move:
        draw_arrow(drawn, 14, 24)
        left = 42
    draw_name(drawn, left, 35, name, 34, width - left - 14)


def _put_lying(sheet: Sheet, layout: Layout, at: SeatArea, player: Seat) -> None:
    x, y = at.card
    wide = layout.lying
    if player.lies is None:
        sheet.put(place(wide), x, y)
    else:
        sheet.put(card(player.lies, wide), x, y)
        if player.takes or player.fresh:
            sheet.put(halo(wide, player.takes), x, y)
    if sheet.is_tall:
        foot = y + height(wide) + 34
        ink = "k-turn" if player.state == "turn" or player.takes else "k-faint"
        sheet.put(text(player.name or '""', 24, wide + 56, f"{ink} middle"), x + wide / 2, foot)


def _put_beside(sheet: Sheet, layout: Layout, at: SeatArea, player: Seat) -> None:
    """Draw a player at a short edge, one thing below the other."""
    sheet.put(plate(player.name, player.state == "turn", at.width), at.x, at.y)
    hand = _rows(player, layout.hand, at.width) * (height(layout.hand) + _gap(layout.hand))
    most = max(2, int((at.height - _PLATE - hand) / _LINE))
    marks = lines(_marks(player), BESIDE, at.width) if player.marks else []
    said = [(words, True) for words in marks] + [
        (words, False) for words in _figures(player, at.width, most - len(marks))
    ]
    y = at.y + _PLATE + _LINE
    for words, bold in said[: most - 1] + said[most - 1 :][-1:]:
        put_fitted(sheet, words, (at.x, y), at.width, (BESIDE, 24), _style(words, at.width, bold))
        y += _LINE
    y += 14 - _LINE
    _put_hand(sheet, layout.hand, (at.x, y), (at.width, at.y + at.height - y), player, "start")


def _put_along(sheet: Sheet, layout: Layout, at: SeatArea, player: Seat) -> None:
    """Draw a player at a long edge: the hand towards the table, the words beside the plate."""
    hand = _rows(player, layout.hand, at.width) * (height(layout.hand) + _gap(layout.hand))
    above = at.edge == "bottom"
    y = at.y + hand + 4 if above else at.y
    wide = min(at.width / 2 - 22, 400)
    room = min(at.width - wide - 20, 420)
    x = at.x + (at.width - wide - 20 - room) / 2
    sheet.put(plate(player.name, player.state == "turn", wide), x, y)
    said = [(_marks(player), True)] if player.marks else []
    said += [(words, False) for words in _figures(player, room, 2 - len(said))]
    line = y + (33 if len(said) < 2 else 20)
    for words, bold in said:
        sizes = (28, BESIDE, 24)
        put_fitted(sheet, words, (x + wide + 20, line), room, sizes, _style(words, room, bold))
        line += 30
    at_hand = at.y if above else y + _PLATE + 8
    _put_hand(sheet, layout.hand, (at.x, at_hand), (at.width, at.height), player, "middle")


def _marks(player: Seat) -> str:
    return ", ".join(mark.text for mark in player.marks)


def _hand_of(player: Seat) -> Hand:
    return player.hand or Hand()


def _with_fitting_cards(player: Seat, width: float, at: SeatArea) -> Seat:
    """Return a player with as many cards as fit; no game deals more."""
    hand = _hand_of(player)
    rows = max(1, int((at.height - _PLATE) / (height(width) + _gap(width))))
    columns = _columns(1, width, at.width)
    most = rows * columns if rows > 1 else int(_OVERLAP_FACTOR * columns)
    more = len(hand.pieces) + bool(hand.hidden) - most
    if more <= 0:
        return player
    shown = msgspec.structs.replace(hand, pieces=hand.pieces[: len(hand.pieces) - more])
    figures = (*player.figures, Figure(f"and {more} more cards"))
    return msgspec.structs.replace(player, hand=shown, figures=figures)


def _figures(player: Seat, room: float, most: int) -> list[str]:
    """Return a player's figures on one line or several, abbreviated if there is no room."""
    figures = [figure.words for figure in player.figures]
    together = " · ".join(figures)
    if not together:
        return []
    if cell_len(printable(together[:200])) * LETTER_WIDTH * 24 <= room:
        return [together]
    if len(figures) <= most:
        return figures
    brief = [figure.brief or figure.words for figure in player.figures[-2:]]
    fits = cell_len(printable(" · ".join(brief)[:200])) * LETTER_WIDTH * 24 <= room
    return [" · ".join(brief if fits else brief[-1:])]


def _style(words: str, room: float, is_bold: bool) -> str:
    fits = cell_len(printable(words[:200])) * BOLD * 24 <= room
    return "k-ink bold" if is_bold and fits else "k-ink"


def _gap(width: float) -> float:
    return 3 if width < NARROW else 6


def _columns(shown: int, width: float, room: float) -> int:
    """Return the number of cards side by side; one or two more than fit overlap."""
    gap = _gap(width)
    columns = max(1, int((room + gap) / (width + gap)))
    return shown if columns < shown <= _OVERLAP_FACTOR * columns else columns


def _rows(player: Seat, width: float, room: float) -> int:
    hand = _hand_of(player)
    shown = len(hand.pieces) + (1 if hand.hidden else 0)
    return max(1, -(-shown // _columns(shown, width, room)))


def _put_hand(
    sheet: Sheet,
    width: float,
    at: tuple[float, float],
    within: tuple[float, float],
    player: Seat,
    anchor: Anchor,
) -> None:
    """Draw the known cards, then the backs of the others; rows without enough room overlap."""
    x, y = at
    room, high = within
    gap = _gap(width)
    hand = _hand_of(player)
    pieces = [card(face, width) for face in hand.pieces if isinstance(face, Card)]
    if not pieces:
        if hand.hidden is None:
            words = text("cards unknown", BESIDE, room, f"k-faint {anchor}")
            sheet.put(words, x + {"start": 0, "middle": room / 2, "end": room}[anchor], y + 40)
        elif hand.hidden > 0:
            fan = min(room, _FAN)
            left = _left(anchor, x, backs_width(hand.hidden, width, fan), room)
            sheet.put(backs(hand.hidden, width, fan), left, y)
        return
    if hand.hidden:
        pieces.append(backs(hand.hidden, width, width))
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
