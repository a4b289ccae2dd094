"""Placement rules for roads, villages and cities: clause 7.2 and the rules of the game."""

from __future__ import annotations

from typing import Protocol

from kiebitz.dissectors.protocols.catan.board import Board, Spot
from kiebitz.dissectors.protocols.catan.game import Building
from kiebitz.dissectors.protocols.catan.words import DORF, STADT, STRASSE

ROAD_INTERRUPTED = "it continues past another player's building"


class Buildings(Protocol):
    """The buildings of a game; `in_setup` is True while the first villages and roads are built."""

    buildings: dict[Spot, Building]
    in_setup: bool


def placement_problem(game: Buildings, board: Board, owner: int, typ: str, where: Spot) -> str | None:
    """Return why a building must not be placed there; None if it may."""
    there = game.buildings.get(where)
    if not (board.is_edge(where) if typ == STRASSE else board.is_corner(where)):
        return "this is not an edge of a field" if typ == STRASSE else "this is not a corner of a field"
    if typ == STADT:
        stands_for = "a city must replace the player's own village"
        return None if there == Building(owner, DORF) else stands_for
    if there is not None:
        return f"a {there.typ} is there already"
    road = Building(owner, STRASSE)
    if typ == DORF:
        if any(corner in game.buildings for corner in board.next_corners(where)):
            return "an adjacent corner has a building"
        if game.in_setup or any(game.buildings.get(edge) == road for edge in board.edges_at(where)):
            return None
        return "none of the player's roads leads there"
    through = False
    for corner in board.ends(where):
        town = game.buildings.get(corner)
        if town is not None and town.owner == owner:
            return None
        if any(game.buildings.get(edge) == road for edge in board.edges_at(corner) if edge != where):
            if town is None:
                return None
            through = True
    return ROAD_INTERRUPTED if through else "it is not connected to the player's roads or buildings"
