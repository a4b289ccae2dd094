"""A game of Catan on a server: the allowed requests, and their results.

Messages and true state are `catan_play.Server`'s part; the rules are checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import catan_play
from catan_island import COSTS, LAND, ROADS_AT, YIELDS, Counts, Place, Spot
from catan_random import DECK, RandomGame
from catan_wire import Step

from kiebitz.dissectors.protocols.catan.words import KARTEN, ROHSTOFFE
from peers.catan_words import Refused, counted, number, place, places
from peers.program import Program

MOST_TURNS = 200
"""Maximum number of turns; then the player with the most points wins."""

TRADES = 8
"""Maximum number of open offers."""


class TalkingServer(catan_play.Server):
    """A server that sends to connected clients. A player is known by the name of a connection."""

    def __init__(self, speak: Callable[[str, bytes], None], program: Program) -> None:
        self.chosen: dict[int, str] = {}
        self._speak = speak
        self._program = program
        super().__init__()

    def say(self, client: str, direction: str, message: Mapping[str, Any] | bytes) -> None:
        if direction == "s2c":
            before = len(self.steps)
            super().say(client, "s2c", message)
            step = self.steps.pop(before)
            assert isinstance(step, Step)
            self._speak(client, step.data)

    def moment(self) -> None:
        """Do nothing: no test needs earlier states."""

    def spieler(self, player: int, is_open: bool = True) -> dict[str, Any]:
        shown = super().spieler(player, is_open or self._program.has("shows-hands"))
        if self._program.has("counts-points-wrong") and "Siegpunkte" in shown:
            shown["Siegpunkte"] += sum(typ == "Dorf" for at, (own, typ) in self.truth.buildings.items())
        if player in self.chosen:
            return shown | {"Name": self.chosen[player]}
        del shown["Name"]
        return shown

    def _hidden(self, body: Mapping[str, Any]) -> dict[str, Any]:
        if self._program.has("shows-what-is-stolen") and "Rohstoffe" in body and "Status" not in body:
            return dict(body)
        return super()._hidden(body)


class Table(RandomGame):
    """One game, from its map on. Each request of a player is a method; it is done, or raises Refused.

    `RandomGame` knows what may be built where, what can be paid, and who has the longest road.
    """

    def __init__(self, told: TalkingServer, program: Program, points: int) -> None:
        self.server = told
        self.random = program.random
        self.deck = self.random.sample(DECK, len(DECK))
        self.trades = 0
        self.bought = dict.fromkeys(KARTEN, 0)
        self.played = False
        self.winner: int | None = None
        self._program = program
        self._points = points
        self._turns = 0
        self._owing: dict[int, int] = {}
        self._open: dict[int, tuple[Counts, Counts, set[int]]] = {}
        self._village: Spot = ()
        self._order = [*told.names]
        self.random.shuffle(self._order)
        self._founding = [*self._order, *reversed(self._order)]

    def begin(self) -> None:
        """Report the map; the first player builds a village."""
        for player in self._order:
            self.server.tell("Würfelwurf", {"Spieler": player, "Wurf": [6 - self._order.index(player), 1]})
        self.server.expect(self._founding[0], "Dorf bauen")

    def may(self, player: int, *statuses: str) -> None:
        """Raises Refused unless the player is waited for like this."""
        if self.server.statuses[player] not in statuses and not self._program.has("lets-anybody-move"):
            raise Refused("Du bist nicht an der Reihe")

    def _require(self, allowed: bool, why: str) -> None:
        if not allowed:
            raise Refused(why)

    def _require_place(self, is_free: bool) -> None:
        self._require(is_free or self._program.has("builds-anywhere"), "Dort kann nicht gebaut werden")

    def _afford(self, player: int, costs: Counts) -> None:
        if not self._program.has("builds-without-paying"):
            self._require(self._can_pay(player, costs), "Zu wenig Rohstoffe")

    # Turns.

    def roll(self, player: int, body: Mapping[str, Any]) -> None:
        self.may(player, "Würfeln")
        dice = [self.random.randint(1, 6), self.random.randint(1, 6)]
        with self.server.asked(player, "Würfeln", {}):
            self.server.tell("Würfelwurf", {"Spieler": player, "Wurf": dice})
            self.truth.dice = dice
            if sum(dice) != 7:
                for owner, counts in self._dues(sum(dice)).items():
                    self.server.gain(owner, counts)
                self.server.statuses[player] = "Handeln oder Bauen"
                return
            totals = {owner: sum(hand.values()) for owner, hand in self.truth.hands.items()}
            self._owing = {owner: total // 2 for owner, total in totals.items() if total > 7}
            self.server.statuses |= dict.fromkeys(self._owing, "Karten wegen Räuber abgeben")
            if player not in self._owing:
                self.server.statuses[player] = "Warten"
            self._robber_next()

    def _dues(self, total: int) -> dict[int, dict[str, int]]:
        if not self._program.has("forgets-the-robber"):
            return self.truth.dues(total)
        robber, self.truth.robber = self.truth.robber, (99, 99)
        dues = self.truth.dues(total)
        self.truth.robber = robber
        return dues

    def _robber_next(self) -> None:
        if not self._owing and self.truth.turn is not None:
            self.server.statuses[self.truth.turn] = "Räuber versetzen"

    def discard(self, player: int, body: Mapping[str, Any]) -> None:
        self.may(player, "Karten wegen Räuber abgeben")
        counts = counted(body, "Abgeben")
        if not self._program.has("lets-few-be-discarded"):
            self._require(sum(counts.values()) == self._owing.get(player), "Falsche Anzahl")
        self._require(self._can_pay(player, counts), "Zu wenig Rohstoffe")
        with self.server.asked(player, "Karten abgeben", {"Abgeben": counts}):
            self.server.pay(player, counts, [player])
            self._owing.pop(player, None)
            self.server.statuses[player] = "Warten"
            self._robber_next()

    def end_turn(self, player: int, body: Mapping[str, Any]) -> None:
        self.may(player, "Handeln oder Bauen")
        for trade in [*self._open]:
            self._close(player, trade)
        with self.server.asked(player, "Zug beenden", {}):
            self.server.statuses[player] = "Warten"
        self._next(self._order[(self._order.index(player) + 1) % len(self._order)])

    def _next(self, player: int) -> None:
        self.bought = dict.fromkeys(KARTEN, 0)
        self.played = False
        self._turns += 1
        if self._turns > MOST_TURNS:
            self.winner = max(self.truth.points, key=lambda one: self.truth.points[one])
            return
        self.server.expect(player, "Würfeln")

    def _judge(self, player: int) -> None:
        self._honours()
        if self.truth.points[player] >= self._points:
            self.winner = player

    # The robber.

    def move_robber(self, player: int, body: Mapping[str, Any]) -> None:
        self.may(player, "Räuber versetzen")
        to, target, stolen = self._robbed(player, body)
        self.server.robber(player, to, target, stolen)

    def _robbed(self, player: int, body: Mapping[str, Any]) -> tuple[Place, int | None, str | None]:
        to = place(body, "Ort")
        self._require(to in LAND and to != self.truth.robber, "Dort kann der Räuber nicht hin")
        if body.get("Ziel") is None:
            return to, None, None
        target = number(body, "Ziel")
        self._require(target in self.truth.hands and target != player, "Kein solcher Mitspieler")
        self._require(any(to in town for town in self.truth.towns(target)), "Dort wohnt niemand")
        held = [kind for kind, count in self.truth.hands[target].items() for _ in range(count)]
        return to, target, self.random.choice(held) if held else None

    # Building.

    def build(self, player: int, body: Mapping[str, Any]) -> None:
        at, typ = places(body, "Ort"), body.get("Typ")
        if self._founding:
            self._found(player, typ, at)
            return
        self.may(player, "Handeln oder Bauen")
        self._require(typ in ("Straße", "Dorf", "Stadt"), "Kein solches Gebäude")
        assert isinstance(typ, str)
        costs = COSTS[typ]
        self._afford(player, costs)
        self._require_place(at in self._places(player, typ))
        if self._program.has("charges-too-much"):
            hand = self.truth.hands[player]
            more = next((kind for kind in hand if hand[kind] > costs.get(kind, 0)), None)
            costs = {**costs, more: costs.get(more, 0) + 1} if more is not None else costs
        self.server.build(player, typ, at, costs)
        self._judge(player)

    def _found(self, player: int, typ: object, at: Spot) -> None:
        self.may(player, f"{typ} bauen")
        free = [road for road in ROADS_AT.get(self._village, ()) if road not in self.truth.buildings]
        is_free = at in ROADS_AT and self._is_free(at) if typ == "Dorf" else at in free
        self._require_place(is_free)
        with self.server.asked(player, "Bauen", {"Typ": typ, "Ort": self.server.where(at)}):
            self.server.built(player, str(typ), at)
            if typ == "Dorf":
                self._village = at
                if len(self.truth.towns(player)) == 2:
                    kinds = [YIELDS[LAND[one][0]] for one in at if one in LAND and LAND[one][1]]
                    self.server.gain(player, {kind: kinds.count(kind) for kind in kinds})
                self.server.statuses[player] = "Straße bauen"
                return
            self.server.statuses[player] = "Warten"
            self._founding.pop(0)
        if self._founding:
            self.server.expect(self._founding[0], "Dorf bauen")
        else:
            self._next(self._order[0])

    # Cards.

    def buy(self, player: int, body: Mapping[str, Any]) -> None:
        self.may(player, "Handeln oder Bauen")
        self._afford(player, COSTS["Karte"])
        self._require(bool(self.deck), "Keine Karten mehr")
        card = self.deck.pop()
        self.bought[card] += 1
        self.server.buy(player, card)
        self._judge(player)

    def _card(self, player: int, card: str) -> None:
        self.may(player, "Handeln oder Bauen", *(["Würfeln"] if card == "Ritter" else []))
        self._require(self._has_card(player, card), "Diese Karte geht nicht")

    def knight(self, player: int, body: Mapping[str, Any]) -> None:
        self._card(player, "Ritter")
        to, target, stolen = self._robbed(player, body)
        self.played = True
        self.server.knight(player, to, target, stolen)
        self._judge(player)

    def roads(self, player: int, body: Mapping[str, Any]) -> None:
        self._card(player, "Straßenbau")
        built = self.truth.buildings
        roads = [places(body, key) for key in ("Straße 1", "Straße 2") if key in body]
        self._require(bool(roads), "Keine Straße")
        laid: list[Spot] = []
        try:
            for road in roads:
                self._require_place(road in self._free_roads(player))
                built[road] = player, "Straße"
                laid.append(road)
        finally:
            for road in laid:
                del built[road]
        self.played = True
        self.server.roads(player, *roads)
        self._judge(player)

    def monopoly(self, player: int, body: Mapping[str, Any]) -> None:
        self._card(player, "Monopol")
        kind = body.get("Rohstoff")
        self._require(kind in ROHSTOFFE, "Kein solcher Rohstoff")
        self.played = True
        self.server.monopoly(player, str(kind))

    def invent(self, player: int, body: Mapping[str, Any]) -> None:
        self._card(player, "Erfindung")
        counts = counted(body, "Rohstoffe")
        self._require(sum(counts.values()) == 2, "Zwei Rohstoffe")
        self._require(all(self.truth.bank[kind] >= count for kind, count in counts.items()), "Nicht genug da")
        self.played = True
        self.server.invention(player, counts)

    # Trade.

    def overseas(self, player: int, body: Mapping[str, Any]) -> None:
        self.may(player, "Handeln oder Bauen")
        offer, demand = counted(body, "Angebot"), counted(body, "Nachfrage")
        self._require(self._can_pay(player, offer), "Zu wenig Rohstoffe")
        rates = {
            kind: 1 if self._program.has("trades-cheaply") else self._rate(player, kind) for kind in offer
        }
        is_fair = all(count % rates[kind] == 0 for kind, count in offer.items())
        due = sum(count // rates[kind] for kind, count in offer.items())
        self._require(is_fair and due == sum(demand.values()) > 0, "Falscher Kurs")
        self._require(not {*offer} & {*demand}, "Dasselbe")
        self._require(all(self.truth.bank[kind] >= count for kind, count in demand.items()), "Nicht genug da")
        self.server.overseas(player, offer, demand)

    def offer(self, player: int, body: Mapping[str, Any]) -> None:
        self.may(player, "Handeln oder Bauen")
        offer, demand = counted(body, "Angebot"), counted(body, "Nachfrage")
        self._require(self._can_pay(player, offer), "Zu wenig Rohstoffe")
        self._require(len(self._open) < TRADES, "Zu viele Angebote")
        self.trades += 1
        self._open[self.trades] = offer, demand, set()
        self.server.offer(player, self.trades, offer, demand)

    def _trade(self, player: int) -> None:
        """Make no random trade."""

    def _wanted(self, body: Mapping[str, Any]) -> int:
        trade = number(body, "Handel id")
        self._require(trade in self._open, "Kein solches Angebot")
        return trade

    def accept(self, player: int, body: Mapping[str, Any]) -> None:
        trade = self._wanted(body)
        self._require(player != self.truth.turn, "Das ist dein Angebot")
        self._open[trade][2].add(player)
        self.server.accept(player, trade)

    def cancel(self, player: int, body: Mapping[str, Any]) -> None:
        trade = self._wanted(body)
        is_mine = player == self.truth.turn
        self._require(is_mine or player in self._open[trade][2], "Nicht angenommen")
        if is_mine:
            del self._open[trade]
        else:
            self._open[trade][2].discard(player)
        self.server.cancel(player, trade, is_mine)

    def _close(self, player: int, trade: int) -> None:
        del self._open[trade]
        self.server.tell("Handelsangebot abgebrochen", {"Spieler": player, "Handel id": trade})

    def conclude(self, player: int, body: Mapping[str, Any]) -> None:
        self.may(player, "Handeln oder Bauen")
        trade, partner = self._wanted(body), number(body, "Mitspieler")
        offer, demand, ready = self._open[trade]
        self._require(partner in ready, "Nicht angenommen")
        self._require(self._can_pay(player, offer) and self._can_pay(partner, demand), "Zu wenig Rohstoffe")
        del self._open[trade]
        self.server.conclude(player, partner, trade, offer, demand)


Request = Callable[[Table, int, Mapping[str, Any]], None]

REQUESTS: dict[str, Request] = {
    "Würfeln": Table.roll,
    "Karten abgeben": Table.discard,
    "Räuber versetzen": Table.move_robber,
    "Zug beenden": Table.end_turn,
    "Bauen": Table.build,
    "Entwicklungskarte kaufen": Table.buy,
    "Ritter ausspielen": Table.knight,
    "Straßenbaukarte ausspielen": Table.roads,
    "Monopol": Table.monopoly,
    "Erfindung": Table.invent,
    "Seehandel": Table.overseas,
    "Handel anbieten": Table.offer,
    "Handel annehmen": Table.accept,
    "Handel abbrechen": Table.cancel,
    "Handel abschließen": Table.conclude,
}
