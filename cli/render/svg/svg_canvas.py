"""Drawings: named fragments of SVG, and their positions on a sheet.

A fragment is drawn around its own origin and named by a digest of its markup, so a client that knows the
name has the fragment. Of two drawings of one game the second is little more than a list of positions.
Text in a fragment may come from the network: it goes through `shapes.label`, which escapes it, and the
markup is made by ElementTree.
"""

from __future__ import annotations

import hashlib
from typing import Literal
from xml.etree import ElementTree

import msgspec

from kiebitz.cli.render.svg.shapes import Element

Shape = Literal["wide", "tall"]
"""Format of a sheet: for a projector or a slide, or for a phone held upright."""

SIZES: dict[Shape, tuple[int, int]] = {"wide": (1600, 800), "tall": (700, 1100)}
"""Width and height of a sheet. A unit is the same in both: on a screen 1024 pixels wide, or a phone 390
pixels wide, letters of 24 units can be read from the seats of a room.
"""


class Fragment(msgspec.Struct, frozen=True):
    """A `g` element as markup, and its name."""

    name: str
    markup: str


class Placed(msgspec.Struct, frozen=True, array_like=True):
    """The position of a fragment's origin; an array of three in JSON."""

    name: str
    x: float
    y: float


class Drawing(msgspec.Struct, frozen=True):
    """A drawing, its lowest piece first.

    `words` describe the same for people who cannot see it, one line per thing.
    """

    width: int
    height: int
    pieces: tuple[Placed, ...]
    fragments: dict[str, str]
    words: tuple[str, ...]


class Sheet:
    """The canvas of a drawing, on which fragments are put; its height may be given."""

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
        """True if it is higher than wide."""
        return self.shape == "tall"

    def put(self, fragment: Fragment, x: float, y: float) -> None:
        """Put a fragment's origin at a position."""
        self._pieces.append(Placed(fragment.name, round(x, 1), round(y, 1)))
        self._fragments[fragment.name] = fragment.markup

    def say(self, words: str) -> None:
        """Add an escaped line to the description in words."""
        self._words.append(words)

    def drawing(self) -> Drawing:
        """Return the drawing."""
        return Drawing(self.width, self.height, tuple(self._pieces), self._fragments, tuple(self._words))


def group() -> Element:
    """Return an empty element for a new fragment."""
    return ElementTree.Element("g")


def fragment(drawn: Element) -> Fragment:
    """Return a drawn group as a fragment."""
    markup = ElementTree.tostring(drawn, "unicode")
    return Fragment(hashlib.blake2b(markup.encode(), digest_size=8).hexdigest(), markup)
