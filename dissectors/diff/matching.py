"""Tables to compare, and the matching of their players, so that most of their events are equal."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import cache
from itertools import pairwise

import msgspec

from kiebitz.dissectors.diff.normalize import Normalizer, key
from kiebitz.dissectors.diff.pairing import Keys
from kiebitz.dissectors.diff.players import Match, by_name, by_seat
from kiebitz.dissectors.diff.result import Matching, PlayerPair
from kiebitz.dissectors.model import TableInfo

OUTSIDE_GAMES = 0
"""Game id of events outside any game."""


class ComparedTable(msgspec.Struct, eq=False):
    """A table and its events in order: their ids, normalized events and games.

    `ranks` has the number of the session's events before each.
    """

    row: TableInfo
    normalizer: Normalizer
    ids: array[int] = msgspec.field(default_factory=lambda: array("q"))
    normalized: array[int] = msgspec.field(default_factory=lambda: array("q"))
    games: array[int] = msgspec.field(default_factory=lambda: array("q"))
    ranks: array[int] = msgspec.field(default_factory=lambda: array("q"))

    def rank(self, place: int) -> int:
        """Return the number of the session's events before an index, which may be past the end."""
        if place < len(self.ranks):
            return self.ranks[place]
        return self.ranks[-1] + 1 if self.ranks else 0

    def active_players(self) -> set[int]:
        """Return the players that occur in its events."""
        normalized, player_of = self.normalizer.events, self.normalizer.roster.player_of
        parts = (part for number in set(self.normalized) for part in normalized[number].parts)
        player_numbers = {
            stay for part in parts for stay in (*part.players, *(who for one in part.keyed for who, _ in one))
        }
        return {player_of[stay] for stay in player_numbers}

    def endings(self) -> list[int]:
        """Return the indexes of the events that only report the end of a connection."""
        normalized = self.normalizer.events
        return [place for place, number in enumerate(self.normalized) if normalized[number].is_ending]

    def strands(self, without: Collection[int]) -> dict[int, list[int]]:
        """Return the indexes of all other events by game, in the order in which the games begin."""
        found: dict[int, list[int]] = {}
        for place, game in enumerate(self.games):
            if place not in without:
                found.setdefault(game, []).append(place)
        return found


Events = tuple[int, int]
"""The ids of the same event in both sessions."""

FirstMessages = Callable[[int], Mapping[int, int]]
"""The first message of an event on each stream, by stream."""


class Order:
    """The order of events on the streams of two sessions."""

    def __init__(self, a: FirstMessages, b: FirstMessages) -> None:
        self._first_messages = (cache(a), cache(b))

    def is_kept(self, event: Events, crossed: Iterable[Events]) -> bool:
        """Return True if each stream has an event on the same side of the `crossed` ones in both sessions."""
        return all(
            self._orders(0, event, other) == self._orders(1, event, other) != (0, 0) for other in crossed
        )

    def _orders(self, side: int, event: Events, other: Events) -> tuple[int, int]:
        """Return the numbers of streams with both events that have `event` first, and `other` first."""
        one, two = self._first_messages[side](event[side]), self._first_messages[side](other[side])
        both = one.keys() & two.keys()
        before = sum(one[stream] < two[stream] for stream in both)
        return before, len(both) - before


_SEAT_MARGIN = 20
"""Players are matched by seat only if that makes more than one event in this many equal."""


def shared_numbers(match: Match, others: int) -> list[int]:
    """Return for each of the second session's players the number shared with its match in the first session.

    A player without a match gets a new number.
    """
    shared = [len(match) + number for number in range(others)]
    for mine, other in enumerate(match):
        if other is not None:
            shared[other] = mine
    return shared


def match_players(a: ComparedTable, b: ComparedTable) -> tuple[Matching, Match, list[int], list[int]]:
    """Return how the players are matched, and the resulting keys of both sides' readings."""
    mine, others = a.normalizer.roster.players, b.normalizer.roster.players
    keys: dict[Hashable, int] = {}
    named, seated = by_name(mine, others), by_seat(mine, others)
    who_a, who_b = player_numbers(a, b, named)
    keys_a, keys_b = _number_keys(keys, a, who_a), _number_keys(keys, b, who_b)
    if seated != named:
        keys_by_seat = _number_keys(keys, b, player_numbers(a, b, seated)[1])
        equal = _equal_in_place(a, keys_a, b, keys_b)
        equal_by_seat = _equal_in_place(a, keys_a, b, keys_by_seat)
        if equal_by_seat - equal > max(len(a.ids), len(b.ids)) / _SEAT_MARGIN:
            return "seat", seated, keys_a, keys_by_seat
    return "name", named, keys_a, keys_b


def player_numbers(a: ComparedTable, b: ComparedTable, match: Match) -> tuple[list[int], list[int]]:
    """Return for each stay on either side the shared number of its player."""
    shared = shared_numbers(match, len(b.normalizer.roster.players))
    return [*a.normalizer.roster.player_of], [shared[player] for player in b.normalizer.roster.player_of]


def _number_keys(keys: dict[Hashable, int], side: ComparedTable, who: Sequence[int]) -> list[int]:
    """Return the keys of a side's readings as numbers."""
    return [keys.setdefault(key(reading, who), len(keys)) for reading in side.normalizer.events]


def _equal_in_place(a: ComparedTable, keys_a: Keys, b: ComparedTable, keys_b: Keys) -> int:
    """Return the maximum number of events that are equal and follow equal ones."""
    pairs_a = Counter(pairwise([keys_a[reading] for reading in a.normalized]))
    pairs_b = Counter(pairwise([keys_b[reading] for reading in b.normalized]))
    return sum(min(count, pairs_b[pair]) for pair, count in pairs_a.items())


def player_pairs(a: ComparedTable, b: ComparedTable, match: Match) -> list[PlayerPair]:
    """Return the matched players, and the unmatched ones that take part in a compared event."""
    mine, others = a.normalizer.roster.players, b.normalizer.roster.players
    pairs = [
        PlayerPair(mine[number].name, others[other].name)
        for number, other in enumerate(match)
        if other is not None
    ]
    pairs += [
        PlayerPair(mine[number].name, None) for number in sorted(a.active_players()) if match[number] is None
    ]
    known = set(match)
    pairs += [
        PlayerPair(None, others[number].name) for number in sorted(b.active_players()) if number not in known
    ]
    return pairs
