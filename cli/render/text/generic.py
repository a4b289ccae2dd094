"""The plain state, for a protocol that nobody has drawn a picture for yet."""

from __future__ import annotations

from kiebitz.cli.render.text.scene import Scene
from kiebitz.cli.terminal.screen import RenderableType, as_json


def draw_state(scene: Scene) -> RenderableType:
    """The state as indented JSON."""
    return as_json(scene.state)
