"""A table of licitovaný mariáš: three players around it, the game that is played, the cards before them.

The order of play moves on by one from hand to hand. Here everybody keeps his place: at the bottom sits the
player with the lowest id whose hand is known, the others follow clockwise. Between hands there are the groups
with their money; of a login server, who is there.
"""

from __future__ import annotations

from kiebitz.cli.render.text.canvas import boxed, shorten, suit_legend
from kiebitz.cli.render.text.cgml_groups import group_lines, group_name, last_hand
from kiebitz.cli.render.text.cgml_words import (
    around,
    bidding_line,
    card_face,
    card_letters,
    card_list,
    ending,
    game_words,
    laid_down,
    last_trick,
    marks,
    not_known,
    on_table,
    sorted_hand,
    story,
    taken,
    tricks_words,
)
from kiebitz.cli.render.text.felt import Felt
from kiebitz.cli.render.text.pen import Pen
from kiebitz.cli.render.text.scene import Scene
from kiebitz.cli.render.text.seating import Seat, clockwise
from kiebitz.cli.render.text.table import TableDrawing, card_facts
from kiebitz.cli.terminal.screen import Text
from kiebitz.dissectors.protocols.cgml.names import called, player_names
from kiebitz.dissectors.protocols.cgml.words import SUIT_WORDS, level_words
from kiebitz.services.evidence.cells import cell_len

_CARD_WIDTH = 6
"""Beside its sign."""

_CARD_HEIGHT = 3
_GAME_ROWS = 3
"""What is played, how often it is doubled, the talon."""

_IN_A_ROW = 4
"""Cards of a hand that stand side by side beside the table, at the most."""

_SAID_LINES = 2


