"""One client's connection: its player, its seat, and its open requests.

Responses are in the order of the requests, but pushes may come between, and many invalid requests get none.
So a response belongs to the first request of its name, and the requests before that one get none.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from kiebitz.dissectors.game.doubt import OrderedDoubt
from kiebitz.dissectors.model import Stream
from kiebitz.dissectors.protocols.okey.game import OkeyGame

_MAX_WAITING = 1000
"""Maximum number of open requests; the oldest is dropped beyond it."""


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
