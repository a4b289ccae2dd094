"""A Catan map from a player's perspective: corners and edges between fields, and what is built there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Place = tuple[int, int]
Spot = tuple[Place, ...]

AROUND = ((1, 0), (1, -1), (0, -1), (-1, 0), (-1, 1), (0, 1))
"""Steps from a field to its neighbours, clockwise; x goes right, y down to the left (section 7.1)."""


def place_of(value: Any) -> Place:
    return value["x"], value["y"]


def spot_of(values: Iterable[Any]) -> Spot:
    return tuple(sorted(map(place_of, values)))


def written(at: Spot) -> list[dict[str, int]]:
    return [{"x": x, "y": y} for x, y in at]


class Board:
    """Made from the `Karte` of the server."""

    def __init__(self, karte: Any) -> None:
        self.land = {place_of(field["Ort"]) for field in karte["Felder"] if field["Typ"] != "Meer"}
        self.robber = place_of(karte["Räuber"])
        self.buildings: dict[Spot, tuple[int, str]] = {}
        self.corners: set[Spot] = set()
        self.edges: set[Spot] = set()
        for x, y in self.land:
            ring = [(x + dx, y + dy) for dx, dy in AROUND]
            for one, other in zip(ring, ring[1:] + ring[:1], strict=True):
                self.corners.add(tuple(sorted(((x, y), one, other))))
                self.edges.add(tuple(sorted(((x, y), one))))

    def ends(self, edge: Spot) -> list[Spot]:
        return sorted(corner for corner in self.corners if {*edge} <= {*corner})

    def roads_at(self, corner: Spot) -> list[Spot]:
        return sorted(edge for edge in self.edges if {*edge} <= {*corner})

    def is_free(self, corner: Spot) -> bool:
        """Return whether a village may be built there: the corner and its neighbours are empty."""
        near = {end for road in self.roads_at(corner) for end in self.ends(road)}
        return not near & {*self.buildings}

    def free_roads(self, player: int, corner: Spot | None = None) -> list[Spot]:
        """Return where a road may be built; only at this corner, if there is one."""
        edges = self.edges if corner is None else self.roads_at(corner)
        return sorted(
            edge
            for edge in edges
            if edge not in self.buildings and any(self._joins(end, player) for end in self.ends(edge))
        )

    def _joins(self, corner: Spot, player: int) -> bool:
        if corner in self.buildings:
            return self.buildings[corner][0] == player
        return any(self.buildings.get(road) == (player, "Straße") for road in self.roads_at(corner))

    def free_corners(self, player: int | None = None) -> list[Spot]:
        """Return where a village may be built; with a player, only at the end of a road of theirs."""
        return sorted(
            corner
            for corner in self.corners
            if self.is_free(corner)
            and (
                player is None
                or any(self.buildings.get(road) == (player, "Straße") for road in self.roads_at(corner))
            )
        )

    def pieces(self, player: int, typ: str) -> list[Spot]:
        return sorted(at for at, building in self.buildings.items() if building == (player, typ))

    def owners_at(self, field: Place) -> list[int]:
        """Return the players with a village or city next to a field."""
        return sorted({owner for at, (owner, typ) in self.buildings.items() if field in at and len(at) == 3})
