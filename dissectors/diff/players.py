"""The players of a session, and their matching with another session's by name or by seat.

Players are identified by numbers and names. An event may report that two identifiers belong to the same
player: a number and a name, or a new name and the previous one. The identifiers of a player who has left may
be reused. A *seat* is the position in the order in which players first appear at a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from kiebitz.dissectors.grammar.field_type import IdentifierKind

_Value = tuple[IdentifierKind, str]


class NamedPlayer(msgspec.Struct, eq=False):
    """A player of one table.

    `names` are all names of the player, the latest last, or only the number (`is_numbered`).
    """

    names: list[str]
    is_numbered: bool

    @property
    def name(self) -> str:
        """The latest name."""
        return self.names[-1]


class Roster(msgspec.Struct, eq=False):
    """The players of one table, in order of appearance.

    While events are read it counts *stays*: a player who leaves and returns begins another one. After
    `join_stays`, `players` are the players, and `player_of` maps each stay to its player.
    """

    version: int = 0
    """Changes whenever an identifier is reassigned or freed."""
    players: list[NamedPlayer] = []
    player_of: list[int] = []
    _stays: list[NamedPlayer] = []
    _left: dict[int, int] = {}
    """The stays that are over, with the number of stays at that time."""
    _values: dict[int, set[_Value]] = {}
    """The identifiers of the players who are present, by stay."""
    _owners: dict[_Value, int] = {}
    _last_owners: dict[_Value, int] = {}

    # While events are read.

    def stay(self, kind: IdentifierKind, value: object) -> int:
        """Return the stay of the player with an identifier; an unknown identifier begins a new stay."""
        key = (kind, str(value))
        number = self._owners.get(key)
        return self._begin(key, NamedPlayer([key[1]], is_numbered=True)) if number is None else number

    def add_alias(
        self, kind: IdentifierKind, value: object, newer_kind: IdentifierKind, newer: object
    ) -> bool:
        """Note that two identifiers belong to the same player; return whether the player had another name.

        If both are names (of one kind), the older one becomes free for others.
        """
        key, name = (kind, str(value)), (newer_kind, str(newer))
        is_rename = kind == newer_kind
        known = self._owners.get(key)
        if known is None and is_rename:
            known = self._owners.get(name)
        if known is None:
            known = self._begin(key, NamedPlayer([key[1]] if is_rename else [], is_numbered=False))
        person = self._stays[known]
        if person.is_numbered and not is_rename:
            person.names.clear()
        person.is_numbered = False
        if self._owners.get(name) != known:
            self.version += name in self._owners
            self._assign(name, known)
        if is_rename and key != name and self._owners.get(key) == known:
            self._free(key)
        had_other = bool(person.names) and person.name != name[1]
        if had_other and not is_rename:
            # Before a player announces a name, the name is made of the number.
            person.names.clear()
        if had_other or not person.names:
            person.names.append(name[1])
        return had_other

    def leave(self, stays: Sequence[int]) -> None:
        """End these stays."""
        for number in stays:
            for key in self._values.pop(number, ()):
                if self._owners.get(key) == number:
                    self._free(key)
            self._left[number] = len(self._stays)

    def _begin(self, key: _Value, person: NamedPlayer) -> int:
        self._stays.append(person)
        self._assign(key, len(self._stays) - 1)
        return len(self._stays) - 1

    def _assign(self, key: _Value, number: int) -> None:
        self._owners[key] = self._last_owners[key] = number
        self._values.setdefault(number, set()).add(key)

    def _free(self, key: _Value) -> None:
        del self._owners[key]
        self.version += 1

    # When all are read.

    def numbers_with_names(self) -> Iterator[tuple[str, str]]:
        """Yield the identifiers of each player with a name, with that name."""
        for (_, value), number in self._last_owners.items():
            if not self._stays[number].is_numbered:
                yield value, self._stays[number].name

    def join_stays(self, names: dict[str, str]) -> None:
        """Join the stays of players who returned under the same name; `names` maps numbers without a name."""
        latest: dict[str, int] = {}
        for number, person in enumerate(self._stays):
            if person.is_numbered and person.name in names:
                person.names.append(names[person.name])
            before = latest.get(person.name)
            if before is not None and self._left.get(before, number + 1) <= number:
                self.player_of.append(self.player_of[before])
                self.players[self.player_of[before]].names += person.names
            else:
                self.player_of.append(len(self.players))
                self.players.append(NamedPlayer([*person.names], person.is_numbered))
            latest[person.name] = number

    def find(self, kind: IdentifierKind, value: object) -> int | None:
        """Return the player who last had an identifier, or None."""
        stay = self._last_owners.get((kind, str(value)))
        return self.player_of[stay] if stay is not None else None

    def owners(self, who: Sequence[int]) -> dict[tuple[IdentifierKind | None, str], int]:
        """Return the owners of all identifiers and, under None, of all names; `who` numbers the players."""
        owners: dict[tuple[IdentifierKind | None, str], int] = {
            (None, name): who[number] for number, one in enumerate(self.players) for name in one.names
        }
        for key, stay in self._last_owners.items():
            owners[key] = who[self.player_of[stay]]
        return owners


Match = list[int | None]
"""For each player of one session, the player of the other one, or None."""


def by_name(mine: Sequence[NamedPlayer], others: Sequence[NamedPlayer]) -> Match:
    """Match players by their latest name, then by any name."""
    match: Match = [None] * len(mine)
    free = dict.fromkeys(range(len(others)))
    for latest in (1, None):
        bearers: dict[str, list[int]] = {}
        for number in reversed(free):
            for name in others[number].names[::-1][:latest]:
                bearers.setdefault(name, []).append(number)
        for number, person in enumerate(mine):
            if match[number] is not None:
                continue
            names = person.names[::-1][:latest]
            found = next((one for name in names if (one := _free(bearers.get(name), free)) is not None), None)
            if found is not None:
                match[number] = found
                del free[found]
    return match


def by_seat(mine: Sequence[NamedPlayer], others: Sequence[NamedPlayer]) -> Match:
    """Match players by their order of appearance."""
    return [number if number < len(others) else None for number in range(len(mine))]


def _free(numbers: list[int] | None, free: dict[int, None]) -> int | None:
    """Return the last of the numbers that is free; remove those after it."""
    while numbers and numbers[-1] not in free:
        numbers.pop()
    return numbers[-1] if numbers else None
