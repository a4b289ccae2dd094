"""Pictures of a table for the terminal: one drawing for each protocol, all of them asked the same way.

A drawing is pure: it gets a `Scene` and gives something that rich can print at any width. Whatever stands in
a scene was sent by somebody on the network: texts are those of `cli.terminal.screen`, which escape it.
"""

from __future__ import annotations

from kiebitz.cli.pictures.catan import CatanDrawing
from kiebitz.cli.pictures.cgml import CgmlDrawing
from kiebitz.cli.pictures.generic import draw_state
from kiebitz.cli.pictures.maexchen import MaexchenDrawing
from kiebitz.cli.pictures.okey import OkeyDrawing
from kiebitz.cli.pictures.picture import Drawing, Picture
from kiebitz.cli.pictures.scene import Scene
from kiebitz.cli.pictures.schafkopf import SchafkopfDrawing
from kiebitz.cli.terminal.screen import RenderableType

DRAWINGS: dict[str, type[Drawing]] = {
    "catan": CatanDrawing,
    "cgml": CgmlDrawing,
    "maexchen": MaexchenDrawing,
    "okey": OkeyDrawing,
    "schafkopf": SchafkopfDrawing,
}


def draw(protocol: str, scene: Scene) -> RenderableType:
    """The picture of a table of this protocol; its plain state where nobody has drawn the protocol yet."""
    drawing = DRAWINGS.get(protocol)
    return Picture(drawing, scene) if drawing is not None else draw_state(scene)


__all__ = ["DRAWINGS", "Scene", "draw"]
