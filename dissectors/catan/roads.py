"""How long a player's longest road is: the most of his roads that can be gone along in one go.

A road may be gone along once; another player's building on a corner ends the way there.
"""

from __future__ import annotations

from dissectors.catan.board import Board, Spot
from dissectors.catan.game import CatanGame
from dissectors.catan.words import STRASSE


def longest_road(game: CatanGame, board: Board, owner: int) -> int:
    """The length of a player's longest road."""
    roads = game.owned(owner, STRASSE)
    at: dict[Spot, list[Spot]] = {}
    for road in roads:
        for corner in board.ends(road):
            at.setdefault(corner, []).append(road)
    blocked = {
        corner for corner in at if (there := game.buildings.get(corner)) is not None and there.owner != owner
    }
    longest = 0
    for corner in at:
        # Ways still to be looked at: where they have come to, and along which roads.
        ways: list[tuple[Spot, frozenset[Spot]]] = [(corner, frozenset())]
        while ways:
            here, gone = ways.pop()
            longest = max(longest, len(gone))
            if gone and here in blocked:
                continue
            for road in at[here]:
                if road not in gone:
                    (further,) = (end for end in board.ends(road) if end != here)
                    ways.append((further, gone | {road}))
    return longest
