"""One client's conversation: its player, its seat, and its open requests.

Responses are in the order of the requests, but pushes may come between, and many invalid requests get none.
So a response belongs to the first request of its name, and the requests before that one get none.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

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


class Conversation(msgspec.Struct, eq=False):
    """The known facts of a client. `whole` is True if no message of its connection is missing."""

    stream: Stream
    name: str | None = None
    lobby: int | None = None
    seat: int | None = None
    game: OkeyGame | None = None
    """The client's current or latest game."""
    turn: int | None = None
    """The seat that has the turn, by the messages to this client; None if unknown."""
    whole: bool = True
    since_deal: bool = False
    """True if nothing is missing since its game was dealt."""
    requests: list[Request] = msgspec.field(default_factory=list)
    pushed: Counter[str] = msgspec.field(default_factory=Counter)
    """Number of unacknowledged pushes, by name."""
    joined: int | None = None
    """The id of the event of joining the lobby."""
    left: bool = False

    @property
    def is_complete(self) -> bool:
        """True if all messages to this client about its game were captured."""
        return self.whole or self.since_deal

    def add_request(self, request: Request) -> None:
        """Add an open request."""
        self.requests.append(request)
        if len(self.requests) > _MAX_WAITING:
            del self.requests[0]

    def waiting(self, name: str) -> Request | None:
        """Return the first open request of a name."""
        return next((request for request in self.requests if request.name == name), None)

    def answered(self, name: str, refused: bool) -> Request | None:
        """Remove and return the request of a response; an invalid one can only have been refused."""
        for number, request in enumerate(self.requests):
            if request.name == name and (request.valid or refused):
                del self.requests[: number + 1]
                return request
        return None

    def unsure(self) -> None:
        """Mark the knowledge as incomplete."""
        self.whole = self.since_deal = False
        self.turn = None
        if self.game is not None and self.seat is not None:
            self.game.places[self.seat].sure = False
