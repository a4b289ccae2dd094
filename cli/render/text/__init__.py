"""The text renderer: the picture of a table on a terminal, drawn from its view.

All that a view says came from the network: texts are those of `cli.terminal.screen`, which escape it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kiebitz.cli.render.views import is_hex_board, view_of
from kiebitz.dissectors.game.view import Scene

if TYPE_CHECKING:
    from kiebitz.cli.terminal.screen import RenderableType


def draw(protocol: str, scene: Scene) -> RenderableType:
    """Return the picture of a table of this protocol; its plain state if there is no view of it."""
    view = view_of(protocol, scene)
    if view is None:
        from kiebitz.cli.terminal.screen import as_json

        return as_json(scene.state)
    if is_hex_board(view):
        from kiebitz.cli.render.text.catan import CatanPicture

        return CatanPicture(view)
    from kiebitz.cli.render.text.picture import ViewPicture

    return ViewPicture(view)
