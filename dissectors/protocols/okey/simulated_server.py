"""A simulated Okey server: logins, lobbies, chat, and a game in each lobby."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from kiebitz.dissectors.conformance.bots import Disconnect, SimulatedServer
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.protocols.okey.tiles import COLOURS, DECK, HIGHEST, SEATS, counted, is_won, kind

_PACK = [f"{number}:{colour}" for number in range(1, HIGHEST + 1) for colour in COLOURS] * 2
_PACK += ["0:BLACK", "0:BLACK"]

_WINNING = [*(f"{number}:RED" for number in range(1, 8)), *(f"{number}:BLUE" for number in range(1, 8))]

_PING_S = 1.0
_MAX_LOBBIES = 64


class OkeyServer(SimulatedServer):
    """A simulated Okey server; a game begins in a lobby once its four players are ready."""

    def __init__(self, players: int = SEATS, seed: int = 1, games: int = 0) -> None:
        super().__init__(SEATS, seed, games)
        self.names: dict[int, str] = {}
        self._connected: set[int] = set()
        self._lobbies: dict[int, _Lobby] = {}
        self._at: dict[int, _Lobby] = {}
        self._finished: dict[int, str] = {}

    # Connections.

    def _client_connected(self, connection: int, address_index: int) -> None:
        self._connected.add(connection)
        self._ping(connection)

    def _ping(self, connection: int) -> None:
        if connection in self._connected:
            self._send_to(connection, "PING")
            self._schedule(_PING_S, partial(self._ping, connection))

    def _client_disconnected(self, connection: int) -> None:
        self._connected.discard(connection)
        self.names.pop(connection, None)
        lobby = self._at.pop(connection, None)
        if lobby is not None:
            lobby.leave(connection)

    def send(self, to: int, name: str, /, **fields: Any) -> None:
        """Queue a message to a client."""
        self._send_to(to, name, **fields)

    # Requests.

    def _receive(self, connection: int, name: str, fields: Fields) -> None:
        match name:
            case "LOGI" | "NAME":
                self._name(connection, name, fields["nickname"])
            case "PING":
                self._send_to(connection, "+PING")
            case "LPLA":
                self._send_to(connection, "+LPLA", playerlist=[*self.names.values()])
            case "LLPL":
                lobbies = [lobby.listing() for lobby in self._lobbies.values()]
                self._send_to(connection, "+LLPL", lobbieswithplayerlist=lobbies)
            case "LGAM":
                status = fields["gamestatus"]
                self._send_to(connection, "+LGAM", gamestatus=status, games=self._games(status))
            case "JLOB":
                self._join(connection, fields["n"])
            case "LOGO":
                self._send_to(connection, "+LOGO")
                self._queue(Disconnect(connection))
            case "CATC":
                self._chat(connection, fields)
            case "REDY" | "DRAW" | "PUTT" | "WINC":
                self._at[connection].handle_request(connection, name, fields)

    def _name(self, connection: int, request: str, wanted: str) -> None:
        others = {name for other, name in self.names.items() if other != connection}
        actual, number = wanted, 0
        while actual in others:
            number += 1
            actual = f"{wanted}_{number}"
        self.names[connection] = actual
        self._send_to(connection, f"+{request}", actualname=actual)

    def _games(self, status: str) -> list[dict[str, Any]]:
        lobbies = self._lobbies.values()
        if status == "o":
            return [{"lobby": one.number, "players": len(one.seats)} for one in lobbies if not one.is_on]
        if status == "r":
            return [{"lobby": one.number} for one in lobbies if one.is_on]
        return [{"lobby": number, "winner": winner} for number, winner in self._finished.items()]

    def _join(self, connection: int, number: int) -> None:
        lobby = self._lobbies.get(number)
        if lobby is None and len(self._lobbies) < _MAX_LOBBIES:
            lobby = self._lobbies[number] = _Lobby(self, number)
        may = lobby is not None and connection not in self._at and lobby.is_open
        if may and lobby is not None:
            self._at[connection] = lobby
            lobby.seats.append(connection)
        self._send_to(connection, "+JLOB", joinsuccessful=may)

    def _chat(self, connection: int, fields: Fields) -> None:
        scope, text = fields["messagetype"], fields["msg"]
        others = [other for other in self.names if other != connection]
        if scope == "l":
            others = [other for other in others if self._at.get(other) is self._at.get(connection)]
        elif scope == "w":
            whom = fields["whisperrecipient"]
            others = [other for other in self.names if self.names[other] == whom]
        for other in others:
            self._send_to(other, "CATS", messagetype=scope, msg=text, sender=self.names[connection])
        exists = {"nicknameexists": bool(others)} if scope == "w" else {}
        self._send_to(connection, "+CATC", **fields, **exists)

    def game_ended(self, lobby: int, winner: int | None) -> None:
        """Count a finished game."""
        self.games += 1
        if winner is not None:
            self._finished[lobby] = self.names.get(winner, "")
        if self.is_finished:
            for connection in self._connected:
                self._queue(Disconnect(connection))

    def deal(self, count: int) -> list[str]:
        """Return a number of tiles of the pack in random order."""
        return self.random.sample(_PACK, count)

    def first(self) -> int:
        """Return a random seat for the first turn."""
        return self.random.randrange(SEATS)


class _Lobby(msgspec.Struct, eq=False):
    """A lobby with four seats, and its game."""

    _host: OkeyServer
    number: int
    seats: list[int] = []
    is_on: bool = False
    _ready: set[int] = set()
    _decks: list[list[str]] = []
    _stacks: list[list[str]] = []
    _pile: list[str] = []
    _turn: int = 0

    @property
    def is_open(self) -> bool:
        """True if a seat is free."""
        return not self.is_on and len(self.seats) < SEATS

    def listing(self) -> dict[str, Any]:
        """Return the lobby's entry in lists of lobbies."""
        return {"lobby": self.number, "players": [self._host.names.get(one) for one in self.seats]}

    def leave(self, connection: int) -> None:
        """Remove a player: without one of the four there is no game."""
        self.seats.remove(connection)
        self._ready.discard(connection)
        if self.is_on:
            self._all("EMPT")
            self._end(None)

    def handle_request(self, connection: int, name: str, fields: Fields) -> None:
        """Process a player's request in the game."""
        seat = self.seats.index(connection)
        match name:
            case "REDY":
                self._host.send(connection, "+REDY")
                self._ready.add(connection)
                if not self.is_on and len(self._ready) == SEATS:
                    self._begin()
            case "DRAW":
                self._draw(connection, seat, fields["drawstack"])
            case "PUTT":
                self._put(connection, seat, fields["tile"], fields["deck"])
            case "WINC" if self.is_on:
                self._decks[seat] = [*_WINNING, "0:BLACK"][: len(self._decks[seat])]
                self._host.send(connection, "+WINC", deck=[*self._decks[seat]])

    def _all(self, name: str, /, **fields: Any) -> None:
        for connection in self.seats:
            self._host.send(connection, name, **fields)

    def _begin(self) -> None:
        self._pile = self._host.deal(len(_PACK))
        self._turn = self._host.first()
        self._stacks = [[] for _ in range(SEATS)]
        sizes = [DECK + (seat == self._turn) for seat in range(SEATS)]
        self._decks = [[self._pile.pop() for _ in range(size)] for size in sizes]
        self.is_on = True
        for seat, connection in enumerate(self.seats):
            self._host.send(connection, "STRT", startdeck=[*self._decks[seat]], playeridx=seat)

    def _status(self) -> None:
        tops = [stack[-1] if stack else None for stack in self._stacks]
        self._all("STAT", exchangestacks=tops, currentplayeridx=self._turn)

    def _draw(self, connection: int, seat: int, stack: str) -> None:
        may = self.is_on and seat == self._turn and len(self._decks[seat]) == DECK
        own = self._stacks[seat] if may else []
        if not may or (stack == "e" and not own):
            self._host.send(connection, "+DRAW", tile=None)
            return
        if stack == "m" and not self._pile:
            self._host.send(connection, "+DRAW", tile=None)
            self._all("EMPT")
            self._end(None)
            return
        tile = own.pop() if stack == "e" else self._pile.pop()
        self._decks[seat].append(tile)
        self._host.send(connection, "+DRAW", tile=tile)
        self._status()

    def _put(self, connection: int, seat: int, tile: str | None, deck: list[str | None]) -> None:
        left = [*self._decks[seat]] if self.is_on else []
        held = next((other for other in left if tile is not None and kind(other) == kind(tile)), None)
        if held is not None:
            left.remove(held)
        may = self.is_on and seat == self._turn and len(left) == DECK
        if tile is None or held is None or not may or counted(left) != counted(deck):
            self._host.send(connection, "+PUTT", valid=False, won=False)
            return
        self._decks[seat] = left
        self._turn = (seat + 1) % SEATS
        self._stacks[self._turn].append(tile)
        won = is_won(left)
        if won:
            self._all("PWIN", nickname=self._host.names[connection])
        self._host.send(connection, "+PUTT", valid=True, won=won)
        if won:
            self._end(connection)
        else:
            self._status()

    def _end(self, winner: int | None) -> None:
        self.is_on = False
        self._ready.clear()
        self._host.game_ended(self.number, winner)
