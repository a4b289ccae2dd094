"""Roles of a protocol file's messages: which field names the player, and what a message says of players."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import msgspec

from kiebitz.dissectors.game.context import label
from kiebitz.dissectors.grammar.field_type import Fields, FieldType, IdentifierKind
from kiebitz.dissectors.grammar.sentences import value_at
from kiebitz.dissectors.protocol_file.sections import IdentitySpec
from kiebitz.dissectors.protocol_file.specification import (
    FieldSpec,
    FieldTypeSpec,
    IdentifierType,
    ListType,
    MapType,
    MessageSpec,
    ObjectType,
    Specification,
    parts_of,
)
from kiebitz.dissectors.protocol_file.text_types import identifier_kind

PLAYER, ID = "player", "id"
"""Kinds of identifiers of players: names and numbers."""

_PLAYER = identifier_kind(PLAYER)

NULL_IDS: Collection[Any] = (None, "", -1)
"""Values of an id field that identify no player."""

Resolve = Callable[[Any], str | None]
"""Returns the name of the player with an id, or the id as text."""

Path = tuple[str, ...]

Pairs = Callable[[Mapping[str, Any]], Iterator[tuple[Any, Any]]]
"""Yields ids, each with the name that belongs to it, from the fields of a message."""


class Role(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a message that identify players.

    Attributes:
        id: Path of a player's id in the fields, None if there is none.
        name: Path of a player's name.
        who: Path of what identifies the player of the message; None if it is the connection's.
        is_own: True if a client's connection identifies the player, whatever a field says.
        logs_in: True if a client gives its name.
        gives: True if the server gives the connection its id, or accepts its name.
        accepts: True if the server answers a login and repeats the name.
        refuses: True if the server answers a login in any other way.
        waits: True if the name that a client gives counts only after the server has accepted it.
        pairs: Function that yields the ids in the fields, each with its name; None if there are none.
        leaves: True if the player of the message has left.
    """

    id: Path | None = None
    name: Path | None = None
    who: Path | None = None
    is_own: bool = False
    logs_in: bool = False
    gives: bool = False
    accepts: bool = False
    refuses: bool = False
    waits: bool = False
    pairs: Pairs | None = None
    leaves: bool = False

    @property
    def is_silent(self) -> bool:
        """True if the message says nothing about who is who."""
        says = self.logs_in or self.gives or self.accepts or self.refuses or self.leaves
        return not says and self.pairs is None


def roles_of(specification: Specification) -> list[Role]:
    """Return the role of each row."""
    identity = specification.identity or IdentitySpec()
    logins = frozenset(identity.logins)
    answers = [
        row for row in specification.messages if row.direction == "s2c" and not logins.isdisjoint(row.answers)
    ]
    accepted = frozenset(
        name for row in answers for name in row.answers if _field_of(row, PLAYER, identity.name)
    )
    asked = [_field_of(row, PLAYER, identity.name) for row in specification.messages if row.name in logins]
    names = {path[-1] for path in asked if path is not None}
    awaited = logins & (frozenset() if identity.given else accepted)
    return [_role(row, identity, awaited, names) for row in specification.messages]


def _role(row: MessageSpec, identity: IdentitySpec, awaited: Collection[str], names: Collection[str]) -> Role:
    """Return the role of a row.

    An answer repeats the name of a login in `awaited`. `names` are those of the fields in which clients give
    their names.
    """
    id_field = _field_of(row, ID, identity.id)
    name = _field_of(row, PLAYER, identity.name)
    is_server = row.direction == "s2c"
    if is_server and row.name in identity.given and names and name is not None and name[-1] not in names:
        # Another field names another player, such as the opponent.
        name = next((path for path, _ in _paths(row.fields) if path[-1] in names), None)
    logs_in = not is_server and row.name in identity.logins
    answers_login = is_server and not {*awaited}.isdisjoint(row.answers)
    who = name if logs_in else id_field or name
    if who is None and row.broadcast:
        # All receive it, so its connections say nothing of its player.
        named = [path for path, type in _paths(row.fields) if kind_of(type) in (ID, PLAYER)]
        who = named[0] if len(named) == 1 else None
    return Role(
        id=id_field,
        name=name,
        who=who,
        is_own=not is_server and not logs_in,
        logs_in=logs_in,
        gives=is_server and row.name in identity.given,
        accepts=answers_login and name is not None,
        refuses=answers_login and name is None and not row.broadcast,
        waits=logs_in and (bool(identity.given) or row.name in awaited),
        pairs=_pairs(row, identity, id_field, name),
        leaves=row.name in identity.left,
    )


