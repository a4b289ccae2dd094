"""Comparison of two states of a table, path by path.

Players are compared by the matching of the sessions' players, games by that of the games; other identifiers
(of a lobby) are matched in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.grammar.field_type import IdentifierKind, IdentifierKinds, KeysOf

Path = tuple[str, ...]

Owners = Mapping[tuple[IdentifierKind | None, str], int]
"""The owners of identifiers: players, by numbers that both sides share; under None, of all names."""


class StateDifference(msgspec.Struct, frozen=True):
    """A difference of two states; on a side without a value, path and value are None."""

    path_a: Path | None
    path_b: Path | None
    a: Any
    b: Any


def compare_states(
    a: State, b: State, kinds: IdentifierKinds, owners: tuple[Owners, Owners], games: Mapping[str, str]
) -> list[StateDifference]:
    """Return the differences of two states, in the order of the first.

    `games` maps the games of the first to those of the second.
    """
    return list(_Comparison(kinds, owners, games).compare_objects((), a, (), b, None))


class _Comparison(msgspec.Struct, eq=False):
    """A simultaneous traversal of both states."""

    _kinds: IdentifierKinds
    _owners: tuple[Owners, Owners]
    _games: Mapping[str, str]

    def compare_objects(
        self, path_a: Path, a: dict[str, Any], path_b: Path, b: dict[str, Any], kind: IdentifierKind | None
    ) -> Iterator[StateDifference]:
        """Compare two objects, whose keys may be identifiers."""
        partners = self._partners([*a], [*b], kind, is_games=path_a == ("games",))
        for name, value in a.items():
            other = partners.get(name)
            if other is None:
                yield StateDifference((*path_a, name), None, value, None)
            else:
                yield from self._compare_values(
                    (*path_a, name), value, (*path_b, other), b[other], name, kind
                )
        found = {*partners.values()}
        for name, value in b.items():
            if name not in found:
                yield StateDifference(None, (*path_b, name), None, value)

    def _compare_values(
        self, path_a: Path, a: Any, path_b: Path, b: Any, name: str, within: IdentifierKind | None
    ) -> Iterator[StateDifference]:
        """Compare two values under matching keys. A value has no kind itself if its key is an identifier."""
        kind = self._kinds.get(name) if within is None else None
        of_keys = kind.kind if isinstance(kind, KeysOf) else kind
        if isinstance(a, dict) and isinstance(b, dict):
            yield from self.compare_objects(path_a, a, path_b, b, of_keys)
        elif isinstance(a, list) and isinstance(b, list) and _is_nested(a) and _is_nested(b):
            yield from self._compare_lists(path_a, a, path_b, b, name, within)
        elif not self._same(kind, a, b):
            yield StateDifference(path_a, path_b, a, b)

    def _compare_lists(
        self, path_a: Path, a: list[Any], path_b: Path, b: list[Any], name: str, within: IdentifierKind | None
    ) -> Iterator[StateDifference]:
        for place in range(max(len(a), len(b))):
            step = str(place)
            if place >= len(b):
                yield StateDifference((*path_a, step), None, a[place], None)
            elif place >= len(a):
                yield StateDifference(None, (*path_b, step), None, b[place])
            else:
                yield from self._compare_values(
                    (*path_a, step), a[place], (*path_b, step), b[place], name, within
                )

    def _same(self, kind: IdentifierKind | KeysOf | None, a: Any, b: Any) -> bool:
        if not isinstance(kind, IdentifierKind):
            return bool(a == b)
        if isinstance(a, list) and isinstance(b, list):
            return len(a) == len(b) and all(self._same(kind, x, y) for x, y in zip(a, b, strict=True))
        if not kind.of_player or a is None or b is None:
            return (a is None) == (b is None)
        return self._owner(0, kind, a) == self._owner(1, kind, b)

    def _owner(self, side: int, kind: IdentifierKind, value: Any) -> int | str:
        """Return the owner of an identifier, or the identifier itself if no player has it."""
        owners, text = self._owners[side], str(value)
        return owners.get((kind, text), owners.get((None, text), text))

    def _partners(
        self, a: Sequence[str], b: Sequence[str], kind: IdentifierKind | None, is_games: bool
    ) -> dict[str, str]:
        """Return the matching of the keys of two objects."""
        if kind is not None and kind.of_player:
            others = {self._owner(1, kind, name): name for name in b}
            return {name: others[who] for name in a if (who := self._owner(0, kind, name)) in others}
        if kind is None and not is_games:
            return {name: name for name in a if name in b}
        known = self._games if is_games else {name: name for name in a if {*a} == {*b}}
        partners = {name: known[name] for name in a if known.get(name) in b}
        rest_a = [name for name in a if name not in partners]
        rest_b = [name for name in b if name not in partners.values()]
        return partners | dict(zip(rest_a, rest_b, strict=False))


def _is_nested(values: list[Any]) -> bool:
    """Return True if a list contains objects or lists; a list of plain values is compared as a whole."""
    return any(isinstance(value, dict | list) for value in values)
