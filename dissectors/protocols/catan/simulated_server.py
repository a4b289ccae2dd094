"""A simulated Catan server: connections, lobby and chat; its game is in `simulated_game.py`."""

from __future__ import annotations

from collections.abc import Collection
from itertools import count
from typing import Any

from kiebitz.dissectors.conformance.bots import Disconnect, SendMessage, SimulatedServer
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.protocols.catan.simulated_game import SimulatedGame
from kiebitz.dissectors.protocols.catan.simulated_trade import RequestRefused
from kiebitz.dissectors.protocols.catan.words import FARBEN

_MIN_PLAYERS, _MAX_PLAYERS = 3, 4


class CatanServer(SimulatedServer):
    """A simulated Catan server that begins once all connected players, at least `players`, are ready."""

    points = 10
    """Number of points that win a game."""

    def __init__(self, players: int = _MIN_PLAYERS, seed: int = 1, games: int = 0) -> None:
        super().__init__(max(players, _MIN_PLAYERS), seed, games)
        self.statuses: dict[int, str] = {}
        self._numbers_at: dict[int, int] = {}
        """The number of each player, by connection."""
        self._ids = count(1)
        self._names: dict[int, str] = {}
        self._colours: dict[int, str] = {}
        self._shown: dict[int, dict[str, Any]] = {}
        self.game: SimulatedGame | None = None

    def _client_connected(self, connection: int, address_index: int) -> None:
        self._send_to(connection, "Hallo", Version="Kiebitz 1.0 (Probe)", Protokoll="1.0")

    def _client_disconnected(self, connection: int) -> None:
        player = self._numbers_at.pop(connection, None)
        if player is None:
            return
        self.statuses[player] = "Verbindung verloren"
        self._update()
        for known in (self.statuses, self._names, self._colours, self._shown):
            known.pop(player, None)
        if self.game is not None:
            winner = max(self.statuses, key=self.game.points, default=player)
            self._end("Die Verbindung zu einem Spieler ist verloren.", winner)

    def _receive(self, connection: int, name: str, fields: Fields) -> None:
        player = self._numbers_at.get(connection)
        if player is None:
            if name == "Hallo":
                self._join(connection)
            return
        try:
            self._request(player, name, fields)
        except RequestRefused as refusal:
            self._send_to(connection, "Fehler", Meldung=str(refusal))
            return
        self._update()
        self._send_to(connection, "OK")
        game = self.game
        ready = [self.statuses[one] == "Wartet auf Spielbeginn" for one in self._numbers_at.values()]
        if game is not None and game.winner is not None:
            name_of = self._names.get(game.winner, str(game.winner))
            self._end(f"Spieler {name_of} hat das Spiel gewonnen.", game.winner)
        elif game is None and len(ready) >= self.players and all(ready):
            self._begin()

    def _request(self, player: int, name: str, fields: Fields) -> None:
        match name:
            case "Chatnachricht senden":
                self.broadcast("Chatnachricht", Absender=player, Nachricht=fields["Nachricht"])
            case "Spieler" if self.statuses[player] == "Spiel starten":
                self._names[player] = fields.get("Name", self._names.get(player, ""))
                self._colours[player] = fields.get("Farbe", self._colours.get(player, FARBEN[0]))
            case "Spiel starten" if self.statuses[player] == "Spiel starten":
                self._make_ready(player)
            case _ if self.game is not None:
                self.game.request(player, name, fields)
            case _:
                raise RequestRefused(f"{name} geht jetzt nicht")

    def _join(self, connection: int) -> None:
        if self.game is not None or len(self._numbers_at) >= _MAX_PLAYERS:
            self._send_to(connection, "Fehler", Meldung="Das Spiel hat schon begonnen, oder es sind alle da")
            self._queue(Disconnect(connection))
            return
        player = next(self._ids)
        self._numbers_at[connection] = player
        self.statuses[player] = "Spiel starten"
        self._send_to(connection, "Willkommen", id=player)
        for other in self.statuses:
            if other != player:
                self._send_to(connection, "Statusupdate", Spieler=self._spieler(other, is_open=False))
        self._update()

    def _make_ready(self, player: int) -> None:
        others = [other for other in self.statuses if self.statuses[other] == "Wartet auf Spielbeginn"]
        if self._colours.get(player) in (None, *(self._colours[other] for other in others)):
            raise RequestRefused("Farbe bereits vergeben")
        self.statuses[player] = "Wartet auf Spielbeginn"

    def _begin(self) -> None:
        self.game = SimulatedGame(self, [*self._numbers_at.values()])
        self.broadcast("Spiel gestartet", Karte=self.game.karte)
        self.game.begin()
        self._update()

    def _end(self, why: str, winner: int) -> None:
        self.game = None
        self.broadcast("Spiel beendet", Nachricht=why, Sieger=winner)
        self.games += 1
        if self.is_finished:
            for connection in self._numbers_at:
                self._queue(Disconnect(connection))
            return
        self.statuses = dict.fromkeys(self.statuses, "Spiel starten")
        self._update()

    def broadcast(self, name: str, shown_to: Collection[int] | None = None, /, **fields: Any) -> None:
        """Queue a message to all clients; hidden cards are shown only to the players `shown_to`."""
        for connection, player in self._numbers_at.items():
            is_open = shown_to is None or player in shown_to
            self._queue(SendMessage(name, fields if is_open else _hidden(fields), connection))

    def _update(self) -> None:
        for player in [*self.statuses]:
            now = self._spieler(player, is_open=True)
            if now != self._shown.get(player):
                self._shown[player] = now
                for connection, other in self._numbers_at.items():
                    shown = now if other == player else self._spieler(player, is_open=False)
                    self._send_to(connection, "Statusupdate", Spieler=shown)

    def _spieler(self, player: int, is_open: bool) -> dict[str, Any]:
        """Return a player's status; it is complete only for the player itself."""
        shown: dict[str, Any] = {"id": player, "Status": self.statuses[player]}
        if player in self._names:
            shown |= {"Name": self._names[player], "Farbe": self._colours[player]}
        game = self.game
        if game is None or player not in game.owners:
            return shown
        owner = game.owners[player]
        shown |= {
            "Siegpunkte": game.points(player) if is_open else game.seen_points(player),
            "Rohstoffe": {kind: number for kind, number in owner.hand.items() if number},
            "Rittermacht": owner.knights,
            "Entwicklungskarten": {card: number for card, number in owner.cards.items() if number},
            "Größte Rittermacht": game.army == player,
            "Längste Handelsstraße": game.longest == player,
        }
        return shown if is_open else _hidden(shown)


def _hidden(fields: Fields) -> dict[str, Any]:
    hidden = dict(fields)
    for key in ("Rohstoffe", "Entwicklungskarten"):
        if key in hidden:
            hidden[key] = sum(hidden[key].values())
    if "Entwicklungskarte" in hidden:
        hidden["Entwicklungskarte"] = 1
    return hidden
