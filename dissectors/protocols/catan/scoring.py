"""The points that buildings, awards and known development cards give a player: clauses 4 and 10.10."""

from __future__ import annotations

from typing import NamedTuple

from kiebitz.dissectors.protocols.catan.game import CatanGame, Player
from kiebitz.dissectors.protocols.catan.placement import longest_road
from kiebitz.dissectors.protocols.catan.words import DORF, STADT

POINTS_TO_WIN = 10

_AWARD = 2
"""Points of the longest road, and of the largest army."""

_ROAD, _ARMY = 5, 3
"""Minimum length of the longest road, and number of knights of the largest army."""


class ShownPoints(NamedTuple):
    """A player's points by the messages so far, and the awards among them."""

    points: int
    has_road: bool
    has_army: bool


def shown_points(game: CatanGame, player: Player) -> ShownPoints | None:
    """Return the points of a player by the board and the known cards; None in a game that is not certain.

    An award counts if the player has earned it, even if the server has not announced it.
    """
    if not game.certain or game.board is None:
        return None
    lengths = {number: longest_road(game.buildings, game.board, number) or 0 for number in game.players}
    knights = {number: other.knights or 0 for number, other in game.players.items()}
    has_road = _is_holder(player.id, game.longest_road, lengths, _ROAD)
    has_army = _is_holder(player.id, game.largest_army, knights, _ARMY)
    points = len(game.buildings.owned(player.id, DORF)) + 2 * len(game.buildings.owned(player.id, STADT))
    points += _AWARD * (has_road + has_army) + player.cards.least["Siegpunkt"]
    return ShownPoints(points, has_road, has_army)


def _is_holder(number: int, holder: int | None, counts: dict[int, int], least: int) -> bool:
    """Return True if a player has earned an award: the holder keeps it until another player has more."""
    if counts[number] < least:
        return False
    others = {other: count for other, count in counts.items() if other != number}
    most = max(others.values(), default=0)
    return counts[number] >= most if holder == number else counts[number] > most
