"""Okey's tiles: 1 to 13 in four colours twice, and two jokers; and what a winning deck is.

A tile is written `4:BLUE`. The number 0 is the joker, in whatever colour (the specification's table of
parameters). A winning deck has 14 tiles, in runs (one colour, consecutive numbers) and groups (one number,
different colours) of three or more; the specification leaves that to those who know the game.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

COLOURS = ("RED", "BLUE", "YELLOW", "BLACK")
HIGHEST = 13
JOKER = "0"
OF_EACH = 2
"""So many of each tile, and so many jokers, are in the pack of 106."""

DECK = 14
"""Tiles in a deck; a player whose turn it is has one more."""

SLOTS = 24
"""Places on a player's rack; the specification has 20, real programs 24."""

SEATS = 4

_SHORTEST = 3
"""A run or a group has at least so many tiles."""

Slots = list[str | None]
"""A rack: a tile or nothing in each place."""


def is_joker(tile: str) -> bool:
    return tile.startswith("0:")


def kind(tile: str) -> str:
    """What a tile counts as: jokers are all alike."""
    return JOKER if is_joker(tile) else tile


def tiles(deck: Iterable[str | None]) -> list[str]:
    """A rack's tiles without its empty places."""
    return [tile for tile in deck if tile is not None]


def counted(deck: Iterable[str | None]) -> Counter[str]:
    """How many of each kind a rack has."""
    return Counter(kind(tile) for tile in deck if tile is not None)


def is_won(deck: Sequence[str | None]) -> bool:
    """Whether all 14 tiles can be laid out in runs and groups; after 13 a run may go on with 1."""
    held = counted(deck)
    if held.total() != DECK:
        return False
    jokers = held.pop(JOKER, 0)
    if any(count > OF_EACH for count in held.values()) or jokers > OF_EACH:
        # No pack has that; and what follows may take its time with it.
        return False
    return _can_be_laid(frozenset(held.items()), jokers)


@cache
def _formations() -> tuple[frozenset[str], ...]:
    """Every run and group of three to five tiles: longer ones are made of these."""
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
    """Whether all of these tiles can be laid out; each formation tried holds the first of them."""
    seen: set[tuple[frozenset[tuple[str, int]], int]] = set()
    open_: list[tuple[frozenset[tuple[str, int]], int]] = [(held, jokers)]
    while open_:
        state = open_.pop()
        if state in seen:
            continue
        seen.add(state)
        rest, left = state
        if not rest:
            # Jokers that are left over lengthen any formation: five are never short of a place.
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
