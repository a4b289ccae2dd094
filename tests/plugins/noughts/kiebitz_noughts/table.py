"""Table of noughts and crosses: players, turn, and board."""

from __future__ import annotations

from kiebitz.protocol import (
    Direction,
    Event,
    Findings,
    Game,
    Ids,
    Message,
    MessageType,
    SimpleTable,
    Stream,
    TableInfo,
    label,
)
from kiebitz_noughts.grammar import GRAMMAR


class NoughtsTable(SimpleTable):
    """The table of one server, with one game at a time.

    A game whose beginning was not captured is not checked.
    """

    rules = GRAMMAR.rules

    def __init__(self, info: TableInfo, ids: Ids, findings: Findings) -> None:
        super().__init__(info, ids, findings)
        self._asking: dict[int, str] = {}
        """Requested names by stream, until the server accepts them."""
        self._names: dict[int, str] = {}
        self._game: Game | None = None
        self._squares: list[str | None] = []
        self._players: list[str] = []
        """The player whose turn it is, then the other; empty if that is not known."""

    def doubt(self, stream: Stream, direction: Direction, ts_ns: int, is_gap: bool) -> None:
        super().doubt(stream, direction, ts_ns, is_gap)
        if direction == "s2c" and self._game is not None:
            self._players = []
            self.context.set_state({"unknown": ["turn", "squares"]}, "games", str(self._game.id))

    def disconnected(self, stream: Stream, ts_ns: int) -> None:
        self._asking.pop(stream.id, None)
        self._leaves(stream, ts_ns)

    def handle(self, message: Message, row: MessageType) -> Event | None:
        fields = {key: label(value) for key, value in message.fields.items()}
        stream, now = message.stream, message.ts_ns
        match row.name:
            case "HELLO":
                self._asking[stream.id] = fields["name"]
            case "WELCOME" if stream.id in self._asking:
                player = self._names[stream.id] = self._asking.pop(stream.id)
                self.context.set_state({}, "players", player)
                return self.context.emit("joined", now, player, {"name": player})
            case "BYE":
                return self._leaves(stream, now)
            case "START":
                self._end(None, now)
                self._players, self._squares = [fields["x"], fields["o"]], [None] * 9
                self._game = self.context.open_game(f"{fields['x']} – {fields['o']}", now)
                self._show(self._game)
                return self.context.emit("started", now, None, fields, self._game)
            case "MARK":
                self._mark(message, fields["name"], int(fields["square"]) - 1)
                return self.context.emit("marked", now, fields["name"], fields, self._game)
            case "WON" | "DRAW":
                game, winner = self._game, fields.get("name")
                self._end(winner, now)
                return self.context.emit("won" if winner else "drawn", now, winner, fields, game)
        return None

    def _mark(self, message: Message, player: str, square: int) -> None:
        if self._game is None or not self._players:
            return
        turn, other = self._players
        if player != turn:
            self.context.report_violation(message, "out-of-turn", player=player, turn=turn)
        if self._squares[square] is not None:
            self.context.report_violation(message, "square-taken", holder=self._squares[square])
        self._squares[square], self._players = player, [other, turn]
        self._show(self._game)

    def _show(self, game: Game) -> None:
        self.context.set_state({"turn": self._players[0], "squares": [*self._squares]}, "games", str(game.id))

    def _end(self, winner: str | None, now: int) -> None:
        if self._game is not None:
            self._game.ended_ns, self._game.result = now, {"winner": winner}
            self.context.changed_game(self._game)
            self.context.set_state(None, "games", str(self._game.id))
        self._game, self._players = None, []

    def _leaves(self, stream: Stream, now: int) -> Event | None:
        name = self._names.pop(stream.id, None)
        if name is None:
            return None
        self.context.set_state(None, "players", name)
        return self.context.emit("left", now, name, {"name": name})
