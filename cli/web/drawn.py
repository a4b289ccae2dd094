"""A picture that was drawn: the drawings of a table at a moment, for each shape of a window."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from kiebitz.cli.render.svg.svg_canvas import Drawing, Shape
from kiebitz.cli.web import records


class Drawn(msgspec.Struct, frozen=True):
    """A picture and its fragments."""

    picture: records.Picture
    drawings: dict[Shape, Drawing]

    @property
    def names(self) -> set[str]:
        """The names of all its fragments."""
        return {name for drawing in self.drawings.values() for name in drawing.fragments}

    def fragments(self, wanted: Collection[str] | None = None) -> dict[str, str]:
        """Those of its fragments that are wanted, or all."""
        known = {name: part for drawing in self.drawings.values() for name, part in drawing.fragments.items()}
        return known if wanted is None else {name: known[name] for name in wanted if name in known}
