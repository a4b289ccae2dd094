"""A Catan table as a vector drawing for slides: the board, the players and their hands, what happened."""

from __future__ import annotations

from kiebitz.cli.drawings.document import svg as sheet
from kiebitz.cli.drawings.shapes import Element, die, label, lines, shape
from kiebitz.cli.pictures.catan_colours import RESOURCES, SEA, ink
from kiebitz.cli.pictures.catan_look import MOST_PLAYERS, Look, Player, look_at
from kiebitz.cli.pictures.catan_svg_board import draw_board
from kiebitz.cli.pictures.catan_words import (
    NOT_KNOWN,
    bank,
    counted,
    facts,
    hand,
    headline,
    not_known,
    offers,
    points,
    readiness,
)
from kiebitz.cli.pictures.scene import Scene
from kiebitz.dissectors.catan.words import ROHSTOFFE

_WIDTH, _HEIGHT = 1600, 900
_EDGE = 30
_TOP, _BOTTOM = 84, 830
_BOARD = 920
_PANEL = _EDGE + _BOARD + 30
_PANEL_WIDTH = _WIDTH - _EDGE - _PANEL
_PAPER, _CARD, _INK, _FAINT, _LINE = "#fbf9f3", "#ffffff", "#1c1c1c", "#6c6c6c", "#d0ccc0"
_LEADING = 28
_MOST_TRADES = 2


def draw_catan_svg(scene: Scene, title: str, caption: str) -> Element:
    """The drawing of a table, 16 by 9, with a title above and a caption below."""
    look = look_at(scene)
    root = sheet(_WIDTH, _HEIGHT)
    shape(root, "rect", width=_WIDTH, height=_HEIGHT, fill=_PAPER)
    label(root, (_EDGE, 54), title, 30, _WIDTH - 2 * _EDGE, fill=_INK, font_weight="bold")
    label(root, (_EDGE, 874), caption, 28, _WIDTH - 2 * _EDGE, fill=_INK)
    if look.island is not None:
        draw_board(root, look.island, _EDGE, _TOP, _BOARD, _BOTTOM - _TOP)
    else:
        _draw_no_board(root, look)
    bottom = _draw_below(root, look)
    _draw_players(root, look, _draw_headline(root, look), bottom)
    return root


def _draw_no_board(root: Element, look: Look) -> None:
    """The sea alone, and why."""
    shape(root, "rect", x=_EDGE, y=_TOP, width=_BOARD, height=_BOTTOM - _TOP, rx=18, fill=SEA)
    middle = _EDGE + _BOARD / 2
    why = look.no_island if look.part else "the game has not begun"
    label(root, (middle, 450), why, 40, _BOARD - 40, fill=_INK, text_anchor="middle")
    label(root, (middle, 500), look.server, 26, _BOARD - 40, fill=_FAINT, text_anchor="middle")


def _draw_headline(root: Element, look: Look) -> float:
    """How the game stands, and the dice; gives where the players begin."""
    player, words = headline(look) if look.part else (None, counted(len(look.players), "player"))
    x = _PANEL
    if "dice" in look.part:
        dice = look.part["dice"][:2]
        for number, face in enumerate(dice):
            die(root, (x + number * 64, _TOP), face, 54)
        x += 64 * len(dice) + 10
    room = _WIDTH - _EDGE - x
    if player is None:
        label(root, (x, _TOP + 37), words, 30, room, fill=_INK, font_weight="bold")
    else:
        label(root, (x, _TOP + 20), player.name, 26, room, fill=_INK, font_weight="bold")
        label(root, (x, _TOP + 50), words, 26, room, fill=_INK)
    return _TOP + 72


def _draw_below(root: Element, look: Look) -> float:
    """The open trades and the bank at the foot of the panel; gives where they begin."""
    below = []
    for player, words, accepted in list(offers(look))[-_MOST_TRADES:]:
        trade = f"{player.name if player is not None else NOT_KNOWN} {words}"
        if accepted:
            trade += f"; accepted by {', '.join(other.name for other in accepted)}"
        below.append(trade)
    below += filter(None, (bank(look.part), not_known(look.part)))
    top = _BOTTOM - _LEADING * len(below)
    for number, words in enumerate(below):
        label(root, (_PANEL, top + _LEADING * number + 22), words, 16, _PANEL_WIDTH, fill=_INK)
    return top - 6


