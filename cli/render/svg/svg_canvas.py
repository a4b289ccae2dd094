"""Drawings: shapes and text as named fragments of SVG, and their positions on a sheet.

A fragment is drawn around its own origin and named by a digest of its markup, so a client that knows the
name has the fragment. Of two drawings of one game the second is little more than a list of positions.
Text in a fragment may come from the network: it goes through `label`, which escapes it, and the
markup is made by ElementTree.

Shapes and text as SVG elements.

Parts of the drawings of several games: areas of a sheet, lines of text.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from functools import cache, lru_cache, wraps
from importlib.resources import files
from typing import Concatenate, Literal, ParamSpec, cast, get_args
from xml.etree import ElementTree

import msgspec

from kiebitz.cli.render.text.canvas import UNICODE, shorten
from kiebitz.cli.terminal.console import wrapped

Element = ElementTree.Element
P = ParamSpec("P")
Point = tuple[float, float]

NAMESPACE = "http://www.w3.org/2000/svg"
FONT = "Helvetica, Arial, 'DejaVu Sans', sans-serif"
LETTER_WIDTH = 0.58
"""Approximate width of a letter, relative to its height; the real one depends on the viewer's font."""

_LETTER = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]"
_RIGHT_TO_LEFT = re.compile(f"{_LETTER}+(?:[ '-]+{_LETTER}+)*")
"""Words written from right to left, with the blanks between them."""


def shape(parent: Element, tag: str, **attributes: str | float) -> Element:
    """Add a shape; `stroke_width` becomes `stroke-width`, `class_` becomes `class`. Numbers are rounded."""
    written = {
        name.rstrip("_").replace("_", "-"): value
        if isinstance(value, str)
        else f"{value:.2f}".rstrip("0").rstrip(".")
        for name, value in attributes.items()
    }
    return ElementTree.SubElement(parent, tag, written)


def rect(
    parent: Element, x: float, y: float, width: float, height: float, rx: float = 0, **attributes: str | float
) -> Element:
    """Add a rectangle whose corners have the radius `rx`."""
    return shape(parent, "rect", x=x, y=y, width=width, height=height, rx=rx, **attributes)


def circle(parent: Element, x: float, y: float, radius: float, **attributes: str | float) -> Element:
    """Add a circle around a point."""
    return shape(parent, "circle", cx=x, cy=y, r=radius, **attributes)


def polygon(parent: Element, points: Iterable[Point], **attributes: str | float) -> Element:
    """Add a closed shape with these corners."""
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return shape(parent, "polygon", points=corners, **attributes)


def line(parent: Element, start: Point, end: Point, **attributes: str | float) -> Element:
    """Add a straight line."""
    return shape(parent, "line", x1=start[0], y1=start[1], x2=end[0], y2=end[1], **attributes)


def draw_sign(parent: Element, /, name: str, at: Point, scale: float = 1, **attributes: str | float) -> bool:
    """Draw a sign of `signs.svg` around a point; return False if there is none of this name."""
    parts = _signs().get(name)
    if parts is not None:
        place = f"translate({at[0]:g} {at[1]:g}) scale({scale:g})"
        shape(parent, "g", transform=place, **attributes).extend(parts)
    return parts is not None


@cache
def _signs() -> dict[str, list[Element]]:
    text = files("kiebitz.cli.render.svg").joinpath("signs.svg").read_text("utf-8")
    root = ElementTree.fromstring(text.replace(f' xmlns="{NAMESPACE}"', ""))
    for element in root.iter():
        # Their indentation.
        element.text = element.tail = None
    return {sign.attrib["id"]: [*sign] for sign in root}


_STYLES = {"bold": "font-weight", **dict.fromkeys(("start", "middle", "end"), "text-anchor")}
"""Attribute by word of a style; other words are classes."""