def _paths(fields: Iterable[FieldSpec], above: Path = ()) -> Iterator[tuple[Path, FieldTypeSpec]]:
    """Yield the paths of all fields, and of those within objects, outermost first."""
    yield from (((*above, field.name), field.type) for field in fields)
    for field in fields:
        if isinstance(field.type, ObjectType):
            yield from _paths(field.type.fields, (*above, field.name))


def _field_of(row: MessageSpec, kind: str, name: str) -> Path | None:
    """Return the path of the field with this name, or else of this kind of identifier."""
    return next(
        (path for path, type in _paths(row.fields) if (path[-1] == name if name else kind_of(type) == kind)),
        None,
    )


def _pairs(row: MessageSpec, identity: IdentitySpec, id: Path | None, name: Path | None) -> Pairs | None:
    """Return the function that yields ids with their names from the fields of a message."""
    if row.name not in identity.named if identity.named else row.direction == "c2s":
        return None
    within = _pairs_in(row.fields, identity)
    if id is None or name is None or not identity.named:
        return within

    def pairs(fields: Fields) -> Iterator[tuple[Any, Any]]:
        yield value_at(fields, id), value_at(fields, name)
        if within is not None:
            yield from within(fields)

    return pairs


def _pairs_in(fields: Iterable[FieldSpec], identity: IdentitySpec) -> Pairs | None:
    """Return the function that yields ids with their names from objects with these fields, at any depth."""
    id = _name_of(fields, ID, identity.id)
    name = _name_of(fields, PLAYER, identity.name)
    inner: list[tuple[str, Pairs]] = []
    for field in fields:
        type = field.type
        while isinstance(type, ListType):
            type = type.item
        if isinstance(type, MapType):
            inner += [(field.name, each) for each in (_pairs_of_keys(type, identity),) if each is not None]
        if isinstance(type, ObjectType) and (found := _pairs_in(type.fields, identity)) is not None:
            inner.append((field.name, found))
    if not inner and (id is None or name is None):
        return None

    def pairs(values: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
        if id is not None and name is not None:
            yield values.get(id), values.get(name)
        for key, within in inner:
            for part in _objects(values.get(key)):
                yield from within(part)

    return pairs


def _pairs_of_keys(type: MapType, identity: IdentitySpec) -> Pairs | None:
    """Return the function that yields the keys of an object with the names in its values."""
    fields = type.value.fields if isinstance(type.value, ObjectType) else ()
    name = _name_of(fields, PLAYER, identity.name)
    if kind_of(type.key) != ID or name is None:
        return None
    return lambda values: ((key, part.get(name)) for key, part in values.items() if isinstance(part, dict))


def _name_of(fields: Iterable[FieldSpec], kind: str, name: str) -> str | None:
    """Return the name of the field with this name, or else of this kind of identifier."""
    return next(
        (field.name for field in fields if (field.name == name if name else kind_of(field.type) == kind)),
        None,
    )


def _objects(value: Any) -> Iterator[Mapping[str, Any]]:
    """Yield an object, or the objects in a list."""
    if isinstance(value, dict):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _objects(part)


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
        elif isinstance(type, ObjectType):
            waiting += [(part.name, part.type) for part in type.fields]
        else:
            waiting += [(name, part) for part in parts_of(type)]


def conversion_of(
    field: FieldSpec, kind: FieldType, identity: IdentitySpec | None
) -> Callable[[Any, Resolve], Any] | None:
    """Return the function that replaces ids in a field of this type by names, None if there are none."""
    if identity is not None and field.name == identity.id:
        return _resolved
    return partial(_named, kind) if any(of in (ID, PLAYER) for _, of in kinds_in(field)) else None


def _named(kind: FieldType, value: Any, resolve: Resolve) -> Any:
    def rename(of: IdentifierKind, part: Any) -> Any:
        if not of.of_player or not isinstance(part, str | int):
            return part
        return label(str(part)) if of == _PLAYER else _resolved(part, resolve)

    return kind.renamed(value, rename)


def _resolved(value: Any, resolve: Resolve) -> Any:
    if isinstance(value, dict | list | bool) or value in NULL_IDS:
        return value
    return resolve(value)
