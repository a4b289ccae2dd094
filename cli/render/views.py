"""The view of a table, as its protocol describes it."""

from __future__ import annotations

from kiebitz.dissectors.game.view import Scene, View
from kiebitz.dissectors.registry import dissector_of


def view_of(protocol: str, scene: Scene) -> View | None:
    """Return a table's view; None if the protocol has none or is not installed."""
    dissector = dissector_of(protocol)
    return dissector.view(scene) if dissector is not None else None
