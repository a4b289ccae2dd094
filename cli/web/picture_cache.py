"""Pictures of a table for the page, and a cache of the latest ones."""

from __future__ import annotations

from collections.abc import Sequence

from kiebitz.cli.render.svg.svg_canvas import Shape
from kiebitz.cli.spectator.view import RECENT
from kiebitz.cli.web import records
from kiebitz.cli.web.reader import Reader, RenderedTable
from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Event, TableInfo

_MAX_PICTURES = 64
"""Number of pictures kept: the fragments of a picture are requested soon after it."""


def cached_table(reader: Reader, table: TableInfo, seq: int, player: str | None) -> RenderedTable:
    """Return the picture of a table after event `seq` in a player's view, from the cache if it is there."""
    place = (table.id, seq, player)
    drawn = reader.drawn.get(place)
    if drawn is None:
        drawn = reader.drawn[place] = render_table(reader, table, seq, player)
        if len(reader.drawn) > _MAX_PICTURES:
            reader.drawn.popitem(last=False)
    return drawn


def render_table(
    reader: Reader,
    table: TableInfo,
    seq: int,
    player: str | None,
    state: State | None = None,
    events: Sequence[Event] | None = None,
) -> RenderedTable:
    """Draw a table after event `seq`; its full state then and the recent events are read unless given."""
    spectator_view = reader.spectator_view(player)
    if events is None:
        events = reader.timeline.recent(table.id, seq, RECENT)
    if state is None:
        # A player's view computes its own state.
        state = reader.timeline.state_at(table.id, seq) if player is None else {}
    shapes: tuple[Shape, ...] = ("wide", "tall")
    drawings = spectator_view.drawings(table.id, state, events, shapes)
    wide, tall = (
        records.Places(drawing.width, drawing.height, drawing.pieces) for drawing in drawings.values()
    )
    words = drawings["wide"].words
    title, latest = spectator_view.title(table.id, events), spectator_view.latest(events)
    closing = spectator_view.closing(events)
    return RenderedTable(records.Picture(table.id, seq, title, latest, words, wide, tall, closing), drawings)
