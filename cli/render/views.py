"""Access to the views of protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from kiebitz.dissectors.game.view import Scene, View
from kiebitz.dissectors.registry import dissector_of

if TYPE_CHECKING:
    from kiebitz.dissectors.protocols.catan.view import CatanView


def view_of(protocol: str, scene: Scene) -> View | None:
    """Return a table's view; None if the protocol has none or is not installed."""
    dissector = dissector_of(protocol)
    return dissector.presentation.view(scene) if dissector is not None else None


def is_hex_board(view: View) -> TypeGuard[CatanView]:
    """Return True if a view has Catan's board, which has renderers of its own."""
    # Imported when the first table is drawn.
    from kiebitz.dissectors.protocols.catan.view import CatanView

    return isinstance(view, CatanView)
