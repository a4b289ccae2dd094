"""Comparison of the events at one table in two sessions."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import msgspec

from kiebitz.dissectors.diff.align import Pair
from kiebitz.dissectors.diff.games import Span, match_games, reordered_games
from kiebitz.dissectors.diff.matching import (
    OUTSIDE_GAMES,
    ComparedTable,
    Order,
    match_players,
    player_numbers,
    player_pairs,
    shared_numbers,
)
from kiebitz.dissectors.diff.normalize import NormalizedEvent, field_key
from kiebitz.dissectors.diff.pairing import Level, Pairing, pair_events
from kiebitz.dissectors.diff.players import Match
from kiebitz.dissectors.diff.result import DifferenceKind, EventDifference, GamePair, TablePair
from kiebitz.dissectors.model import Game

Identifiers = Sequence[tuple[str, str]]
"""The identifiers in an event, in order: kind and value."""


def match_identifiers(pairs: Iterable[tuple[Identifiers, Identifiers, int]]) -> dict[tuple[str, str], str]:
    """Return the one-to-one match of identifiers, by kind and value of the first side.

    Args:
        pairs: The identifiers of two paired events, and the number of such pairs.
    """
    counts: Counter[tuple[str, str, str]] = Counter()
    for mine, others, count in pairs:
        for (sort, value), (_, other) in zip(mine, others, strict=True):
            counts[sort, value, other] += count
    chosen: dict[tuple[str, str], str] = {}
    taken: set[tuple[str, str]] = set()
    # The first of those that come as often stays first: a Counter keeps them in their order.
    for (sort, value, other), _ in counts.most_common():
        if (sort, value) not in chosen and (sort, other) not in taken:
            chosen[sort, value] = other
            taken.add((sort, other))
    return chosen


def identify_same(mine: Identifiers, others: Identifiers, chosen: Mapping[tuple[str, str], str]) -> bool:
    """Return True if two events identify the same things."""
    return all(
        chosen.get((sort, value)) == other for (sort, value), (_, other) in zip(mine, others, strict=True)
    )


_MAX_CROSSED = 32
"""Maximum number of events that an event may move across for the order on each stream to be examined."""


class TableFindings(msgspec.Struct, frozen=True):
    """The differences of two tables: players, games, number of equal events, and different events.

    `partners` has the ids of all events that both sides have, equal or changed.
    """

    pair: TablePair
    games: list[GamePair]
    same: int
    events: list[EventDifference]
    match: Match
    partners: list[Pair]


class TableComparison:
    """Two tables side by side; `number` is the index of the pair, `first_game` that of its first game.

    `order` knows the order of messages on each stream of the two sessions.
    """

    def __init__(
        self, a: ComparedTable, b: ComparedTable, order: Order, number: int, first_game: int
    ) -> None:
        self._a = a
        self._b = b
        self._order = order
        self._number = number
        self._first_game = first_game
        self._matching, self._match, keys_a, keys_b = match_players(a, b)
        self._who_a, self._who_b = player_numbers(a, b, self._match)
        self._events_a = [keys_a[reading] for reading in a.normalized]
        self._events_b = [keys_b[reading] for reading in b.normalized]
        self._levels = [self._level(_kind_and_actor), self._level(_kind)]
        self._games: list[GamePair] = []
        self._spans: list[tuple[Span, Span]] = []
        """The first and last events of the games that both sides have."""
        self._found: list[EventDifference] = []
        self._same = 0
        self._partners: list[Pair] = []

    def compare(self, games_a: Mapping[int, Game], games_b: Mapping[int, Game]) -> TableFindings:
        """Return all differences; the arguments map game ids to games."""
        endings = self._match_endings()
        self._same += len(endings)
        self._add_partners(endings)
        strands_a = self._a.strands({i for i, _ in endings})
        strands_b = self._b.strands({j for _, j in endings})
        self._compare_events(None, strands_a.pop(OUTSIDE_GAMES, []), strands_b.pop(OUTSIDE_GAMES, []))
        match_players = match_games(
            [[self._events_a[i] for i in strand] for strand in strands_a.values()],
            [[self._events_b[j] for j in strand] for strand in strands_b.values()],
        )
        numbers_a, numbers_b = list(strands_a), list(strands_b)
        for i, j in match_players:
            number_a, number_b = numbers_a[i], numbers_b[j]
            strand_a, strand_b = strands_a.pop(number_a), strands_b.pop(number_b)
            game = self._add_game(games_a[number_a], games_b[number_b], strand_a, strand_b)
            self._compare_events(game, strand_a, strand_b)
            self._spans.append(((strand_a[0], strand_a[-1]), (strand_b[0], strand_b[-1])))
        for number in reordered_games(self._spans):
            (i, _), (j, _) = self._spans[number]
            game = self._first_game + number
            self._found.append(self._difference("game order", game, i, j, (i - 1, j - 1)))
        self._add_unmatched(games_a, strands_a, games_b, strands_b)
        pair = TablePair(
            self._a.row,
            self._b.row,
            self._matching,
            player_pairs(self._a, self._b, self._match),
            (len(self._a.ids), len(self._b.ids)),
            (
                self._a.normalizer.roster.owners(range(len(self._match))),
                self._b.normalizer.roster.owners(
                    shared_numbers(self._match, len(self._b.normalizer.roster.players))
                ),
            ),
        )
        return TableFindings(pair, self._games, self._same, self._found, self._match, self._partners)

    def _add_partners(self, pairs: Iterable[Pair]) -> None:
        """Add pairs of events, given by their indexes at the tables."""
        self._partners += [(self._a.ids[i], self._b.ids[j]) for i, j in pairs]

    def _add_game(
        self, a: Game | None, b: Game | None, strand_a: Sequence[int], strand_b: Sequence[int]
    ) -> int:
        """Add a pair of games, and return its index."""
        self._games.append(GamePair(self._number, a, b, (len(strand_a), len(strand_b))))
        return self._first_game + len(self._games) - 1

    def _add_unmatched(
        self,
        games_a: Mapping[int, Game],
        strands_a: Mapping[int, list[int]],
        games_b: Mapping[int, Game],
        strands_b: Mapping[int, list[int]],
    ) -> None:
        """Add the games that only one side has, each with its first event as the difference."""
        ends = sorted((end_a, end_b) for (_, end_a), (_, end_b) in self._spans)
        for number, strand in strands_a.items():
            game = self._add_game(games_a[number], None, strand, ())
            known = bisect_left(ends, (strand[0], 0))
            before = ends[known - 1][1] if known else -1
            self._found.append(self._difference("only a", game, strand[0], None, (strand[0] - 1, before)))
        ends_b = sorted((end_b, end_a) for end_a, end_b in ends)
        for number, strand in strands_b.items():
            game = self._add_game(None, games_b[number], (), strand)
            known = bisect_left(ends_b, (strand[0], 0))
            before = ends_b[known - 1][1] if known else -1
            self._found.append(self._difference("only b", game, None, strand[0], (before, strand[0] - 1)))

    def _level(self, key_of: Callable[[NormalizedEvent, Sequence[int]], Hashable]) -> Level:
        """Return coarser keys of all events, as made by `key_of`."""
        numbers: dict[Hashable, int] = {}
        by_reading = [
            [numbers.setdefault(key_of(reading, who), len(numbers)) for reading in side.normalizer.events]
            for side, who in ((self._a, self._who_a), (self._b, self._who_b))
        ]
        return (
            [by_reading[0][reading] for reading in self._a.normalized],
            [by_reading[1][reading] for reading in self._b.normalized],
        )

    def _compare_events(self, game: int | None, strand_a: list[int], strand_b: list[int]) -> None:
        """Compare the events of one game, or those outside games, given by their indexes at the table."""
        paired = pair_events(
            [self._events_a[i] for i in strand_a],
            [self._events_b[j] for j in strand_b],
            [
                ([keys_a[i] for i in strand_a], [keys_b[j] for j in strand_b])
                for keys_a, keys_b in self._levels
            ],
        )
        same = [(strand_a[x], strand_b[y]) for x, y in paired.same]
        odd = self._differing_identifiers(same)
        changed = [(strand_a[x], strand_b[y]) for x, y in paired.changed]
        moved = [(strand_a[x], strand_b[y]) for x, y in paired.moved]
        self._add_partners((*same, *changed, *moved))
        found: list[tuple[DifferenceKind, int | None, int | None, tuple[str, ...]]] = []
        found += [("name", i, j, odd[self._numbers(i, j)]) for i, j in same if self._numbers(i, j) in odd]
        self._same += len(same) - len(found)
        for x, y in paired.moved:
            if self._is_kept(strand_a, strand_b, (x, y), paired):
                self._same += 1
            else:
                found.append(("order", strand_a[x], strand_b[y], ()))
        found += [("changed", i, j, self._fields(i, j)) for i, j in changed]
        found += [("only a", strand_a[x], None, ()) for x in paired.only_a]
        found += [("only b", None, strand_b[y], ()) for y in paired.only_b]
        # Before the first common event, refer to the event before the game.
        start = (strand_a[0] if strand_a else 0) - 1, (strand_b[0] if strand_b else 0) - 1
        firsts, seconds = [i for i, _ in same], [j for _, j in same]
        for sort, i, j, fields in found:
            # Of two positions the earlier one counts.
            before = min(
                len(same) if i is None else bisect_left(firsts, i),
                len(same) if j is None else bisect_left(seconds, j),
            )
            last = same[before - 1] if before else start
            self._found.append(self._difference(sort, game, i, j, last, fields))

    def _is_kept(
        self, strand_a: Sequence[int], strand_b: Sequence[int], moved: Pair, paired: Pairing
    ) -> bool:
        """Return True if a moved event still arrived in the same order on every stream."""
        crossed = paired.crossed(moved)
        if len(crossed) > _MAX_CROSSED:
            return False
        event, *others = ((self._a.ids[strand_a[x]], self._b.ids[strand_b[y]]) for x, y in (moved, *crossed))
        return self._order.is_kept(event, others)

    def _match_endings(self) -> list[Pair]:
        """Pair the connection ends of both sides in any order, as the network determines their time."""
        others: dict[int, list[int]] = {}
        for j in reversed(self._b.endings()):
            others.setdefault(self._events_b[j], []).append(j)
        return [
            (i, others[self._events_a[i]].pop()) for i in self._a.endings() if others.get(self._events_a[i])
        ]

    def _difference(
        self,
        sort: DifferenceKind,
        game: int | None,
        i: int | None,
        j: int | None,
        before: Pair,
        fields: tuple[str, ...] = (),
    ) -> EventDifference:
        """Return the difference of two events by index; `before` are the last common ones (-1: none)."""
        a, b = self._a, self._b
        if i is not None:
            told = a.normalizer.events[a.normalized[i]]
        else:
            assert j is not None
            told = b.normalizer.events[b.normalized[j]]
        return EventDifference(
            sort,
            self._number,
            game,
            told.kind,
            fields,
            a.ids[i] if i is not None else None,
            b.ids[j] if j is not None else None,
            (a.ids[before[0]] if before[0] >= 0 else None, b.ids[before[1]] if before[1] >= 0 else None),
            a.rank(before[0] + 1 if i is None else i) + b.rank(before[1] + 1 if j is None else j),
        )

    def _numbers(self, i: int, j: int) -> Pair:
        return self._a.normalized[i], self._b.normalized[j]

    def _fields(self, i: int, j: int) -> tuple[str, ...]:
        """Return the fields in which two events differ; the actor only if no other field does."""
        mine = self._a.normalizer.events[self._a.normalized[i]]
        other = self._b.normalizer.events[self._b.normalized[j]]
        values = {part.field: field_key(part, self._who_a) for part in mine.parts}
        others = {part.field: field_key(part, self._who_b) for part in other.parts}
        fields = [name for name in {**values, **others} if values.get(name) != others.get(name)]
        return tuple(name for name in fields if name != "actor") or tuple(fields)

    def _differing_identifiers(self, same: Sequence[Pair]) -> dict[Pair, tuple[str, ...]]:
        """Return the pairs, equal but for identifiers, that refer to different things or rename differently.

        They are given by the numbers of their normalized events, each with the fields concerned.
        """
        readings_a, readings_b = self._a.normalizer.events, self._b.normalizer.events
        counts = Counter(self._numbers(i, j) for i, j in same)
        beside = {pair: (readings_a[pair[0]], readings_b[pair[1]]) for pair in counts}
        chosen = match_identifiers(
            (mine.identifiers, other.identifiers, counts[pair]) for pair, (mine, other) in beside.items()
        )
        odd: dict[Pair, tuple[str, ...]] = {}
        for pair, (mine, other) in beside.items():
            fields = [
                part.field
                for part, part_b in zip(mine.parts, other.parts, strict=True)
                if part.identifiers and not identify_same(part.identifiers, part_b.identifiers, chosen)
            ]
            if self._matching == "name" and mine.adopted_name != other.adopted_name:
                fields.append("name")
            if fields:
                odd[pair] = tuple(fields)
        return odd


def _kind_and_actor(reading: NormalizedEvent, who: Sequence[int]) -> Hashable:
    return reading.kind, who[reading.actor] if reading.actor is not None else None


def _kind(reading: NormalizedEvent, who: Sequence[int]) -> Hashable:
    return reading.kind
