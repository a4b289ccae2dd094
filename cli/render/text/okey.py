"""An Okey table: four players with their racks, and between each two the exchange stack from one to the next.

Everybody keeps his place: at the bottom sits the first whose rack is known, the others follow clockwise in
the order of play. Without a game there are the lobbies and who is in them.
"""

from __future__ import annotations

from typing import Any

from kiebitz.cli.render.text.canvas import boxed
from kiebitz.cli.render.text.felt import Felt
from kiebitz.cli.render.text.okey_tiles import (
    IN_A_ROW,
    TILE_WIDTH,
    laid_out,
    legend,
    rack,
    rack_on_end,
    tile_face,
    tile_words,
)
from kiebitz.cli.render.text.okey_words import counted, not_known, seat_names, seat_to_move, story, tile_count
from kiebitz.cli.render.text.pen import Pen
from kiebitz.cli.render.text.scene import Scene
from kiebitz.cli.render.text.seating import Edge, Seat, clockwise
from kiebitz.cli.render.text.table import TableDrawing
from kiebitz.cli.terminal.screen import Text
from kiebitz.dissectors.protocols.okey.tiles import SEATS, Slots

_STACK_HEIGHT = 3
_LABEL = 16
_STORY_ROWS = 4
_MOST_LOBBIES = 12

_STACKS: dict[Edge, tuple[Edge, Edge]] = {
    "top": ("top", "left"),
    "right": ("top", "right"),
    "bottom": ("bottom", "right"),
    "left": ("bottom", "left"),
}
"""In which corner the stack lies from which a player draws: where the player before him can reach it."""


