"""A Schafkopf table: the four players around it, the cards before them, and what is played.

Seats move on by one from round to round. Here everybody keeps his place: the same player sits at the bottom
all the time, and the others follow clockwise.
"""

from __future__ import annotations

from kiebitz.cli.render.text.canvas import boxed, suit_legend
from kiebitz.cli.render.text.felt import Felt
from kiebitz.cli.render.text.pen import Pen
from kiebitz.cli.render.text.scene import Scene
from kiebitz.cli.render.text.schafkopf_words import (
    card_letters,
    card_words,
    cards_left,
    last_trick,
    marks,
    not_known,
    seat_to_move,
    sorted_hand,
    story,
    taken,
)
from kiebitz.cli.render.text.seating import Seat, clockwise
from kiebitz.cli.render.text.table import TableDrawing, card_facts
from kiebitz.cli.terminal.screen import Text
from kiebitz.dissectors.protocols.schafkopf.cards import SEATS
from kiebitz.dissectors.protocols.schafkopf.words import FARBE_WORDS

_CARD_HEIGHT = 3
_CARD_WIDTH = 11
_SIDE_ROW = 2
"""At the sides there is more to say than fits in a seat's rows, so that it begins higher up."""

_IN_A_ROW = 3
"""Cards of a hand that stand side by side beside the table."""


