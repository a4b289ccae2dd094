"""Compares what happened at one table in two sessions."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import pairwise

import msgspec

from storage.diff.align import Pair
from storage.diff.games import match_games
from storage.diff.handles import agree, partners
from storage.diff.meaning import Reading, key, part_key
from storage.diff.pairing import Keys, Level, pair_up
from storage.diff.players import Match, by_name, by_seat
from storage.diff.result import EventDifference, GamePair, Matching, PlayerPair, Sort, TablePair
from storage.diff.side import TableSide
from storage.timeline import GameRow

_CLEARLY = 20
"""Players are matched by seat only if that makes more events equal by one of so many."""


class TableFindings(msgspec.Struct, frozen=True):
    """How two tables differ: their players, their games, how many events are the same, and the others."""

    pair: TablePair
    games: list[GamePair]
    same: int
    events: list[EventDifference]
    match: Match


class TableComparison:
    """Two tables side by side; `number` is the place of the pair, `first_game` that of its first game."""

    def __init__(self, a: TableSide, b: TableSide, number: int, first_game: int) -> None:
        self._a = a
        self._b = b
        self._number = number
        self._first_game = first_game
        self._matching, self._match, keys_a, keys_b = _matched(a, b)
        self._who_a = list(range(len(a.reader.cast.people)))
        self._who_b = shared_numbers(self._match, len(b.reader.cast.people))
        self._events_a = [keys_a[reading] for reading in a.readings]
        self._events_b = [keys_b[reading] for reading in b.readings]
        self._alike = [self._level(_kind_and_actor), self._level(_kind)]
        self._games: list[GamePair] = []
        self._found: list[EventDifference] = []
        self._same = 0

    def findings(self, games_a: Mapping[int, GameRow], games_b: Mapping[int, GameRow]) -> TableFindings:
        """All that differs; the games by their numbers."""
        strands_a, strands_b = self._a.strands(), self._b.strands()
        self._put_beside(None, strands_a.pop(0, []), strands_b.pop(0, []))
        matched = match_games(
            [[self._events_a[i] for i in strand] for strand in strands_a.values()],
            [[self._events_b[j] for j in strand] for strand in strands_b.values()],
        )
        numbers_a, numbers_b = list(strands_a), list(strands_b)
        for i, j in matched:
            number_a, number_b = numbers_a[i], numbers_b[j]
            strand_a, strand_b = strands_a.pop(number_a), strands_b.pop(number_b)
            self._add_game(games_a[number_a], games_b[number_b], strand_a, strand_b)
            self._put_beside(self._first_game + len(self._games) - 1, strand_a, strand_b)
        for number, strand in strands_a.items():
            self._add_game(games_a[number], None, strand, [])
        for number, strand in strands_b.items():
            self._add_game(None, games_b[number], [], strand)
        pair = TablePair(
            self._a.row,
            self._b.row,
            self._matching,
            _player_pairs(self._a, self._b, self._match),
            (len(self._a.ids), len(self._b.ids)),
            (self._a.reader.cast.called(self._who_a), self._b.reader.cast.called(self._who_b)),
        )
        return TableFindings(pair, self._games, self._same, self._found, self._match)

    def _add_game(
        self, a: GameRow | None, b: GameRow | None, strand_a: list[int], strand_b: list[int]
    ) -> None:
        first = (
            self._a.ids[strand_a[0]] if strand_a else None,
            self._b.ids[strand_b[0]] if strand_b else None,
        )
        self._games.append(GamePair(self._number, a, b, (len(strand_a), len(strand_b)), first))

    def _level(self, say: Callable[[Reading, Sequence[int]], Hashable]) -> Level:
        """Keys of all events that say no more than this."""
        numbers: dict[Hashable, int] = {}
        by_reading = [
            [numbers.setdefault(say(reading, who), len(numbers)) for reading in side.reader.readings]
            for side, who in ((self._a, self._who_a), (self._b, self._who_b))
        ]
        return (
            [by_reading[0][reading] for reading in self._a.readings],
            [by_reading[1][reading] for reading in self._b.readings],
        )

    def _put_beside(self, game: int | None, strand_a: list[int], strand_b: list[int]) -> None:
        """Compare the events of one game, or those outside games, given by their places at the table."""
        paired = pair_up(
            [self._events_a[i] for i in strand_a],
            [self._events_b[j] for j in strand_b],
            [
                ([keys_a[i] for i in strand_a], [keys_b[j] for j in strand_b])
                for keys_a, keys_b in self._alike
            ],
        )
        same = [(strand_a[x], strand_b[y]) for x, y in paired.same]
        others = self._other_names(same)
        self._same += len(same) - len(others)
        found: list[tuple[Sort, int | None, int | None]] = [("name", i, j) for i, j in others]
        found += [("order", strand_a[x], strand_b[y]) for x, y in paired.moved]
        found += [("changed", strand_a[x], strand_b[y]) for x, y in paired.changed]
        found += [("only a", strand_a[x], None) for x in paired.only_a]
        found += [("only b", None, strand_b[y]) for y in paired.only_b]
        starts = strand_a[0] if strand_a else 0, strand_b[0] if strand_b else 0
        firsts, seconds = [i for i, _ in same], [j for _, j in same]
        for sort, i, j in found:
            # What both sides have before: of two places the earlier one counts.
            before = min(
                len(same) if i is None else bisect_left(firsts, i),
                len(same) if j is None else bisect_left(seconds, j),
            )
            after_a, after_b = same[before - 1] if before else (None, None)
            self._found.append(self._difference(sort, game, i, j, after_a, after_b, starts))

    def _difference(
        self,
        sort: Sort,
        game: int | None,
        i: int | None,
        j: int | None,
        after_a: int | None,
        after_b: int | None,
        starts: tuple[int, int],
    ) -> EventDifference:
        a, b = self._a, self._b
        mine = a.reader.readings[a.readings[i]] if i is not None else None
        other = b.reader.readings[b.readings[j]] if j is not None else None
        told = mine or other
        assert told is not None
        fields: tuple[str, ...] = ()
        if mine is not None and other is not None:
            fields = self._named_otherwise(mine, other) if sort == "name" else self._fields(mine, other)
        place_a = i if i is not None else starts[0] if after_a is None else after_a + 1
        place_b = j if j is not None else starts[1] if after_b is None else after_b + 1
        return EventDifference(
            sort,
            self._number,
            game,
            told.kind,
            fields,
            a.ids[i] if i is not None else None,
            b.ids[j] if j is not None else None,
            (
                a.ids[after_a] if after_a is not None else None,
                b.ids[after_b] if after_b is not None else None,
            ),
            a.rank(place_a) + b.rank(place_b),
        )

    def _fields(self, mine: Reading, other: Reading) -> tuple[str, ...]:
        """The fields in which two events differ; who acts only if no field says so."""
        values = {part.field: part_key(part, self._who_a) for part in mine.parts}
        others = {part.field: part_key(part, self._who_b) for part in other.parts}
        fields = [name for name in {**values, **others} if values.get(name) != others.get(name)]
        return tuple(name for name in fields if name != "actor") or tuple(fields)

    def _named_otherwise(self, mine: Reading, other: Reading) -> tuple[str, ...]:
        """The fields in which two events, otherwise the same, name another thing."""
        fields = [
            part.field
            for part, part_b in zip(mine.parts, other.parts, strict=True)
            if part.named != part_b.named
        ]
        return tuple(fields) or ("name",)

    def _other_names(self, same: Sequence[Pair]) -> list[Pair]:
        """Of pairs that are the same but for names, those that name another thing, or take another name."""
        readings_a, readings_b = self._a.reader.readings, self._b.reader.readings
        counts = Counter((self._a.readings[i], self._b.readings[j]) for i, j in same)
        naming = {
            pair: (readings_a[pair[0]].named, readings_b[pair[1]].named)
            for pair in counts
            if readings_a[pair[0]].named
        }
        chosen = partners((mine, other, counts[pair]) for pair, (mine, other) in naming.items())
        odd = {pair for pair, (mine, other) in naming.items() if not agree(mine, other, chosen)}
        if self._matching == "name":
            odd |= {pair for pair in counts if readings_a[pair[0]].given != readings_b[pair[1]].given}
        return [(i, j) for i, j in same if (self._a.readings[i], self._b.readings[j]) in odd]


def shared_numbers(match: Match, others: int) -> list[int]:
    """For each of so many players of the second session the number that he shares with one of the first.

    Who has no match there gets a number of his own.
    """
    shared = [len(match) + number for number in range(others)]
    for mine, other in enumerate(match):
        if other is not None:
            shared[other] = mine
    return shared


def _matched(a: TableSide, b: TableSide) -> tuple[Matching, Match, list[int], list[int]]:
    """How the players are matched, and the keys of both sides' readings then."""
    mine, others = a.reader.cast.people, b.reader.cast.people
    keys: dict[Hashable, int] = {}
    keys_a = _numbered(keys, a, list(range(len(mine))))
    named, seated = by_name(mine, others), by_seat(mine, others)
    keys_b = _numbered(keys, b, shared_numbers(named, len(others)))
    if seated != named:
        keys_by_seat = _numbered(keys, b, shared_numbers(seated, len(others)))
        equal = _equal_in_place(a, keys_a, b, keys_b)
        equal_by_seat = _equal_in_place(a, keys_a, b, keys_by_seat)
        if equal_by_seat - equal > max(len(a.ids), len(b.ids)) / _CLEARLY:
            return "seat", seated, keys_a, keys_by_seat
    return "name", named, keys_a, keys_b


