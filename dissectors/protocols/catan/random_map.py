"""A random map: the island of 19 fields, with the sea around it and nine harbours."""

from __future__ import annotations

import random
from typing import Any

from kiebitz.dissectors.protocols.catan.board import ort
from kiebitz.dissectors.protocols.catan.words import HAFEN, HÄFEN, MEER, WÜSTE

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
