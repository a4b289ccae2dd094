"""Normalization of stored events: kind and data without the identifiers that differ between sessions.

In a normalized event, identifiers are replaced by placeholders. A player's placeholder has the number of
their stay; another identifier's (a trade, a seat) has its value, which is compared only by where else it
occurs. The reason why a connection ended is ignored. With a matching of players, normalized events become
comparable keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from kiebitz.dissectors.diff.players import Cast
from kiebitz.dissectors.grammar.field_type import IdentifierKind, IdentifierKinds, KeysOf
from kiebitz.dissectors.grammar.grammar import Grammar
from kiebitz.dissectors.grammar.sentences import CALLED
from kiebitz.dissectors.model import ENDINGS

_DEEPEST = 40
"""Values nested deeper than this are compared unchanged."""

_NOT_MEANT = frozenset({"known_to", "others_see", CALLED})
"""Keys that follow from an event's other data: its visibility, and the names of its players."""

_ENCODE = msgspec.json.Encoder(order="sorted").encode

Keyed = tuple[tuple[int, bytes], ...]
"""An object keyed by players: stay and value as JSON."""


class Part(msgspec.Struct, frozen=True, gc=False):
    """A field of an event with placeholders: `skeleton` is its JSON.

    `players` and `keyed` fill the placeholders, in order, by the stays of the roster; `named` are the values
    of other identifiers.
    """

    field: str
    skeleton: bytes
    players: tuple[int, ...]
    keyed: tuple[Keyed, ...]
    named: tuple[tuple[str, str], ...]


class Reading(msgspec.Struct, frozen=True, gc=False):
    """An event with placeholders, field by field; the first field is the actor.

    `given` is a name that a player adopts in it. `is_ending` is True if it only reports the end of a
    connection.
    """

    kind: str
    actor: int | None
    parts: tuple[Part, ...]
    given: str | None = None
    is_ending: bool = False

    @property
    def named(self) -> list[tuple[str, str]]:
        """The identifiers that are not players'."""
        return [value for part in self.parts for value in part.named]


Key = tuple[Any, ...]


def part_key(part: Part, who: Sequence[int]) -> Key:
    """Return a key that is equal for equivalent fields; `who` maps stays to numbers that both sides share."""
    if not part.players and not part.keyed:
        return part.field, part.skeleton
    return (
        part.field,
        part.skeleton,
        tuple([who[number] for number in part.players]),
        tuple(tuple(sorted((who[number], value) for number, value in keyed)) for keyed in part.keyed),
    )


def key(reading: Reading, who: Sequence[int]) -> Key:
    """Return a key that is equal for equivalent events."""
    return (reading.kind, *[part_key(part, who) for part in reading.parts])


class Reader:
    """Normalizes the events of one table, in order; equal texts are normalized once."""

    def __init__(self, grammar: Grammar | None) -> None:
        self.cast = Cast()
        self.readings: list[Reading] = []
        self._grammar = grammar
        self._handles: IdentifierKinds = grammar.data_identifiers if grammar is not None else {}
        self._known: dict[tuple[str, str | None, str], int] = {}
        self._version = 0

    def read(self, kind: str, actor: str | None, data: str) -> int:
        """Return the number of the normalized event of an event, whose data is JSON text."""
        if self._version != self.cast.version:
            self._version = self.cast.version
            self._known.clear()
        number = self._known.get((kind, actor, data))
        if number is None:
            number = len(self.readings)
            reading = self._read(kind, actor, data)
            self.readings.append(reading)
            # A name is adopted once; repeated announcements of it adopt none.
            if reading.given is None and self._version == self.cast.version:
                self._known[kind, actor, data] = number
            if self._ending(kind) is not None:
                self.cast.leave([stay for part in reading.parts for stay in part.players])
        return number

    def _read(self, kind: str, actor: str | None, text: str) -> Reading:
        try:
            data: dict[str, Any] = msgspec.json.decode(text)
            given = self._take_aliases(data)
            ending = self._ending(kind)
            is_ending = ending is not None and _is_ending(data.get(ending))
            if ending is not None and is_ending:
                data[ending] = None
            parts = tuple(self._parts({"actor": actor, **data}))
        except RecursionError:
            return Reading(kind, None, (Part("data", f"{actor} {text}".encode(), (), (), ()),))
        # Who acts comes first.
        acting = parts[0].players
        return Reading(kind, acting[0] if acting else None, parts, given, is_ending)

    def _parts(self, data: dict[str, Any]) -> Iterator[Part]:
        for name, value in data.items():
            if name in _NOT_MEANT:
                continue
            if name not in self._handles and not isinstance(value, dict | list):
                yield Part(name, _ENCODE(value), (), (), ())
                continue
            holes = _Holes(self.cast, self._handles)
            skeleton = _ENCODE(holes.walk(name, value, 0))
            yield Part(name, skeleton, tuple(holes.players), tuple(holes.keyed), tuple(holes.named))

    def _take_aliases(self, data: dict[str, Any]) -> str | None:
        """Learn which identifiers belong to the same player; return a name that replaces another one."""
        given: str | None = None
        aliases = self._grammar.aliases if self._grammar is not None else {}
        for older, newer in aliases.items():
            value, name = data.get(older), data.get(newer)
            handle, newer_handle = self._handles[older], self._handles[newer]
            # The grammar defines the keys, but their values may have any type.
            if not (isinstance(value, str | int) and isinstance(name, str)):
                continue
            assert isinstance(handle, IdentifierKind)
            assert isinstance(newer_handle, IdentifierKind)
            if self.cast.alias(handle, value, newer_handle, name):
                given = name
        return given

    def _ending(self, kind: str) -> str | None:
        known = self._grammar.events.get(kind) if self._grammar is not None else None
        return known.ending if known is not None else None


def _is_ending(reason: Any) -> bool:
    return isinstance(reason, str) and reason in ENDINGS


class _Holes:
    """Replaces the identifiers of one event by placeholders."""

    def __init__(self, cast: Cast, handles: IdentifierKinds) -> None:
        self._cast = cast
        self._handles = handles
        self.players: list[int] = []
        self.keyed: list[Keyed] = []
        self.named: list[tuple[str, str]] = []

    def walk(self, name: str, value: Any, depth: int) -> Any:
        handle = self._handles.get(name)
        if isinstance(handle, KeysOf):
            return self._keys(handle.kind, value) if isinstance(value, dict) else value
        if handle is None:
            return self._inside(value, depth)
        if isinstance(value, dict):
            return self._keys(handle, value)
        if isinstance(value, list):
            return [self._hole(handle, part) for part in value]
        return self._hole(handle, value)

    def _inside(self, value: Any, depth: int) -> Any:
        if depth > _DEEPEST:
            return value
        if isinstance(value, dict):
            return {name: self.walk(name, part, depth + 1) for name, part in value.items()}
        if isinstance(value, list):
            return [self._inside(part, depth + 1) for part in value]
        return value

    def _hole(self, handle: IdentifierKind, value: Any) -> Any:
        if value is None or value in handle.null_values or isinstance(value, dict | list):
            return value
        if handle.of_player:
            self.players.append(self._cast.stay(handle, value))
        else:
            self.named.append((handle.title, str(value)))
        return {"": handle.title}

    def _keys(self, handle: IdentifierKind, value: dict[str, Any]) -> Any:
        if not handle.of_player:
            return [value[name] for name in sorted(value)]
        self.keyed.append(
            tuple((self._cast.stay(handle, name), _ENCODE(part)) for name, part in value.items())
        )
        return {"": handle.title}