def _numbered(keys: dict[Hashable, int], side: TableSide, who: Sequence[int]) -> list[int]:
    """The keys of a side's readings as numbers."""
    return [keys.setdefault(key(reading, who), len(keys)) for reading in side.reader.readings]


def _equal_in_place(a: TableSide, keys_a: Keys, b: TableSide, keys_b: Keys) -> int:
    """How many events are the same and come after the same, at most."""
    pairs_a = Counter(pairwise([keys_a[reading] for reading in a.readings]))
    pairs_b = Counter(pairwise([keys_b[reading] for reading in b.readings]))
    return sum(min(count, pairs_b[pair]) for pair, count in pairs_a.items())


def _player_pairs(a: TableSide, b: TableSide, match: Match) -> list[PlayerPair]:
    mine, others = a.reader.cast.people, b.reader.cast.people
    pairs = [
        PlayerPair(person.name, others[other].name if other is not None else None)
        for person, other in zip(mine, match, strict=True)
    ]
    known = set(match)
    return pairs + [PlayerPair(None, person.name) for j, person in enumerate(others) if j not in known]


def _kind_and_actor(reading: Reading, who: Sequence[int]) -> Hashable:
    return reading.kind, who[reading.actor] if reading.actor is not None else None


def _kind(reading: Reading, who: Sequence[int]) -> Hashable:
    return reading.kind
