"""The SVG renderer: pictures of tables for slides, pages and files, drawn from their views."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kiebitz.cli.render.svg.svg_canvas import Drawing, Shape, Sheet
from kiebitz.cli.render.views import is_hex_board, view_of
from kiebitz.dissectors.game.view import Scene, View


def draw(protocol: str, scene: Scene, shape: Shape) -> Drawing:
    """Return the drawing of a table of this protocol; the rows of its state if it has no view."""
    return draw_shapes(protocol, scene, [shape])[shape]


def draw_shapes(protocol: str, scene: Scene, shapes: Sequence[Shape]) -> dict[Shape, Drawing]:
    """Return the drawings of a table in several shapes; its view is made once."""
    return draw_made(protocol, scene, view_of(protocol, scene), shapes)


def draw_made(
    protocol: str, scene: Scene, view: View | None, shapes: Sequence[Shape]
) -> dict[Shape, Drawing]:
    """Return the same for a view that has been made."""
    return {shape: _drawn(protocol, scene, view, Sheet(shape)) for shape in shapes}


def drawing_key(view: View | None) -> bytes | None:
    """Return a key that views with equal drawings share; None if more than the view is drawn."""
    if view is None or is_hex_board(view):
        return None
    # The names determine colours in a terminal only.
    return msgspec.msgpack.encode(msgspec.structs.replace(view, names=()))


def _drawn(protocol: str, scene: Scene, view: View | None, sheet: Sheet) -> Drawing:
    if view is None:
        from kiebitz.cli.render.svg.table import draw_plain

        draw_plain(protocol, scene, sheet)
    elif is_hex_board(view):
        from kiebitz.cli.render.svg.catan import draw_catan

        draw_catan(view, scene.events, sheet)
    else:
        from kiebitz.cli.render.svg.table import draw_view

        draw_view(view, sheet)
    return sheet.drawing()
