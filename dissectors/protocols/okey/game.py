"""A game and its four places, and the clients' connections with their open requests.

Responses are in the order of the requests, but pushes may come between, and many invalid requests get none.
So a response belongs to the first request of its name, and the requests before that one get none.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from kiebitz.dissectors.game.connections import OrderedDoubt
from kiebitz.dissectors.game.state import RunningGame
from kiebitz.dissectors.model import Event, Stream
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
    status_stream: int | None = None
    """The stream of its first message."""
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

    waiting: list[Request] = msgspec.field(default_factory=list)
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
            self._remove(1)

    def first(self, name: str) -> Request | None:
        """Return the first open request of a name."""
        return next((request for request in self.waiting if request.name == name), None)

    def answered(self, name: str, refused: bool) -> Request | None:
        """Remove and return the request of a response; an invalid one can only have been refused."""
        for number, request in enumerate(self.waiting):
            if request.name == name and (request.valid or refused):
                if number >= self._before:
                    self.unread.answered(name)
                self._remove(number + 1)
                return request
        return None

    def _remove(self, count: int) -> None:
        del self.waiting[:count]
        self._before = max(0, self._before - count)


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
