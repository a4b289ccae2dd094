"""A Mäxchen table: the players around it in the order of play, the cup and the dice, what is to be beaten.

Dice that only their roller knows are drawn in the colour of the cup; a roll that is not known stays under the
cup. What a gap has made unknown is a question mark.
"""

from __future__ import annotations

from typing import Any

from kiebitz.cli.render.text.canvas import DIE_HEIGHT, Canvas, boxed, cup, die
from kiebitz.cli.render.text.felt import Felt
from kiebitz.cli.render.text.maexchen_words import between, not_known, player_to_move, told
from kiebitz.cli.render.text.pen import NAME_IN_WORDS, Pen
from kiebitz.cli.render.text.scene import Scene
from kiebitz.cli.render.text.seating import Seat
from kiebitz.cli.render.text.table import TableDrawing
from kiebitz.cli.terminal.screen import LINE_BREAK, Text
from kiebitz.dissectors.protocols.maexchen.dice import MIA

_CUP = "#af875f"
_LISTED_WIDTH = 26


class MaexchenDrawing(TableDrawing[str]):
    """19 rows high where its players, who are names, fit around it."""

    def __init__(self, scene: Scene, pen: Pen, width: int) -> None:
        super().__init__(scene, pen, width)
        known = scene.state.get("players", {})
        watching = {name for name, about in known.items() if about.get("spectator")}
        self._watching = sorted(watching)
        self._scores: dict[str, int] = scene.state.get("scores", {})
        self.players = self.part.get("players", sorted({*known} - watching))
        self._absent = sorted({*known, *self._scores} - {*self.players} - watching)
        self.to_move = player_to_move(self.part)
        self._announced: dict[str, str] = self.part.get("announced", {})

    def lines(self) -> list[Text]:
        """The table, and who else is there."""
        lines = self.table()
        if self._absent:
            lines.append(self.pen.listing("not in this round: ", self._absent, self._scores, self.width))
        if self._watching:
            lines.append(self.pen.listing("watching: ", self._watching, {}, self.width))
        return lines

    def name(self, player: str) -> str:
        """The name itself."""
        return player

    def title(self) -> str:
        """The round that is on; nothing between rounds."""
        return self.pen.words(f"round {self.part.get('round', '?')}", 24).plain if self.part else ""

    def remark(self) -> str:
        """What is not known."""
        unknown = not_known(self.part)
        return f"? {unknown}" if unknown else ""

    def story(self) -> Text:
        """What is going on, or what became of the last round."""
        events, name, words = self.scene.events, self.pen.name, self.pen.words
        return told(self.part, events, name, words) if self.part else between(events, name, words)

    def draw_middle(self, felt: Felt) -> None:
        """The dice, and beside them what is going on."""
        dice = self._dice()
        width = dice[0].cell_len
        inner = felt.seats.felt - 2
        story = self.pen.wrap(self.story(), min(inner - width - 4, 40), DIE_HEIGHT)
        longest = max((line.cell_len for line in story), default=0)
        x = felt.seats.x + 1 + max(1, (inner - width - 2 - longest) // 2)
        y = felt.seats.y + 1 + (self.FELT_ROWS - DIE_HEIGHT) // 2
        felt.put_lines(x, y, dice)
        felt.put_lines(x + width + 2, y + (DIE_HEIGHT - len(story)) // 2, story)

    def draw_player(self, felt: Felt, player: str, place: Seat) -> None:
        """A player, and as his words the announcement to beat if it is his, where there is room for that."""
        crowded = place.beside and sum(other.edge == place.edge for other in felt.seats.seats) > 2
        bubble = player == self._announced.get("name") and not crowded
        felt.put_player(place, self._said(player, place, bubble))
        if bubble:
            self._draw_bubble(felt, place)

    def _draw_bubble(self, felt: Felt, place: Seat) -> None:
        """The announcement: at the long edges it stands on the table, at the sides above its player."""
        style = self._announcement_style()
        dice = self._announced["dice"]
        words = Text(self.pen.words(f"{dice} Mäxchen!" if dice == MIA else dice, 18).plain, style)
        bubble = boxed(words, self.pen.glyphs, style, "up" if place.edge == "top" else "down")
        above = place.y - len(bubble)
        y = {"top": felt.seats.y + 1, "bottom": above - 1}.get(place.edge, above)
        felt.put_lines(place.column(bubble[0].cell_len), y, bubble)

    def listed(self) -> list[Text]:
        """The players in columns, for a picture too narrow or players too many to sit around a table."""
        across = max(1, self.width // _LISTED_WIDTH)
        each = self.width // across
        seat = Seat("left", 0, 0, each, one_line=True)
        canvas = Canvas(-(-len(self.players) // across))
        for number, name in enumerate(self.players):
            canvas.put_lines(number % across * each, number // across, self._said(name, seat))
        dice = self._dice()
        room = self.width - dice[0].cell_len - 2
        if room < NAME_IN_WORDS:
            middle = self.pen.wrap(self.story(), self.width, DIE_HEIGHT)
        else:
            beside = Canvas(DIE_HEIGHT)
            beside.put_lines(0, 0, dice)
            beside.put_lines(dice[0].cell_len + 2, 0, self.pen.wrap(self.story(), room, DIE_HEIGHT))
            middle = beside.lines()
        remark = self.pen.line(self.remark(), self.width)
        return [Text(self.title(), "bold"), canvas.text(), LINE_BREAK.join(middle), remark]

    def _dice(self) -> list[Text]:
        """The dice as they lie there: open, known to their roller, or under the cup."""
        roller = self.part.get("rolling") or self._announced.get("name")
        secret = self._private(roller).get("dice")
        actual = self.part.get("actual")
        faces = (actual or secret or "").split(",")
        if len(faces) != 2:
            return cup("? ?" if roller is not None else "", self.pen.glyphs, _CUP)
        style = "bold" if actual is not None else _CUP
        left, right = (die(self.pen.words(face, 5).plain, self.pen.glyphs, style) for face in faces)
        return [Text(" ").join(pair) for pair in zip(left, right, strict=True)]

    def _private(self, name: str | None) -> dict[str, Any]:
        private: dict[str, Any] = self.part.get("private", {}).get(name, {})
        return private

    def _announcement_style(self) -> str:
        return "bold red" if self._private(self._announced["name"]).get("bluff") else "bold"

    def _said(self, name: str, place: Seat, bubble: bool = False) -> list[Text]:
        """A player's name, marked if it is his turn, and what there is to say of him."""
        doing = self._doing(name, bubble)
        # Before the first points are told nobody misses them.
        points = str(self._scores.get(name, "?")) if self._scores else ""
        if place.one_line:
            remark = doing if doing and name != self.to_move else Text(points)
            return [Text.assemble(self.marked(name, place.width - remark.cell_len - 1), " ", remark)]
        if points and not doing:
            points += " point" if points == "1" else " points"
        between_them = self.pen.between if points and doing else ""
        return [self.marked(name, place.width - 2), Text.assemble(points, between_them, doing)]

    def _doing(self, name: str, bubble: bool) -> Text:
        """What a player does, in a word or two; empty if he does nothing."""
        announces = self._announced.get("name") == name
        playing = self.part.get("phase") == "started"
        if name in self.part.get("lost", {}).get("names", ()):
            return Text("lost", "bold red")
        if playing and self.part.get("seer") == name:
            return Text("wants to see", "bold")
        if playing and self.part.get("rolling") == name:
            return Text("rolls", "bold")
        if announces and not bubble:
            return Text(f'"{self.pen.words(self._announced["dice"], 8)}"', self._announcement_style())
        if announces and self._private(name).get("bluff"):
            return Text("bluffs", "bold red")
        if name == self.to_move:
            return Text("next?" if "turn" in self.part.get("inferred", ()) else "to move", "bold")
        return Text("joins", "green") if self._private(name).get("joined") else Text()
