"""A table with racks: the players, and between neighbours the stack from one to the next."""

from __future__ import annotations

import msgspec

from kiebitz.cli.render.svg import tiles
from kiebitz.cli.render.svg.card_table import plate
from kiebitz.cli.render.svg.lettering import BESIDE, Anchor, group_words, plain, put_fitted, put_lines
from kiebitz.cli.render.svg.svg_canvas import Sheet, text
from kiebitz.cli.render.svg.tiles import RACK_WIDE, WIDE
from kiebitz.dissectors.game.view import Hand, Pile, Seat, Tile, View

_PLATE_WIDE = 400


class _SeatArea(msgspec.Struct, frozen=True):
    """Upper left corners of a player's plate, rack and stack."""

    plate: tuple[float, float]
    count: tuple[float, float]
    rack: tuple[float, float]
    stack: tuple[float, float]
    label: tuple[float, float]
    """Beginning of the label of the stack."""


_MIDDLE = (1600 - RACK_WIDE) / 2
_WIDE = (
    _SeatArea((_MIDDLE, 744), (_MIDDLE + 416, 776), (_MIDDLE, 578), (1180, 640), (1242, 664)),
    _SeatArea((10, 282), (426, 314), (10, 336), (366, 640), (20, 664)),
    _SeatArea((_MIDDLE, 8), (_MIDDLE + 416, 40), (_MIDDLE, 62), (366, 90), (20, 114)),
    _SeatArea((954, 282), (1370, 314), (954, 336), (1180, 90), (1242, 114)),
)
"""Clockwise from the bottom: bottom, left, top, right."""

_TALL_STEP = 231.0


def put_rack_table(view: View, sheet: Sheet) -> None:
    """Draw up to four players with their racks around the main stack, or below each other."""
    _put_middle(sheet, view)
    for place, seat in zip(_places(sheet), view.seats, strict=False):
        _put_player(sheet, place, seat)
        if seat.pile is not None:
            _put_pile(sheet, place, seat.pile)
    if sheet.is_tall:
        sheet.put(tiles.legend(len(tiles.COLOURS) + 1), 32, 1090)
        return
    sheet.put(tiles.legend(2), 1330, 718)
    for group in view.groups[:1]:
        put_lines(sheet, group_words(group, 4), (20, 250), 440, style="k-faint")


def _places(sheet: Sheet) -> tuple[_SeatArea, ...]:
    if not sheet.is_tall:
        return _WIDE
    # Players below each other, in the order of play.
    found = []
    for number in range(4):
        y = 158 + number * _TALL_STEP
        rack = (700 - RACK_WIDE) / 2
        found.append(
            _SeatArea(
                (rack, y), (rack + 352, y + 32), (rack, y + 54), (rack + RACK_WIDE - WIDE, y - 17), (0, 0)
            )
        )
    return tuple(found)


def _put_player(sheet: Sheet, place: _SeatArea, seat: Seat) -> None:
    """Draw a player and their rack."""
    sheet.put(plate(seat.name, seat.state == "turn", 340 if sheet.is_tall else _PLATE_WIDE), *place.plate)
    told = [mark.text for mark in seat.marks] or [figure.words for figure in seat.figures]
    sheet.put(text(", ".join(told), BESIDE, 130, "k-ink bold" if seat.marks else "k-ink"), *place.count)
    x, y = place.rack
    sheet.put(tiles.rack(), x, y)
    hand = seat.hand or Hand()
    if hand.hidden:
        sheet.put(tiles.backs(min(hand.hidden, tiles.PLACES)), x, y)
    for number, tile in enumerate(hand.pieces[: tiles.PLACES]):
        if isinstance(tile, Tile):
            across, down = tiles.place(number)
            sheet.put(tiles.tile(tile), x + across, y + down)
    if hand.drawn is not None:
        across, down = tiles.place(hand.drawn)
        sheet.put(tiles.halo(), x + across, y + down)


def _put_pile(sheet: Sheet, place: _SeatArea, pile: Pile) -> None:
    """Draw the stack from which a player draws; a tile just put there is marked."""
    x, y = place.stack
    top = pile.pieces[-1] if pile.pieces else None
    sheet.put(tiles.tile(top) if isinstance(top, Tile) else tiles.gap(), x, y)
    if pile.fresh:
        sheet.put(tiles.halo(), x, y)
    if sheet.is_tall:
        sheet.put(text("stack", 24, 130, "k-faint end"), x - 10, y + 30)
        return
    x, y = place.label
    left = x < sheet.width / 2
    at = x + 334 if left else x
    anchor: Anchor = "end" if left else "start"
    *label, name = pile.label
    sheet.put(text(f"stack {plain((*label,))}", BESIDE, 334, f"k-faint {anchor}"), at, y)
    put_fitted(sheet, plain((name,)), (at, y + 36), 334, (30, BESIDE), f"k-ink {anchor}")


def _put_middle(sheet: Sheet, view: View) -> None:
    """Draw the main stack and the story."""
    title = " · ".join(view.title)
    anchor: Anchor = "start" if sheet.is_tall else "middle"
    for pile in view.piles[:1]:
        heap = tiles.gap() if pile.hidden == 0 else tiles.heap()
        sheet.put(heap, *((38, 14) if sheet.is_tall else (775, 352)))
        if not sheet.is_tall:
            sheet.put(text(plain(pile.label), BESIDE, 290, "k-faint middle"), 800, 330)
    if sheet.is_tall:
        x, y, room = 112.0, 44.0, 570.0
        sheet.put(text(title, BESIDE, 200, "k-faint end"), 664, 40)
    else:
        sheet.put(text(view.unknown or title, BESIDE, 290, "k-faint middle"), 800, 560)
        x, y, room = 800.0, 478.0, 290.0
    for number, line in enumerate(view.story[:2]):
        within = room - (200 if sheet.is_tall and number == 0 else 0)
        put_fitted(
            sheet, plain(line), (x, y), within, (34, 30, BESIDE), f"k-ink {anchor}{'' if number else ' bold'}"
        )
        y += 38
