"""A table with its players around it, or a list of them where there is no room for it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from kiebitz.cli.render.text.felt import Felt
from kiebitz.cli.render.text.pen import Pen
from kiebitz.cli.render.text.picture import Drawing
from kiebitz.cli.render.text.scene import Scene
from kiebitz.cli.render.text.seating import FELT_ROWS, SEAT_ROWS, Seat, seating
from kiebitz.cli.terminal.screen import Text

_LISTED_LINES = 5

_Player = TypeVar("_Player")
"""Who sits there: a name, a seat, an id."""


class TableDrawing(Drawing, Generic[_Player]):
    """What tables share; a game's own class says who sits there, and what is written where.

    `number` and `part` are those of the game that is drawn, both empty where none is on, and `events` are
    its latest.
    """

    SEAT_ROWS = SEAT_ROWS
    FELT_ROWS = FELT_ROWS
    TOP = True
    """Whether somebody sits at the top edge."""

    players: Sequence[_Player]
    """In the order of play; they are listed in it, too."""

    to_move: _Player | None

    def __init__(self, scene: Scene, pen: Pen, width: int) -> None:
        super().__init__(scene, pen, width)
        self.number, self.part = scene.game()
        self.events = [event for event in scene.events if str(event.game_id) == self.number]

    def around(self) -> Sequence[_Player]:
        """The players as they sit, clockwise from the first one at the top edge."""
        return self.players

    def table(self) -> list[Text]:
        """The table, or the list."""
        seats = seating(len(self.players), self.width, self.SEAT_ROWS, self.FELT_ROWS, self.TOP)
        if seats is None:
            return self.listed()
        felt = Felt(seats, self.title(), self.remark(), self.pen.glyphs)
        self.draw_middle(felt)
        for player, place in zip(self.around(), seats.seats, strict=True):
            self.draw_player(felt, player, place)
        return felt.lines()

    def listed(self) -> list[Text]:
        """The players below each other."""
        told = self.headlines()
        for player in self.players:
            facts = self.facts(player)
            name = self.marked(player, min(self.width, 24))
            told.append(Text.assemble(name, ": " if facts else "", Text(", ").join(facts)))
        lines = [self.pen.line(self.title(), self.width, "bold")]
        for text in told:
            lines += self.pen.wrap(text, self.width, _LISTED_LINES)
        if remark := self.remark():
            lines.append(self.pen.line(remark, self.width))
        return lines

    def marked(self, player: _Player, width: int) -> Text:
        """A player's name, marked if it is his turn."""
        return self.pen.marked(self.name(player), player is not None and player == self.to_move, width)

    @abstractmethod
    def name(self, player: _Player) -> str:
        """What a player is called."""

    @abstractmethod
    def title(self) -> str:
        """What stands at the table's upper edge."""

    def remark(self) -> str:
        """What stands at its lower edge: what is not known."""
        return ""

    @abstractmethod
    def story(self) -> Text:
        """What is going on."""

    @abstractmethod
    def draw_middle(self, felt: Felt) -> None:
        """Draw what is everybody's."""

    @abstractmethod
    def draw_player(self, felt: Felt, player: _Player, place: Seat) -> None:
        """Draw a player, and what is before him."""

    def headlines(self) -> list[Text]:
        """What stands above the list of players."""
        return [self.story()]

    def facts(self, player: _Player) -> list[Text]:
        """What the list says of a player."""
        return []


def card_facts(marks: list[Text], card: Text | None, hand: list[Text], figures: list[str]) -> list[Text]:
    """What a list says of a player who has cards, one of them on the table."""
    facts = [*marks]
    if card is not None:
        facts.append(card + Text(" on the table"))
    if hand:
        facts.append(Text("holds ") + Text(" ").join(hand))
    return [*facts, *map(Text, figures)]
