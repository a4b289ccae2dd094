"""Pictures of a table for the terminal: one drawing for each protocol, all of them asked the same way.

A drawing is pure: it gets a `Scene` and gives something that rich can print at any width. Whatever stands in
a scene was sent by somebody on the network: texts are those of `cli.terminal.screen`, which escape it.
A protocol's drawing is loaded when its first table is drawn.
"""

from __future__ import annotations

from pkgutil import resolve_name
from typing import TYPE_CHECKING

from kiebitz.cli.render.text.scene import Scene

if TYPE_CHECKING:
    from kiebitz.cli.terminal.screen import RenderableType

DRAWINGS = {
    "catan": "kiebitz.cli.render.text.catan:CatanDrawing",
    "cgml": "kiebitz.cli.render.text.cgml:CgmlDrawing",
    "maexchen": "kiebitz.cli.render.text.maexchen:MaexchenDrawing",
    "okey": "kiebitz.cli.render.text.okey:OkeyDrawing",
    "schafkopf": "kiebitz.cli.render.text.schafkopf:SchafkopfDrawing",
}
"""By protocol: where its drawing is, a class of `Drawing`."""


def draw(protocol: str, scene: Scene) -> RenderableType:
    """The picture of a table of this protocol; its plain state where nobody has drawn the protocol yet."""
    if protocol in DRAWINGS:
        from kiebitz.cli.render.text.picture import Picture

        return Picture(resolve_name(DRAWINGS[protocol]), scene)
    from kiebitz.cli.render.text.generic import draw_state

    return draw_state(scene)


__all__ = ["DRAWINGS", "Scene", "draw"]
