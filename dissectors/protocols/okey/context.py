"""The context of the table and of its parts: connections, players, lobbies with their players, and games.

The parts handle the messages: `lobby.py`, `deals.py`, `moves.py`, `status.py`.
"""

from __future__ import annotations

import msgspec

from kiebitz.dissectors.game.broadcast_dedup import EventLog
from kiebitz.dissectors.game.connections import Connections
from kiebitz.dissectors.game.context import GameContext
from kiebitz.dissectors.model import Findings, Ids, TableInfo
from kiebitz.dissectors.protocols.okey.game import ClientConnection, OkeyGame
from kiebitz.dissectors.protocols.okey.grammar import GRAMMAR
from kiebitz.dissectors.protocols.okey.tiles import SEATS, Slots

_MAX_OTHERS = 1000
"""Maximum number of lobbies known only from lists."""

RACE_NS = 2_000_000_000
"""Time within which real servers may deal repeatedly, if all players become ready at once."""
_DEALS = 4

_OVERTAKEN_NS = 200_000_000
"""Longest delay of a copy: a server sends to each client in a thread of its own."""

_CHAT_OVERTAKEN_NS = 2_000_000_000
"""Longest delay of a copy of a chat message, which clients may receive much later than others."""


class LobbyRoom(msgspec.Struct, eq=False):
    """A lobby: its players by index, the ready ones, and its games, the newest last."""

    number: int | None
    places: list[str | None] = msgspec.field(default_factory=lambda: [None] * SEATS)
    ready: list[str] = msgspec.field(default_factory=list)
    games: list[OkeyGame] = msgspec.field(default_factory=list)

    @property
    def game(self) -> OkeyGame | None:
        """The current game, or the latest one."""
        return self.games[-1] if self.games else None


class OkeyContext(GameContext):
    """An Okey server's players, lobbies and games, without the meaning of its messages."""

    def __init__(self, info: TableInfo, ids: Ids, findings: Findings) -> None:
        super().__init__(info, ids, findings, GRAMMAR.rules)
        self.log = EventLog(doubled=False, overtaken_ns=_OVERTAKEN_NS)
        self.connections = Connections(ClientConnection)
        self.lobbies: dict[int | None, LobbyRoom] = {}
        self.others: set[int] = set()
        """Lobbies known only from lists."""
        self.elsewhere: list[tuple[Slots, int]] = []
        """The latest statuses of lobbies without captured clients: the exchange stacks and the turn."""
        self.chats = EventLog(doubled=False, overtaken_ns=_CHAT_OVERTAKEN_NS)
        """The latest chat messages of the server, to recognise their copies."""
        self.announces_seats = False
        """True if the server announces seats, and sends messages about a lobby to that lobby only."""

    def named(self, name: str | None) -> ClientConnection | None:
        """Return the connection of a player."""
        return next((connection for connection in self.connections.values() if connection.name == name), None)

    def lobby(self, number: int | None) -> LobbyRoom:
        """Return a lobby, created if unknown; None is that of games whose beginning was not captured."""
        room = self.lobbies.get(number)
        if room is None:
            room = self.lobbies[number] = LobbyRoom(number)
        if number is not None:
            self.others.discard(number)
        return room

    def add_other(self, number: int) -> None:
        """Add a lobby known only from a list."""
        if number not in self.lobbies and len(self.others) < _MAX_OTHERS:
            self.others.add(number)

    def put_lobby(self, room: LobbyRoom) -> None:
        """Set a lobby's players and the ready ones in the state; an empty lobby is removed."""
        if room.number is None:
            return
        players = [*room.places]
        number = str(room.number)
        if any(name is not None for name in players):
            self.set_state(players, "lobbies", number, "players")
            self.set_state([*room.ready] or None, "lobbies", number, "ready")
        else:
            self.set_state(None, "lobbies", number)

    def enter(self, connection: ClientConnection, room: LobbyRoom, ts_ns: int) -> None:
        """Move a client to a lobby."""
        before = self.lobbies.get(connection.lobby)
        connection.lobby = room.number
        self.put_player(connection)
        if before is not None and before is not room:
            self.vacate(before, connection.name)
            self.close_if_empty(before, ts_ns)

    def put_player(self, connection: ClientConnection) -> None:
        """Set a player and their lobby in the state."""
        if connection.name is not None:
            self.set_state(
                {} if connection.lobby is None else {"lobby": connection.lobby}, "players", connection.name
            )

    def vacate(self, room: LobbyRoom, name: str | None) -> None:
        """Remove a player from a lobby."""
        if name is not None:
            room.places = [None if other == name else other for other in room.places]
            room.ready = [other for other in room.ready if other != name]
            self.put_lobby(room)

    def close_if_empty(self, room: LobbyRoom, ts_ns: int) -> None:
        """Drop a lobby without connections, and its games."""
        if any(
            connection.lobby == room.number and (room.number is not None or connection.game is not None)
            for connection in self.connections.values()
        ):
            return
        for game in room.games:
            game.end(ts_ns)
            game.remove()
        self.lobbies.pop(room.number, None)
        if room.number is not None:
            self.set_state(None, "lobbies", str(room.number))

    # Games.

    def begin(self, room: LobbyRoom, ts_ns: int, deal: bool) -> OkeyGame:
        """Begin a game in a lobby, with a `deal` or known only from its middle; the previous one is over."""
        label = f"lobby {room.number}" if room.number is not None else "a lobby"
        game = OkeyGame(*self.open_part(label, ts_ns))
        for before in room.games:
            before.end(ts_ns)
            before.remove()
        # The deals of a race are kept together for a moment.
        room.games = [*(each for each in room.games if ts_ns - each.game.started_ns < RACE_NS), game][
            -_DEALS:
        ]
        if len(room.games) > 1:
            for each in room.games:
                each.alone = False
        game.set_state(room.number, "lobby")
        if deal:
            game.exchange, game.main_draws = [None] * SEATS, 0
            game.set_state([*game.exchange], "exchange")
        else:
            game.set_state(["decks", "exchange", "turn"], "unknown")
        for seat, name in enumerate(room.places):
            game.put_place(seat, name)
        return game

    def doubt(self, connection: ClientConnection) -> None:
        """Mark a client's knowledge and tiles as unknown, as a message from the server was not readable."""
        connection.doubt()
        if connection.game is not None and connection.seat is not None:
            place = connection.game.places[connection.seat]
            place.deck = place.count = None
            connection.game.put_deck(connection.seat)
            connection.game.set_state(None, "private", connection.game.who(connection.seat), "drawn")
            connection.game.set_state(["decks"], "unknown")
