"""The table of Nim: no message names the player who takes matches, as the two take turns."""

from __future__ import annotations

from kiebitz.protocol import Event, Findings, Game, Ids, Message, MessageType, SimpleTable, TableInfo


class NimTable(SimpleTable):
    """The table of one server, with one game at a time."""

    def __init__(self, info: TableInfo, ids: Ids, findings: Findings) -> None:
        super().__init__(info, ids, findings)
        self._game: Game | None = None
        self._left = 0
        self._turn = ("", "")
        """The player whose turn it is, then the other."""

    def handle(self, message: Message, row: MessageType) -> Event | None:
        fields = message.fields
        if row.name == "START":
            self._turn, self._left = (fields["first"], fields["second"]), fields["matches"]
            self._game = self.context.open_game(" – ".join(self._turn), message.ts_ns)
            for name in self._turn:
                self.context.set_state({}, "players", name)
            self._show()
            return self.context.emit_of(
                message, "started", None, {"first": fields["first"], "second": fields["second"]}, self._game
            )
        if row.name != "TAKEN" or self._game is None:
            return None
        if fields["count"] > self._left:
            self.context.report_violation(message, "too-many", count=fields["count"], left=self._left)
        self._left = max(self._left - fields["count"], 0)
        name, other = self._turn
        self._turn = other, name
        self._show()
        data = {"name": name, "count": fields["count"], "left": self._left}
        event = self.context.emit_of(message, "taken", name, data, self._game)
        if not self._left:
            self._end(name, message.ts_ns)
        return event

    def _show(self) -> None:
        self.context.set_state(self._turn[0], "turn")
        self.context.set_state(self._left, "heap")

    def _end(self, winner: str, now: int) -> None:
        game, self._game = self._game, None
        if game is not None:
            game.ended_ns, game.result = now, {"winner": winner}
            self.context.changed_game(game)
            self.context.emit("won", now, winner, {"name": winner}, game)
