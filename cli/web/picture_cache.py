"""A table at a moment as the page shows it: both drawings, and the same in words."""

from __future__ import annotations

from kiebitz.cli.render.svg.svg_canvas import Shape
from kiebitz.cli.spectator.view import RECENT
from kiebitz.cli.web import records
from kiebitz.cli.web.reader import Drawn, Reader
from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import TableInfo

_KEPT = 64
"""Pictures that are remembered: who is shown one asks for its fragments next."""


def drawn_at(reader: Reader, table: TableInfo, seq: int, player: str | None) -> Drawn:
    """A table after its event `seq`, as far as a player could know it. What was drawn last is remembered."""
    place = (table.id, seq, player)
    drawn = reader.drawn.get(place)
    if drawn is None:
        drawn = reader.drawn[place] = draw(reader, table, seq, player)
        if len(reader.drawn) > _KEPT:
            reader.drawn.popitem(last=False)
    return drawn


def draw(reader: Reader, table: TableInfo, seq: int, player: str | None, state: State | None = None) -> Drawn:
    """The same, drawn anew; `state` is the whole of it after that event, if that is known."""
    onlooker = reader.onlooker(player)
    events = reader.timeline.recent(table.id, seq, RECENT)
    if state is None:
        # A player's own is put together elsewhere.
        state = reader.timeline.state_at(table.id, seq) if player is None else {}
    shapes: tuple[Shape, ...] = ("wide", "tall")
    drawings = onlooker.drawings(table.id, state, events, shapes)
    wide, tall = (
        records.Places(drawing.width, drawing.height, drawing.pieces) for drawing in drawings.values()
    )
    words = drawings["wide"].words
    title, latest = onlooker.title(table.id, events), onlooker.latest(events)
    return Drawn(records.Picture(table.id, seq, title, latest, words, wide, tall), drawings)
