"""German-suited cards: the four suit signs as paths, card faces of any size, and backs.

Schafkopf and mariáš use the same pack. Cards also show the players' words, for viewers who do not know
the signs: `Ober` and `Eichel`, `svršek` and `žaludy`.
"""

from __future__ import annotations

from functools import lru_cache

from kiebitz.cli.render.svg.svg_canvas import (
    LETTER_WIDTH,
    Element,
    Fragment,
    fragment,
    group,
    label,
    line,
    shape,
)
from kiebitz.dissectors.game.view import Card

ACORN, LEAF, HEART, BELL = "acorn", "leaf", "heart", "bell"

_INKS = {ACORN: "#4a2f14", LEAF: "#1e6b2e", HEART: "#b3122a", BELL: "#8a5a00"}
"""Colours of words on a card, all readable on its paper."""

_PAPER = "#fffdf5"
_EDGE = "#6f675a"
_LEAST = 24.0
"""Minimum size of letters."""

_HIGH = 1.38
"""Ratio of a card's height to its width."""

NARROW = 72
"""Below this width the value on a card is abbreviated."""

_WITH_SUIT = 96
"""From this width on the name of the suit is written on a card, too."""


def height(width: float) -> float:
    """Return the height of a card of this width."""
    return round(_HIGH * width)


def draw_sign(parent: Element, sign: str, at: tuple[float, float], size: float) -> None:
    """Draw a suit's sign centred at a point."""
    x, y = at
    drawn = shape(parent, "g", transform=f"translate({x:g} {y:g}) scale({size / 100:g})")
    _SIGNS[sign](drawn)


@lru_cache(maxsize=256)
def sign(name: str, size: float) -> Fragment:
    """Return a suit's sign centred at the origin."""
    drawn = group()
    draw_sign(drawn, name, (0, 0), size)
    return fragment(drawn)


@lru_cache(maxsize=256)
def card(face: Card, width: float) -> Fragment:
    """Return a card's face, its upper left corner at the origin."""
    drawn = group()
    high = height(width)
    _blank(drawn, width, high, _PAPER)
    ink = _INKS[face.suit.sign]
    size = max(_LEAST + 1, width * 0.26)
    _fitted(
        drawn,
        (width / 2, size * 1.08),
        (face.brief or face.value) if width < NARROW else face.value,
        size,
        width - 8,
        ink,
    )
    if width < _WITH_SUIT:
        room = high - size * 1.3
        draw_sign(drawn, face.suit.sign, (width / 2, high - room / 2 - 3), room * 0.82)
    else:
        foot = _LEAST * 1.35
        room = high - size * 1.3 - foot
        draw_sign(drawn, face.suit.sign, (width / 2, size * 1.3 + room / 2), room * 0.86)
        _fitted(drawn, (width / 2, high - 12), face.suit.name, _LEAST, width - 10, ink)
    return fragment(drawn)


@lru_cache(maxsize=256)
def backs(count: int, width: float, room: float) -> Fragment:
    """Return overlapping hidden cards within a width, and their number."""
    drawn = group()
    high = height(width)
    step = 0.0 if count < 2 else min(width * 0.45, (room - width) / (count - 1))
    shown = count if step >= 3 else min(count, 3)
    for number in range(shown):
        left = number * max(step, 3)
        _blank(drawn, width, high, "#31507c", left)
        shape(
            drawn,
            "rect",
            x=left + 6,
            y=6,
            width=width - 12,
            height=high - 12,
            rx=6,
            fill="none",
            stroke="#b9cbe6",
            stroke_width=2.5,
            stroke_dasharray="7 5",
        )
    left = (shown - 1) * max(step, 3)
    label(
        drawn,
        (left + width / 2, high / 2 + 12),
        str(count),
        34,
        width - 8,
        text_anchor="middle",
        font_weight="bold",
        fill="#ffffff",
    )
    return fragment(drawn)


def backs_width(count: int, width: float, room: float) -> float:
    """Return the width of a number of backs."""
    return width + min(width * 0.45 * max(0, count - 1), room - width)