class OkeyDrawing(TableDrawing[int]):
    """21 rows high; players are seats."""

    SEAT_ROWS = 3
    FELT_ROWS = IN_A_ROW
    """A rack on end stands beside the felt."""

    players = range(SEATS)

    def __init__(self, scene: Scene, pen: Pen, width: int) -> None:
        super().__init__(scene, pen, width)
        self._names = seat_names(self.part)
        pen.introduce(self._names)
        self.to_move = seat_to_move(self.part, self.events)
        self._stacks: Slots | None = self.part.get("exchange")
        """The topmost tile of each exchange stack."""

    def lines(self) -> list[Text]:
        """The table, or the lobbies."""
        return [*self.table(), *self._besides()] if self.part else self._lobbies()

    def around(self) -> list[int]:
        """The seats as they are drawn."""
        return clockwise(
            self.players, next((seat for seat in self.players if self._deck(seat) is not None), 0)
        )

    def name(self, player: int) -> str:
        """The name at a seat."""
        return self._names[player]

    def title(self) -> str:
        """The lobby."""
        return f"lobby {self.part.get('lobby', '?')}"

    def remark(self) -> str:
        """What is not known."""
        return not_known(self.part)

    def story(self) -> Text:
        """What is going on."""
        return story(self.part, self.events, self.pen.name, self.pen.glyphs)

    def draw_middle(self, felt: Felt) -> None:
        """The main stack, and what is going on."""
        empty = "drawn_game" in self.part
        back = Text((" " if empty else self.pen.glyphs.back) * TILE_WIDTH)
        label = Text.assemble(" ", ("main stack", "dim"))
        felt.put_inside(0, [*boxed(back, self.pen.glyphs, "dim"), label])
        lines = self.pen.wrap(self.story(), 40, _STORY_ROWS)
        felt.put_inside((self.FELT_ROWS - len(lines)) // 2, lines)

    def draw_player(self, felt: Felt, player: int, place: Seat) -> None:
        """A player with his rack, and the exchange stack from which he draws."""
        edge, side = _STACKS[place.edge]
        label = Text.assemble(("for ", "dim"), self.pen.name(self.name(player), _LABEL - 4))
        stack = boxed(self._topmost(player), self.pen.glyphs, "")
        if edge == "top":
            felt.put_inside(0, [*stack, label], side)
        else:
            felt.put_inside(self.FELT_ROWS - _STACK_HEIGHT - 1, [label, *stack], side)
        felt.put_player(place, (self._beside if place.beside else self._above_or_below)(player, place), 0)

    def _deck(self, seat: int) -> Slots | None:
        deck: Slots | None = self._private(seat).get("deck")
        return deck

    def _private(self, seat: int) -> dict[str, Any]:
        private: dict[str, Any] = self.part.get("private", {}).get(self.name(seat), {})
        return private

    def _topmost(self, seat: int) -> Text:
        """The topmost tile of an exchange stack, or that it is empty."""
        if self._stacks is None:
            return Text("?".center(TILE_WIDTH))
        return tile_face(self._stacks[seat], self.pen.glyphs)

    def _above_or_below(self, seat: int, place: Seat) -> list[Text]:
        """A player at a long edge, his rack towards the table."""
        count = counted(tile_count(self.part, seat))
        who = [Text.assemble(self.marked(seat, 24), f" {self.pen.glyphs.dot} {count}")]
        deck = self._deck(seat)
        drawn = self._private(seat).get("drawn")
        tiles = rack(deck, drawn, self.pen.glyphs) if deck is not None else self._hidden(seat, place.width)
        return who + tiles if place.edge == "top" else tiles + who

    def _beside(self, seat: int, place: Seat) -> list[Text]:
        """A player at a side of the table, his rack on end."""
        deck = self._deck(seat)
        drawn = self._private(seat).get("drawn")
        hidden = self._hidden(seat, place.width)
        tiles = rack_on_end(deck, drawn, self.pen.glyphs) if deck is not None else hidden
        count = counted(tile_count(self.part, seat))
        return [self.marked(seat, place.width), *tiles, self.pen.line(count, place.width)]

    def _hidden(self, seat: int, width: int) -> list[Text]:
        """A rack that nobody has seen: the backs of its tiles."""
        count = tile_count(self.part, seat)
        return [self.pen.line(self.pen.glyphs.back * count, width)] if count else []

    def facts(self, player: int) -> list[Text]:
        """His tiles, and the one that he can draw."""
        facts = [Text(counted(tile_count(self.part, player)))]
        deck = self._deck(player)
        if deck is not None:
            facts.append(laid_out(deck, self.pen.glyphs))
        if self._stacks is not None and (top := self._stacks[player]) is not None:
            facts[-1] += Text("; on the stack before him ") + tile_words(top, self.pen.glyphs)
        return facts

    def _besides(self) -> list[Text]:
        """What stands below the table: other players and games, and what the letters on the tiles mean."""
        lines = []
        players = self.scene.state.get("players", {})
        elsewhere = sorted({*players} - {*self._names})
        if elsewhere:
            where = {name: f"(lobby {about['lobby']})" for name, about in players.items() if "lobby" in about}
            lines.append(self.pen.listing("not in this game: ", elsewhere, where, self.width))
        games = self.scene.state.get("games", {})
        others = sorted({*games} - {self.number}, key=int)
        if others:
            lobbies = ", ".join(str(games[number].get("lobby", "?")) for number in others)
            lines.append(self.pen.line(f"other games: lobby {lobbies}", self.width, "dim"))
        return lines + self.pen.wrap(legend(self.pen.glyphs), self.width, 2)

    def _lobbies(self) -> list[Text]:
        """The lobbies with their players, and who is in none."""
        lobbies = self.scene.state.get("lobbies", {})
        lines = []
        for number in sorted(lobbies, key=int)[:_MOST_LOBBIES]:
            lines += self._lobby(number, lobbies[number])
        if len(lobbies) > _MOST_LOBBIES:
            lines.append(Text(f"and {len(lobbies) - _MOST_LOBBIES} more lobbies", "dim"))
        players = self.scene.state.get("players", {})
        outside = sorted(name for name, about in players.items() if "lobby" not in about)
        if outside:
            lines.append(self.pen.listing("in no lobby: ", outside, {}, self.width))
        return lines or [Text("nobody is here")]

    def _lobby(self, number: str, about: dict[str, Any]) -> list[Text]:
        ready = about.get("ready", ())
        players = [
            Text.assemble(self.pen.name(name), " (ready)" if name in ready else "")
            for name in about["players"]
            if name is not None
        ]
        line = Text(f"lobby {number}, {len(players)} of {SEATS}: ", "dim")
        return self.pen.wrap(Text.assemble(line, Text(", ").join(players)), self.width, SEATS)
