"""German-suited cards: the four suit signs as paths, card faces of any size, and backs.

Schafkopf and mariáš use the same pack. Cards also show the players' words, for viewers who do not know
the signs: `Ober` and `Eichel`, `svršek` and `žaludy`.
"""

from __future__ import annotations

from kiebitz.cli.render.svg.svg_canvas import (
    LETTER_WIDTH,
    Element,
    cached_fragment,
    draw_sign,
    label,
    rect,
)
from kiebitz.dissectors.game.view import Card

_INKS = {"acorn": "#4a2f14", "leaf": "#1e6b2e", "heart": "#b3122a", "bell": "#8a5a00"}
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


sign = cached_fragment(256)(draw_sign)
"""Returns a suit's sign as a fragment."""


@cached_fragment(256)
def card(drawn: Element, face: Card, width: float) -> None:
    """Return a card's face, its upper left corner at the origin."""
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
        draw_sign(drawn, face.suit.sign, (width / 2, high - room / 2 - 3), room * 0.0082)
    else:
        foot = _LEAST * 1.35
        room = high - size * 1.3 - foot
        draw_sign(drawn, face.suit.sign, (width / 2, size * 1.3 + room / 2), room * 0.0086)
        _fitted(drawn, (width / 2, high - 12), face.suit.name, _LEAST, width - 10, ink)


@cached_fragment(256)
def backs(drawn: Element, count: int, width: float, room: float) -> None:
    """Return overlapping hidden cards within a width, and their number."""
    high = height(width)
    step = 0.0 if count < 2 else min(width * 0.45, (room - width) / (count - 1))
    shown = count if step >= 3 else min(count, 3)
    for number in range(shown):
        left = number * max(step, 3)
        _blank(drawn, width, high, "#31507c", left)
        rect(
            drawn,
            left + 6,
            6,
            width - 12,
            high - 12,
            6,
            fill="none",
            stroke="#b9cbe6",
            stroke_width=2.5,
            stroke_dasharray="7 5",
        )
    left = (shown - 1) * max(step, 3)
    label(drawn, (left + width / 2, high / 2 + 12), str(count), 34, "middle bold", width - 8, fill="#ffffff")


def backs_width(count: int, width: float, room: float) -> float:
    """Return the width of a number of backs."""
    return width + min(width * 0.45 * max(0, count - 1), room - width)


@cached_fragment(32)
def halo(drawn: Element, width: float, takes: bool) -> None:
    """Return the frame of the card played last, or of the one that `takes` the trick."""
    high = height(width)
    rect(
        drawn,
        -7,
        -7,
        width + 14,
        high + 14,
        14,
        fill="none",
        class_="k-s-turn",
        stroke_width=9 if takes else 5,
        **{} if takes else {"stroke_dasharray": "16 9"},
    )


@cached_fragment(8)
def place(drawn: Element, width: float) -> None:
    """Return the mark of an empty place for a card."""
    rect(
        drawn,
        0,
        0,
        width,
        height(width),
        9,
        fill="none",
        class_="k-s-line",
        stroke_width=3,
        stroke_dasharray="3 9",
        stroke_linecap="round",
    )


def _blank(parent: Element, width: float, high: float, fill: str, x: float = 0) -> None:
    rect(
        parent, x, 0, width, high, 9, fill=fill, stroke=_EDGE if fill == _PAPER else "#dfe6f0", stroke_width=2
    )


def _fitted(parent: Element, at: tuple[float, float], words: str, size: float, room: float, ink: str) -> None:
    """Draw a word in the middle of a card, condensed if a font may be too wide."""
    more: dict[str, str | float] = {}
    size = max(_LEAST, min(size, room / (LETTER_WIDTH * len(words))))
    if len(words) * LETTER_WIDTH * size > room:
        more = {"textLength": room, "lengthAdjust": "spacingAndGlyphs"}
    # Thicker than usual, but narrower than bold letters.
    label(parent, at, words, size, "middle", 1e4, fill=ink, stroke=ink, stroke_width=0.8, **more)