@lru_cache(maxsize=32)
def halo(width: float, takes: bool) -> Fragment:
    """Return the frame of the card played last, or of the one that `takes` the trick."""
    drawn = group()
    high = height(width)
    shape(
        drawn,
        "rect",
        x=-7,
        y=-7,
        width=width + 14,
        height=high + 14,
        rx=14,
        fill="none",
        class_="k-s-turn",
        stroke_width=9 if takes else 5,
        **({} if takes else {"stroke_dasharray": "16 9"}),
    )
    return fragment(drawn)


@lru_cache(maxsize=8)
def place(width: float) -> Fragment:
    """Return the mark of an empty place for a card."""
    drawn = group()
    shape(
        drawn,
        "rect",
        width=width,
        height=height(width),
        rx=9,
        fill="none",
        class_="k-s-line",
        stroke_width=3,
        stroke_dasharray="3 9",
        stroke_linecap="round",
    )
    return fragment(drawn)


def _blank(parent: Element, width: float, high: float, fill: str, x: float = 0) -> None:
    shape(
        parent,
        "rect",
        x=x,
        width=width,
        height=high,
        rx=9,
        fill=fill,
        stroke=_EDGE if fill == _PAPER else "#dfe6f0",
        stroke_width=2,
    )


def _fitted(parent: Element, at: tuple[float, float], words: str, size: float, room: float, ink: str) -> None:
    """Draw a word in the middle of a card, condensed if a font may be too wide."""
    more: dict[str, str | float] = {}
    size = max(_LEAST, min(size, room / (LETTER_WIDTH * len(words))))
    if len(words) * LETTER_WIDTH * size > room:
        more = {"textLength": room, "lengthAdjust": "spacingAndGlyphs"}
    # Thicker than usual, but narrower than bold letters.
    label(parent, at, words, size, 1e4, text_anchor="middle", fill=ink, stroke=ink, stroke_width=0.8, **more)


# The signs in a square of 100 units, centred at the origin.


def _acorn(parent: Element) -> None:
    shape(
        parent,
        "path",
        d="M-30-6C-33 24-12 38 0 50 12 38 33 24 30-6Z",
        fill="#c58a45",
        stroke="#4a2f14",
        stroke_width=5,
    )
    shape(
        parent,
        "path",
        d="M-5-36L-9-50H5L5-36C24-36 40-24 40-6H-40C-40-24-24-36-5-36Z",
        fill="#6b4423",
        stroke="#4a2f14",
        stroke_width=5,
        stroke_linejoin="round",
    )
    shape(
        parent,
        "path",
        d="M-26-14L-12-30M-8-12L8-30M12-12L24-24",
        stroke="#c58a45",
        stroke_width=4,
        fill="none",
    )


def _leaf(parent: Element) -> None:
    shape(
        parent,
        "path",
        d="M0-50C6-32 44-22 44 8 44 32 16 36 4 22L6 50H-6L-4 22C-16 36-44 32-44 8-44-22-6-32 0-50Z",
        fill="#3d9b47",
        stroke="#14501f",
        stroke_width=5,
        stroke_linejoin="round",
    )
    shape(
        parent,
        "path",
        d="M0-28V24M0 10L-24-4M0 10L24-4M0-6L-14-16M0-6L14-16",
        stroke="#d9f2d6",
        stroke_width=4,
        fill="none",
        stroke_linecap="round",
    )


def _heart(parent: Element) -> None:
    shape(
        parent,
        "path",
        d="M0 46C-66 2-50-42-24-42-8-42 0-30 0-22 0-30 8-42 24-42 50-42 66 2 0 46Z",
        fill="#d8203a",
        stroke="#7d0a1c",
        stroke_width=5,
        stroke_linejoin="round",
    )


def _bell(parent: Element) -> None:
    shape(parent, "circle", cy=-40, r=8, fill="none", stroke="#6b4a00", stroke_width=6)
    shape(parent, "circle", cy=8, r=39, fill="#f2bd2c", stroke="#6b4a00", stroke_width=5)
    shape(parent, "path", d="M-39 6H39", stroke="#6b4a00", stroke_width=8)
    line(parent, (0, 22), (0, 44), stroke="#6b4a00", stroke_width=7)
    shape(parent, "circle", cy=21, r=8, fill="#6b4a00")


_SIGNS = {ACORN: _acorn, LEAF: _leaf, HEART: _heart, BELL: _bell}
