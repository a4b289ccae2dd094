"""A table of players without hands: dice or board, announcements, plates with points.

Up to eight players sit around a wide table. More are listed beside it, and all below a tall one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from kiebitz.cli.render.svg import dice_and_plates as things
from kiebitz.cli.render.svg.dice_and_plates import ANNOUNCED_SIZE, DICE_SIZE, board, grid_size
from kiebitz.cli.render.svg.lettering import fact_words, ink, plain
from kiebitz.cli.render.svg.svg_canvas import SMALL, Box, Sheet, felt, lines, text
from kiebitz.cli.render.text.canvas import UNICODE, shorten
from kiebitz.dissectors.game.view import Group, Line, Seat, View

_MOST_AROUND = 8
MOST_LISTED = 40
_LETTER = 0.58
"""Average width of a letter, relative to its height."""

_HEADING = 100.0
"""Height of the name above a player's board, in the scale of the board."""

_BETWEEN = 60.0
"""Distance of two boards, likewise."""

_REMARK = 34.0
_LEADING = 1.3
_PLATE = 104.0
"""Heights: of a remark, of lines relative to their letters, of a player's plate."""


def put_plate_table(view: View, sheet: Sheet) -> None:
    """Draw the players around a table, or in a list beside or below it."""
    shown = view.seats
    if len(shown) > MOST_LISTED:
        shown = shown[: MOST_LISTED - 1]
    if len(shown) <= _MOST_AROUND and not sheet.is_tall and view.grid is None:
        above = -(-len(shown) // 2)
        rows = [(shown[:above], 8.0), (shown[above:][::-1], 800 - _PLATE - 8)]
        for seats, y in rows:
            width = min(1580 / max(1, len(seats)), 440.0)
            left = (1600 - len(seats) * width) / 2
            for number, seat in enumerate(seats):
                _put_plate(sheet, seat, Box(left + number * width + 6, y, width - 12, _PLATE))
        _put_middle(sheet, view, Box(10, _PLATE + 18, 1580, 800 - 2 * _PLATE - 36))
    else:
        _put_listed(sheet, view, shown)


# Players.


def _put_listed(sheet: Sheet, view: View, players: Sequence[Seat]) -> None:
    """Draw players in two columns: below a tall table or, if they are many, beside a wide one.

    A few beside several boards are in one.
    """
    more = len(view.seats) - len(players)
    columns = 2 if sheet.is_tall or not _has_several_boards(view) or len(players) > _MOST_AROUND else 1
    rows = max(1, -(-(len(players) + bool(more)) // columns))
    if sheet.is_tall:
        high = round(min(_PLATE, (742 if rows < 8 else 800) / rows), 1)
        box = Box(1, 1098 - rows * high, 698, rows * high)
        middle = Box(6, 6, 688, box.y - 12)
    else:
        high = round(min(_PLATE + 30, 788 / rows), 1)
        box = Box(1594 - 452 * columns, 6, 452 * columns, rows * high)
        middle = Box(8, 8, box.x - 18, 784)
    width = box.width / columns
    for number, seat in enumerate(players):
        # A few are read line by line, many column by column.
        line, column = divmod(number, columns)
        if len(players) > _MOST_AROUND:
            column, line = divmod(number, rows)
        gap = 6 if high >= things.ONE_LINE + 6 else 0
        plate = Box(box.x + column * width, box.y + line * high, width - 2, high - gap)
        (_put_plate if plate.height >= things.ONE_LINE else _put_row)(sheet, seat, plate)
    if more:
        words = text(f"and {more} more players", SMALL, width, "k-ink")
        sheet.put(words, box.x + width + 10, box.y + (rows - 0.5) * high + 8)
    _put_middle(sheet, view, middle)


def _put_plate(sheet: Sheet, seat: Seat, box: Box) -> None:
    """Draw a player with points and action below the name."""
    sheet.put(things.plate(seat.name[:60], seat.state, box.width, box.height), box.x, box.y)
    base = box.y + box.height / 2 + 29
    x = box.x + 16
    room = box.width - 28
    doing = _action(seat)
    if seat.figures:
        words = " · ".join(figure.words for figure in seat.figures)
        if is_short := _LETTER * 28 * (len(words) + 1 + len(doing)) > room:
            words = _brief(seat)
        sheet.put(text(words, 28, room, "k-ink"), x, base)
        x += max(0.0 if is_short else 150.0, _LETTER * 28 * (len(words) + 1))
    left = box.x + box.width - x
    if doing and left > SMALL:
        sheet.put(text(doing, 28 if len(doing) < 10 else SMALL, left, f"{_ink(seat)} bold"), x, base)


def _put_row(sheet: Sheet, seat: Seat, box: Box) -> None:
    """Draw a player on one line, with only a mark of the action if the name is long."""
    sheet.put(things.plate(seat.name[:60], seat.state, box.width, box.height), box.x, box.y)
    right, base = box.x + box.width - 10, box.y + box.height / 2 + 9
    if seat.figures:
        sheet.put(text(_brief(seat), SMALL, 80, "k-ink bold end"), right, base)
    doing = _action(seat)
    room = box.width - _LETTER * 32 * len(seat.name) - 100
    if doing and seat.state not in ("lost", "joined") and room >= _LETTER * SMALL * len(doing):
        sheet.put(text(doing, SMALL, room, f"{_ink(seat)} end"), right - 50, base)


def _brief(seat: Seat) -> str:
    return " · ".join(figure.brief or figure.words for figure in seat.figures)


def _action(seat: Seat) -> str:
    """Return a player's action in a word or two."""
    if seat.says is not None and not seat.marks:
        return f"{seat.says.verb} {seat.says.words}"
    return ", ".join(mark.text for mark in seat.marks)


def _ink(seat: Seat) -> str:
    if seat.state == "lost" or (seat.says is not None and not seat.marks and seat.says.tone == "bad"):
        return "k-alarm"
    return "k-turn" if seat.state == "turn" else "k-ink"


# Middle of the table.


def _put_middle(sheet: Sheet, view: View, box: Box) -> None:
    """Draw dice or board, story and announcements, beside or below each other."""
    sheet.put(felt(box.width, round(box.height, 1), 36, 2), box.x, box.y)
    bottom = box.y + box.height - 14
    for words in reversed(_remarks(view, box.width - 60)):
        sheet.put(text(words, SMALL, box.width - 60, "k-faint"), box.x + 30, bottom - 4)
        bottom -= _REMARK
    if view.title:
        words = " · ".join(view.title)[:200]
        sheet.put(text(words, 28, 300, "k-faint bold"), box.x + 30, box.y + 42)
    room = Box(box.x, box.y + 10, box.width, bottom - box.y - 10)
    is_beside = box.width > 1.35 * box.height and not _has_several_boards(view)
    (_put_beside if is_beside else _put_stacked)(sheet, view, room)


def _has_several_boards(view: View) -> bool:
    return view.grid is not None and bool(view.grid.beside)


def _put_beside(sheet: Sheet, view: View, box: Box) -> None:
    """Draw dice or board at the left, story and announcements at the right."""
    is_wide = box.width > 1000
    across, down = _size(view)
    scale = 1.3 if is_wide else min(1.0, 0.36 * box.width / across, box.height / down)
    wide = across * scale
    middle = box.x + (0.2 * box.width if is_wide else wide / 2 + 16)
    _put_thing(sheet, view, middle, box.y + (box.height - down * scale) / 2, scale)
    left = middle + wide / 2 + (10 if is_wide else 20)
    room = box.x + box.width - left - 30
    larger = 1.2 if is_wide and len(view.calls) < 3 else 1.0
    row = (ANNOUNCED_SIZE[1] * larger + 24) if box.height > 330 and view.calls else 0.0
    told = _fitted(view.story, 52.0 if is_wide else 28.0, room, box.height - row)
    y = box.y + max(0.0, (box.height - _height(told) - row) / 2)
    y = _put_story(sheet, told, left, y, room)
    if row:
        _put_announced(sheet, view, Box(left, y + 24, room, row), larger)


def _put_stacked(sheet: Sheet, view: View, box: Box) -> None:
    """Draw dice or board above, story and announcements below."""
    row = ANNOUNCED_SIZE[1] + 10 if view.calls else 0.0
    room = box.width - 60
    told = _fitted(view.story, 38.0, room, box.height - row - 200)
    across, down = _size(view)
    most = 1.4 if view.grid is None else 3.0
    scale = max(
        0.5 if view.grid is None else 0.0,
        min(
            most,
            room / across,
            (box.height - row - _height(told) - (50 if view.grid is None else 110)) / down,
        ),
    )
    spare = max(0.0, (box.height - row - _height(told) - scale * down) / 4)
    y = box.y + max(spare, 44.0 if view.title and view.grid is not None else 0.0)
    _put_thing(sheet, view, box.x + box.width / 2, y, scale)
    y = _put_story(sheet, told, box.x + 30, y + scale * down + spare, room)
    if row:
        _put_announced(sheet, view, Box(box.x + 30, y + spare, room, row), 1.0)


def _size(view: View) -> tuple[float, float]:
    """Return width and height of the dice or the board."""
    if view.grid is not None:
        sizes = [grid_size(each) for each in view.grid.all_boards]
        across = sum(width for width, _ in sizes) + _BETWEEN * (len(sizes) - 1)
        return across, max(height for _, height in sizes) + (_HEADING if view.grid.owner else 0)
    return DICE_SIZE if view.dice is not None else (1.0, 1.0)


def _put_thing(sheet: Sheet, view: View, x: float, y: float, scale: float) -> None:
    if view.grid is not None:
        left = x - scale * _size(view)[0] / 2
        for each in view.grid.all_boards:
            wide = scale * grid_size(each)[0]
            if each.owner:
                size = max(SMALL, 0.6 * scale * _HEADING)
                words = text(each.owner[:60], size, wide, "k-ink bold middle")
                sheet.put(words, left + wide / 2, y + size)
            top = y + (scale * _HEADING if each.owner else 0)
            sheet.put(board(msgspec.structs.replace(each, beside=()), round(scale, 2)), left + wide / 2, top)
            left += wide + scale * _BETWEEN
    elif view.dice is not None:
        sheet.put(things.dice_and_cup(view.dice, round(scale, 2)), x, y)


_Line = tuple[str, float, str]
"""Text, letter size and style."""


def _fitted(story: Sequence[Line], large: float, room: float, height: float) -> list[_Line]:
    """Return the story in lines, the first bold, as large as it fits, cut if it never does."""
    found: list[_Line] = []
    for size in sorted({large, *(size for size in (38.0, 34.0, 30.0, 27.0, SMALL) if size < large)})[::-1]:
        found = []
        for number, line in enumerate(story):
            letters = size if number == 0 else max(SMALL, 0.8 * size)
            # Bold letters are wider.
            within = lines(plain(line), letters, room / 1.14 if number == 0 else room)
            found += [(words, letters, f"{ink(line)}{'' if number else ' bold'}") for words in within]
        if _height(found) <= height:
            return found
    return found[: max(1, int(height // (_LEADING * SMALL)))]


def _height(told: Iterable[_Line]) -> float:
    # Python's own sum differs between versions in the last digit.
    return math.fsum(_LEADING * size for _, size, _ in told)


def _put_story(sheet: Sheet, told: list[_Line], x: float, y: float, room: float) -> float:
    """Draw the lines below each other; return their lower edge."""
    for words, size, style in told:
        y += _LEADING * size
        sheet.put(text(words, size, room, style), x, y - size * 0.35)
    return y


def _put_announced(sheet: Sheet, view: View, box: Box, scale: float) -> None:
    """Draw the latest announcements of the round; the last one is to be beaten."""
    wide = ANNOUNCED_SIZE[0] * scale + 8
    calls = view.calls[-max(1, int((box.width + 8) // wide)) :]
    for number, call in enumerate(calls, 1):
        short = msgspec.structs.replace(call, name=shorten(call.name, 24, UNICODE), words=call.words[:12])
        bubble = things.announcement(short, number == len(calls), scale)
        sheet.put(bubble, box.x + (number - 1) * wide, box.y)


# Remarks.


def _remarks(view: View, room: float) -> list[str]:
    """Return lines with what is unknown, facts, and other people."""
    found = [view.unknown] if view.unknown else []
    found += [fact_words(fact, 6) for fact in view.facts]
    return found + [_listing(group, room) for group in view.groups]


def _listing(group: Group, room: float) -> str:
    """Return a group with as many names as fit on a line."""
    title = f"{group.title}: "
    cells = int(room / (_LETTER * SMALL)) - len(title)
    line = ""
    for number, (name, said) in enumerate(group.members):
        left = len(group.members) - number
        entry = shorten(name, 24, UNICODE) + (f" ({said})" if said else "")
        longer = f"{line}, {entry}" if line else entry
        if number and len(longer) > cells - (len(f" and {left - 1} more") if left > 1 else 0):
            return f"{title}{line} and {left} more"
        line = longer
    return title + line