class SchafkopfDrawing(TableDrawing[int]):
    """17 rows high; players are seats."""

    SEAT_ROWS = 3
    FELT_ROWS = 3 * _CARD_HEIGHT

    players = range(SEATS)

    def __init__(self, scene: Scene, pen: Pen, width: int) -> None:
        super().__init__(scene, pen, width)
        self._names: list[str] = self.part.get("seats") or [f"seat {seat}" for seat in self.players]
        pen.introduce(self._names)
        self.to_move = seat_to_move(self.part, self._names)
        known = scene.state.get("players", {})
        self._gone = sorted(name for name, about in known.items() if not about.get("here"))
        self._accounts: dict[str, int] = scene.state.get("accounts", {})

    def lines(self) -> list[Text]:
        """The table, and what stands below it."""
        return [*(self.table() if self.part else ()), *self._besides()]

    def around(self) -> list[int]:
        """The seats as they are drawn."""
        seated = (self._names.index(name) for name in self.scene.names if name in self._names)
        return clockwise(self.players, next(seated, 0))

    def name(self, player: int) -> str:
        """The name at a seat."""
        return self._names[player]

    def title(self) -> str:
        """The round, and the stock if it was told."""
        facts = [f"round {self.part.get('round', '?')}"]
        if (stock := self.scene.state.get("stock")) is not None:
            facts.append(f"stock {stock}")
        return self.pen.between.join(facts)

    def remark(self) -> str:
        """What the cards' signs mean."""
        return suit_legend(FARBE_WORDS.values(), self.pen.glyphs)

    def story(self) -> Text:
        """What is going on."""
        # Short enough for a name and the word beside it to stand on one line.
        return story(self.part, self.events, lambda name: self.pen.name(name, 12))

    def draw_middle(self, felt: Felt) -> None:
        """What is going on, amid the cards."""
        room = min(40, felt.seats.felt - 2 * (_CARD_WIDTH + 3))
        lines = self.pen.wrap(self.story(), room, _CARD_HEIGHT)
        felt.put_inside(_CARD_HEIGHT + (_CARD_HEIGHT - len(lines)) // 2, lines)

    def draw_player(self, felt: Felt, player: int, place: Seat) -> None:
        """A player and the card that he has laid before him; the one that takes the trick stands out."""
        said = self._beside if place.beside else self._above_or_below
        felt.put_player(place, said(player, place), _SIDE_ROW)
        card = self._card(player)
        if card is not None:
            over = taken(self.part)
            style = "" if over is None else "bold" if over["winner"] == self.name(player) else "dim"
            row = {"top": 0, "bottom": 2 * _CARD_HEIGHT}.get(place.edge, _CARD_HEIGHT)
            face = card_words(card, self.pen.glyphs)
            felt.put_inside(row, boxed(face, self.pen.glyphs, style), place.edge)

    def facts(self, player: int) -> list[Text]:
        """What he is and has said, and his cards."""
        card = self._card(player)
        letters = card_letters(card, self.pen.glyphs) if card is not None else None
        return card_facts(self._marks(player), letters, self._hand(player), self._figures(player))

    def _above_or_below(self, seat: int, place: Seat) -> list[Text]:
        """A player at a long edge, in up to three lines, the hand towards the table."""
        between = self.pen.between
        said = Text(", ").join(self._marks(seat))
        room = place.width - (said.cell_len + len(between) if said else 0)
        name = self.marked(seat, min(room, 24))
        who = [Text.assemble(name, between, said) if said else name]
        if figures := self._figures(seat):
            who.append(self.pen.line(between.join(figures), place.width))
        hand = [Text(" ").join(cards)] if (cards := self._hand(seat)) else []
        return who + hand if place.edge == "top" else hand + who

    def _beside(self, seat: int, place: Seat) -> list[Text]:
        """A player at a side of the table: each thing on a line of its own."""
        said = Text(", ").join(self._marks(seat))
        hand = self._hand(seat)
        rows = [hand[first : first + _IN_A_ROW] for first in range(0, len(hand), _IN_A_ROW)]
        return [
            self.marked(seat, place.width),
            *(self.pen.wrap(said, place.width, 3) if said else ()),
            *(self.pen.line(figure, place.width) for figure in self._figures(seat)),
            *(Text(" ").join(row) for row in rows),
        ]

    def _marks(self, seat: int) -> list[Text]:
        name = self.name(seat)
        left = [Text("has left", "red")] if name in self._gone else []
        return left + marks(self.part, name)

    def _figures(self, seat: int) -> list[str]:
        """A player's account, if it was told (a bot's never is), and his points, once there are any."""
        name = self.name(seat)
        figures = [f"account {self._accounts[name]}"] if name in self._accounts else []
        if self.part.get("tricks"):
            points = self.part.get("points", {}).get(name, "?")
            figures.append(f"{points} point" if points == 1 else f"{points} points")
        return figures

    def _card(self, seat: int) -> str | None:
        """The card that a player has laid before him."""
        card: str | None = self.part.get("table", {}).get(str(seat))
        return card

    def _hand(self, seat: int) -> list[Text]:
        """The cards that a player holds: the faces that are known, and the backs of the others."""
        glyphs = self.pen.glyphs
        left = cards_left(self.part, seat)
        known = self.part.get("private", {}).get(self.name(seat), {}).get("hand")
        if known is not None:
            faces = [card_letters(card, glyphs) for card in sorted_hand(known, self.part.get("mode"))]
            hidden = (left or 0) - len(faces)
            return [*faces, Text(glyphs.back * hidden)] if hidden > 0 else faces
        if left is None:
            return [Text("? cards")]
        return [Text(f"{glyphs.back * left} {left} card" + "s" * (left > 1))] if left > 0 else []

    def _besides(self) -> list[Text]:
        """What stands below the table: the last trick, and who else is there."""
        lines = [] if self.part else [Text("no round yet")]
        if unknown := not_known(self.part):
            lines.append(self.pen.line(unknown, self.width))
        trick = last_trick(self.part, self.pen.name, self.pen.glyphs)
        if trick is not None:
            lines += self.pen.wrap(trick, self.width, 1)
        seated = self._names if self.part else ()
        here = sorted({*self.scene.state.get("players", {})} - {*self._gone, *seated})
        gone = [name for name in self._gone if name not in seated]
        for title, names in (("not in this round: " if self.part else "here: ", here), ("left: ", gone)):
            if names:
                lines.append(self.pen.listing(title, names, self._accounts, self.width))
        return lines
