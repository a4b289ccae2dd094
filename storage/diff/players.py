"""Who is who in a session, and who of two sessions is the same: by name, or by seat.

What calls a player is a value of a handle: a number, a name. An event may tell that two values call the same
one: a number and a name, or a name and what it was before. A *seat* is the order in which the players first
come up at a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from dissectors.grammar import Handle


class Person(msgspec.Struct, eq=False):
    """A player of one table. `names` are all he was ever called by name, or his number alone."""

    names: list[str]
    is_numbered: bool

    @property
    def name(self) -> str:
        """What he was called last."""
        return self.names[-1]


class Cast:
    """The players of one table, in the order in which they come up."""

    def __init__(self) -> None:
        self.people: list[Person] = []
        self.version = 0
        """Changes whenever a value calls somebody else than before."""
        self._called: dict[tuple[Handle, str], int] = {}

    def who(self, handle: Handle, value: object) -> int:
        """The number of the player whom a value calls; one who was never heard of is new."""
        key = (handle, str(value))
        number = self._called.get(key)
        if number is None:
            number = self._called[key] = len(self.people)
            self.people.append(Person([str(value)], is_numbered=True))
        return number

    def find(self, handle: Handle, value: object) -> int | None:
        """The number of a player who was called so last, None if nobody was."""
        return self._called.get((handle, str(value)))

    def called(self, who: Sequence[int]) -> dict[tuple[Handle, str], int]:
        """Whom all values call, by the numbers that `who` gives the players."""
        return {key: who[number] for key, number in self._called.items()}

    def numbers_with_names(self) -> Iterator[tuple[str, str]]:
        """The values of whoever has a name as well, each with his name."""
        for (_, value), number in self._called.items():
            person = self.people[number]
            if not person.is_numbered:
                yield value, person.name

    def alias(self, handle: Handle, value: object, newer_handle: Handle, newer: object) -> bool:
        """Two values call the same player; give whether he had another name before.

        Of two names, which have the same handle, the older one is then free for others.
        """
        key, name = (handle, str(value)), (newer_handle, str(newer))
        known = self._called.get(key, self._called.get(name) if handle == newer_handle else None)
        if known is None:
            known = self._called[key] = len(self.people)
            before = [key[1]] if handle == newer_handle else []
            self.people.append(Person(before, is_numbered=False))
        person = self.people[known]
        if person.is_numbered and handle != newer_handle:
            person.names.clear()
        person.is_numbered = False
        if self._called.get(name) != known:
            self.version += name in self._called
            self._called[name] = known
        if handle == newer_handle and key != name and self._called.get(key) == known:
            del self._called[key]
            self.version += 1
        had_other = bool(person.names) and person.name != name[1]
        if had_other or not person.names:
            person.names.append(name[1])
        return had_other


Match = list[int | None]
"""For each player of the one session who he is in the other."""


def by_name(mine: Sequence[Person], others: Sequence[Person]) -> Match:
    """Whoever was called the same last is the same, then whoever was ever called so."""
    match: Match = [None] * len(mine)
    free = dict.fromkeys(range(len(others)))
    for names in (_last_name, _all_names):
        bearers: dict[str, list[int]] = {}
        for number in reversed(free):
            for name in names(others[number]):
                bearers.setdefault(name, []).append(number)
        for number, person in enumerate(mine):
            if match[number] is not None:
                continue
            found = next(
                (one for name in names(person) if (one := _free(bearers.get(name), free)) is not None), None
            )
            if found is not None:
                match[number] = found
                del free[found]
    return match


def by_seat(mine: Sequence[Person], others: Sequence[Person]) -> Match:
    """Whoever comes up first is the same, then whoever comes up second."""
    return [number if number < len(others) else None for number in range(len(mine))]


def _last_name(person: Person) -> list[str]:
    return [person.name]


def _all_names(person: Person) -> list[str]:
    return person.names[::-1]


def _free(numbers: list[int] | None, free: dict[int, None]) -> int | None:
    """The first of these that is free; the list ends with the first, and what is not free is dropped."""
    while numbers and numbers[-1] not in free:
        numbers.pop()
    return numbers[-1] if numbers else None
