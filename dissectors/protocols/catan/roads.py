"""How long a player's longest road is: the most of his roads that can be gone along in one go.

A road may be gone along once; another player's building on a corner ends the way there.
"""

from __future__ import annotations

from typing import Protocol

from kiebitz.dissectors.protocols.catan.board import Board, Spot
from kiebitz.dissectors.protocols.catan.game import PIECES, Building
from kiebitz.dissectors.protocols.catan.words import STRASSE


class Built(Protocol):
    """What is built, and what of it is a player's."""

    buildings: dict[Spot, Building]

    def owned(self, owner: int, *types: str) -> list[Spot]:
        """Where a player's buildings of these types stand."""


def longest_road(game: Built, board: Board, owner: int) -> int | None:
    """The length of a player's longest road; None if he has more roads than there are.

    The ways that are looked at are few only as long as the roads are. What is no edge leads nowhere.
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
        # Ways still to be looked at: where they have come to, and along which roads, a bit for each.
        ways = [(corner, 0)]
        while ways:
            here, gone = ways.pop()
            longest = max(longest, gone.bit_count())
            if gone and here in blocked:
                continue
            ways += [(further, gone | road) for road, further in at[here] if not gone & road]
    return longest
