"""One game as it stands: its players, its board, what is built, and whose turn it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from kiebitz.dissectors.game.observation_merge import Observation
from kiebitz.dissectors.game.state import State
from kiebitz.dissectors.model import Event, Game
from kiebitz.dissectors.protocols.catan.board import Board, Place, Spot
from kiebitz.dissectors.protocols.catan.hand import Counts, Hand
from kiebitz.dissectors.protocols.catan.ledger import Ledger
from kiebitz.dissectors.protocols.catan.words import DORF, KARTEN, ROHSTOFFE, STADT, STRASSE

BANK = 19
"""So many cards of each resource there are."""

PIECES = {STRASSE: 15, DORF: 5, STADT: 4}
"""So many roads, villages and cities each player has."""

COSTS = {
    STRASSE: {"Holz": 1, "Lehm": 1},
    DORF: {"Holz": 1, "Lehm": 1, "Wolle": 1, "Getreide": 1},
    STADT: {"Getreide": 2, "Erz": 3},
}
CARD_COST = {"Wolle": 1, "Getreide": 1, "Erz": 1}


class Player(msgspec.Struct, eq=False):
    """A player, in the lobby or in a game; `name` is how he is called everywhere, unlike everybody else."""

    id: int
    name: str
    colour: str | None = None
    status: str | None = None
    gone: bool = False
    joined: Event | None = None
    """The event that told of his coming."""
    points: int | None = None
    knights: int | None = None
    hand: Hand = msgspec.field(default_factory=lambda: Hand(ROHSTOFFE, False))
    cards: Hand = msgspec.field(default_factory=lambda: Hand(KARTEN, False))
    cards_told: Counts | None = None
    """What the server said last of the development cards."""
    bought: dict[str | None, int] = msgspec.field(default_factory=dict)
    """Development cards bought in this turn; those that are hidden under None."""
    played: int = 0
    """Development cards played in this turn."""
    free_roads: int = 0
    discard: dict[str, int] | None = None
    """What he has asked to give up because of the robber."""


class Trade(msgspec.Struct, eq=False):
    """An offer that is open, and who would take it."""

    id: int
    player: int
    offer: dict[str, int]
    demand: dict[str, int]
    accepted: list[int] = msgspec.field(default_factory=list)


class Building(msgspec.Struct, frozen=True):
    """A road, village or city, and whose it is."""

    owner: int
    typ: str


class CatanGame(msgspec.Struct, eq=False):
    """A game from its `Spiel gestartet` to the next one.

    `whole` says that it was seen from its beginning and nothing is missing; then verdicts are given.
    `order` are the players in the order of their turns, as far as it was seen.
    """

    game: Game
    players: dict[int, Player]
    board: Board | None = None
    robber: Place | None = None
    buildings: dict[Spot, Building] = msgspec.field(default_factory=dict)
    trades: dict[int, Trade] = msgspec.field(default_factory=dict)
    ledger: Ledger = msgspec.field(default_factory=Ledger)
    whole: bool = True
    in_setup: bool = True
    turn: int | None = None
    turned_ns: int = 0
    """When it became the turn of whoever has it."""
    roller: int | None = None
    """Whose turn it is by the latest roll; what the status of a player says may run ahead of it."""
    yielding: bool = False
    """Whether what is gained now comes of the dice."""
    order: list[int] = msgspec.field(default_factory=list)
    order_known: bool = False
    longest_road: int | None = None
    longest_observation: Observation | None = None
    """Who has it was told in this turn."""
    moved: tuple[int | None, Place, int | None] | None = None
    """Who has moved the robber, where to and whom he robs, where a second message may tell it again."""
    robbed_by: int | None = None
    """Who has moved the robber last."""
    robbed: int | None = None
    """Who was robbed last."""
    roll: Event | None = None
    """The latest roll of the dice."""
    winner: int | None = None
    ended: bool = False
    state: State = msgspec.field(default_factory=dict)
    """Its part of the table's state."""
    place: tuple[str, str] = ("", "")
    """Where in the state that stands."""

    def has_turn(self, player: Player, ts_ns: int) -> None:
        """It is a player's turn, since this time at the latest."""
        if self.turn != player.id:
            self.turn, self.turned_ns = player.id, ts_ns

    def owned(self, owner: int, *types: str) -> list[Spot]:
        """Where a player's buildings of these types stand."""
        return [
            where
            for where, building in self.buildings.items()
            if building.owner == owner and building.typ in types
        ]

    def towns(self, owner: int) -> list[Spot]:
        """Where a player's villages and cities stand."""
        return self.owned(owner, DORF, STADT)

    def lives_at(self, owner: int, place: Place) -> bool:
        """Whether a player has a village or city beside a field."""
        return any(place in town for town in self.towns(owner))

    def bank(self) -> dict[str, Any]:
        """What is left of each resource, as far as it is known: a count, or the least and the most."""
        left: dict[str, Any] = {}
        hands = [player.hand for player in self.players.values()]
        for kind in ROHSTOFFE:
            least = BANK - sum([hand.most[kind] for hand in hands])
            if not self.whole:
                # There may be players who were not heard of yet.
                least = min(least, 0)
            most = BANK - sum([hand.least[kind] for hand in hands])
            # What lies outside these is another server's rules, or not known.
            if least >= 0 and most <= BANK:
                left[kind] = least if least == most else [least, most]
        return left


def place_text(where: Iterable[Place]) -> str:
    """A spot as a key of the state: `-2,0 -1,0`."""
    return " ".join(f"{x},{y}" for x, y in where)
