"""The context of the table: connections with their open requests, players, lobbies, games with places.

Responses are in the order of the requests, but pushes may come between, and many invalid requests get none.
So a response belongs to the first request of its name, and the requests before that one get none. The
messages are handled in `lobby.py`, `deals.py`, `moves.py` and `status.py`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from kiebitz.dissectors.game.broadcast_dedup import EventLog
from kiebitz.dissectors.game.connections import Connections, OrderedDoubt
from kiebitz.dissectors.game.context import GameContext
from kiebitz.dissectors.game.state import RunningGame
from kiebitz.dissectors.model import Event, Findings, Ids, Stream, TableInfo
from kiebitz.dissectors.protocols.okey.grammar import GRAMMAR
from kiebitz.dissectors.protocols.okey.tiles import OF_EACH, SEATS, Slots, counted

_MAX_WAITING = 1000
"""Maximum number of open requests; the oldest is dropped beyond it."""


class Place(msgspec.Struct, eq=False):
    """A player's place. `deck` is None if unknown, and `certain` is True if nothing has contradicted it."""

    name: str | None = None
    deck: Slots | None = None
    certain: bool = False
    count: int | None = None
    """Number of tiles."""
    stream_id: int | None = None
    """The connection of its player, if it is in the capture."""

    def take(self, tile: str, counted: bool = False) -> None:
        """Put a drawn tile in the first empty place; it may be counted already."""
        if self.count is not None and not counted:
            self.count += 1
        if self.deck is not None:
            slots = [*self.deck]
            if None in slots:
                slots[slots.index(None)] = tile
            else:
                slots.append(tile)
            self.deck = slots


class OkeyGame(RunningGame, eq=False):
    """A game; unknown values are None.

    `alone` is True if no other deal was made in its lobby at the same time, as happens with real servers.
    """

    places: list[Place] = msgspec.field(default_factory=lambda: [Place() for _ in range(SEATS)])
    exchange: Slots | None = None
    main_draws: int | None = None
    """Number of tiles drawn from the main stack; None if the deal was not seen."""
    turn: int | None = None
    drawn: bool = False
    """True if the player whose turn it is has drawn, or need not."""
    draw: Event | None = None
    """The draw of this turn."""
    put: str | None = None
    """The tile put in this turn, until the next turn is announced."""
    latest_put: Event | None = None
    alone: bool = True
    cheated: bool = False
    status: Event | None = None
    """The latest event about the exchange stacks."""
    ending: Event | None = None
    """The event that ended it."""

    @property
    def has_not_begun(self) -> bool:
        """True if no tile was put yet, in a game captured from its deal on."""
        return self.turn is None and self.exchange is not None and not any(self.exchange)

    def too_many(self) -> str | None:
        """Return a tile that the known decks and stacks have more often than the pack."""
        if self.cheated or not self.alone:
            return None
        total: Counter[str] = Counter()
        for place in self.places:
            total += counted(place.deck or ()) if place.certain else Counter()
        total += counted(self.exchange or ())
        return next((tile for tile, count in sorted(total.items()) if count > OF_EACH), None)

    def put_place(self, seat: int, name: str | None) -> None:
        """Seat a player; the private state of the previous one is dropped."""
        place = self.places[seat]
        if name is not None and name != place.name:
            self.set_state(None, "private", self.who(seat))
            place.name = name
            self.set_state(name, "seats", str(seat), "name")
            self.put_deck(seat)

    def put_deck(self, seat: int) -> None:
        """Set a player's tiles, visible to that player only."""
        self.set_state(self.places[seat].deck, "private", self.who(seat), "deck")

    def put_count(self, seat: int, count: int | None) -> None:
        """Set the number of a player's tiles, which all can see.

        After a move it is the number that follows from the rules: the tiles themselves may be hidden.
        """
        self.set_state(count, "seats", str(seat), "tiles")

    def who(self, seat: int) -> str:
        """Return a player's key in the state."""
        return self.places[seat].name or f"seat {seat}"


