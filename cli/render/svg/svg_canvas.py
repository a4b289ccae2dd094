"""A drawing: named fragments of SVG, and where each of them stands on a sheet.

A fragment is drawn around its own origin and named by a digest of its markup: who has seen the name has the
fragment, in whatever drawing it came. So of two drawings of one game the second is little more than a list
of places. Whatever is written in a fragment may have come from the network: texts go through `shapes.label`,
which escapes them, and the markup is made by ElementTree.
"""

from __future__ import annotations

import hashlib
from typing import Literal
from xml.etree import ElementTree

import msgspec

from kiebitz.cli.render.svg.shapes import Element

Shape = Literal["wide", "tall"]
"""Of a projector or a page of slides, or of a phone that is held upright."""

SIZES: dict[Shape, tuple[int, int]] = {"wide": (1600, 800), "tall": (700, 1100)}
"""Width and height of a sheet. A unit is the same in both: shown on a screen of 1024 pixels across, or on a
phone of 390, letters 24 units high can be read from where people sit."""


class Fragment(msgspec.Struct, frozen=True):
    """An element `g` as markup, and its name."""

    name: str
    markup: str


class Placed(msgspec.Struct, frozen=True, array_like=True):
    """Where the origin of the fragment of this name stands; in JSON an array of three."""

    name: str
    x: float
    y: float


class Drawing(msgspec.Struct, frozen=True):
    """A drawn table: what was put first lies lowest.

    `words` say the same as the picture, a line for each thing, for who cannot see it.
    """

    width: int
    height: int
    pieces: tuple[Placed, ...]
    fragments: dict[str, str]
    words: tuple[str, ...]


class Sheet:
    """What a game is drawn on: fragments are put on it one after the other; its height may be given."""

    def __init__(self, shape: Shape, height: int | None = None) -> None:
        self.shape = shape
        self.width, self.height = SIZES[shape]
        if height is not None:
            self.height = height
        self._pieces: list[Placed] = []
        self._fragments: dict[str, str] = {}
        self._words: list[str] = []

    @property
    def is_tall(self) -> bool:
        """Whether it is higher than wide."""
        return self.shape == "tall"

    def put(self, fragment: Fragment, x: float, y: float) -> None:
        """Put a fragment's origin at this place."""
        self._pieces.append(Placed(fragment.name, round(x, 1), round(y, 1)))
        self._fragments[fragment.name] = fragment.markup

    def say(self, words: str) -> None:
        """Tell who cannot see it one thing that is drawn, already safe to be shown."""
        self._words.append(words)

    def drawing(self) -> Drawing:
        """All that was put on it."""
        return Drawing(self.width, self.height, tuple(self._pieces), self._fragments, tuple(self._words))


def group() -> Element:
    """The element of a new fragment, to draw into."""
    return ElementTree.Element("g")


def fragment(drawn: Element) -> Fragment:
    """A drawn group as a fragment."""
    markup = ElementTree.tostring(drawn, "unicode")
    return Fragment(hashlib.blake2b(markup.encode(), digest_size=8).hexdigest(), markup)
