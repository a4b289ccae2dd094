"""Roles of a protocol file's messages: which field names the player, and what a message says of players."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import msgspec

from kiebitz.dissectors.game.context import label
from kiebitz.dissectors.protocol_file.specification import (
    FieldSpec,
    FieldTypeSpec,
    IdentifierType,
    IdentitySpec,
    ListType,
    MessageSpec,
    ObjectType,
    Specification,
)

PLAYER, ID = "player", "id"
"""Kinds of identifiers of players: names and numbers."""

NO_ONE: Collection[Any] = (None, "", -1)
"""Ids that identify nobody."""

Resolve = Callable[[Any], str | None]
"""Returns the name of the player with an id, or the id as text."""

Convert = Callable[[Any, Resolve], Any]
"""Returns a value with names in place of ids."""


class Role(msgspec.Struct, frozen=True, kw_only=True):
    """What a message says about players.

    Attributes:
        id: Field with a player's id, None if there is none.
        name: Field with a player's name.
        who: Field that identifies the player of the message; None if it is the connection's.
        is_own: True if a client's connection identifies the player, whatever a field says.
        logs_in: True if a client gives its name.
        gives: True if the server gives the connection its id, or accepts its name.
        accepts: True if the server answers a login and repeats the name.
        refuses: True if the server answers a login in any other way.
        names: True if it has both an id and the name that belongs to it.
        leaves: True if the player of the message has left.
    """

    id: str | None = None
    name: str | None = None
    who: str | None = None
    is_own: bool = False
    logs_in: bool = False
    gives: bool = False
    accepts: bool = False
    refuses: bool = False
    names: bool = False
    leaves: bool = False

    @property
    def is_silent(self) -> bool:
        """True if the message says nothing about who is who."""
        return not (self.logs_in or self.gives or self.accepts or self.refuses or self.names or self.leaves)


def roles_of(specification: Specification) -> list[Role]:
    """Return the role of each row."""
    identity = specification.identity or IdentitySpec()
    logins = frozenset(identity.login)
    answers = [
        row for row in specification.messages if row.direction == "s2c" and not logins.isdisjoint(row.answers)
    ]
    repeats = any(_field_of(row, PLAYER, identity.name) for row in answers)
    return [_role(row, identity, repeats and not identity.given) for row in specification.messages]


def _role(row: MessageSpec, identity: IdentitySpec, has_acceptance: bool) -> Role:
    id_field = _field_of(row, ID, identity.id)
    name = _field_of(row, PLAYER, identity.name)
    is_server = row.direction == "s2c"
    logs_in = not is_server and row.name in identity.login
    answers_login = is_server and not {*identity.login}.isdisjoint(row.answers)
    who = name if logs_in else id_field or name
    if who is None and row.broadcast:
        # All receive it, so its connections say nothing of its player.
        named = [field.name for field in row.fields if kind_of(field.type) in (ID, PLAYER)]
        who = named[0] if len(named) == 1 else None
    return Role(
        id=id_field,
        name=name,
        who=who,
        is_own=not is_server and not logs_in,
        logs_in=logs_in,
        gives=is_server and row.name in identity.given,
        accepts=answers_login and has_acceptance and name is not None,
        refuses=answers_login and has_acceptance and name is None and not row.broadcast,
        names=(row.name in identity.named if identity.named else is_server)
        and id_field is not None
        and name is not None,
        leaves=row.name in identity.left,
    )


def _field_of(row: MessageSpec, kind: str, name: str | None) -> str | None:
    """Return the field with this name, or else of this kind of identifier."""
    if name is not None:
        return next((field.name for field in row.fields if field.name == name), None)
    return next((field.name for field in row.fields if kind_of(field.type) == kind), None)


def kind_of(type: FieldTypeSpec) -> str | None:
    """Return the kind of identifier that a value is."""
    return type.kind if isinstance(type, IdentifierType) else None


def kinds_in(field: FieldSpec) -> Iterator[tuple[str, str]]:
    """Yield the names of a field and of the fields within it that are identifiers, with their kinds."""
    waiting: list[tuple[str, FieldTypeSpec]] = [(field.name, field.type)]
    while waiting:
        name, type = waiting.pop()
        if isinstance(type, IdentifierType):
            yield name, type.kind
        elif isinstance(type, ListType):
            waiting.append((name, type.item))
        elif isinstance(type, ObjectType):
            waiting += [(part.name, part.type) for part in type.fields]


def names_in(type: FieldTypeSpec) -> Iterator[str]:
    """Yield the names of the fields of objects in values of a type."""
    waiting = [type]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ListType):
            waiting.append(part.item)
        elif isinstance(part, ObjectType):
            yield from (field.name for field in part.fields)
            waiting += [field.type for field in part.fields]


def conversion(type: FieldTypeSpec) -> Convert | None:
    """Return the function that replaces ids in values of a type by names, None if there are none."""
    if isinstance(type, IdentifierType):
        return {ID: _resolved, PLAYER: _labelled}.get(type.kind)
    if isinstance(type, ListType):
        item = conversion(type.item)
        if item is None:
            return None
        return lambda value, resolve: (
            [item(part, resolve) for part in value] if isinstance(value, list | tuple) else value
        )
    if isinstance(type, ObjectType):
        parts = {field.name: found for field in type.fields if (found := conversion(field.type)) is not None}
        return _of_parts(parts) if parts else None
    return None


def _of_parts(parts: Mapping[str, Convert]) -> Convert:
    def convert(value: Any, resolve: Resolve) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: parts[name](part, resolve) if name in parts else part for name, part in value.items()}

    return convert


def _resolved(value: Any, resolve: Resolve) -> Any:
    if isinstance(value, dict | list | bool) or value in NO_ONE:
        return value
    return resolve(value)


def _labelled(value: Any, resolve: Resolve) -> Any:
    return label(value) if isinstance(value, str) else value


class Connection:
    """A client's connection: its player, as far as it is known.

    Attributes:
        id: The player's id as text.
        name: The player's name.
        asked: A name that counts only after the server has accepted it.
        is_accepted: True if the server is known to have accepted the name.
        is_proven: True if an event has reported its player.
        is_over: True if its player has left.
    """

    __slots__ = ("asked", "id", "is_accepted", "is_over", "is_proven", "name")

    def __init__(self) -> None:
        self.id: str | None = None
        self.name: str | None = None
        self.asked: str | None = None
        self.is_accepted = False
        self.is_proven = False
        self.is_over = False


MAX_IDS = 1000
"""Maximum number of ids whose names are kept."""


class Players:
    """The players of a table: names by id, and the player of each connection.

    `waits` is True if a name counts only after the server has accepted it, `has_names` if the server says
    which name belongs to an id.
    """

    def __init__(self, waits: bool, has_names: bool) -> None:
        self._waits = waits
        self._has_names = has_names
        self._names: dict[str, str] = {}
        self._unnamed: dict[str, None] = {}
        self.connections: dict[int, Connection] = {}

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

    def connection(self, stream_id: int) -> Connection:
        """Return the connection of a stream."""
        found = self.connections.get(stream_id)
        if found is None:
            found = self.connections[stream_id] = Connection()
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
        return connection.name or connection.id

    def learn(self, role: Role, connection: Connection, fields: Mapping[str, Any]) -> str | None:
        """Learn from a message who is who; return an id that just got its name."""
        named = None
        name = fields.get(role.name) if role.name is not None else None
        name = label(name) if isinstance(name, str) and name else None
        number = fields.get(role.id) if role.id is not None else None
        id = None if isinstance(number, dict | list | bool) or number in NO_ONE else label(str(number))
        if role.names and name is not None and id is not None:
            named = self._name(id, name)
        if role.logs_in and name is not None:
            self._log_in(connection, name)
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
        return named

    def _name(self, id: str, name: str) -> str | None:
        """Note the name that belongs to an id; return the id if it was used before."""
        if any(name == known for other, known in self._names.items() if other != id):
            # Two players with one name stay apart.
            name = f"{name} ({id})"
        if self._names.get(id) == name:
            return None
        self._names[id] = name
        if len(self._names) > MAX_IDS:
            del self._names[next(iter(self._names))]
        was_used = id in self._unnamed
        self._unnamed.pop(id, None)
        return id if was_used else None

    def _log_in(self, connection: Connection, name: str) -> None:
        connection.is_over = connection.is_accepted = False
        is_taken = any(
            other is not connection and other.name == name and not other.is_over
            for other in self.connections.values()
        )
        if connection.id is not None or not (self._waits or is_taken):
            connection.name, connection.asked = name, None
        else:
            connection.asked = name

    def leave(self, name: str | None) -> None:
        """Handle that a player has left: the player's connections and ids are free."""
        if name is None:
            return
        for connection in self.connections.values():
            if self.player_of(connection) == name:
                connection.is_over = True
                connection.name = connection.id = connection.asked = None
                connection.is_proven = False
        for id in [id for id, known in self._names.items() if known == name]:
            del self._names[id]