class Request(msgspec.Struct, eq=False):
    """A client's request, with the arguments needed to interpret its response.

    `event_id` is set once another message shows that it was granted. A `doubtful` request breaks the rules:
    if the server grants it, the result is unknown.
    """

    name: str
    fields: dict[str, Any]
    valid: bool
    doubtful: bool
    event_id: int | None = None


class Requests(msgspec.Struct, eq=False):
    """A client's open requests, in order, and the doubt about others that could not be read."""

    waiting: list[Request] = []
    unread: OrderedDoubt = msgspec.field(default_factory=OrderedDoubt)
    _before: int = 0
    """Number of open requests that were sent before the doubt began."""

    def doubt(self) -> None:
        """Note that any requests may have been sent now."""
        self.unread.begin()
        self._before = len(self.waiting)

    def add(self, request: Request) -> None:
        """Add a request."""
        self.waiting.append(request)
        if len(self.waiting) > _MAX_WAITING:
            self._remove(0, 1)

    def first(self, name: str) -> Request | None:
        """Return the first open request of a name."""
        return next((request for request in self.waiting if request.name == name), None)

    def answered(self, name: str, refused: bool, at_once: bool = False) -> Request | None:
        """Remove and return the request of a response; an invalid one can only have been refused.

        One that is answered `at_once`, as a heartbeat is, says nothing of the requests before it.
        """
        for number, request in enumerate(self.waiting):
            if request.name == name and (request.valid or refused):
                if number >= self._before and not at_once:
                    self.unread.answered(name)
                self._remove(number if at_once else 0, number + 1)
                return request
        return None

    def _remove(self, first: int, end: int) -> None:
        del self.waiting[first:end]
        self._before -= max(0, min(end, self._before) - first)


class ClientConnection(msgspec.Struct, eq=False):
    """The known facts of a client. It is `certain` if no message of the server to it is in doubt."""

    stream: Stream
    name: str | None = None
    lobby: int | None = None
    seat: int | None = None
    game: OkeyGame | None = None
    """The client's current or latest game."""
    turn: int | None = None
    """The seat that has the turn, by the messages to this client; None if unknown."""
    exchange: Slots | None = None
    """The exchange stacks by the latest status to this client; None if it may be that of another game."""
    certain: bool = True
    certain_since_deal: bool = False
    """True if it is certain since its game was dealt."""
    requests: Requests = msgspec.field(default_factory=Requests)
    answered: Request | None = None
    """The request that the server's latest response answers."""
    pushed: Counter[str] = msgspec.field(default_factory=Counter)
    """Number of unacknowledged pushes, by name."""
    joined: int | None = None
    """The id of the event of joining the lobby."""
    left: bool = False

    @property
    def certain_in_game(self) -> bool:
        """True if all messages to this client about its game are known."""
        return self.certain or self.certain_since_deal

    def doubt(self) -> None:
        """Note that the client may know more than was read."""
        self.certain = self.certain_since_deal = False
        self.turn = None
        if self.game is not None and self.seat is not None:
            self.game.places[self.seat].certain = False


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
    ready: list[str] = []
    games: list[OkeyGame] = []

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

    def player_at(self, game: OkeyGame, seat: int) -> ClientConnection | None:
        """Return the connection of the player at a place of a game, if it is in the capture."""
        stream_id = game.places[seat].stream_id
        connection = self.connections.get(stream_id) if stream_id is not None else None
        return connection if connection is not None and connection.game is game else None

    def doubt_unknown_lobbies(self) -> None:
        """Rely on no deal in an unknown lobby if more clients play there than one lobby has."""
        unknown = [each for each in self.connections.values() if each.lobby is None and each.game is not None]
        if len(unknown) > SEATS:
            for connection in unknown:
                connection.certain_since_deal = False

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
