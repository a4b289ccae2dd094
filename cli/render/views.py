"""Access to the views of protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

import msgspec

from kiebitz.dissectors.game.view import Scene, View
from kiebitz.dissectors.registry import dissector_of

if TYPE_CHECKING:
    from kiebitz.dissectors.protocols.catan.view import CatanView


def view_of(protocol: str, scene: Scene) -> View | None:
    """Return a table's view from its viewer's seat; None if the protocol has none or is not installed."""
    dissector = dissector_of(protocol)
    view = dissector.presentation.view(scene) if dissector is not None else None
    if view is None or scene.viewer is None:
        return view
    first = next((place for place, seat in enumerate(view.seats) if seat.name == scene.viewer), 0)
    return msgspec.structs.replace(view, seats=view.seats[first:] + view.seats[:first])


def is_hex_board(view: View) -> TypeGuard[CatanView]:
    """Return True if a view has Catan's board, which has renderers of its own."""
    # Imported when the first table is drawn.
    from kiebitz.dissectors.protocols.catan.view import CatanView

    return isinstance(view, CatanView)
