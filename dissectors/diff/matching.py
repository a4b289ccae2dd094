"""Matching of the players of two tables, so that most of their events are equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import pairwise

from kiebitz.dissectors.diff.compared_table import ComparedTable
from kiebitz.dissectors.diff.normalize import key
from kiebitz.dissectors.diff.pairing import Keys
from kiebitz.dissectors.diff.players import Match, by_name, by_seat
from kiebitz.dissectors.diff.result import Matching, PlayerPair

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
