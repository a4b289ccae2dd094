"""Matching of the games of two sessions by their events.

Short games may be equal by chance, and nothing identifies games that differ. Several matchings are therefore
tried, and the one with the most equal events is used.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence

from kiebitz.dissectors.diff.align import Pair, align, longest_increasing

Keys = Sequence[int]
"""The keys of a game's events, in order."""

Span = tuple[int, int]
"""The positions of a game's first and last event."""

_MAX_OVERLAPPING = 100
"""Maximum number of earlier games searched for the last one that ended before a game began."""


def match_games(a: Sequence[Keys], b: Sequence[Keys]) -> list[Pair]:
    """Return the positions of matching games, in the order of `a`.

    Games of several lobbies begin in any order, so equal games may be in different orders.
    """
    contents: dict[tuple[int, ...], int] = {}
    mine = [contents.setdefault(tuple(game), len(contents)) for game in a]
    others = [contents.setdefault(tuple(game), len(contents)) for game in b]
    in_order = align(mine, others)
    anchored = in_order + _match_reordered(mine, others, in_order)
    taken_a, taken_b = {i for i, _ in anchored}, {j for _, j in anchored}
    begin_a = begin_b = 0
    for end_a, end_b in [*in_order, (len(a), len(b))]:
        free_a = [i for i in range(begin_a, end_a) if i not in taken_a]
        free_b = [j for j in range(begin_b, end_b) if j not in taken_b]
        anchored += _best(a, b, _guesses(a, free_a, b, free_b))
        begin_a, begin_b = end_a + 1, end_b + 1
    if mine == others:
        return sorted(anchored)
    return sorted(_best(a, b, [anchored, *_guesses(a, range(len(a)), b, range(len(b)))]))


def reordered_games(games: Sequence[tuple[Span, Span]]) -> list[int]:
    """Return which of these games, given by their spans on both sides, were played in another order.

    Games that overlap in time have no order. The smallest possible number of games is reported.
    """
    by_start = sorted(range(len(games)), key=lambda number: games[number][0])
    starts = [(games[number][0][0], games[number][1][0]) for number in by_start]
    kept = longest_increasing(starts)
    numbers = dict(zip(starts, by_start, strict=True))
    steady = [games[numbers[start]] for start in kept]
    reordered = sorted({*starts} - {*kept})
    return [numbers[start] for start in reordered if _is_reordered(games[numbers[start]], steady)]


def _is_reordered(game: tuple[Span, Span], steady: Sequence[tuple[Span, Span]]) -> bool:
    """Return True if a game is before one of these on one side, and after it on the other."""
    (begin_a, end_a), (begin_b, end_b) = game
    later = bisect_right(steady, end_a, key=lambda other: other[0][0])
    if later < len(steady) and steady[later][1][1] < begin_b:
        return True
    begun = bisect_left(steady, begin_a, key=lambda other: other[0][0])
    earlier = (
        other for other in reversed(steady[max(0, begun - _MAX_OVERLAPPING) : begun]) if other[0][1] < begin_a
    )
    last = next(earlier, None)
    return last is not None and end_b < last[1][0]


def _guesses(
    a: Sequence[Keys], free_a: Sequence[int], b: Sequence[Keys], free_b: Sequence[int]
) -> list[list[Pair]]:
    """Return candidate matchings: in order from the front, from the back, and by most shared events."""
    guesses = [list(zip(free_a, free_b, strict=False))]
    if len(free_a) != len(free_b):
        guesses.append(list(zip(free_a[::-1], free_b[::-1], strict=False)))
    if free_a and free_b and len(free_a) + len(free_b) > 2:
        guesses.append(_fill_gaps(_most_shared(a, free_a, b, free_b), free_a, free_b))
    return guesses


def _best(a: Sequence[Keys], b: Sequence[Keys], guesses: Sequence[list[Pair]]) -> list[Pair]:
    """Return the (first) matching with the most equal events."""
    if len(guesses) == 1:
        return guesses[0]
    return max(guesses, key=lambda pairs: sum(_count_shared(a[i], b[j]) for i, j in pairs))


def _match_reordered(mine: Sequence[int], others: Sequence[int], in_order: list[Pair]) -> list[Pair]:
    """Return pairs of equal games at different positions in the order."""
    taken_a, taken_b = {i for i, _ in in_order}, {j for _, j in in_order}
    places: dict[int, list[int]] = {}
    for j in range(len(others) - 1, -1, -1):
        if j not in taken_b:
            places.setdefault(others[j], []).append(j)
    return [(i, places[game].pop()) for i, game in enumerate(mine) if i not in taken_a and places.get(game)]


def _count_shared(a: Keys, b: Keys) -> int:
    """Return the number of events that two games have in common, in any order."""
    counts = Counter(b)
    return sum(min(count, counts[key]) for key, count in Counter(a).items())


def _fill_gaps(chosen: list[Pair], free_a: Sequence[int], free_b: Sequence[int]) -> list[Pair]:
    """Translate positions in two lists of games to games; pair the games between them in order."""
    pairs = list(chosen)
    begin_a = begin_b = 0
    for end_a, end_b in [*chosen, (len(free_a), len(free_b))]:
        pairs += zip(range(begin_a, end_a), range(begin_b, end_b), strict=False)
        begin_a, begin_b = end_a + 1, end_b + 1
    return [(free_a[x], free_b[y]) for x, y in pairs]


def _most_shared(
    a: Sequence[Keys], free_a: Sequence[int], b: Sequence[Keys], free_b: Sequence[int]
) -> list[Pair]:
    """Return the positions in `free_a` and `free_b` that share the most events, increasing in both."""
    games_a, events_a = _joined(a, free_a)
    games_b, events_b = _joined(b, free_b)
    shared = Counter((games_a[i], games_b[j]) for i, j in align(events_a, events_b))
    # The alignment is monotonic in both, so a pair of games conflicts only with its neighbours. best[n] is
    # the maximum that the first n pairs can share, the last pair used for it, and the number of pairs before
    # that.
    pairs = sorted(shared)
    best: list[tuple[int, int, int]] = [(0, -1, 0)]
    allowed = 0
    for number, (x, y) in enumerate(pairs):
        while pairs[allowed][0] < x and pairs[allowed][1] < y:
            allowed += 1
        with_it = best[allowed][0] + shared[x, y]
        best.append((with_it, number, allowed) if with_it > best[-1][0] else best[-1])
    chosen: list[Pair] = []
    _, last, count = best[-1]
    while last >= 0:
        chosen.append(pairs[last])
        _, last, count = best[count]
    return chosen[::-1]


def _joined(games: Sequence[Keys], free: Sequence[int]) -> tuple[list[int], list[int]]:
    """Concatenate the events of several games: the game of each event, and its key."""
    numbers: list[int] = []
    keys: list[int] = []
    for number, game in enumerate(free):
        numbers += [number] * len(games[game])
        keys += games[game]
    return numbers, keys
