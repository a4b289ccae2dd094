"""The plain state, for a protocol that nobody has drawn a picture for yet."""

from __future__ import annotations

import json

from rich.console import RenderableType
from rich.json import JSON

from cli.pictures.scene import Scene


def draw_state(scene: Scene) -> RenderableType:
    """The state as indented JSON; the escapes of JSON keep control characters off the terminal."""
    return JSON(json.dumps(scene.state), ensure_ascii=True)
