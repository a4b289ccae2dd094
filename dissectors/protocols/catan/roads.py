"""The length of a player's longest road: the longest trail over the player's roads.

A road counts once; another player's building on a corner interrupts the trail.
"""

from __future__ import annotations

from typing import Protocol

from kiebitz.dissectors.protocols.catan.board import Board, Spot
from kiebitz.dissectors.protocols.catan.game import PIECES, Building
from kiebitz.dissectors.protocols.catan.words import STRASSE


class RoadNetwork(Protocol):
    """The buildings of a game, by place and by owner."""

    buildings: dict[Spot, Building]

    def owned(self, owner: int, *types: str) -> list[Spot]:
        """Return the places of a player's buildings of these types."""


def longest_road(game: RoadNetwork, board: Board, owner: int) -> int | None:
    """Return the length of a player's longest road; None if it has more roads than there are pieces.

    That limit bounds the number of trails. Roads that are not on an edge are ignored.
    """
    roads = [road for road in game.owned(owner, STRASSE) if board.is_edge(road)]
    if len(roads) > PIECES[STRASSE]:
        return None
    at: dict[Spot, list[tuple[int, Spot]]] = {}
    for number, road in enumerate(roads):
        one, other = board.ends(road)
        at.setdefault(one, []).append((1 << number, other))
        at.setdefault(other, []).append((1 << number, one))
    blocked = {
        corner for corner in at if (there := game.buildings.get(corner)) is not None and there.owner != owner
    }
    longest = 0
    for corner in at:
        # Trails to extend: the corner reached, and a bit mask of the roads used.
        ways = [(corner, 0)]
        while ways:
            here, gone = ways.pop()
            longest = max(longest, gone.bit_count())
            if gone and here in blocked:
                continue
            ways += [(further, gone | road) for road, further in at[here] if not gone & road]
    return longest
