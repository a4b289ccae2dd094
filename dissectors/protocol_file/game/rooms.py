"""Several games at once on one server: the game of each message, connection and player, by the file's `game`.

A room is where games of one id are played, one after the other. A server that was not captured from its
beginning, or with missing bytes, may have moved a client to another room. So a connection's room is in doubt
after content that was not read, until a message names it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from kiebitz.dissectors.game.context import GameContext, label
from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocol_file.expressions import Question, Scope
from kiebitz.dissectors.protocol_file.game.plan import RoomPlan
from kiebitz.dissectors.protocol_file.game.state import GameState
from kiebitz.dissectors.protocol_file.values import step_text

MAX_ROOMS = 200
"""Maximum number of rooms of a table whose state is kept."""

MAX_PLAYERS = 1000
"""Maximum number of players whose room is kept."""


class Place(msgspec.Struct, frozen=True):
    """The room to which a message belongs, None for the table itself; it may be in doubt."""

    room: str | None = None
    is_certain: bool = True


_TABLE = Place()


class Rooms:
    """The rooms of a table; `table` is the state of what belongs to none."""

    def __init__(self, plan: RoomPlan, context: GameContext, table: GameState) -> None:
        self._plan = plan
        self._context = context
        self._table = table
        self._states: dict[str, GameState] = {}
        self._by_stream: dict[int, Place] = {}
        self._by_player: dict[str, str] = {}

    def share(self, whole: Rooms) -> None:
        """Take the rooms of connections and players from another table."""
        self._by_stream, self._by_player = whole._by_stream, whole._by_player

    def states(self) -> Iterator[GameState]:
        """Yield the states of all rooms, and of the table."""
        yield self._table
        yield from self._states.values()

    def state(self, place: Place, ts_ns: int) -> GameState:
        """Return the state of a room."""
        if place.room is None:
            return self._table
        state = self._states.pop(place.room, None)
        if state is None:
            state = GameState(self._context, self._table.budget, place.room)
            if len(self._states) >= MAX_ROOMS:
                idle = (room for room, other in self._states.items() if other.game is None)
                self._states.pop(next(idle, next(iter(self._states)))).drop(ts_ns)
        self._states[place.room] = state
        return state

    def of_client(self, stream_id: int, who: str | None) -> Place:
        """Return the room of a connection, or else of its player."""
        place = self._by_stream.get(stream_id)
        if place is None and who is not None and who in self._by_player:
            place = Place(self._by_player[who])
        return place or _TABLE

    def place(
        self,
        stream_id: int,
        direction: Direction,
        name: str,
        fields: Mapping[str, Any],
        who: str | None,
        asked: Question | None,
        client: Place,
    ) -> Place:
        """Return the room of a message, which may tell that of its connection or player.

        The place of its `client` is that of a message which does not say it.
        """
        plan = self._plan
        is_entry = name in plan.joins if plan.joins else direction == "s2c"
        found = Place(_room(plan.id.evaluate(Scope(fields, who))))
        if found.room is None and is_entry and asked is not None and asked.fields is not None:
            found = Place(_room(plan.id.evaluate(Scope(asked.fields, who))), asked.is_certain)
        if found.room is None:
            return client
        if is_entry and plan.of is None:
            self._by_stream[stream_id] = found
        elif is_entry and plan.of is not None:
            player = plan.of.evaluate(Scope(fields, who))
            if isinstance(player, str):
                self._by_player.pop(player, None)
                self._by_player[player] = found.room
                if len(self._by_player) > MAX_PLAYERS:
                    del self._by_player[next(iter(self._by_player))]
        return found

    def leave(self, stream_id: int, name: str, who: str | None) -> None:
        """Note that a message of this name has been handled, which may end the stay in a room."""
        if name in self._plan.leaves:
            self._by_stream.pop(stream_id, None)
            if who is not None:
                self._by_player.pop(who, None)

    def doubt(self, stream_id: int) -> None:
        """Handle content that may have moved a connection's client to another room."""
        if (place := self._by_stream.get(stream_id)) is not None:
            self._by_stream[stream_id] = Place(place.room, is_certain=False)

    def close(self, stream_id: int) -> None:
        """Forget a connection that has ended."""
        self._by_stream.pop(stream_id, None)


def _room(value: Any) -> str | None:
    if value in (None, "") or isinstance(value, dict | list | tuple | bool):
        return None
    return label(step_text(value))
