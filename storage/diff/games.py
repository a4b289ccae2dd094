"""Which games of two sessions are the same: those with the same events, then those that share the most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from storage.diff.align import Pair, align

Keys = Sequence[int]
"""What happens in a game: the keys of its events."""


def match_games(a: Sequence[Keys], b: Sequence[Keys]) -> list[Pair]:
    """The places of games that belong together, in the order of `a`.

    Games of several lobbies begin in any order, so those that are equal need not come in the same one.
    """
    contents: dict[tuple[int, ...], int] = {}
    mine = [contents.setdefault(tuple(game), len(contents)) for game in a]
    others = [contents.setdefault(tuple(game), len(contents)) for game in b]
    in_order = align(mine, others)
    pairs = in_order + _equal_elsewhere(mine, others, in_order)
    taken_a, taken_b = {i for i, _ in pairs}, {j for _, j in pairs}
    begin_a = begin_b = 0
    for end_a, end_b in [*in_order, (len(a), len(b))]:
        free_a = [i for i in range(begin_a, end_a) if i not in taken_a]
        free_b = [j for j in range(begin_b, end_b) if j not in taken_b]
        pairs += _alike(a, free_a, b, free_b)
        begin_a, begin_b = end_a + 1, end_b + 1
    return sorted(pairs)


def _equal_elsewhere(mine: Sequence[int], others: Sequence[int], in_order: list[Pair]) -> list[Pair]:
    """Equal games that did not come in the same order."""
    taken_a, taken_b = {i for i, _ in in_order}, {j for _, j in in_order}
    places: dict[int, list[int]] = {}
    for j in range(len(others) - 1, -1, -1):
        if j not in taken_b:
            places.setdefault(others[j], []).append(j)
    return [(i, places[game].pop()) for i, game in enumerate(mine) if i not in taken_a and places.get(game)]


def _alike(a: Sequence[Keys], free_a: list[int], b: Sequence[Keys], free_b: list[int]) -> list[Pair]:
    """Games between two that are equal: those that share the most events, the rest by their order."""
    if not (free_a and free_b):
        return []
    chosen = _most_shared(a, free_a, b, free_b) if len(free_a) + len(free_b) > 2 else []
    pairs = list(chosen)
    begin_a = begin_b = 0
    for end_a, end_b in [*chosen, (len(free_a), len(free_b))]:
        pairs += zip(range(begin_a, end_a), range(begin_b, end_b), strict=False)
        begin_a, begin_b = end_a + 1, end_b + 1
    return [(free_a[x], free_b[y]) for x, y in pairs]


def _most_shared(a: Sequence[Keys], free_a: list[int], b: Sequence[Keys], free_b: list[int]) -> list[Pair]:
    """The places in `free_a` and `free_b` that share the most, in one order in both."""
    games_a, events_a = _joined(a, free_a)
    games_b, events_b = _joined(b, free_b)
    shared = Counter((games_a[i], games_b[j]) for i, j in align(events_a, events_b))
    # The alignment goes forward in both, so a pair of games conflicts with those next to it only. best[n] is
    # the most that the first n pairs can share, the last one that is taken for it, and how many come before.
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


def _joined(games: Sequence[Keys], free: list[int]) -> tuple[list[int], list[int]]:
    """The events of several games one after another: which of the games each belongs to, and its key."""
    numbers: list[int] = []
    keys: list[int] = []
    for number, game in enumerate(free):
        numbers += [number] * len(games[game])
        keys += games[game]
    return numbers, keys
