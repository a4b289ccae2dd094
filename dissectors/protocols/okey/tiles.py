"""Okey's tiles, 1 to 13 in four colours twice and two jokers, and the check of winning decks.

A tile is written `4:BLUE`. The number 0 is the joker, in any colour (the specification's table of
parameters). A winning deck has 14 tiles, in runs (one colour, consecutive numbers) and groups (one number,
different colours) of three or more; the specification omits this rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

COLOURS = ("RED", "BLUE", "YELLOW", "BLACK")
HIGHEST = 13
JOKER = "0"
OF_EACH = 2
"""Number of copies of each tile, and of jokers, in the pack of 106."""

DECK = 14
"""Tiles in a deck; the player whose turn it is has one more."""

SLOTS = 24
"""Places on a player's rack; the specification has 20, real programs 24."""

SEATS = 4

STOCK = 106 - SEATS * DECK - 1
"""Number of tiles in the main stack after the deal."""

_SHORTEST = 3
"""Minimum number of tiles in a run or a group."""

Slots = list[str | None]
"""A rack: a tile or None in each place."""


def is_joker(tile: str) -> bool:
    """Return True if a tile is a joker."""
    return tile.startswith("0:")


def kind(tile: str) -> str:
    """Return a tile's kind: all jokers are equal."""
    return JOKER if is_joker(tile) else tile


def tiles(deck: Iterable[str | None]) -> list[str]:
    """Return a rack's tiles without its empty places."""
    return [tile for tile in deck if tile is not None]


def counted(deck: Iterable[str | None]) -> Counter[str]:
    """Count the tiles of each kind on a rack."""
    return Counter(kind(tile) for tile in deck if tile is not None)


def is_won(deck: Sequence[str | None]) -> bool:
    """Return True if all 14 tiles can be arranged in runs and groups; in a run 1 may follow 13."""
    held = counted(deck)
    if held.total() != DECK:
        return False
    jokers = held.pop(JOKER, 0)
    if any(count > OF_EACH for count in held.values()) or jokers > OF_EACH:
        # Impossible with one pack; and the search could take long.
        return False
    return _can_be_laid(frozenset(held.items()), jokers)


@cache
def _formations() -> tuple[frozenset[str], ...]:
    """Return every run and group of three to five tiles: longer ones are composed of these."""
    found = {
        frozenset(f"{number % HIGHEST + 1}:{colour}" for number in range(start, start + length))
        for colour in COLOURS
        for length in range(_SHORTEST, 2 * _SHORTEST)
        for start in range(HIGHEST)
    }
    for number in range(1, HIGHEST + 1):
        group = [f"{number}:{colour}" for colour in COLOURS]
        found.add(frozenset(group))
        found |= {frozenset(group) - {tile} for tile in group}
    return tuple(sorted(found, key=sorted))


@cache
def _formations_with(tile: str) -> tuple[frozenset[str], ...]:
    return tuple(each for each in _formations() if tile in each)


def _can_be_laid(held: frozenset[tuple[str, int]], jokers: int) -> bool:
    """Return True if all of these tiles can be arranged; each formation tried contains the first of them."""
    seen: set[tuple[frozenset[tuple[str, int]], int]] = set()
    open_: list[tuple[frozenset[tuple[str, int]], int]] = [(held, jokers)]
    while open_:
        state = open_.pop()
        if state in seen:
            continue
        seen.add(state)
        rest, left = state
        if not rest:
            # Remaining jokers extend any formation: there is always room for five.
            return True
        open_.extend(_without_one_formation(rest, left))
    return False


def _without_one_formation(
    rest: frozenset[tuple[str, int]], jokers: int
) -> Iterator[tuple[frozenset[tuple[str, int]], int]]:
    counts = dict(rest)
    for formation in _formations_with(min(counts)):
        missing = [tile for tile in formation if tile not in counts]
        if len(missing) <= jokers:
            left = {tile: count - (tile in formation) for tile, count in counts.items()}
            yield frozenset(item for item in left.items() if item[1]), jokers - len(missing)