def label(
    parent: Element,
    at: Point,
    words: str,
    size: float,
    style: str = "",
    room: float = 1e4,
    **attributes: str | float,
) -> Element:
    """Add a line of text, escaped and cut to an approximate width.

    `style` has words as in `k-ink bold middle`: a class of the theme, the weight, and the place that `at` is.
    Words written from right to left are isolated: else, numbers beside a name appear at its other side.
    """
    x, y = at
    styled = {_STYLES.get(word, "class"): word for word in style.split()}
    element = shape(parent, "text", x=x, y=y, font_size=size, **styled, **attributes)
    cells = max(1, int(room / (LETTER_WIDTH * size)))
    element.text = _RIGHT_TO_LEFT.sub("\u2068\\g<0>\u2069", shorten(words[: 4 * cells], cells, UNICODE))
    return element


def lines(words: str, size: float, room: float) -> list[str]:
    """Return a text wrapped to an approximate width."""
    return wrapped(words, max(1, int(room / (LETTER_WIDTH * size))))


_PIPS = {
    1: [(0, 0)],
    2: [(-1, -1), (1, 1)],
    3: [(-1, -1), (0, 0), (1, 1)],
    4: [(-1, -1), (1, -1), (-1, 1), (1, 1)],
    5: [(-1, -1), (1, -1), (0, 0), (-1, 1), (1, 1)],
    6: [(-1, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (1, 1)],
}


def die(parent: Element, at: Point, face: int | str, size: float, ground: str = "#ffffff") -> None:
    """Add a die, its upper left corner at `at`; an impossible face is written as text."""
    x, y = at
    rect(parent, x, y, size, size, size / 6, fill=ground, stroke="#333333", stroke_width=2)
    pips = _PIPS.get(face, []) if isinstance(face, int) else []
    if not pips:
        label(parent, (x + size / 2, y + size * 0.66), str(face), size * 0.5, "middle", size, fill="#000000")
    for across, down in pips:
        circle(parent, x + size * (0.5 + 0.26 * across), y + size * (0.5 + 0.26 * down), size / 11)


Shape = Literal["wide", "tall"]
"""Format of a sheet: for a projector or a slide, or for a phone held upright."""

SHAPES: tuple[Shape, ...] = get_args(Shape)
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


def cached_fragment(
    size: int,
) -> Callable[[Callable[Concatenate[Element, P], object]], Callable[P, Fragment]]:
    """Return a decorator for a function that draws into a group, which then returns the group as a fragment.

    The latest `size` fragments are kept.
    """

    def decorate(draw: Callable[Concatenate[Element, P], object]) -> Callable[P, Fragment]:
        @lru_cache(size)
        def drawn(*args: P.args, **kwargs: P.kwargs) -> Fragment:
            element = group()
            draw(element, *args, **kwargs)
            return fragment(element)

        return cast(Callable[P, Fragment], wraps(draw)(drawn))

    return decorate


SMALL = 24.0
"""Smallest letters that can be read from the seats of a room."""

BOLD = 0.66
"""Width of a bold letter in most fonts, relative to its height."""


class Box(msgspec.Struct, frozen=True):
    """A rectangle on a sheet."""

    x: float
    y: float
    width: float
    height: float


@cached_fragment(2048)
def text(drawn: Element, words: str, size: float, room: float, style: str) -> None:
    """Return a line of text anchored at its position; see `label`."""
    label(drawn, (0, 0), words, size, style, room)


def draw_name(parent: Element, x: float, base: float, name: str, largest: float, room: float) -> None:
    """Draw a player's name as large as it fits, bold if there is room."""
    size = max(SMALL, min(largest, room / (BOLD * max(1, len(name)))))
    label(parent, (x, base), name or '""', size, "k-ink bold" if size > SMALL else "k-ink", room)


def draw_arrow(parent: Element, x: float, middle: float) -> None:
    """Draw the arrow of the player to move, 18 wide; it does not rely on colour."""
    polygon(parent, [(x, middle - 11), (x + 18, middle), (x, middle + 11)], class_="k-turn")


@cached_fragment(64)
def felt(drawn: Element, width: float, height: float, radius: float, inset: float = 0.0) -> None:
    """Return the table's felt, inset in a rectangle."""
    rect(
        drawn,
        inset,
        inset,
        width - 2 * inset,
        height - 2 * inset,
        radius,
        class_="k-felt k-s-line",
        stroke_width=3,
    )
