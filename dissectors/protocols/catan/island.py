"""A player's model of the island: the buildings, and the places where more are possible."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kiebitz.dissectors.protocols.catan.board import Board, Hex, Spot, at, spot
from kiebitz.dissectors.protocols.catan.placement import PIECES, Building, Buildings, placement_problem
from kiebitz.dissectors.protocols.catan.words import STRASSE


class IslandModel:
    """The island from the map of a `Spiel gestartet`, with the buildings added since."""

    def __init__(self, karte: Mapping[str, Any]) -> None:
        self.board = Board.from_karte(karte)
        self.buildings = Buildings()
        self.in_setup = True
        self.robber: Hex | None = at(karte["Räuber"]) if "Räuber" in karte else None
        self.land = sorted(place for place in self.board.fields if self.board.is_land(place))
        edges = {spot((place, other)) for place in self.land for other in self.board.neighbours(place)}
        self._edges = sorted(edges)
        self._corners = sorted({end for edge in edges for end in self.board.ends(edge)})

    def built(self, building: Mapping[str, Any]) -> None:
        """Add the building of a `Bauvorgang`."""
        where = spot(map(at, building["Ort"]))
        self.buildings[where] = Building(building["Eigentümer"], building["Typ"])

    def free(self, player: int, typ: str) -> list[Spot]:
        """Return the places where a player may build this type; none if the player has no such piece left."""
        if len(self.buildings.owned(player, typ)) >= PIECES[typ]:
            return []
        spots = self._edges if typ == STRASSE else self._corners
        return [
            where
            for where in spots
            if placement_problem(self.buildings, self.board, player, typ, where, self.in_setup) is None
        ]

    def robbable(self, player: int, field: Hex) -> list[int]:
        """Return the other players with a village or city at a field."""
        return sorted(self.buildings.owners_at(field) - {player})
