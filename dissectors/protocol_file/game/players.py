"""The players of a protocol file's table, and its rooms: who is behind a connection, and in which game."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heappop, heappush
from typing import Any

import msgspec

from kiebitz.dissectors.game.context import GameContext, label
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.grammar.sentences import value_at
from kiebitz.dissectors.model import Direction, Stream, port_of
from kiebitz.dissectors.protocol_file.expressions import Question, Scope
from kiebitz.dissectors.protocol_file.game.plan import RoomPlan
from kiebitz.dissectors.protocol_file.game.roles import NULL_IDS, Role
from kiebitz.dissectors.protocol_file.game.state import GameState
from kiebitz.dissectors.protocol_file.values import step_text


def _id(value: Any) -> str | None:
    return None if isinstance(value, dict | list | bool) or value in NULL_IDS else label(str(value))


def _name(value: Any) -> str | None:
    return label(value) if isinstance(value, str) and value else None


class Connection(msgspec.Struct, eq=False):
    """A client's connection: its player, as far as it is known.

    Attributes:
        id: The player's id as text.
        name: The player's name.
        asked: A name that counts only after the server has accepted it.
        is_accepted: True if the server is known to have accepted the name.
        is_proven: True if an event has reported its player.
        is_over: True if its player has left.
        indexed: The id and the names under which it is in the index.
    """

    id: str | None = None
    name: str | None = None
    asked: str | None = None
    is_accepted: bool = False
    is_proven: bool = False
    is_over: bool = False
    indexed: frozenset[str] = frozenset()


MAX_IDS = 1000
"""Maximum number of ids whose names are kept."""


class Players(msgspec.Struct, eq=False):
    """The players of a table: names by id, and the player of each connection.

    `waits` is True if a name counts only after the server has accepted it, `has_names` if the server says
    which name belongs to an id. `at_ports` has the players of the server's ports, if these identify them.
    """

    _waits: bool
    _has_names: bool
    _at_ports: Mapping[int, str]
    _names: dict[str, str] = {}
    _gone: dict[str, None] = {}
    """Ids of players who have left; others may have their names now."""
    _unnamed: dict[str, None] = {}
    _numbers: dict[str, int] = {}
    """The numbers of players who log in without a name, by the names that they have here."""
    _free: list[int] = []
    """The numbers of those who have left, as a heap."""
    connections: dict[int, Connection] = {}
    _index: dict[str, dict[Connection, None]] = {}
    """The connections with an id or a name, so that no message looks at all of them."""

    def resolve(self, value: Any) -> str:
        """Return the name of the player with an id, or the id as text."""
        text = str(value) if not isinstance(value, str) else label(value)
        name = self._names.get(text)
        if name is not None:
            return name
        if text not in self._unnamed:
            self._unnamed[text] = None
            if len(self._unnamed) > MAX_IDS:
                del self._unnamed[next(iter(self._unnamed))]
        return text

    def connection(self, stream: Stream) -> Connection:
        """Return the connection of a stream."""
        found = self.connections.get(stream.id)
        if found is None:
            found = self.connections[stream.id] = Connection()
            if (name := self._at_ports.get(port_of(stream.server))) is not None:
                found.name, found.is_accepted = name, True
                self._reindex(found)
        return found

    def player_of(self, connection: Connection) -> str | None:
        """Return the name of a connection's player, or else its id, or the name it asked for."""
        if connection.is_over:
            return None
        if connection.id is not None:
            name = self._names.get(connection.id, connection.name)
            return name if name is not None else connection.asked or connection.id
        return connection.name or connection.asked

    def confirmed(self, connection: Connection) -> str | None:
        """Return the name of a connection's player, or its id if there are no names, once it is certain."""
        if connection.is_over:
            return None
        if connection.id is None:
            return connection.name
        if self._has_names:
            return self._names.get(connection.id)
        return self._names.get(connection.id, connection.name) or connection.id

    def learn(self, role: Role, connection: Connection, fields: Fields) -> list[str]:
        """Learn from a message who is who; return the ids in use that just got their names."""
        named = []
        for number, title in role.pairs(fields) if role.pairs is not None else ():
            id, name = _id(number), _name(title)
            if id is not None and name is not None and self._name(id, name):
                named.append(id)
        name = _name(value_at(fields, role.name)) if role.name is not None else None
        id = _id(value_at(fields, role.id)) if role.id is not None else None
        if (role.logs_in or role.gives) and role.name is None and role.id is None:
            # Nothing in the message says who it is.
            name = self._numbered() if self.player_of(connection) is None else None
        if role.logs_in and name is not None:
            self._log_in(connection, name, self._waits and role.waits)
        if role.gives:
            connection.is_over = False
            connection.is_accepted = True
            connection.id = id if id is not None else connection.id
            if name is not None:
                connection.name, connection.asked = name, None
            elif connection.asked is not None:
                connection.name, connection.asked = connection.asked, None
        if role.accepts and name is not None and name in (connection.asked, connection.name):
            connection.name, connection.asked = name, None
            connection.is_accepted = True
        elif role.refuses and not connection.is_accepted:
            connection.name = connection.asked = None
        id, name = connection.id, connection.name
        if not self._has_names and id is not None and name is not None and self._name(id, name):
            named.append(id)
        self._reindex(connection)
        return named

    def _numbered(self) -> str:
        """Return a name for a player without one: `player 1`, with the least number that is free."""
        number = heappop(self._free) if self._free else len(self._numbers) + 1
        name = f"player {number}"
        self._numbers[name] = number
        return name

    def _name(self, id: str, name: str) -> bool:
        """Note the name that belongs to an id; return True if the id was used before."""
        apart = f"{name} ({id})"
        if self._names.get(id) in (name, apart) and id not in self._gone:
            return False
        self._gone.pop(id, None)
        if name in {known for other, known in self._names.items() if other != id and other not in self._gone}:
            # Two players with one name stay apart.
            name = apart
        if self._names.get(id) == name:
            return False
        self._names[id] = name
        if len(self._names) > MAX_IDS:
            oldest = next(iter(self._names))
            del self._names[oldest]
            self._gone.pop(oldest, None)
        was_used = id in self._unnamed
        self._unnamed.pop(id, None)
        return was_used

    def _log_in(self, connection: Connection, name: str, waits: bool) -> None:
        connection.is_over = connection.is_accepted = False
        is_taken = any(
            other is not connection and other.name == name and not other.is_over
            for other in self._index.get(name, ())
        )
        if connection.id is not None or not (waits or is_taken):
            connection.name, connection.asked = name, None
        else:
            connection.asked = name

    def leave(self, name: str | None) -> None:
        """Forget a player that has left: its connections have no player, and others may take the name."""
        if name is None:
            return
        if (number := self._numbers.pop(name, None)) is not None:
            heappush(self._free, number)
        for connection in self._candidates(name):
            if self.player_of(connection) == name:
                connection.is_over = True
                connection.name = connection.id = connection.asked = None
                connection.is_proven = False
                self._reindex(connection)
        self._gone.update((id, None) for id, known in self._names.items() if known == name)

    def close(self, stream_id: int) -> str | None:
        """Handle the end of a connection; return its player if the player has no other one."""
        connection = self.connections.pop(stream_id, None)
        if connection is None:
            return None
        name = self.confirmed(connection)
        self._reindex(connection, frozenset())
        if name is None or any(self.confirmed(other) == name for other in self._candidates(name)):
            return None
        self.leave(name)
        return name

    def _candidates(self, name: str) -> list[Connection]:
        """Return all connections whose player may have a name."""
        ids = [id for id, known in self._names.items() if known == name]
        return [*dict.fromkeys(one for key in (name, *ids) for one in self._index.get(key, ()))]

    def _reindex(self, connection: Connection, keys: frozenset[str] | None = None) -> None:
        """Update the index after a change of a connection."""
        if keys is None:
            texts = (connection.id, connection.name, connection.asked)
            keys = frozenset(text for text in texts if text is not None)
        if keys == connection.indexed:
            return
        for key in connection.indexed - keys:
            del self._index[key][connection]
            if not self._index[key]:
                del self._index[key]
        for key in keys - connection.indexed:
            self._index.setdefault(key, {})[connection] = None
        connection.indexed = keys


MAX_ROOMS = 200
"""Maximum number of rooms of a table whose state is kept."""

MAX_PLAYERS = 1000
"""Maximum number of players whose room is kept."""


class Place(msgspec.Struct, frozen=True):
    """The room to which a message belongs, None for the table itself; it may be in doubt."""

    room: str | None = None
    is_certain: bool = True


_TABLE = Place()


class Rooms(msgspec.Struct, eq=False):
    """The rooms of a table; `table` is the state of what belongs to none.

    A room is where games of one id are played, one after the other. A server that was not captured from its
    beginning, or with missing bytes, may have moved a client to another room. So a connection's room is in
    doubt after content that was not read, until a message names it again.
    """

    _plan: RoomPlan
    _context: GameContext
    _table: GameState
    _states: dict[str, GameState] = {}
    _by_stream: dict[int, Place] = {}
    _by_player: dict[str, str] = {}

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
        fields: Fields,
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
