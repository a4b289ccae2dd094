"""Games of Catan made up at random: a server of `catan_play.py`, and players who keep to the rules."""

from __future__ import annotations

import random
from collections.abc import Sequence

from catan_island import CORNERS, COSTS, EDGES, ENDS, HARBOURS, LAND, ROADS_AT, Counts, Place, Spot, Truth
from catan_play import NAMES, Dialect, Server

from kiebitz.dissectors.protocols.catan.words import ROHSTOFFE

DECK = ["Ritter"] * 14 + ["Siegpunkt"] * 5 + ["Straßenbau", "Monopol", "Erfindung"] * 2
LUCKY = ((3, 3), (4, 4), (2, 3), (4, 5), (5, 5), (1, 3))
"""Rolls that yield something on this island."""


class RandomGame:
    """A server with game after game of these players."""

    def __init__(
        self,
        seed: int,
        names: Sequence[str] = NAMES[:3],
        dialect: Dialect | None = None,
        mirrored: bool = False,
    ) -> None:
        self.random = random.Random(seed)
        self.server = Server(*names, dialect=dialect, mirrored=mirrored)
        self.pauses = (0, 20, 400, 2500)

    @property
    def truth(self) -> Truth:
        return self.server.truth

    def play(self, turns: int) -> None:
        """Play one game with this many turns."""
        rng, server = self.random, self.server
        order = [*server.names]
        rng.shuffle(order)
        self.deck = rng.sample(DECK, len(DECK))
        self.trades = 0
        server.start()
        for player in [*order, *reversed(order)]:
            village = rng.choice([corner for corner in CORNERS if self._is_free(corner)])
            server.settle(player, village, rng.choice(ROADS_AT[village]))
        for number in range(turns):
            self._turn(order[number % len(order)])
        server.finish(rng.choice(order))
        server.moment()

    def _turn(self, player: int) -> None:
        rng, server, truth = self.random, self.server, self.truth
        self.bought = dict.fromkeys(truth.cards[player], 0)
        self.played = False
        server.pause(rng.choice(self.pauses))
        if rng.random() < 0.2 and self._has_card(player, "Ritter"):
            server.expect(player, "Würfeln")
            self._knight(player)
        dice = rng.choice(LUCKY) if rng.random() < 0.7 else (rng.randint(1, 6), rng.randint(1, 6))
        server.roll(player, dice)
        if sum(dice) == 7:
            for other, hand in truth.hands.items():
                if sum(hand.values()) > 7:
                    server.discard(other, self._some(other, sum(hand.values()) // 2))
            server.robber(player, *self._robbery(player))
        for _ in range(rng.randrange(6)):
            rng.choice((self._build, self._build, self._buy, self._play_card, self._overseas, self._trade))(
                player
            )
            self._honours()
        if rng.random() < 0.2:
            server.refused(player, "Zug beenden", {})
            server.tell("Chatnachricht", {"Absender": player, "Nachricht": "Was ist gelb?"})
        server.end_turn(player)

    # What a player can do.

    def _can_pay(self, player: int, costs: Counts) -> bool:
        return all(self.truth.hands[player][kind] >= count for kind, count in costs.items())

    def _some(self, player: int, count: int) -> dict[str, int]:
        held = [kind for kind, n in self.truth.hands[player].items() for _ in range(n)]
        given = self.random.sample(held, count)
        return {kind: given.count(kind) for kind in given}

    def _is_free(self, corner: Spot) -> bool:
        built = self.truth.buildings
        return corner not in built and not any(
            end in built for road in ROADS_AT[corner] for end in ENDS[road]
        )

    def _free_roads(self, player: int) -> list[Spot]:
        built = self.truth.buildings

        def joins(end: Spot) -> bool:
            owner, _ = built.get(end, (player, ""))
            return owner == player and (
                end in built or any(built.get(road) == (player, "Straße") for road in ROADS_AT[end])
            )

        if sum(building == (player, "Straße") for building in built.values()) >= 15:
            return []
        return [edge for edge in EDGES if edge not in built and any(map(joins, ENDS[edge]))]

    def _places(self, player: int, typ: str) -> list[Spot]:
        built = self.truth.buildings
        if typ == "Straße":
            return self._free_roads(player)
        count = sum(building == (player, typ) for building in built.values())
        if typ == "Stadt":
            return [at for at, building in built.items() if building == (player, "Dorf")] if count < 4 else []
        reached = [
            corner for corner in CORNERS if any(built.get(r) == (player, "Straße") for r in ROADS_AT[corner])
        ]
        return [corner for corner in reached if self._is_free(corner)] if count < 5 else []

    def _build(self, player: int) -> None:
        choices = [
            (typ, at)
            for typ in ("Straße", "Dorf", "Stadt")
            if self._can_pay(player, COSTS[typ])
            for at in self._places(player, typ)
        ]
        if choices:
            self.server.build(player, *self.random.choice(choices))

    def _buy(self, player: int) -> None:
        if self.deck and self._can_pay(player, COSTS["Karte"]):
            card = self.deck.pop()
            self.bought[card] += 1
            self.server.buy(player, card)

    def _has_card(self, player: int, card: str) -> bool:
        return not self.played and self.truth.cards[player][card] > self.bought[card]

    def _robbery(self, player: int) -> tuple[Place, int | None, str | None]:
        truth, rng = self.truth, self.random
        place = rng.choice([place for place in LAND if place != truth.robber])
        targets = [n for n in truth.hands if n != player and any(place in town for town in truth.towns(n))]
        if not targets:
            return place, None, None
        target = rng.choice(targets)
        held = [kind for kind, count in truth.hands[target].items() if count]
        return place, target, rng.choice(held) if held else None

    def _knight(self, player: int) -> None:
        self.played = True
        self.server.knight(player, *self._robbery(player))

    def _play_card(self, player: int) -> None:
        server, rng = self.server, self.random
        cards = [
            card for card in ("Ritter", "Straßenbau", "Monopol", "Erfindung") if self._has_card(player, card)
        ]
        if not cards:
            return
        match rng.choice(cards):
            case "Ritter":
                self._knight(player)
            case "Straßenbau":
                roads = self._free_roads(player)
                if roads:
                    self.played = True
                    server.roads(player, rng.choice(roads))
            case "Monopol":
                self.played = True
                server.monopoly(player, rng.choice(ROHSTOFFE))
            case "Erfindung":
                left = [kind for kind, count in self.truth.bank.items() if count >= 2]
                if left:
                    self.played = True
                    kinds = [rng.choice(left), rng.choice(left)]
                    server.invention(player, {kind: kinds.count(kind) for kind in kinds})

    def _rate(self, player: int, kind: str) -> int:
        rates = [4]
        for edge, typ in HARBOURS.items():
            if any(town in ENDS[edge] for town in self.truth.towns(player)):
                rates += [3] if typ == "Hafen" else [2] if typ == f"{kind} Hafen" else []
        return min(rates)

    def _overseas(self, player: int) -> None:
        hand, bank = self.truth.hands[player], self.truth.bank
        choices = [
            ({kind: self._rate(player, kind)}, {wanted: 1})
            for kind in ROHSTOFFE
            if hand[kind] >= self._rate(player, kind)
            for wanted in ROHSTOFFE
            if wanted != kind and bank[wanted]
        ]
        if choices:
            self.server.overseas(player, *self.random.choice(choices))

    def _trade(self, player: int) -> None:
        rng, server, hands = self.random, self.server, self.truth.hands
        partner = rng.choice([other for other in hands if other != player])
        if not any(hands[player].values()) or not any(hands[partner].values()):
            return
        offer, demand = self._some(player, 1), self._some(partner, 1)
        if offer == demand:
            return
        self.trades += 1
        server.offer(player, self.trades, offer, demand)
        end = rng.randrange(4)
        if end:
            server.accept(partner, self.trades)
        if end == 1:
            server.cancel(partner, self.trades, is_offer=False)
        if end < 2:
            server.cancel(player, self.trades)
        else:
            server.conclude(player, partner, self.trades, offer, demand)

    # Who has most.

    def _honours(self) -> None:
        truth = self.truth
        lengths = {number: truth.road_length(number) for number in truth.hands}
        most = max(lengths.values())
        if truth.longest is None or lengths[truth.longest] < max(most, 5):
            first = [number for number, length in lengths.items() if length == most >= 5]
            holder = first[0] if len(first) == 1 else None
            if holder != truth.longest:
                self.server.longest(holder)
                self.server.moment()
        knights = truth.knights
        strongest = max(knights, key=lambda number: knights[number])
        if knights[strongest] >= 3 and knights[strongest] > knights.get(truth.army or 0, 0):
            self.server.army(strongest)
            self.server.moment()
