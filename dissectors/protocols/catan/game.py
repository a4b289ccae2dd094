"""One game of Catan: its players, its board, its buildings and trades, and the turn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.game.state import RunningGame
from kiebitz.dissectors.model import Event
from kiebitz.dissectors.protocols.catan.board import Board, Buildings, Hex, longest_road
from kiebitz.dissectors.protocols.catan.ledger import Counts, Hand, Ledger
from kiebitz.dissectors.protocols.catan.words import DORF, KARTEN, ROHSTOFFE, STADT, STRASSE

BANK = 19
"""Number of cards of each resource."""

TURNS_IN_DOUBT = 2
"""Number of turns in which an unread request of a player may have effects: its own and the next one."""

COSTS = {
    STRASSE: {"Holz": 1, "Lehm": 1},
    DORF: {"Holz": 1, "Lehm": 1, "Wolle": 1, "Getreide": 1},
    STADT: {"Getreide": 2, "Erz": 3},
}
CARD_COST = {"Wolle": 1, "Getreide": 1, "Erz": 1}

HAS_THE_TURN = ("Dorf bauen", "Straße bauen", "Würfeln", "Räuber versetzen", "Handeln oder Bauen", "Bauen")
"""Statuses of the player whose turn it is; a faulty server gives them to several players at a time."""

POINTS_TO_WIN = 10

_AWARD = 2
"""Points of the longest road, and of the largest army."""

_ROAD, _ARMY = 5, 3
"""Minimum length of the longest road, and number of knights of the largest army."""


class Player(msgspec.Struct, eq=False):
    """A player, in the lobby or in a game; `name` is unique on the server."""

    id: int
    name: str
    colour: str | None = None
    status: str | None = None
    gone: bool = False
    joined: Event | None = None
    """The event of the player's arrival."""
    points: int | None = None
    knights: int | None = None
    hand: Hand = msgspec.field(default_factory=lambda: Hand(ROHSTOFFE, False))
    cards: Hand = msgspec.field(default_factory=lambda: Hand(KARTEN, False))
    cards_told: Counts | None = None
    """The development cards in the server's latest status."""
    cards_contradicted: bool = False
    """True if the server has sent contradictory kinds of development cards: only their number is certain."""
    bought: dict[str | None, int] = {}
    """Development cards bought in this turn, with None for hidden ones."""
    played: int = 0
    """Development cards played in this turn."""
    free_roads: int = 0
    discard: dict[str, int] | None = None
    """The resources that the player has asked to discard because of the robber."""


class Trade(msgspec.Struct, eq=False):
    """An open offer, and the players that have accepted it."""

    id: int
    player: int
    offer: dict[str, int]
    demand: dict[str, int]
    accepted: list[int] = []


class CatanGame(RunningGame, eq=False, kw_only=True):
    """A game from its `Spiel gestartet` to the next one.

    Rules are checked only if it is `certain`: its beginning was recorded and nothing is in doubt. `order` has
    the players in the order of their turns, as far as known.
    """

    players: dict[int, Player]
    board: Board | None = None
    robber: Hex | None = None
    buildings: Buildings = msgspec.field(default_factory=Buildings)
    buildings_contradicted: bool = False
    """True if the server has sent an impossible building: clients may know of others."""
    trades: dict[int, Trade] = msgspec.field(default_factory=dict)
    ledger: Ledger = msgspec.field(default_factory=Ledger)
    certain: bool = True
    in_setup: bool = True
    turn: int | None = None
    turned_ns: int = 0
    """Time since when it has been this player's turn, in nanoseconds."""
    roller: int | None = None
    """The player that rolled last; a player's status may change the turn earlier."""
    yielding: bool = False
    """True if gains now come from the dice."""
    order: list[int] = msgspec.field(default_factory=list)
    order_known: bool = False
    longest_road: int | None = None
    largest_army: int | None = None
    longest_observation: Observation | None = None
    """The announcement of the longest road in this turn."""
    moved: tuple[int | None, Hex, int | None] | None = None
    """The last move of the robber (player, place, victim), which a second message may repeat."""
    robbed_by: int | None = None
    """The player that moved the robber last."""
    robbed: int | None = None
    """The player that was robbed last."""
    roll: Event | None = None
    """The latest roll of the dice."""
    unread: dict[int, int] = msgspec.field(default_factory=dict)
    """Players of whom a request could not be read, with the number of turns it may still have effects."""
    winner: int | None = None
    ending: Observation | None = None
    """The message that named the winner, until the winner's points are explained."""

    def has_turn(self, player: Player, ts_ns: int) -> None:
        """Set the player whose turn it is, since this time at the latest."""
        if self.turn != player.id:
            self.turn, self.turned_ns = player.id, ts_ns

    def bank(self) -> dict[str, Any]:
        """Return the number of cards of each resource in the bank: a count, or minimum and maximum.

        Resources of which nothing is known are omitted.
        """
        left: dict[str, Any] = {}
        hands = [player.hand for player in self.players.values()]
        for kind in ROHSTOFFE:
            least = BANK - sum([hand.most[kind] for hand in hands])
            if not self.certain:
                # There may be players that are not known yet.
                least = min(least, 0)
            most = BANK - sum([hand.least[kind] for hand in hands])
            # Other values come from a server's own rules, or are unknown.
            if least >= 0 and most <= BANK:
                left[kind] = least if least == most else [least, most]
        return left


def place_text(where: Iterable[Hex]) -> str:
    """Return an edge or corner as a key of the state: `-2,0 -1,0`."""
    return " ".join(f"{x},{y}" for x, y in where)


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