def _draw_players(root: Element, look: Look, top: float, bottom: float) -> None:
    """A card for each player, as high as there is room for."""
    shown = look.players[:MOST_PLAYERS]
    height = min(180.0, (bottom - top) / max(1, len(shown)))
    for number, player in enumerate(shown):
        _Card(root, top + number * height, (height - 12) / 150).draw(player, look)


class _Card:
    """A player's card at a height, all of it in the size `scale`."""

    def __init__(self, root: Element, y: float, scale: float) -> None:
        self._root = root
        self._y = y
        self._scale = scale

    def draw(self, player: Player, look: Look) -> None:
        k, y = self._scale, self._y
        to_move = bool(look.part) and look.part.get("turn") == player.number
        shape(
            self._root,
            "rect",
            x=_PANEL,
            y=y,
            width=_PANEL_WIDTH,
            height=150 * k,
            rx=12 * k,
            fill=_CARD,
            stroke=_INK if to_move else _LINE,
            stroke_width=4 if to_move else 1.5,
        )
        shape(
            self._root,
            "rect",
            x=_PANEL + 12 * k,
            y=y + 12 * k,
            width=38 * k,
            height=126 * k,
            rx=8 * k,
            fill=player.colour,
            stroke=_INK,
            stroke_width=1.5,
        )
        self._label(
            31, 84, player.letter, 28, fill=ink(player.colour), font_weight="bold", text_anchor="middle"
        )
        self._label(64, 36, player.name, 27, 0.5 * _PANEL_WIDTH, fill=_INK, font_weight="bold")
        right = _PANEL_WIDTH / k - 16
        if not look.part:
            self._label(64, 80, player.about.get("colour", "no colour yet"), 24, fill=_INK)
            self._label(64, 120, readiness(player), 24, fill=_FAINT)
            return
        self._label(right, 36, points(player), 27, 200, fill=_INK, font_weight="bold", text_anchor="end")
        counts = hand(player.resources)
        width = (right - 64) / (len(counts) + 1)
        for place, (resource, count) in enumerate(zip(ROHSTOFFE, counts, strict=True)):
            self._draw_resource(64 + place * width, width - 8, resource, count)
        total = str(player.about.get("resources", NOT_KNOWN))
        self._label(right, 78, total, 27, (width - 8) * k, fill=_INK, text_anchor="end")
        self._label(right, 97, "in all", 14, fill=_FAINT, text_anchor="end")
        said = lines(", ".join(facts(player, look.part)), 17 * k, (right - 64) * k)
        for number, words in enumerate(said[:2]):
            self._label(64, 124 + 20 * number, words, 17, (right - 64) * k, fill=_INK)

    def _draw_resource(self, x: float, width: float, resource: str, count: str) -> None:
        """How many of a resource; dashed where that is hidden."""
        k = self._scale
        colour = _LINE if count == NOT_KNOWN else RESOURCES[resource]
        hidden = {} if count.lstrip("-").isdigit() else {"stroke_dasharray": "5 4"}
        shape(
            self._root,
            "rect",
            x=_PANEL + x * k,
            y=self._y + 46 * k,
            width=width * k,
            height=58 * k,
            rx=8 * k,
            fill=colour,
            stroke=_INK,
            stroke_width=1.5,
            **hidden,
        )
        middle = x + width / 2
        self._label(middle, 65, resource, 14, width * k, fill=ink(colour), text_anchor="middle")
        self._label(
            middle, 95, count, 27, width * k, fill=ink(colour), font_weight="bold", text_anchor="middle"
        )

    def _label(
        self, x: float, y: float, words: str, size: float, room: float = _PANEL_WIDTH, **attributes: str
    ) -> None:
        k = self._scale
        label(self._root, (_PANEL + x * k, self._y + y * k), words, size * k, room, **attributes)
