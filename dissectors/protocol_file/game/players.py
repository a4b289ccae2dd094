"""The players of a protocol file's table: who is behind a connection, and which name belongs to an id."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush
from typing import Any

from kiebitz.dissectors.game.context import label
from kiebitz.dissectors.grammar.sentences import value_at
from kiebitz.dissectors.model import Stream, port_of
from kiebitz.dissectors.protocol_file.game.roles import NULL_IDS, Role


def _id(value: Any) -> str | None:
    return None if isinstance(value, dict | list | bool) or value in NULL_IDS else label(str(value))


def _name(value: Any) -> str | None:
    return label(value) if isinstance(value, str) and value else None


class Connection:
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

    __slots__ = ("asked", "id", "indexed", "is_accepted", "is_over", "is_proven", "name")

    def __init__(self) -> None:
        self.id: str | None = None
        self.name: str | None = None
        self.asked: str | None = None
        self.is_accepted = False
        self.is_proven = False
        self.is_over = False
        self.indexed: frozenset[str] = frozenset()


MAX_IDS = 1000
"""Maximum number of ids whose names are kept."""


class Players:
    """The players of a table: names by id, and the player of each connection.

    `waits` is True if a name counts only after the server has accepted it, `has_names` if the server says
    which name belongs to an id. `at_ports` has the players of the server's ports, if these identify them.
    """

    def __init__(self, waits: bool, has_names: bool, at_ports: Mapping[int, str]) -> None:
        self._waits = waits
        self._at_ports = at_ports
        self._has_names = has_names
        self._names: dict[str, str] = {}
        self._gone: dict[str, None] = {}
        """Ids of players who have left; others may have their names now."""
        self._unnamed: dict[str, None] = {}
        self._numbers: dict[str, int] = {}
        """The numbers of players who log in without a name, by the names that they have here."""
        self._free: list[int] = []
        """The numbers of those who have left, as a heap."""
        self.connections: dict[int, Connection] = {}
        self._index: dict[str, dict[Connection, None]] = {}
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

    def learn(self, role: Role, connection: Connection, fields: Mapping[str, Any]) -> list[str]:
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
