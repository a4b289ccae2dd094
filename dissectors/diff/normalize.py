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

from kiebitz.dissectors.diff.players import Roster
from kiebitz.dissectors.grammar.field_type import IdentifierKind, IdentifierKinds, KeysOf
from kiebitz.dissectors.grammar.grammar import Grammar
from kiebitz.dissectors.grammar.sentences import CALLED
from kiebitz.dissectors.model import ENDINGS

_MAX_DEPTH = 40
"""Values nested deeper than this are compared unchanged."""

_DERIVED_KEYS = frozenset({"known_to", "others_see", CALLED})
"""Keys that follow from an event's other data: its visibility, and the names of its players."""

_ENCODE = msgspec.json.Encoder(order="sorted").encode

Keyed = tuple[tuple[int, bytes], ...]
"""An object keyed by players: stay and value as JSON."""


class NormalizedField(msgspec.Struct, frozen=True, gc=False):
    """A field of an event with placeholders: `skeleton` is its JSON.

    `players` and `keyed` fill the placeholders, in order, by the stays of the roster; `identifiers` are
    the other ones.
    """

    field: str
    skeleton: bytes
    players: tuple[int, ...]
    keyed: tuple[Keyed, ...]
    identifiers: tuple[tuple[str, str], ...]


class NormalizedEvent(msgspec.Struct, frozen=True, gc=False):
    """An event with placeholders, field by field; the first field is the actor.

    `adopted_name` is a name that a player adopts in it. `is_ending` is True if it only reports the end of a
    connection.
    """

    kind: str
    actor: int | None
    parts: tuple[NormalizedField, ...]
    adopted_name: str | None = None
    is_ending: bool = False

    @property
    def identifiers(self) -> list[tuple[str, str]]:
        """The identifiers that are not players'."""
        return [value for part in self.parts for value in part.identifiers]


Key = tuple[Any, ...]


def field_key(part: NormalizedField, who: Sequence[int]) -> Key:
    """Return a key that is equal for equivalent fields; `who` maps stays to numbers that both sides share."""
    if not part.players and not part.keyed:
        return part.field, part.skeleton
    return (
        part.field,
        part.skeleton,
        tuple([who[number] for number in part.players]),
        tuple(tuple(sorted((who[number], value) for number, value in keyed)) for keyed in part.keyed),
    )


def key(event: NormalizedEvent, who: Sequence[int]) -> Key:
    """Return a key that is equal for equivalent events."""
    return (event.kind, *[field_key(part, who) for part in event.parts])


class Normalizer:
    """Normalizes the events of one table, in order; equal texts are normalized once."""

    def __init__(self, grammar: Grammar | None) -> None:
        self.roster = Roster()
        self.events: list[NormalizedEvent] = []
        self._grammar = grammar
        self._kinds: IdentifierKinds = grammar.data_identifiers if grammar is not None else {}
        self._known: dict[tuple[str, str | None, str], int] = {}
        self._version = 0

    def normalize(self, kind: str, actor: str | None, data: str) -> int:
        """Return the number of the normalized event of an event, whose data is JSON text."""
        if self._version != self.roster.version:
            self._version = self.roster.version
            self._known.clear()
        number = self._known.get((kind, actor, data))
        if number is None:
            number = len(self.events)
            event = self._normalize(kind, actor, data)
            self.events.append(event)
            # A name is adopted once; repeated announcements of it adopt none.
            if event.adopted_name is None and self._version == self.roster.version:
                self._known[kind, actor, data] = number
            if self._ending(kind) is not None:
                self.roster.leave([stay for part in event.parts for stay in part.players])
        return number

    def _normalize(self, kind: str, actor: str | None, text: str) -> NormalizedEvent:
        try:
            data: dict[str, Any] = msgspec.json.decode(text)
            adopted_name = self._learn_aliases(data)
            ending = self._ending(kind)
            is_ending = ending is not None and _is_ending(data.get(ending))
            if ending is not None and is_ending:
                data[ending] = None
            parts = tuple(self._parts({"actor": actor, **data}))
        except RecursionError:
            return NormalizedEvent(
                kind, None, (NormalizedField("data", f"{actor} {text}".encode(), (), (), ()),)
            )
        # Who acts comes first.
        acting = parts[0].players
        return NormalizedEvent(kind, acting[0] if acting else None, parts, adopted_name, is_ending)

    def _parts(self, data: dict[str, Any]) -> Iterator[NormalizedField]:
        for name, value in data.items():
            if name in _DERIVED_KEYS:
                continue
            if name not in self._kinds and not isinstance(value, dict | list):
                yield NormalizedField(name, _ENCODE(value), (), (), ())
                continue
            placeholders = _Placeholders(self.roster, self._kinds)
            skeleton = _ENCODE(placeholders.walk(name, value, 0))
            yield NormalizedField(
                name,
                skeleton,
                tuple(placeholders.players),
                tuple(placeholders.keyed),
                tuple(placeholders.identifiers),
            )

    def _learn_aliases(self, data: dict[str, Any]) -> str | None:
        """Learn which identifiers belong to the same player; return a name that replaces another one."""
        adopted_name: str | None = None
        aliases = self._grammar.aliases if self._grammar is not None else {}
        for older, newer in aliases.items():
            value, name = data.get(older), data.get(newer)
            kind, newer_kind = self._kinds[older], self._kinds[newer]
            # The grammar defines the keys, but their values may have any type.
            if not (isinstance(value, str | int) and isinstance(name, str)):
                continue
            assert isinstance(kind, IdentifierKind)
            assert isinstance(newer_kind, IdentifierKind)
            if self.roster.add_alias(kind, value, newer_kind, name):
                adopted_name = name
        return adopted_name

    def _ending(self, kind: str) -> str | None:
        known = self._grammar.events.get(kind) if self._grammar is not None else None
        return known.ending if known is not None else None


def _is_ending(reason: Any) -> bool:
    return isinstance(reason, str) and reason in ENDINGS


class _Placeholders(msgspec.Struct, eq=False):
    """Replaces the identifiers of one event by placeholders."""

    _roster: Roster
    _kinds: IdentifierKinds
    players: list[int] = []
    keyed: list[Keyed] = []
    identifiers: list[tuple[str, str]] = []

    def walk(self, name: str, value: Any, depth: int) -> Any:
        kind = self._kinds.get(name)
        if isinstance(kind, KeysOf):
            return self._keys(kind.kind, value) if isinstance(value, dict) else value
        if kind is None:
            return self._inside(value, depth)
        if isinstance(value, dict):
            return self._keys(kind, value)
        if isinstance(value, list):
            return [self._placeholder(kind, part) for part in value]
        return self._placeholder(kind, value)

    def _inside(self, value: Any, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            return value
        if isinstance(value, dict):
            return {name: self.walk(name, part, depth + 1) for name, part in value.items()}
        if isinstance(value, list):
            return [self._inside(part, depth + 1) for part in value]
        return value

    def _placeholder(self, kind: IdentifierKind, value: Any) -> Any:
        if value is None or value in kind.null_values or isinstance(value, dict | list):
            return value
        if kind.of_player:
            self.players.append(self._roster.stay(kind, value))
        else:
            self.identifiers.append((kind.title, str(value)))
        return {"": kind.title}

    def _keys(self, kind: IdentifierKind, value: dict[str, Any]) -> Any:
        if not kind.of_player:
            return [value[name] for name in sorted(value)]
        self.keyed.append(
            tuple((self._roster.stay(kind, name), _ENCODE(part)) for name, part in value.items())
        )
        return {"": kind.title}
