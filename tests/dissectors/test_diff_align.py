"""Alignment of two sequences: what must hold for any two, and what comes of some."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kiebitz.dissectors.diff.align import Pair, align
from kiebitz.dissectors.diff.games import Span, match_games, reordered_games
from kiebitz.dissectors.diff.pairing import pair_events

SEQUENCES = st.lists(st.integers(0, 6), max_size=40)


def longest_common(a: Sequence[int], b: Sequence[int]) -> int:
    """Return the length of the longest common subsequence, by the book."""
    row = [0] * (len(b) + 1)
    for element in a:
        before = row
        row = [0]
        for place, other in enumerate(b):
            row.append(before[place] + 1 if element == other else max(row[place], before[place + 1]))
    return row[-1]


def check(a: Sequence[int], b: Sequence[int], pairs: Sequence[Pair]) -> None:
    assert all(a[i] == b[j] for i, j in pairs)
    assert all(i < k and j < m for (i, j), (k, m) in pairwise(pairs))


@given(SEQUENCES, SEQUENCES)
def test_short_sequences_are_aligned_as_well_as_can_be(a: list[int], b: list[int]) -> None:
    pairs = align(a, b)
    check(a, b, pairs)
    assert len(pairs) == longest_common(a, b)


@given(SEQUENCES, SEQUENCES)
def test_exchanging_the_sequences_exchanges_the_places(a: list[int], b: list[int]) -> None:
    assert align(b, a) == [(j, i) for i, j in align(a, b)]


LENGTH = 3000


def shuffled(elements: Sequence[int]) -> list[int]:
    return random.Random(1).sample(elements, len(elements))


def drawn(kinds: int, seed: int) -> list[int]:
    chance = random.Random(seed)
    return [chance.randrange(kinds) for _ in range(LENGTH)]


# Two long sequences, and how much of the shorter one must be aligned at the least.
LONG: dict[str, tuple[list[int], list[int], float]] = {
    "the same": (drawn(9, 1), drawn(9, 1), 1),
    "one element more at the beginning": ([9, *drawn(9, 1)], drawn(9, 1), 1),
    "a half": (drawn(9, 1)[LENGTH // 2 :], drawn(9, 1), 1),
    "one kind only": ([1] * LENGTH, [1] * (LENGTH // 2), 1),
    "two kinds in turn": ([1, 2] * LENGTH, [2, 1] * LENGTH, 0.99),
    "every tenth is another": (
        [*range(LENGTH)],
        [-number if number % 10 == 0 else number for number in range(LENGTH)],
        0.89,
    ),
    "every second is another, of few kinds": (
        [element if place % 2 else place % 5 for place, element in enumerate(drawn(9, 1))],
        [element if place % 2 else place % 5 for place, element in enumerate(drawn(9, 2))],
        0.5,
    ),
    "by chance, of few kinds": (drawn(3, 1), drawn(3, 2), 0.3),
    "by chance, of many kinds": (drawn(1000, 1), drawn(1000, 2), 0.01),
    "shuffled": ([*range(LENGTH)], shuffled(range(LENGTH)), 0.01),
    "the other way round": ([*range(LENGTH)], [*range(LENGTH)][::-1], 0),
    "nothing in common": ([*range(LENGTH)], [*range(LENGTH, 2 * LENGTH)], 0),
}


@pytest.mark.full(but=3)
@pytest.mark.parametrize(("a", "b", "least"), LONG.values(), ids=LONG)
def test_long_sequences_are_aligned_well_enough(a: list[int], b: list[int], least: float) -> None:
    pairs = align(a, b)
    check(a, b, pairs)
    assert len(pairs) >= least * min(len(a), len(b))
    assert align(b, a) == [(j, i) for i, j in pairs]


# Two sequences as words, and what is the same, moved, changed, and on one side only. Letters that differ only
# in case have something in common.
PAIRED: dict[str, tuple[str, str, str, str, str, str, str]] = {
    "nothing differs": ("abc", "abc", "abc", "", "", "", ""),
    "one is gone": ("abcd", "abd", "abd", "", "", "c", ""),
    "one more": ("abd", "abcd", "abd", "", "", "", "c"),
    "one is changed": ("abcd", "abCd", "abd", "", "cC", "", ""),
    "two neighbours swapped": ("abcd", "acbd", "acd", "b", "", "", ""),
    "one further back": ("abcdefg", "acdefbg", "acdefg", "b", "", "", ""),
    "one far back": ("xabcdefghijk", "abcdefghijkx", "abcdefghijk", "", "", "x", "x"),
    "two changed beside each other": ("abcd", "aBCd", "ad", "", "bBcC", "", ""),
    "nothing is the same": ("ab", "xy", "", "", "", "ab", "xy"),
}


@pytest.mark.parametrize(
    ("a", "b", "same", "moved", "changed", "only_a", "only_b"), PAIRED.values(), ids=PAIRED
)
def test_differing_elements_are_moved_changed_or_unique(
    a: str, b: str, same: str, moved: str, changed: str, only_a: str, only_b: str
) -> None:
    paired = pair_events([*map(ord, a)], [*map(ord, b)], [([*map(ord, a.lower())], [*map(ord, b.lower())])])
    assert "".join(a[i] for i, _ in paired.same) == same
    assert "".join(a[i] for i, _ in paired.moved) == moved
    assert "".join(a[i] + b[j] for i, j in paired.changed) == changed
    assert "".join(a[i] for i in paired.only_a) == only_a
    assert "".join(b[j] for j in paired.only_b) == only_b


@given(SEQUENCES, SEQUENCES)
def test_every_element_has_one_place(a: list[int], b: list[int]) -> None:
    paired = pair_events(a, b, [([x % 3 for x in a], [x % 3 for x in b]), ([0] * len(a), [0] * len(b))])
    pairs = [*paired.same, *paired.moved, *paired.changed]
    assert sorted([*(i for i, _ in pairs), *paired.only_a]) == [*range(len(a))]
    assert sorted([*(j for _, j in pairs), *paired.only_b]) == [*range(len(b))]
    assert all(a[i] == b[j] for i, j in [*paired.same, *paired.moved])


# Games as words, and which belong together.
GAMES: dict[str, tuple[list[str], list[str], list[Pair]]] = {
    "the same": (["ab", "cd"], ["ab", "cd"], [(0, 0), (1, 1)]),
    "begun in another order": (["ab", "cd"], ["cd", "ab"], [(0, 1), (1, 0)]),
    "the first is missing": (["ab", "cd", "ef"], ["cd", "ef"], [(1, 0), (2, 1)]),
    "the middle one is missing, all others differ": (
        ["abcdx", "efghx", "ijklx"],
        ["abcdy", "ijkly"],
        [(0, 0), (2, 1)],
    ),
    "all differ": (["abcx", "abdx", "abex"], ["abcy", "abdy", "abey"], [(0, 0), (1, 1), (2, 2)]),
    "a short one is the same by chance": (
        ["abcd", "x", "efgh", "ijkl"],
        ["abcy", "efgy", "ijky", "x"],
        [(0, 0), (2, 1), (3, 2)],
    ),
    "one side has none": (["ab"], [], []),
}


@pytest.mark.parametrize(("a", "b", "pairs"), GAMES.values(), ids=GAMES)
def test_games_that_belong_together(a: list[str], b: list[str], pairs: list[Pair]) -> None:
    keys_a, keys_b = ([[*map(ord, game)] for game in games] for games in (a, b))
    found = match_games(keys_a, keys_b)
    assert [pair for pair in found if pair in pairs] == pairs
    assert len({i for i, _ in found}) == len({j for _, j in found}) == len(found)


# Games by where they begin and end on each side, and which of them were played elsewhere.
ORDERS: dict[str, tuple[list[tuple[Span, Span]], list[int]]] = {
    "one after another": ([((0, 4), (0, 4)), ((5, 9), (5, 9))], []),
    "two exchanged": ([((0, 4), (5, 9)), ((5, 9), (0, 4))], [0]),
    "the first played last": ([((0, 4), (10, 14)), ((5, 9), (0, 4)), ((10, 14), (5, 9))], [0]),
    "the last played first": ([((0, 4), (5, 9)), ((5, 9), (10, 14)), ((10, 14), (0, 4))], [2]),
    "at once on both sides": ([((0, 8), (1, 9)), ((1, 9), (0, 8))], []),
    "at once on one side": ([((0, 4), (1, 9)), ((5, 9), (0, 8))], []),
    "one of two at once, after both": ([((0, 8), (5, 12)), ((1, 9), (6, 13)), ((10, 14), (0, 4))], [2]),
}


@pytest.mark.parametrize(("games", "elsewhere"), ORDERS.values(), ids=ORDERS)
def test_games_that_were_played_in_another_order(
    games: list[tuple[Span, Span]], elsewhere: list[int]
) -> None:
    found = reordered_games(games)
    assert len(found) == len(elsewhere)
    # Of two that were exchanged it may be either.
    assert found == elsewhere or len(games) == 2
