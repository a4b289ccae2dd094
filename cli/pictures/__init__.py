"""Pictures of a table for the terminal: one drawing for each protocol, all of them asked the same way.

A drawing is pure: it gets a `Scene` and gives something that rich can print at any width. Whatever stands in
a scene was sent by somebody on the network: texts are those of `cli.terminal.screen`, which escape it.
"""

from __future__ import annotations

from collections.abc import Callable

from kiebitz.cli.pictures.catan import draw_catan
from kiebitz.cli.pictures.cgml import draw_cgml
from kiebitz.cli.pictures.generic import draw_state
from kiebitz.cli.pictures.maexchen import draw_maexchen
from kiebitz.cli.pictures.okey import draw_okey
from kiebitz.cli.pictures.scene import Scene
from kiebitz.cli.pictures.schafkopf import draw_schafkopf
from kiebitz.cli.terminal.screen import RenderableType

DRAWINGS: dict[str, Callable[[Scene], RenderableType]] = {
    "catan": draw_catan,
    "cgml": draw_cgml,
    "maexchen": draw_maexchen,
    "okey": draw_okey,
    "schafkopf": draw_schafkopf,
}


def draw(protocol: str, scene: Scene) -> RenderableType:
    """The picture of a table of this protocol; its plain state where nobody has drawn the protocol yet."""
    return DRAWINGS.get(protocol, draw_state)(scene)


__all__ = ["DRAWINGS", "Scene", "draw"]
