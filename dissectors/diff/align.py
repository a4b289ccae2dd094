"""Alignment of two sequences in nearly linear time.

Equal elements at both ends are cut off. Elements that occur exactly once in each sequence are anchors
(patience diff); the longest increasing chain of them is kept, and the parts between anchors are aligned
recursively. Small parts are aligned exactly (longest common subsequence). For long parts without anchors,
several approximations are tried and the longest result is used: piece by piece, or pairing the n-th
occurrences of each element, from the front or from the end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

Pair = tuple[int, int]
"""Positions of two equal elements."""

_EXACT_LIMIT = 4096
"""Maximum number of comparisons (the product of two lengths) of an exact alignment."""

_PIECE_SIZE = 64
"""Elements per piece of a sequence that is too long for an exact alignment."""

_MAX_DEPTH = 20
"""Maximum recursion depth between anchors; each level costs as much as one pass."""


def align(a: Sequence[int], b: Sequence[int]) -> list[Pair]:
    """Return the positions of equal elements, increasing in both; symmetric in `a` and `b`."""
    if (len(b), list(b)) < (len(a), list(a)):
        return [(i, j) for j, i in _align_ordered(b, a)]
    return _align_ordered(a, b)


def _align_ordered(a: Sequence[int], b: Sequence[int]) -> list[Pair]:
    pairs: list[Pair] = []
    # Each entry: where the parts begin and end in a and in b, and how deep between anchors they lie.
    pending = [(0, len(a), 0, len(b), 0)]
    while pending:
        a0, a1, b0, b1, depth = pending.pop()
        while a0 < a1 and b0 < b1 and a[a0] == b[b0]:
            pairs.append((a0, b0))
            a0, b0 = a0 + 1, b0 + 1
        while a0 < a1 and b0 < b1 and a[a1 - 1] == b[b1 - 1]:
            a1, b1 = a1 - 1, b1 - 1
            pairs.append((a1, b1))
        if a0 == a1 or b0 == b1:
            continue
        # What has no partner cannot take part.
        in_b = set(b[b0:b1])
        mine = [i for i in range(a0, a1) if a[i] in in_b]
        in_a = {a[i] for i in mine}
        other = [j for j in range(b0, b1) if b[j] in in_a]
        if len(mine) * len(other) <= _EXACT_LIMIT:
            pairs += _exact(a, mine, b, other)
            continue
        anchors = _unique(a, mine, b, other) if depth < _MAX_DEPTH else []
        if not anchors:
            pairs += _without_anchors(a, mine, b, other)
            continue
        for i, j in [*anchors, (a1, b1)]:
            pending.append((a0, i, b0, j, depth + 1))
            a0, b0 = i + 1, j + 1
        pairs += anchors
    return sorted(pairs)


def _unique(a: Sequence[int], mine: list[int], b: Sequence[int], other: list[int]) -> list[Pair]:
    counts_a, counts_b = Counter(a[i] for i in mine), Counter(b[j] for j in other)
    places = {b[j]: j for j in other if counts_b[b[j]] == 1}
    return longest_increasing([(i, places[a[i]]) for i in mine if counts_a[a[i]] == 1 and a[i] in places])


def _without_anchors(a: Sequence[int], mine: list[int], b: Sequence[int], other: list[int]) -> list[Pair]:
    front = longest_increasing(_by_rank(a, mine, b, other))
    back = longest_increasing(_by_rank(a, mine[::-1], b, other[::-1])[::-1])
    guesses: list[list[Pair]] = [[], front, back]
    return max((_fill_gaps(anchors, a, mine, b, other) for anchors in guesses), key=len)


def _fill_gaps(
    anchors: list[Pair], a: Sequence[int], mine: list[int], b: Sequence[int], other: list[int]
) -> list[Pair]:
    """Return the anchors, and the piecewise alignment of the parts between them."""
    pairs = list(anchors)
    x = y = 0
    for i, j in [*anchors, (len(a), len(b))]:
        until_x, until_y = bisect_left(mine, i), bisect_left(other, j)
        pairs += _piecewise(a, mine[x:until_x], b, other[y:until_y])
        x, y = until_x + 1, until_y + 1
    return pairs


def _by_rank(a: Sequence[int], mine: list[int], b: Sequence[int], other: list[int]) -> list[Pair]:
    places: dict[int, list[int]] = {}
    for j in reversed(other):
        places.setdefault(b[j], []).append(j)
    return [(i, places[a[i]].pop()) for i in mine if places[a[i]]]


def longest_increasing(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the longest subsequence of pairs, sorted by first, whose second positions increase."""
    ends: list[int] = []
    last: list[int] = []
    before: list[int] = []
    for number, (_, j) in enumerate(pairs):
        length = bisect_left(ends, j)
        before.append(last[length - 1] if length else -1)
        ends[length : length + 1] = [j]
        last[length : length + 1] = [number]
    longest: list[Pair] = []
    number = last[-1] if last else -1
    while number >= 0:
        longest.append(pairs[number])
        number = before[number]
    return longest[::-1]


def _piecewise(a: Sequence[int], mine: list[int], b: Sequence[int], other: list[int]) -> list[Pair]:
    """Cut both parts into equally many pieces, and align the n-th with the n-th."""
    if not (mine and other):
        return []
    count = -(-max(len(mine), len(other)) // _PIECE_SIZE)
    pairs: list[Pair] = []
    for number in range(count):
        piece, piece_b = (
            part[len(part) * number // count : len(part) * (number + 1) // count] for part in (mine, other)
        )
        pairs += _exact(a, piece, b, piece_b)
    return pairs


def _exact(a: Sequence[int], mine: list[int], b: Sequence[int], other: list[int]) -> list[Pair]:
    """Return the longest common subsequence of two small parts."""
    # longest[x][y]: how much the parts from x and from y on have in common.
    others = [b[j] for j in other]
    width = len(other)
    longest = [[0] * (width + 1)]
    for i in reversed(mine):
        element = a[i]
        below, right = longest[-1], 0
        row = [0] * (width + 1)
        for y in range(width - 1, -1, -1):
            if others[y] == element:
                right = below[y + 1] + 1
            elif below[y] > right:
                right = below[y]
            row[y] = right
        longest.append(row)
    longest.reverse()
    pairs: list[Pair] = []
    x = y = 0
    while x < len(mine) and y < len(other):
        if a[mine[x]] == b[other[y]]:
            pairs.append((mine[x], other[y]))
            x, y = x + 1, y + 1
        elif longest[x + 1][y] >= longest[x][y + 1]:
            x += 1
        else:
            y += 1
    return pairs
