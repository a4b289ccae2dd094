"""Pairing of events that have no equal partner: moved, changed, or on one side only."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import itemgetter

import msgspec

from kiebitz.dissectors.diff.align import Pair, align

_MAX_MOVE = 8
"""Maximum distance of equal events to count as reordered."""

_SEARCH_DISTANCE = 4 * _MAX_MOVE
"""Distance around a moved event that is searched for further moved ones."""


class Pairing(msgspec.Struct, frozen=True):
    """The pairing of two sequences of events: positions of the equal ones, and of the others."""

    same: list[Pair]
    moved: list[Pair]
    changed: list[Pair]
    only_a: list[int]
    only_b: list[int]

    def crossed(self, moved: Pair) -> list[Pair]:
        """Return the pairs that are on the other side of a moved pair in the second sequence."""
        i, j = moved
        upto_i, upto_j = (
            bisect_left(self.same, place, key=itemgetter(side)) for side, place in enumerate(moved)
        )
        others = self.moved[
            bisect_left(self.moved, (i - _SEARCH_DISTANCE, 0)) : bisect_left(
                self.moved, (i + _SEARCH_DISTANCE, 0)
            )
        ]
        found = self.same[min(upto_i, upto_j) : max(upto_i, upto_j)]
        return found + [(x, y) for x, y in others if (x < i) != (y < j)]


Keys = Sequence[int]
Level = tuple[Keys, Keys]
"""Keys of the same events of both sides, equal where events have something in common."""


def pair_events(a: Keys, b: Keys, levels: Sequence[Level]) -> Pairing:
    """Pair events by their keys.

    Args:
        a: Keys of the first side's events.
        b: Keys of the second side's events.
        levels: Less and less specific keys, by which the remaining events are paired as changed.
    """
    same = align(a, b)
    gaps = list(_gaps(same, len(a), len(b)))
    moved = _moved(a, b, gaps)
    moved_a, moved_b = {i for i, _ in moved}, {j for _, j in moved}
    changed: list[Pair] = []
    for range_a, range_b in gaps:
        rest_a = [i for i in range_a if i not in moved_a]
        rest_b = [j for j in range_b if j not in moved_b]
        changed += _changed(rest_a, rest_b, levels)
    changed_a, changed_b = {i for i, _ in changed}, {j for _, j in changed}
    only_a = [i for range_a, _ in gaps for i in range_a if i not in moved_a and i not in changed_a]
    only_b = [j for _, range_b in gaps for j in range_b if j not in moved_b and j not in changed_b]
    return Pairing(same, moved, changed, only_a, only_b)


def _gaps(pairs: Sequence[Pair], length_a: int, length_b: int) -> Iterator[tuple[range, range]]:
    """Yield the stretches before, between and after pairs; one may be empty."""
    begin_a = begin_b = 0
    for end_a, end_b in [*pairs, (length_a, length_b)]:
        yield range(begin_a, end_a), range(begin_b, end_b)
        begin_a, begin_b = end_a + 1, end_b + 1


def _moved(a: Keys, b: Keys, gaps: Sequence[tuple[range, range]]) -> list[Pair]:
    """Return pairs of equal events that are near each other, but in another order."""
    # The expected position in a of a position in b, by the pair before it.
    pending: dict[int, list[tuple[int, int]]] = {}
    for range_a, range_b in reversed(gaps):
        for j in reversed(range_b):
            pending.setdefault(b[j], []).append((j - range_b.start + range_a.start, j))
    pairs: list[Pair] = []
    for range_a, _ in gaps:
        for i in range_a:
            others = pending.get(a[i], [])
            while others and others[-1][0] < i - _MAX_MOVE:
                others.pop()
            if others and others[-1][0] <= i + _MAX_MOVE:
                pairs.append((i, others.pop()[1]))
    return pairs


def _changed(rest_a: Sequence[int], rest_b: Sequence[int], levels: Sequence[Level]) -> list[Pair]:
    """Pair the events between two equal ones by less specific keys."""
    if not (rest_a and rest_b and levels):
        return []
    (keys_a, keys_b), *less = levels
    found = align([keys_a[i] for i in rest_a], [keys_b[j] for j in rest_b])
    pairs = [(rest_a[x], rest_b[y]) for x, y in found]
    for range_a, range_b in _gaps(found, len(rest_a), len(rest_b)):
        pairs += _changed(rest_a[range_a.start : range_a.stop], rest_b[range_b.start : range_b.stop], less)
    return pairs
