"""The context of the Catan table: players, the current game, its state, events and diagnostics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kiebitz.dissectors.game.connections import Connections
from kiebitz.dissectors.game.context import GameContext
from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.grammar.grammar import shortened
from kiebitz.dissectors.grammar.json.diagnostics import format_path
from kiebitz.dissectors.grammar.json.layouts import JsonRow
from kiebitz.dissectors.model import Event, Findings, Ids, TableInfo
from kiebitz.dissectors.protocols.catan.game import POINTS_TO_WIN, CatanGame, Player, shown_points
from kiebitz.dissectors.protocols.catan.grammar import CODEC, GRAMMAR
from kiebitz.dissectors.protocols.catan.ledger import Hand
from kiebitz.dissectors.protocols.catan.requests import ClientConnection
from kiebitz.dissectors.protocols.catan.words import KARTEN, ROHSTOFFE

MAX_COPY_DELAY_NS = 250_000_000
"""Maximum delay between copies: some servers use a thread per client, which may reorder them."""

_MAX_NAME_LENGTH = 200
_MAX_PLAYERS = 100
"""Maximum number of known players; no game has more than six."""

_MAX_REPORTS = 3
"""Maximum number of reports of one rule; an error that a server always makes is a habit."""


class CatanContext(GameContext):
    """The context of a Catan server's table: its players and games, for the handlers of its messages."""

    def __init__(self, info: TableInfo, ids: Ids, findings: Findings) -> None:
        super().__init__(info, ids, findings, GRAMMAR.rules)
        self.connections = Connections(ClientConnection)
        self.players: dict[int, Player] = {}
        """Connected players by number."""
        self.resumed_ns: int | None = None
        """Time of the first message of a connection after its latest gap, in nanoseconds."""
        self.game: CatanGame | None = None
        self._games = 0
        self._told: dict[str, int] = {}

    def known(self, number: int) -> Player:
        """Return a player as known outside games; an unknown number becomes a new player."""
        known = self.players.get(number)
        if known is None:
            if len(self.players) >= _MAX_PLAYERS:
                self._forget(next(iter(self.players.values())))
            known = self.players[number] = Player(number, self._unlike_others(number, None))
        return known

    def player(self, number: int) -> Player:
        """Return a player, from the current game if there is one."""
        known = self.known(number)
        game = self.game
        if game is None:
            return known
        in_game = game.players.get(number)
        if in_game is None:
            # The game's beginning was not recorded, or the server lets late players join.
            in_game = game.players[number] = Player(number, known.name, known.colour, known.status)
            self._put_player(in_game)
        return in_game

    def _forget(self, player: Player) -> None:
        del self.players[player.id]
        self.set_state(None, "players", player.name)
        if self.game is not None and self.game.players.pop(player.id, None) is not None:
            self.put_in(None, "players", str(player.id))
            self.put_in(None, "private", player.name)

    def rename(self, player: Player, name: str | None, colour: str | None) -> None:
        """Set a player's name and colour."""
        before = player.name
        player.name = self._unlike_others(player.id, name)
        player.colour = colour or player.colour
        if player.name != before:
            self.set_state(None, "players", before)
        self.put_lobby(player)

    def put_lobby(self, player: Player) -> None:
        """Add a connected player to the state."""
        shown = {"id": player.id, "colour": player.colour, "status": player.status}
        self.set_state(
            {key: value for key, value in shown.items() if value is not None}, "players", player.name
        )

    def _unlike_others(self, number: int, name: str | None) -> str:
        if not name:
            return f"player {number}"
        short = shortened(name, _MAX_NAME_LENGTH)
        taken = any(other.name == short and other.id != number for other in self.players.values())
        return f"{short} ({number})" if taken else short

    def name(self, number: int | None) -> str | None:
        """Return a player's name; None if there is no number, or it is no player's."""
        if number is None or number < 0:
            return None
        in_game = self.game.players.get(number) if self.game is not None else None
        known = in_game or self.players.get(number)
        return known.name if known is not None else f"player {number}"

    def begin(self, ts_ns: int, certain: bool) -> CatanGame:
        """Begin a game; `certain` is False if its beginning was not recorded."""
        self._games += 1
        opened = self.open_part(f"game {self._games}", ts_ns)
        game = self.game = CatanGame(*opened, players={}, certain=certain, in_setup=certain)
        self.players = {number: known for number, known in self.players.items() if not known.gone}
        for known in self.players.values():
            fresh = Player(known.id, known.name, known.colour, known.status)
            if certain:
                fresh.hand, fresh.cards = Hand(ROHSTOFFE, True), Hand(KARTEN, True)
                fresh.knights = 0
            game.players[known.id] = fresh
            self._put_player(fresh)
        if not certain:
            self.put_in(["board", "buildings", "robber"], "unknown")
        return game

    def count_points(self) -> dict[str, int]:
        """Store the players' points in the game's result; some servers send more of them after its end."""
        game = self.game
        if game is None or game.winner is None:
            return {}
        winner = game.players.get(game.winner)
        if winner is not None:
            self._add_shown_points(game, winner)
        points = {str(other.id): other.points for other in game.players.values() if other.points is not None}
        game.game.result = {"winner": game.winner, "points": points}
        self.changed_game(game.game)
        return points

    def _add_shown_points(self, game: CatanGame, winner: Player) -> None:
        """Add the points of the last move, which servers may no longer send in a status."""
        shown = shown_points(game, winner)
        if shown is None or winner.points is None or winner.points >= min(shown.points, POINTS_TO_WIN):
            return
        winner.points = shown.points
        self.put_player(winner, "points", shown.points)
        for holds, what in ((shown.has_road, "longest_road"), (shown.has_army, "largest_army")):
            if holds:
                self.put_in(winner.id, what)

    def explain_result(self) -> None:
        """Note a winner with too few points, once no further message can show them."""
        game = self.game
        if game is None or game.ending is None or game.winner is None:
            return
        observation, game.ending = game.ending, None
        winner = game.players.get(game.winner)
        if winner is not None and winner.points is not None and winner.points < POINTS_TO_WIN:
            self.report_violation_of(
                observation, "points-missing", player=winner.name, points=winner.points, needed=POINTS_TO_WIN
            )

    def abort(self, ts_ns: int, why: str) -> None:
        """End the current game without a winner, unless it has ended."""
        if self.game is not None:
            self.game.end(ts_ns, {"aborted": why})

    def leave_state(self) -> None:
        """Remove the current game from the state."""
        if self.game is not None:
            self.explain_result()
            self.game.remove()
            self.game = None

    def is_certain(self) -> bool:
        """Return True if everything sent to the players of the game was recorded."""
        game = self.game
        heard = {connection.player for connection in self.connections.values() if connection.certain}
        return game is not None and game.certain and heard >= {*game.players}

    def is_heard(self, number: int) -> bool:
        """Return True if everything sent to a player was recorded."""
        return any(
            connection.player == number and connection.certain for connection in self.connections.values()
        )

    def put_in(self, value: Any, *path: str) -> None:
        """Change the game's part of the state."""
        if self.game is not None:
            self.game.set_state(value, *path)

    def put_player(self, player: Player, what: str, value: Any) -> None:
        """Change a player's part of the state, if the player is in the game."""
        if self.game is not None and player.id in self.game.players:
            self.put_in(value, "players", str(player.id), what)

    def put_hand(self, player: Player) -> None:
        """Update a player's resources in the state (public total, private counts), and the bank."""
        self.put_player(player, "resources", player.hand.total)
        self.put_in(player.hand.as_json() or None, "private", player.name, "resources")
        if self.game is not None:
            bank = self.game.bank()
            for kind in ROHSTOFFE:
                self.put_in(bank.get(kind), "bank", kind)

    def put_cards(self, player: Player) -> None:
        """Update a player's development cards in the state."""
        self.put_player(player, "cards", player.cards.total)
        self.put_in(player.cards.as_json() or None, "private", player.name, "cards")

    def _put_player(self, player: Player) -> None:
        for what in ("name", "colour", "status", "points", "knights"):
            value = getattr(player, what)
            if value is not None:
                self.put_player(player, what, value)
        if player.hand.total is not None:
            self.put_hand(player)
        if player.cards.total is not None:
            self.put_cards(player)

    def emit_observed(
        self, observation: Observation, kind: str, player: Player | None, data: Mapping[str, Any]
    ) -> Event:
        """Emit an event; the first one of an observation becomes the event of its messages."""
        who = {"player": player.id, "name": player.name} if player is not None else {}
        game = self.game.game if self.game is not None else None
        actor = player.name if player is not None else None
        unknown = dict.fromkeys(GRAMMAR.events[kind].fields)
        event = self.emit(kind, observation.ts_ns, actor, {**unknown, **who, **data}, game)
        if observation.event is None:
            observation.event = event
        return event

    def report_violation_of(
        self, observation: Observation, key: str, /, *path: str | int, certain: bool = True, **values: Any
    ) -> None:
        """Report that the field at `path` violates a rule; a server's habits only a few times.

        A violation that is not `certain` counts as one of these, and is not reported. None is reported
        near the end of a gap, as messages may be out of order there: after the gap, a connection may receive
        messages earlier than the other connections, and its copies of those before are missing.
        """
        resumed_ns = self.resumed_ns
        if resumed_ns is not None and abs(observation.ts_ns - resumed_ns) < MAX_COPY_DELAY_NS:
            return
        row, rule = observation.row, self.rules[key]
        assert isinstance(row, JsonRow)
        if observation.message.direction == "s2c":
            told = self._told.get(rule.code, 0)
            if told >= (_MAX_REPORTS if rule.severity == "error" else 1):
                return
            self._told[rule.code] = told + 1
        if not certain:
            return
        part = format_path((row.name, *path)) if path else None
        at = CODEC.field_place(observation.frame, row, *path) if observation.frame else None
        self.report_violation(observation.message, key, at=at, part=part, clause=row.clause, **values)
