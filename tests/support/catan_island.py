"""A small handmade island, and the true state of a game on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kiebitz.dissectors.protocols.catan.words import ROHSTOFFE

Place = tuple[int, int]
Spot = tuple[Place, ...]
Counts = Mapping[str, int]

STEPS = ((1, 0), (1, -1), (0, -1), (-1, 0), (-1, 1), (0, 1))
"""Steps from a field to its neighbours, clockwise."""

LAND = {
    (0, 0): ("Wüste", 0),
    (1, 0): ("Wald", 6),
    (1, -1): ("Hügelland", 8),
    (0, -1): ("Weideland", 5),
    (-1, 0): ("Ackerland", 9),
    (-1, 1): ("Gebirge", 10),
    (0, 1): ("Wald", 4),
}
YIELDS = {
    "Wald": "Holz",
    "Hügelland": "Lehm",
    "Weideland": "Wolle",
    "Ackerland": "Getreide",
    "Gebirge": "Erz",
}
HARBOURS = {((1, 0), (2, 0)): "Hafen", ((-2, 2), (-1, 1)): "Erz Hafen", ((0, 1), (0, 2)): "Holz Hafen"}
COSTS: dict[str, Counts] = {
    "Straße": {"Holz": 1, "Lehm": 1},
    "Dorf": {"Holz": 1, "Lehm": 1, "Wolle": 1, "Getreide": 1},
    "Stadt": {"Getreide": 2, "Erz": 3},
    "Karte": {"Wolle": 1, "Getreide": 1, "Erz": 1},
}


def around(place: Place) -> list[Place]:
    return [(place[0] + x, place[1] + y) for x, y in STEPS]


def spot(*places: Place) -> Spot:
    return tuple(sorted(places))


EDGES = sorted({spot(place, other) for place in LAND for other in around(place)})
CORNERS = sorted(
    {
        spot(place, one, other)
        for place in LAND
        for one, other in zip(around(place), around(place)[1:] + around(place)[:1], strict=True)
    }
)
ENDS = {edge: [corner for corner in CORNERS if {*edge} <= {*corner}] for edge in EDGES}
ROADS_AT = {corner: [edge for edge in EDGES if {*edge} <= {*corner}] for corner in CORNERS}
SEA = sorted({other for place in LAND for other in around(place)} - {*LAND})


@dataclass
class Truth:
    """The true state of a game, independent of any observer."""

    hands: dict[int, dict[str, int]]
    cards: dict[int, dict[str, int]]
    points: dict[int, int]
    buildings: dict[Spot, tuple[int, str]] = field(default_factory=dict)
    knights: dict[int, int] = field(default_factory=dict)
    robber: Place = (0, 0)
    dice: list[int] | None = None
    turn: int | None = None
    rolled: bool = False
    """True once the turns have begun."""
    longest: int | None = None
    army: int | None = None
    trades: set[int] = field(default_factory=set)

    @property
    def bank(self) -> dict[str, int]:
        return {kind: 19 - sum(hand[kind] for hand in self.hands.values()) for kind in ROHSTOFFE}

    def towns(self, player: int) -> list[Spot]:
        return [at for at, (owner, typ) in self.buildings.items() if owner == player and typ != "Straße"]

    def road_length(self, player: int) -> int:
        ours = [at for at, building in self.buildings.items() if building == (player, "Straße")]

        def longest(here: Spot, gone: tuple[Spot, ...]) -> int:
            owner, _ = self.buildings.get(here, (player, ""))
            if gone and owner != player:
                return len(gone)
            ways = [road for road in ROADS_AT[here] if road in ours and road not in gone]
            ends = [(end, road) for road in ways for end in ENDS[road] if end != here]
            return max((longest(end, (*gone, road)) for end, road in ends), default=len(gone))

        return max((longest(end, ()) for road in ours for end in ENDS[road]), default=0)

    def dues(self, number: int) -> dict[int, dict[str, int]]:
        """Return the resources that a roll yields; if the bank has too few of one, no player receives it."""
        dues: dict[int, dict[str, int]] = {}
        for at, (owner, typ) in self.buildings.items():
            for place in at if typ != "Straße" else ():
                terrain, chip = LAND.get(place, ("Meer", 0))
                if chip == number and place != self.robber:
                    due = dues.setdefault(owner, {})
                    due[YIELDS[terrain]] = due.get(YIELDS[terrain], 0) + (2 if typ == "Stadt" else 1)
        for kind, left in self.bank.items():
            if sum(due.get(kind, 0) for due in dues.values()) > left:
                for due in dues.values():
                    due.pop(kind, None)
        return {owner: due for owner, due in dues.items() if due}
