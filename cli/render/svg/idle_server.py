"""A server without a running game: its players by group or lobby, and other facts."""

from __future__ import annotations

from kiebitz.cli.render.svg.card_table import plate
from kiebitz.cli.render.svg.lettering import BESIDE, fact_words, put_fitted
from kiebitz.cli.render.svg.pieces import felt, text
from kiebitz.cli.render.svg.shapes import lines
from kiebitz.cli.render.svg.svg_canvas import Sheet
from kiebitz.dissectors.game.view import Group, View

_EDGE = 40.0
_HEADING = 46.0
_PLATES = 106.0
"""Height of a row of plates with the words below."""

_ROW = 44.0
_LINES = 4
"""Maximum number of lines of a fact."""

_MOST = 12
"""Maximum number of players drawn of a group."""


def put_idle_server(view: View, sheet: Sheet) -> None:
    """Draw a title, the groups with their players' plates, and facts, as far as there is room."""
    groups, title = view.groups, view.idle
    rows = [fact_words(fact, 6) for fact in view.facts]
    longest = max((len(each.members) for each in groups), default=0)
    columns = 2 if sheet.is_tall else 3 if longest <= 3 else 4
    room = sheet.width - 2 * _EDGE
    sheet.put(felt(sheet.width, sheet.height, 34, 4), 0, 0)
    put_fitted(sheet, title, (sheet.width / 2, 72), room, (40, 34), bold=True, anchor="middle")
    bottom = sheet.height - 60
    rows = [line for row in rows for line in lines(row[:1000], 28, room)[:_LINES]]
    needed = sum(_high(each, columns) for each in groups) + _ROW * len(rows)
    y = max(130.0, (sheet.height - needed) / 2)
    left = len(groups) + len(rows)
    for each in groups:
        if y + _high(each, columns) > bottom - (0 if left == 1 else _ROW):
            break
        y = _put_group(sheet, each, y, columns)
        left -= 1
    for row in rows:
        if y + _ROW > bottom - (0 if left == 1 else _ROW):
            break
        sheet.put(text(row, 28, room, "k-ink"), _EDGE, y + 30)
        y += _ROW
        left -= 1
    if left:
        sheet.put(text(f"and {left} more", 28, room, "k-faint"), _EDGE, min(y + 40, bottom))


def _high(each: Group, columns: int) -> float:
    return _HEADING + _PLATES * max(1, -(-min(len(each.members), _MOST) // columns))


def _put_group(sheet: Sheet, each: Group, y: float, columns: int) -> float:
    """Draw one group; return the beginning of the next."""
    step = (sheet.width - 2 * _EDGE) / columns
    more = len(each.members) - _MOST
    heading = each.title + (f" (and {more} more)" if more > 0 else "")
    sheet.put(text(heading, 28, sheet.width - 2 * _EDGE, "k-faint"), _EDGE, y + 28)
    for number, (name, said) in enumerate(each.members[:_MOST]):
        x, top = _EDGE + number % columns * step, y + _HEADING + number // columns * _PLATES
        sheet.put(plate(name, False, step - 16), x, top)
        if said:
            sheet.put(text(said, BESIDE, step - 20, "k-ink"), x + 14, top + 78)
    return y + _high(each, columns)
