"""A random map, and a player's model of the island: the buildings, and the places where more are possible."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from kiebitz.dissectors.protocols.catan.board import (
    PIECES,
    Board,
    Building,
    Buildings,
    Hex,
    Spot,
    at,
    ort,
    placement_problem,
    spot,
)
from kiebitz.dissectors.protocols.catan.words import HAFEN, HÄFEN, MEER, STRASSE, WÜSTE

_TERRAINS = (*("Ackerland",) * 4, *("Weideland",) * 4, *("Wald",) * 4, *("Hügelland",) * 3, *("Gebirge",) * 3)
_NUMBERS = (2, 3, 3, 4, 4, 5, 5, 6, 6, 8, 8, 9, 9, 10, 10, 11, 11, 12)
_SHORE = 3
"""Distance of the sea from the middle."""

_STEPS = ((1, 0), (0, 1), (-1, 1), (-1, 0), (0, -1), (1, -1))
"""Steps from a field to its neighbours, in a circle."""


def random_map(chance: random.Random) -> dict[str, Any]:
    """Return a `Karte`, clause 7.4; the robber is in the desert."""
    places = [(x, y) for x in range(-_SHORE, _SHORE + 1) for y in range(-_SHORE, _SHORE + 1)]
    land = [place for place in places if _distance(*place) < _SHORE]
    chance.shuffle(land)
    desert, *yielding = land
    terrains = chance.sample(_TERRAINS, len(_TERRAINS))
    numbers = chance.sample(_NUMBERS, len(_NUMBERS))
    fields: list[dict[str, Any]] = [{"Ort": ort(desert), "Typ": WÜSTE}]
    for place, terrain, number in zip(yielding, terrains, numbers, strict=True):
        fields.append({"Ort": ort(place), "Typ": terrain, "Zahl": number})
    fields += [{"Ort": ort(place), "Typ": MEER} for place in _sea()]
    kinds = chance.sample((*HÄFEN, *(HAFEN,) * 3), len(HÄFEN) + 3)
    harbours = []
    for place, kind in zip(_sea()[::2], kinds, strict=True):
        ashore = next(other for other in _around(*place) if _distance(*other) < _SHORE)
        harbours.append({"Ort": [ort(ashore), ort(place)], "Typ": kind})
    return {"Felder": fields, "Gebäude": [], "Häfen": harbours, "Räuber": ort(desert)}


def _distance(x: int, y: int) -> int:
    return max(abs(x), abs(y), abs(x + y))


def _around(x: int, y: int) -> list[tuple[int, int]]:
    return [(x + dx, y + dy) for dx, dy in _STEPS]


def _sea() -> list[tuple[int, int]]:
    """Return the 18 sea fields at the coast, in a circle."""
    found: list[tuple[int, int]] = []
    x, y = 0, -_SHORE
    for dx, dy in _STEPS:
        for _ in range(_SHORE):
            found.append((x, y))
            x, y = x + dx, y + dy
    return found


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
