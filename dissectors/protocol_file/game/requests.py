"""Open requests of a protocol file's table: which request a message answers, and the request's fields.

A request is open on its connection until it is answered, the oldest of a name first, or the one with the same
references. A message to another client may be about it, too, if it names the player or repeats the reference.
Nothing tells an answer that was lost from one that is late. So after content that could not be
read, the request is a guess; over UDP it always is, unless a reference proves it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import msgspec

from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.model import OPPOSITE, Direction
from kiebitz.dissectors.protocol_file.expressions import Question

MAX_OPEN = 100
"""Maximum number of open requests of one side of a connection, and of connections that are searched."""

MAX_BYTES = 1 << 20
"""Maximum size of the fields of all open requests of a table as JSON in bytes; others have no fields."""

MAX_RECENT = 100
"""Maximum number of requests that are kept for messages to other clients."""

References = Sequence[tuple[Any, ...] | None]
"""The values by which answers name requests; None where a message does not have them."""

_UNKNOWN = Question()


class _Request(msgspec.Struct, eq=False):
    """An open request.

    Attributes:
        name: Name of the message.
        who: The player who has sent it.
        fields: Its fields with names in place of ids; None if they are too large.
        references: The values that its answer repeats, None where a field is absent.
        size: Size of the fields as JSON in bytes.
        told: The connections of other clients that know of it, with the name of the message.
    """

    name: str
    who: str | None
    fields: Fields | None
    references: References
    size: int
    told: set[tuple[int, str]] = set()


class _Queue(msgspec.Struct, eq=False):
    """The open requests of one side of a connection, oldest first.

    `certain` is the number of the oldest ones whose answer can be recognised; None if that holds for all.
    """

    open: list[_Request] = []
    certain: int | None = None


_Place = tuple[int, Direction]
"""A stream, and the direction of the requests in it."""


class Answer(NamedTuple):
    """A message that may answer a request.

    Attributes:
        place: The place of the requests that it answers.
        name: Its name.
        names: Names of the requests that it may answer.
        references: Its values by which it names a request.
        who: The player that it names, or whose it is.
        is_near: Function that is true of the streams of the same game.
    """

    place: _Place
    name: str
    names: Collection[str]
    references: References
    who: str | None
    is_near: Callable[[int], bool]


class Requests:
    """The open requests of a table; an answer in datagrams is a guess without a reference."""

    def __init__(self, is_udp: bool) -> None:
        self._is_udp = is_udp
        self._queues: dict[_Place, _Queue] = {}
        self._by_name: dict[tuple[str, Direction], dict[_Place, None]] = {}
        """The queues with an open request of a name, so that no broadcast looks at all connections."""
        self._in_doubt: dict[_Place, None] = {}
        """The sides of connections with requests that were not read, or may have been answered."""
        self._bytes = 0
        self._recent: deque[tuple[_Place, _Request]] = deque()
        """The latest requests, answered or not, of all connections."""
        self._recent_bytes = 0

    def ask(
        self,
        place: _Place,
        name: str,
        who: str | None,
        fields: Fields,
        references: References,
        size: int,
    ) -> None:
        """Add a request."""
        queue = self._queues.setdefault(place, _Queue())
        if len(queue.open) >= MAX_OPEN:
            self._remove(place, queue.open[:1])
            queue.certain = 0
            self._in_doubt[place] = None
        is_kept = self._bytes + size <= MAX_BYTES
        request = _Request(name, who, fields if is_kept else None, references, size if is_kept else 0)
        self._bytes += request.size
        queue.open.append(request)
        self._by_name.setdefault((name, place[1]), {})[place] = None
        self._recent.append((place, request))
        self._recent_bytes += request.size
        while len(self._recent) > MAX_RECENT or self._recent_bytes > MAX_BYTES:
            self._recent_bytes -= self._recent.popleft()[1].size

    def answered(self, answer: Answer, *, to_all: bool) -> Question:
        """Return the request that a message answers, and close it.

        A message `to_all` may answer a request of another connection: that of the player whom it names; if it
        names none, the only one.
        """
        is_certain = True
        if to_all:
            found, is_certain = self._place_of(answer)
            if found is None:
                return _UNKNOWN
            answer = answer._replace(place=found)
        place = answer.place
        queue = self._queues.get(place)
        same = [one for one in queue.open if one.name in answer.names] if queue is not None else []
        is_proven = False
        for index, values in enumerate(answer.references):
            if values is not None and any(request.references[index] is not None for request in same):
                same = [request for request in same if request.references[index] == values]
                is_proven = all(request.fields == same[0].fields for request in same)
                break
        if queue is None or not same:
            return self._of_another(answer)
        if is_proven:
            self._remove(place, same)
            return _question(same[0], is_certain)
        if not self._is_udp and (queue.certain is None or queue.open.index(same[0]) < queue.certain):
            self._remove(place, same[:1])
            return _question(same[0], is_certain)
        # Most programs wait for an answer before they ask again.
        self._remove(place, same)
        return _question(same[-1], is_certain=False)

    def _of_another(self, answer: Answer) -> Question:
        """Return the request of another client that a message names or repeats; it stays open."""
        stream_id, direction = answer.place
        told = stream_id, answer.name
        if direction == "s2c":
            # A client answers what it was asked itself.
            return _UNKNOWN
        found = [
            (at, request)
            for at, request in self._recent
            if request.name in answer.names
            and at[1] == "c2s"
            and at[0] != stream_id
            and told not in request.told
            and (
                (answer.who is not None and request.who == answer.who)
                or any(
                    values is not None and values == other
                    for values, other in zip(answer.references, request.references, strict=True)
                )
            )
            and answer.is_near(at[0])
        ]
        if not found:
            return _UNKNOWN
        for _, request in found:
            request.told.add(told)
        at, request = found[-1]
        is_certain = len(found) == 1 and not self._is_udp and at not in self._in_doubt
        return _question(request, is_certain)

    def _place_of(self, answer: Answer) -> tuple[_Place | None, bool]:
        """Return the place of a request of these names, None if there are several, and if it is certain."""
        _, direction = answer.place
        names, who, is_near = answer.names, answer.who, answer.is_near
        places = [
            *dict.fromkeys(
                place
                for name in names
                for place in self._by_name.get((name, direction), ())
                if is_near(place[0])
            )
        ]
        if len(places) > MAX_OPEN:
            return None, False
        own = [
            place
            for place in places
            if who is not None
            and any(one.who == who and one.name in names for one in self._queues[place].open)
        ]
        if own:
            return (own[0], True) if len(own) == 1 else (None, False)
        # A request that was not read may have been another one; who is named may be another player's target.
        is_certain = who is None and all(place in places for place in self._in_doubt if is_near(place[0]))
        return (places[0], is_certain) if len(places) == 1 else (None, False)

    def doubt(self, stream_id: int, direction: Direction) -> None:
        """Handle content that may have been requests, or answers to those of the other side."""
        for place, may_be_answered in (
            ((stream_id, direction), False),
            ((stream_id, OPPOSITE[direction]), True),
        ):
            queue = self._queues.setdefault(place, _Queue())
            if may_be_answered:
                queue.certain = 0
            elif queue.certain is None:
                queue.certain = len(queue.open)
            self._in_doubt[place] = None

    def close(self, stream_id: int) -> None:
        """Forget the requests of a connection that has ended."""
        for direction in OPPOSITE:
            if (queue := self._queues.get((stream_id, direction))) is not None:
                self._remove((stream_id, direction), [*queue.open])
                del self._queues[stream_id, direction]
                self._in_doubt.pop((stream_id, direction), None)

    def _remove(self, place: _Place, requests: Sequence[_Request]) -> None:
        queue = self._queues[place]
        for request in requests:
            at = queue.open.index(request)
            del queue.open[at]
            if queue.certain is not None and at < queue.certain:
                queue.certain -= 1
            self._bytes -= request.size
        open_names = {request.name for request in queue.open}
        for name in {request.name for request in requests} - open_names:
            places = self._by_name[name, place[1]]
            del places[place]
            if not places:
                del self._by_name[name, place[1]]


def _question(request: _Request, is_certain: bool) -> Question:
    return Question(request.name, request.fields, is_certain and request.fields is not None)
