"""Compares two states of a table, path by path.

Players stand in them by number or name; whoever is the same on the other side is so here. Games are matched
as those of the sessions are, the rest in order; what else names something (a lobby) is matched in order, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.grammar.field_type import IdentifierKind, IdentifierKinds, KeysOf

Path = tuple[str, ...]

Called = Mapping[tuple[IdentifierKind | None, str], int]
"""Whom the values of handles call: players, by numbers that both sides share. Under None stand all names."""


class StateDifference(msgspec.Struct, frozen=True):
    """A place at which two states differ. Where one has nothing there, its path and its value are None."""

    path_a: Path | None
    path_b: Path | None
    a: Any
    b: Any


def compare_states(
    a: State, b: State, handles: IdentifierKinds, called: tuple[Called, Called], games: Mapping[str, str]
) -> list[StateDifference]:
    """Where two states differ, in the order of the first; `games` leads from its games to the other's."""
    return list(_Comparison(handles, called, games).objects((), a, (), b, None))


class _Comparison:
    """Walks through both states at once."""

    def __init__(
        self, handles: IdentifierKinds, called: tuple[Called, Called], games: Mapping[str, str]
    ) -> None:
        self._handles = handles
        self._called = called
        self._games = games

    def objects(
        self, path_a: Path, a: dict[str, Any], path_b: Path, b: dict[str, Any], handle: IdentifierKind | None
    ) -> Iterator[StateDifference]:
        """Two objects, whose keys may be of a handle."""
        partners = self._partners([*a], [*b], handle, is_games=path_a == ("games",))
        for name, value in a.items():
            other = partners.get(name)
            if other is None:
                yield StateDifference((*path_a, name), None, value, None)
            else:
                yield from self._values((*path_a, name), value, (*path_b, other), b[other], name, handle)
        found = {*partners.values()}
        for name, value in b.items():
            if name not in found:
                yield StateDifference(None, (*path_b, name), None, value)

    def _values(
        self, path_a: Path, a: Any, path_b: Path, b: Any, name: str, within: IdentifierKind | None
    ) -> Iterator[StateDifference]:
        """Two values under keys that are the same; what a key that is itself a handle leads to has none."""
        handle = self._handles.get(name) if within is None else None
        of_keys = handle.kind if isinstance(handle, KeysOf) else handle
        if isinstance(a, dict) and isinstance(b, dict):
            yield from self.objects(path_a, a, path_b, b, of_keys)
        elif isinstance(a, list) and isinstance(b, list) and _has_parts(a) and _has_parts(b):
            yield from self._lists(path_a, a, path_b, b, name, within)
        elif not self._same(handle, a, b):
            yield StateDifference(path_a, path_b, a, b)

    def _lists(
        self, path_a: Path, a: list[Any], path_b: Path, b: list[Any], name: str, within: IdentifierKind | None
    ) -> Iterator[StateDifference]:
        """Two lists of objects, place by place."""
        for place in range(max(len(a), len(b))):
            step = str(place)
            if place >= len(b):
                yield StateDifference((*path_a, step), None, a[place], None)
            elif place >= len(a):
                yield StateDifference(None, (*path_b, step), None, b[place])
            else:
                yield from self._values((*path_a, step), a[place], (*path_b, step), b[place], name, within)

    def _same(self, handle: IdentifierKind | KeysOf | None, a: Any, b: Any) -> bool:
        if not isinstance(handle, IdentifierKind):
            return bool(a == b)
        if isinstance(a, list) and isinstance(b, list):
            return len(a) == len(b) and all(self._same(handle, x, y) for x, y in zip(a, b, strict=True))
        if not handle.of_player or a is None or b is None:
            return (a is None) == (b is None)
        return self._who(0, handle, a) == self._who(1, handle, b)

    def _who(self, side: int, handle: IdentifierKind, value: Any) -> int | str:
        """The player who is called so; a name that nobody has is itself."""
        called, text = self._called[side], str(value)
        return called.get((handle, text), called.get((None, text), text))

    def _partners(
        self, a: Sequence[str], b: Sequence[str], handle: IdentifierKind | None, is_games: bool
    ) -> dict[str, str]:
        """Which keys of two objects are the same."""
        if handle is not None and handle.of_player:
            others = {self._who(1, handle, name): name for name in b}
            return {name: others[who] for name in a if (who := self._who(0, handle, name)) in others}
        if handle is None and not is_games:
            return {name: name for name in a if name in b}
        known = self._games if is_games else {name: name for name in a if {*a} == {*b}}
        partners = {name: known[name] for name in a if known.get(name) in b}
        rest_a = [name for name in a if name not in partners]
        rest_b = [name for name in b if name not in partners.values()]
        return partners | dict(zip(rest_a, rest_b, strict=False))


def _has_parts(values: list[Any]) -> bool:
    """Whether a list is one of objects; of plain values, such as cards, it is told as a whole."""
    return any(isinstance(value, dict | list) for value in values)
