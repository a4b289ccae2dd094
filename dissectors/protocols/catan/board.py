"""The island: hexagons on a slanted grid with corners and edges between them, and what may be built there.

A field has coordinates (x, y). A road is on the *edge* between two fields, a village or city on the *corner*
between three (clause 7.2). One of the two diagonals leads to a neighbour: in the specification it is (1, -1);
some programs slant their axis the other way, and have (1, 1). The map itself shows which one it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from kiebitz.dissectors.protocols.catan.words import DORF, HAFEN, LAND, MEER, STADT, STRASSE

Hex = tuple[int, int]
"""The x and y coordinates of a field."""

Spot = tuple[Hex, ...]
"""The fields around an edge (two) or a corner (three), sorted."""

Slant = Literal[1, -1]
"""1: the specification's axis, with neighbours (1, -1) and (-1, 1); -1: the other one."""


def spot(places: Iterable[Hex]) -> Spot:
    """Return the edge or corner between these fields."""
    return tuple(sorted(places))


class Board:
    """A map: terrain, numbers, harbours and neighbourhood of the fields.

    Args:
        fields: Type of each field.
        numbers: Number of each field that has one.
        harbours: Type of the harbour at each edge that has one.
    """

    def __init__(
        self, fields: Mapping[Hex, str], numbers: Mapping[Hex, int], harbours: Mapping[Spot, str]
    ) -> None:
        self.fields = dict(fields)
        self.numbers = dict(numbers)
        self.harbours = dict(harbours)
        self.slant = _slant(self.fields, self.harbours)
        diagonal = (1, -self.slant)
        steps = [(1, 0), diagonal, (0, -1), (-1, 0), (-diagonal[0], -diagonal[1]), (0, 1)]
        self._steps = frozenset(steps)

    @classmethod
    def from_karte(cls, karte: Mapping[str, Any]) -> Board:
        """Create a board from a decoded map (clause 7.4); fields without coordinates are left out."""
        fields: dict[Hex, str] = {}
        numbers: dict[Hex, int] = {}
        for feld in karte["Felder"]:
            if isinstance(feld["Ort"], dict):
                place = at(feld["Ort"])
                fields[place] = feld["Typ"]
                # Some programs send a 0 for the desert.
                if feld.get("Zahl"):
                    numbers[place] = feld["Zahl"]
        harbours = {spot(map(at, hafen["Ort"])): hafen["Typ"] for hafen in karte.get("Häfen", ())}
        return cls(fields, numbers, harbours)

    def are_neighbours(self, one: Hex, other: Hex) -> bool:
        """Return True if two fields share an edge."""
        return (other[0] - one[0], other[1] - one[1]) in self._steps

    def neighbours(self, place: Hex) -> list[Hex]:
        """Return the six adjacent fields, including those that are not on the map, sorted."""
        return sorted((place[0] + x, place[1] + y) for x, y in self._steps)

    def is_land(self, place: Hex) -> bool:
        """Return True if there is a field that is not sea."""
        return self.fields.get(place, MEER) != MEER

    def resource(self, place: Hex) -> str | None:
        """Return the resource that a field yields; None if it yields none."""
        return LAND.get(self.fields.get(place, ""))

    def is_edge(self, where: Spot) -> bool:
        """Return True if these are two neighbours, one of them land."""
        return len(where) == 2 and self.are_neighbours(*where) and any(map(self.is_land, where))

    def is_corner(self, where: Spot) -> bool:
        """Return True if these are three fields around one point, one of them land."""
        if len(where) != 3 or not any(map(self.is_land, where)):
            return False
        one, two, three = where
        return (
            self.are_neighbours(one, two)
            and self.are_neighbours(two, three)
            and self.are_neighbours(one, three)
        )

    def ends(self, edge: Spot) -> list[Spot]:
        """Return the two corners of an edge."""
        one, other = edge
        between = sorted({*self.neighbours(one)} & {*self.neighbours(other)})
        return [spot((one, other, third)) for third in between]

    def edges_at(self, corner: Spot) -> list[Spot]:
        """Return the three edges that meet in a corner, including those in the sea."""
        one, two, three = corner
        return [spot(pair) for pair in ((one, two), (one, three), (two, three))]

    def next_corners(self, corner: Spot) -> list[Spot]:
        """Return the three corners that are one edge away."""
        return [end for edge in self.edges_at(corner) for end in self.ends(edge) if end != corner]

    def rates(self, corners: Iterable[Spot]) -> dict[str, int]:
        """Return the overseas trade rate (`n` for one) of each resource for the owner of these corners.

        A harbour can be used from both ends of its edge (clause 7.3).
        """
        owned = set(corners)
        rates = dict.fromkeys(LAND.values(), 4)
        for edge, typ in self.harbours.items():
            if len(edge) == 2 and owned.intersection(self.ends(edge)):
                if typ == HAFEN:
                    rates = {rohstoff: min(rate, 3) for rohstoff, rate in rates.items()}
                else:
                    rates[typ.removesuffix(f" {HAFEN}")] = 2
        return rates

    def centre(self, place: Hex) -> tuple[int, int]:
        """Return the centre of a field for drawing: x in half widths of a field, y in rows upwards."""
        x, y = place
        return 2 * x + self.slant * y, y

    def point(self, where: Spot) -> tuple[float, float]:
        """Return the position of an edge or corner for drawing: the mean of its fields' centres."""
        centres = [self.centre(place) for place in where]
        return sum(x for x, _ in centres) / len(where), sum(y for _, y in centres) / len(where)


def at(place: Mapping[str, int]) -> Hex:
    """Return the coordinates of a place in the specification's form, `{"x": -2, "y": 2}`."""
    return place["x"], place["y"]


def spot_text(where: Spot) -> str:
    """Return an edge or corner as text: the coordinates of its fields."""
    return " ".join(f"({x},{y})" for x, y in where)


def ort(place: Hex) -> dict[str, int]:
    """Return a place in the specification's form."""
    return {"x": place[0], "y": place[1]}


def _slant(fields: Iterable[Hex], harbours: Iterable[Spot]) -> Slant:
    """Return which diagonal leads to neighbours.

    On a round island, more pairs of fields lie on that one; a harbour's two fields are neighbours in any
    case.
    """
    there = set(fields)
    ours = sum((x + 1, y - 1) in there for x, y in there)
    others = sum((x + 1, y + 1) in there for x, y in there)
    for edge in harbours:
        if len(edge) == 2:
            (x1, y1), (x2, y2) = edge
            turn = (x2 - x1) * (y2 - y1)
            ours += turn == -1
            others += turn == 1
    return 1 if ours >= others else -1


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