class CgmlDrawing(TableDrawing[int | None]):
    """18 rows high; players are ids, from the bottom one on, None for one who is not known."""

    SEAT_ROWS = 3
    FELT_ROWS = _GAME_ROWS + 1 + 2 * _CARD_HEIGHT
    TOP = False

    def __init__(self, scene: Scene, pen: Pen, width: int) -> None:
        super().__init__(scene, pen, width)
        self._names = player_names(scene.state)
        pen.introduce(self._names)
        pen.names = [self._names.get(player, player) for player in pen.names]
        self._group: str | None = self.part.get("group")
        self._money: dict[str, int] = scene.state.get("groups", {}).get(self._group, {}).get("money", {})
        self._ending = ending(self.events)
        self.players = around(self.part)
        self.to_move = self.part.get("turn") if self._ending is None else None

    def lines(self) -> list[Text]:
        """The table, or how the last hand ended; below it the groups."""
        if self.part:
            lines = [*self.table(), *self._below_the_table()]
        else:
            lines = last_hand(self.scene.events, self._names, self.width, self.pen)
        lines += group_lines(self.scene.state, self._names, self._group, self.width, self.pen)
        return lines or [self.pen.line("nobody is here yet", self.width)]

    def around(self) -> list[int | None]:
        """The players as they are drawn."""
        return clockwise(self.players, 0)

    def name(self, player: int | None) -> str:
        """What a player is called."""
        return called(player, self._names)

    def title(self) -> str:
        """The group and the hand."""
        return f"group {group_name(self._group)}{self.pen.between}hand {self.part.get('hand', '?')}"

    def remark(self) -> str:
        """What the cards' signs mean."""
        return suit_legend(SUIT_WORDS.values(), self.pen.glyphs)

    def headlines(self) -> list[Text]:
        """The game, and what is going on."""
        return [*filter(None, self._game()), self.story()]

    def story(self) -> Text:
        """What is going on."""
        return story(self.part, self.events, self._say, self.pen.words, self.pen.glyphs)

    def draw_middle(self, felt: Felt) -> None:
        """The game, and what is going on, amid the cards."""
        felt.put_inside(0, self._game())
        card = _CARD_WIDTH + cell_len(self.pen.glyphs.suits[0])
        room = min(40, felt.seats.felt - 2 * (card + 3))
        felt.put_inside(_GAME_ROWS + 1, self.pen.wrap(self.story(), room, _CARD_HEIGHT))

    def draw_player(self, felt: Felt, player: int | None, place: Seat) -> None:
        """A player and the card that he has laid before him; the one that has taken the trick stands out."""
        felt.put_player(place, (self._beside if place.beside else self._below)(player, place), 0)
        card = self._card(player)
        if card is not None:
            over = taken(self.part)
            style = "" if over is None else "bold" if over["winner"] == player else "dim"
            row = self.FELT_ROWS - _CARD_HEIGHT * (2 if place.beside else 1)
            face = card_face(card, self.pen.glyphs)
            felt.put_inside(row, boxed(face, self.pen.glyphs, style), place.edge)

    def facts(self, player: int | None) -> list[Text]:
        """What he is and has said, and his cards."""
        card = self._card(player)
        letters = card_letters(card, self.pen.glyphs) if card is not None else None
        return card_facts(self._marks(player), letters, self._cards(player), self._figures(player))

    def _say(self, player: int | None) -> Text:
        return self.pen.name(self.name(player))

    def _game(self) -> list[Text]:
        """What is played, how often it is doubled, and the talon: a line for each, which may be empty."""
        part, glyphs = self.part, self.pen.glyphs
        talon: Text | str | None = None
        declarer = part.get("private", {}).get(str(part.get("declarer")), {})
        if "talon" in declarer:
            talon = card_list(declarer["talon"], glyphs)
        elif "talon" in part:
            talon = shorten(glyphs.back * part["talon"], 12, glyphs)
        return [
            game_words(part, glyphs),
            Text(level_words(part.get("flek", "1"), glyphs.times), "bold"),
            Text.assemble(("talon ", "dim"), talon) if talon is not None else Text(),
        ]

    def _below_the_table(self) -> list[Text]:
        """What was bid and played."""
        said = (
            bidding_line(self.part, self._say, self.pen.glyphs),
            laid_down(self.part, self._say, self.pen.glyphs),
            last_trick(self.part, self._say, self.pen.glyphs),
            not_known(self.part),
        )
        return [
            line for text in said if text is not None for line in self.pen.wrap(text, self.width, _SAID_LINES)
        ]

    def _below(self, player: int | None, place: Seat) -> list[Text]:
        """The player at the bottom, his hand towards the table."""
        said = Text(self.pen.between).join([Text(), *self._marks(player)])
        return [
            # At both sides there is nothing any more.
            *self.pen.wrap(Text(" ").join(self._cards(player)), self.width, 1),
            self.marked(player, 24) + said,
            self.pen.line(self.pen.between.join(self._figures(player)), place.width),
        ]

    def _beside(self, player: int | None, place: Seat) -> list[Text]:
        """A player at a side of the table: each thing on a line of its own."""
        lines = [
            self.marked(player, place.width),
            *self._marks(player),
            *(self.pen.line(figure, place.width) for figure in self._figures(player)),
            *_in_columns(self._cards(player), place.width),
        ]
        return lines[: self.FELT_ROWS + 2]

    def _marks(self, player: int | None) -> list[Text]:
        return marks(self.part, player) if player is not None else []

    def _figures(self, player: int | None) -> list[str]:
        """Return a player's id, by which messages name the player, tricks, and money won or lost."""
        if player is None:
            return []
        figures = [f"id {player}"]
        if tricks := tricks_words(self.part, player):
            figures.append(tricks)
        end = self._ending
        if end is not None and end.kind == "result" and str(player) in end.data["money"]:
            figures.append(f"this hand {end.data['money'][str(player)]:+d}")
        if str(player) in self._money:
            figures.append(f"money {self._money[str(player)]}")
        return figures

    def _card(self, player: int | None) -> str | None:
        """The card that a player has laid before him."""
        return on_table(self.part).get(player) if player is not None else None

    def _cards(self, player: int | None) -> list[Text]:
        """The cards that a player holds: their faces if they are known, or else their backs."""
        known = self.part.get("private", {}).get(str(player), {}).get("hand")
        if known is not None:
            return [card_letters(card, self.pen.glyphs) for card in sorted_hand(known, self.part)]
        left = self.part.get("hands", {}).get(str(player))
        if left is None:
            return [Text("? cards")]
        backs = shorten(self.pen.glyphs.back * left, 12, self.pen.glyphs)
        return [Text(f"{backs} {left}")] if left > 0 else []


def _in_columns(cards: list[Text], width: int) -> list[Text]:
    """A hand in rows of equal width, its cards below each other."""
    widest = max((card.cell_len for card in cards), default=0)
    for card in cards:
        card.pad_right(widest - card.cell_len)
    across = max(1, min(_IN_A_ROW, (width + 1) // (widest + 1)))
    rows = [Text(" ").join(cards[first : first + across]) for first in range(0, len(cards), across)]
    for row in rows:
        row.pad_right(rows[0].cell_len - row.cell_len)
    return rows
