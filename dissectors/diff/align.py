"""Which elements of two sequences belong together: an alignment, in nearly linear time whatever they are.

What is the same at both ends is cut off. Elements that come once in each of the two are anchors, of which the
longest increasing chain is kept (patience), and between the anchors it begins anew. What is small is aligned
exactly, as the longest common subsequence. What is long and has no anchors is aligned in several ways, of
which the one that finds the most counts: piece by piece; or the first of a kind with the first, the second
with the second and so on, from the front or from the end, and piece by piece between them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

Pair = tuple[int, int]
"""The places of two elements that are the same."""

_SMALL = 4096
"""Maximum number of comparisons (the product of two lengths) of an exact alignment."""

_PIECE = 64
"""Elements of a piece, into which a sequence is cut that is too long for an exact alignment."""

_DEEPEST = 20
"""Maximum depth of anchors between anchors; each level costs as much as one pass."""


def align(a: Sequence[int], b: Sequence[int]) -> list[Pair]:
    """The places of equal elements, which increase in both. Exchanging `a` and `b` exchanges the places."""
    if (len(b), list(b)) < (len(a), list(a)):
        return [(i, j) for j, i in _aligned(b, a)]
    return _aligned(a, b)


def _aligned(a: Sequence[int], b: Sequence[int]) -> list[Pair]:
    pairs: list[Pair] = []
    # Each entry: where the parts begin and end in a and in b, and how deep between anchors they lie.
    waiting = [(0, len(a), 0, len(b), 0)]
    while waiting:
        a0, a1, b0, b1, depth = waiting.pop()
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
        if len(mine) * len(other) <= _SMALL:
            pairs += _exact(a, mine, b, other)
            continue
        anchors = _unique(a, mine, b, other) if depth < _DEEPEST else []
        if not anchors:
            pairs += _without_anchors(a, mine, b, other)
            continue
        for i, j in [*anchors, (a1, b1)]:
            waiting.append((a0, i, b0, j, depth + 1))
            a0, b0 = i + 1, j + 1
        pairs += anchors
    return sorted(pairs)


def _unique(a: Sequence[int], mine: list[int], b: Sequence[int], other: list[int]) -> list[Pair]:
    """Anchors: elements that come once in each part."""
    counts_a, counts_b = Counter(a[i] for i in mine), Counter(b[j] for j in other)
    places = {b[j]: j for j in other if counts_b[b[j]] == 1}
    return chain([(i, places[a[i]]) for i in mine if counts_a[a[i]] == 1 and a[i] in places])


def _without_anchors(a: Sequence[int], mine: list[int], b: Sequence[int], other: list[int]) -> list[Pair]:
    """An alignment of two long parts in which nothing comes once only."""
    front = chain(_by_rank(a, mine, b, other))
    back = chain(_by_rank(a, mine[::-1], b, other[::-1])[::-1])
    guesses: list[list[Pair]] = [[], front, back]
    return max((_filled_up(anchors, a, mine, b, other) for anchors in guesses), key=len)


def _filled_up(
    anchors: list[Pair], a: Sequence[int], mine: list[int], b: Sequence[int], other: list[int]
) -> list[Pair]:
    """Anchors, and what is aligned between them piece by piece."""
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


def chain(pairs: Sequence[Pair]) -> list[Pair]:
    """The longest part of pairs, whose first places increase, in which the second ones do so, too."""
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
    """Both parts cut into as many pieces, of which the first is aligned with the first, and so on."""
    if not (mine and other):
        return []
    count = -(-max(len(mine), len(other)) // _PIECE)
    pairs: list[Pair] = []
    for number in range(count):
        piece, piece_b = (
            part[len(part) * number // count : len(part) * (number + 1) // count] for part in (mine, other)
        )
        pairs += _exact(a, piece, b, piece_b)
    return pairs


def _exact(a: Sequence[int], mine: list[int], b: Sequence[int], other: list[int]) -> list[Pair]:
    """The longest common subsequence of two small parts."""
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
