"""One client's conversation: who he is, where he sits, and which of his requests are not answered yet.

Responses come in the order of the requests, but pushes stand between, and many bad requests get none. So a
response belongs to the first request of its name, and those before that one were not answered.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from kiebitz.dissectors.model import Stream
from kiebitz.dissectors.protocols.okey.game import OkeyGame

_MAX_WAITING = 1000
"""So many requests can wait for a response; with more of them the oldest will get none."""


class Request(msgspec.Struct, eq=False):
    """What a client asks for; of its arguments those are kept that a response needs.

    `event_id` is set once it is known from elsewhere that it was done. A `doubtful` one is against the rules:
    if the server takes it all the same, what it has made of it is not known.
    """

    name: str
    fields: dict[str, Any]
    valid: bool
    doubtful: bool
    event_id: int | None = None


class Conversation(msgspec.Struct, eq=False):
    """What is known of a client. `whole` says that nothing is missing of what was said on his connection."""

    stream: Stream
    name: str | None = None
    lobby: int | None = None
    seat: int | None = None
    game: OkeyGame | None = None
    """The game that he plays in, or has played in last."""
    turn: int | None = None
    """Whose turn it is in it, by what he was told; None if that is not sure."""
    whole: bool = True
    since_deal: bool = False
    """Whether nothing is missing since the game was dealt that he plays in."""
    requests: list[Request] = msgspec.field(default_factory=list)
    pushed: Counter[str] = msgspec.field(default_factory=Counter)
    """How often each push was sent that he has not acknowledged."""
    joined: int | None = None
    """The event that he has joined his lobby."""
    left: bool = False

    @property
    def heard_all(self) -> bool:
        """Whether all of his game was heard that he was told."""
        return self.whole or self.since_deal

    def asks(self, request: Request) -> None:
        """Keep a request until it is answered."""
        self.requests.append(request)
        if len(self.requests) > _MAX_WAITING:
            del self.requests[0]

    def waiting(self, name: str) -> Request | None:
        """The first request of a name that is not answered yet."""
        return next((request for request in self.requests if request.name == name), None)

    def answered(self, name: str, refused: bool) -> Request | None:
        """The request that a response belongs to; an unsound one can only have been refused."""
        for number, request in enumerate(self.requests):
            if request.name == name and (request.valid or refused):
                del self.requests[: number + 1]
                return request
        return None

    def unsure(self) -> None:
        """Something that was said is not known."""
        self.whole = self.since_deal = False
        self.turn = None
        if self.game is not None and self.seat is not None:
            self.game.places[self.seat].sure = False
