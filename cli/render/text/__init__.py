"""The text renderer: pictures of tables for the terminal, drawn from their views.

Text in a view came from the network: `cli.terminal.screen` escapes it.
"""

from __future__ import annotations

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
    if is_hex_board(view):
        from kiebitz.cli.render.text.catan import CatanPicture

        return CatanPicture(view)
    from kiebitz.cli.render.text.picture import ViewPicture

    return ViewPicture(view)
