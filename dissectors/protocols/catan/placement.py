"""Buildings: where roads, villages and cities may be placed, what they yield, and the longest road.

Clause 7.2 and the rules of the game.
"""

from __future__ import annotations

import msgspec

from kiebitz.dissectors.protocols.catan.board import Board, Hex, Spot
from kiebitz.dissectors.protocols.catan.words import DORF, STADT, STRASSE

PIECES = {STRASSE: 15, DORF: 5, STADT: 4}
"""Number of roads, villages and cities of each player."""

ROAD_INTERRUPTED = "it continues past another player's building"

_YIELD = {DORF: 1, STADT: 2}


class Building(msgspec.Struct, frozen=True):
    """A road, village or city, and its owner."""

    owner: int
    typ: str


class Buildings(dict[Spot, Building]):
    """The buildings of a game, by place."""

    def owned(self, owner: int, *types: str) -> list[Spot]:
        """Return the places of a player's buildings of these types."""
        return [
            where for where, building in self.items() if building.owner == owner and building.typ in types
        ]

    def towns(self, owner: int) -> list[Spot]:
        """Return the places of a player's villages and cities."""
        return self.owned(owner, DORF, STADT)

    def owners_at(self, place: Hex) -> set[int]:
        """Return the players with a village or city at a field."""
        return {
            building.owner for where, building in self.items() if place in where and building.typ != STRASSE
        }

    def dues(self, board: Board, number: int, robber: Hex | None) -> dict[int, dict[str, int]]:
        """Return the yield of a roll by player."""
        dues: dict[int, dict[str, int]] = {}
        for where, building in self.items():
            for place in where if building.typ in _YIELD else ():
                kind = board.resource(place)
                if kind is not None and board.numbers.get(place) == number and place != robber:
                    due = dues.setdefault(building.owner, {})
                    due[kind] = due.get(kind, 0) + _YIELD[building.typ]
        return dues


def placement_problem(
    buildings: Buildings, board: Board, owner: int, typ: str, where: Spot, in_setup: bool
) -> str | None:
    """Return why a building must not be placed there; None if it may.

    `in_setup` is True while the first villages and roads are built.
    """
    there = buildings.get(where)
    if not (board.is_edge(where) if typ == STRASSE else board.is_corner(where)):
        return "this is not an edge of a field" if typ == STRASSE else "this is not a corner of a field"
    if typ == STADT:
        stands_for = "a city must replace the player's own village"
        return None if there == Building(owner, DORF) else stands_for
    if there is not None:
        return f"a {there.typ} is there already"
    road = Building(owner, STRASSE)
    if typ == DORF:
        if any(corner in buildings for corner in board.next_corners(where)):
            return "an adjacent corner has a building"
        if in_setup or any(buildings.get(edge) == road for edge in board.edges_at(where)):
            return None
        return "none of the player's roads leads there"
    through = False
    for corner in board.ends(where):
        town = buildings.get(corner)
        if town is not None and town.owner == owner:
            return None
        if any(buildings.get(edge) == road for edge in board.edges_at(corner) if edge != where):
            if town is None:
                return None
            through = True
    return ROAD_INTERRUPTED if through else "it is not connected to the player's roads or buildings"


def longest_road(buildings: Buildings, board: Board, owner: int) -> int | None:
    """Return the length of a player's longest road; None if it has more roads than there are pieces.

    It is the longest trail over the player's roads. A road counts once; another player's building on a corner
    interrupts the trail. That limit bounds the number of trails. Roads that are not on an edge are ignored.
    """
    roads = [road for road in buildings.owned(owner, STRASSE) if board.is_edge(road)]
    if len(roads) > PIECES[STRASSE]:
        return None
    at: dict[Spot, list[tuple[int, Spot]]] = {}
    for number, road in enumerate(roads):
        one, other = board.ends(road)
        at.setdefault(one, []).append((1 << number, other))
        at.setdefault(other, []).append((1 << number, one))
    blocked = {
        corner for corner in at if (there := buildings.get(corner)) is not None and there.owner != owner
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
