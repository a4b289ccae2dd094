"""The text renderer: pictures of tables for the terminal, drawn from their views.

Text in a view came from the network: `cli.terminal.screen` escapes it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kiebitz.cli.render.views import is_hex_board, view_of
from kiebitz.dissectors.game.view import Scene

if TYPE_CHECKING:
    from kiebitz.cli.terminal.screen import RenderableType


def draw(protocol: str, scene: Scene) -> RenderableType:
    """Return the picture of a table of this protocol; its plain state if it has no view."""
    view = view_of(protocol, scene)
    if view is None:
        from kiebitz.cli.terminal.screen import as_json

        return as_json(scene.state)
    from kiebitz.cli.render.text.picture import Picture

    if is_hex_board(view):
        from kiebitz.cli.render.text.catan import draw_catan

        return Picture(view.names, partial(draw_catan, view))
    from kiebitz.cli.render.text.table import draw_view

    return Picture(view.names, partial(draw_view, view))
