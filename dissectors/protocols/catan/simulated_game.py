"""A game of Catan on a simulated server: the allowed requests and their effects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.protocols.catan.board import Building, Hex, Spot, at, longest_road, ort, spot
from kiebitz.dissectors.protocols.catan.game import BANK, CARD_COST, COSTS
from kiebitz.dissectors.protocols.catan.island import IslandModel, random_map
from kiebitz.dissectors.protocols.catan.simulated_trade import TRADING, Market, RequestRefused, require
from kiebitz.dissectors.protocols.catan.words import DORF, ROHSTOFFE, STADT, STRASSE

if TYPE_CHECKING:
    from kiebitz.dissectors.protocols.catan.simulated_server import CatanServer

Counts = Mapping[str, int]

_MAX_TURNS = 200
"""Maximum number of turns in a game; then the player with most points has won."""

_ARMY = 3
_LONG_ROAD = 5
_DECK = (*("Ritter",) * 14, *("Siegpunkt",) * 5, *("Straßenbau", "Monopol", "Erfindung") * 2)


class Owner:
    """A player's possessions."""

    def __init__(self) -> None:
        self.hand: Counter[str] = Counter()
        self.cards: Counter[str] = Counter()
        self.new: Counter[str] = Counter()
        """Cards bought in this turn."""
        self.knights = 0


class SimulatedGame:
    """One game, from the creation of its map on."""

    def __init__(self, host: CatanServer, players: list[int]) -> None:
        self._host = host
        self._chance = host.random
        self.karte = random_map(self._chance)
        self.owners = {player: Owner() for player in players}
        self.winner: int | None = None
        self.longest: int | None = None
        self.army: int | None = None
        self.island = IslandModel(self.karte)
        self._order = self._chance.sample(players, len(players))
        self._founding = [*self._order, *reversed(self._order)]
        self._village: Spot = ()
        self._deck = self._chance.sample(_DECK, len(_DECK))
        self._played = False
        self.turn = self._order[0]
        self._turns = 0
        self._owing: dict[int, int] = {}
        self._market = Market(host, self)

    def begin(self) -> None:
        """Send the dice that decide who begins; that player builds a village first."""
        for number, player in enumerate(self._order):
            self._host.broadcast("Würfelwurf", Spieler=player, Wurf=[6 - number, 1])
        self._host.statuses |= dict.fromkeys(self._order, "Warten")
        self._host.statuses[self._founding[0]] = "Dorf bauen"

    def points(self, player: int) -> int:
        """Return all points of a player, including those that others do not see."""
        return self.seen_points(player) + self.owners[player].cards["Siegpunkt"]

    def seen_points(self, player: int) -> int:
        """Return the points of a player that others see."""
        buildings = self.island.buildings
        towns = len(buildings.owned(player, DORF)) + 2 * len(buildings.owned(player, STADT))
        return towns + 2 * (self.longest == player) + 2 * (self.army == player)

    def request(self, player: int, name: str, fields: Fields) -> None:
        """Carry out a player's request. Raises Refused."""
        if name in _REQUESTS:
            _REQUESTS[name](self, player, fields)
        elif name in TRADING:
            TRADING[name](self._market, player, fields)
        else:
            raise RequestRefused(f"{name} geht jetzt nicht")
        self._judge(player)

    def may(self, player: int, *statuses: str) -> None:
        """Raise Refused unless the player has one of these statuses."""
        require(self._host.statuses[player] in statuses, "Du bist nicht an der Reihe")

    def afford(self, player: int, counts: Counts) -> None:
        """Raise Refused unless the player can pay this."""
        require(self.owners[player].hand >= Counter(counts), "Zu wenig Rohstoffe")

    def left(self, kind: str) -> int:
        """Return how many cards of a resource the bank has."""
        return BANK - sum(owner.hand[kind] for owner in self.owners.values())

    def rates(self, player: int) -> dict[str, int]:
        """Return the rates at which a player trades with the bank."""
        return self.island.board.rates(self.island.buildings.towns(player))

    def gain(self, player: int, counts: Counts) -> None:
        """Give a player resources, and inform all clients."""
        counts = {kind: count for kind, count in counts.items() if count}
        if counts:
            self.owners[player].hand.update(counts)
            self._host.broadcast("Ertrag", Spieler=player, Rohstoffe=counts)

    def pay(self, player: int, counts: Counts, is_open: bool = True) -> None:
        """Take resources from a player; other clients get only the total unless the payment is open."""
        self.owners[player].hand.subtract(counts)
        shown_to = None if is_open else [player]
        self._host.broadcast("Kosten", shown_to, Spieler=player, Rohstoffe=dict(counts))

    def _built(self, player: int, typ: str, where: Spot) -> None:
        self.island.buildings[where] = Building(player, typ)
        told = {"Eigentümer": player, "Typ": typ, "Ort": [ort(place) for place in where]}
        self._host.broadcast("Bauvorgang", **{"Gebäude": told})

    def _judge(self, player: int) -> None:
        """Update the longest road and the largest army, and check if the player has won."""
        island = self.island
        lengths = {one: longest_road(island.buildings, island.board, one) or 0 for one in self.owners}
        best = max(lengths.values())
        ahead = [one for one, length in lengths.items() if length == best]
        holder = self.longest if self.longest in ahead else ahead[0] if len(ahead) == 1 else None
        holder = holder if best >= _LONG_ROAD else None
        if holder != self.longest:
            self.longest = holder
            self._host.broadcast("Längste Handelsstraße", **({} if holder is None else {"Spieler": holder}))
        knights = self.owners[player].knights
        most = self.owners[self.army].knights if self.army is not None else _ARMY - 1
        if knights > most and self.army != player:
            self.army = player
            self._host.broadcast("Größte Rittermacht", Spieler=player)
        if not self._founding and player == self.turn and self.points(player) >= self._host.points:
            self.winner = player

    def _roll(self, player: int, fields: Fields) -> None:
        self.may(player, "Würfeln")
        dice = [self._chance.randint(1, 6), self._chance.randint(1, 6)]
        self._host.broadcast("Würfelwurf", Spieler=player, Wurf=dice)
        if sum(dice) != 7:
            for owner, counts in self._dues(sum(dice)).items():
                self.gain(owner, counts)
            self._host.statuses[player] = "Handeln oder Bauen"
            return
        totals = {one: owner.hand.total() for one, owner in self.owners.items()}
        self._owing = {one: total // 2 for one, total in totals.items() if total > 7}
        self._host.statuses[player] = "Warten"
        self._host.statuses |= dict.fromkeys(self._owing, "Karten wegen Räuber abgeben")
        self._robber_next()

    def _dues(self, number: int) -> dict[int, dict[str, int]]:
        """Return the yield of a roll by player.

        If the bank has too little of a resource for all, it yields none of it.
        """
        island = self.island
        dues = island.buildings.dues(island.board, number, island.robber)
        for kind in ROHSTOFFE:
            if sum(due.get(kind, 0) for due in dues.values()) > self.left(kind):
                for due in dues.values():
                    due.pop(kind, None)
        return dues

    def _robber_next(self) -> None:
        if not self._owing:
            self._host.statuses[self.turn] = "Räuber versetzen"

    def _discard(self, player: int, fields: Fields) -> None:
        self.may(player, "Karten wegen Räuber abgeben")
        counts: Counts = fields["Abgeben"]
        require(sum(counts.values()) == self._owing.get(player), "Falsche Anzahl")
        self.afford(player, counts)
        self.pay(player, counts, is_open=False)
        del self._owing[player]
        self._host.statuses[player] = "Warten"
        self._robber_next()

    def _end_turn(self, player: int, fields: Fields) -> None:
        self.may(player, "Handeln oder Bauen")
        self._market.close(player)
        self._host.statuses[player] = "Warten"
        self._next(self._order[(self._order.index(player) + 1) % len(self._order)])

    def _next(self, player: int) -> None:
        self.turn, self._played = player, False
        self.owners[player].new.clear()
        self._turns += 1
        if self._turns > _MAX_TURNS:
            self.winner = max(self.owners, key=self.points)
        else:
            self._host.statuses[player] = "Würfeln"

    def _move_robber(self, player: int, fields: Fields) -> None:
        self.may(player, "Räuber versetzen")
        to, target = self._robbed(player, fields)
        self._host.statuses[player] = "Handeln oder Bauen"
        self._host.broadcast("Räuber versetzt", Spieler=player, Ort=ort(to), **_target(target))
        self._steal(player, to, target)

    def _robbed(self, player: int, fields: Fields) -> tuple[Hex, int | None]:
        to, target = at(fields["Ort"]), fields.get("Ziel")
        require(to in self.island.land and to != self.island.robber, "Dort kann der Räuber nicht hin")
        require(target is None or target in self.island.robbable(player, to), "Dort wohnt niemand")
        return to, target

    def _steal(self, player: int, to: Hex, target: int | None) -> None:
        self.island.robber = to
        held = sorted(self.owners[target].hand.elements()) if target is not None else []
        if target is None or not held:
            return
        stolen = {self._chance.choice(held): 1}
        self.owners[target].hand.subtract(stolen)
        self.owners[player].hand.update(stolen)
        both = [player, target]
        self._host.broadcast("Kosten", both, Spieler=target, Rohstoffe=stolen)
        self._host.broadcast("Ertrag", both, Spieler=player, Rohstoffe=stolen)

    def _build(self, player: int, fields: Fields) -> None:
        where, typ = spot(map(at, fields["Ort"])), fields["Typ"]
        if self._founding:
            self._found(player, typ, where)
            return
        self.may(player, "Handeln oder Bauen")
        self.afford(player, COSTS[typ])
        require(where in self.island.free(player, typ), "Dort kann nicht gebaut werden")
        self.pay(player, COSTS[typ])
        self._built(player, typ, where)

    def _found(self, player: int, typ: str, where: Spot) -> None:
        island = self.island
        self.may(player, "Dorf bauen" if typ == DORF else "Straße bauen")
        is_free = where in island.free(player, typ)
        is_there = typ == DORF or where in island.board.edges_at(self._village)
        require(is_free and is_there, "Dort kann nicht gebaut werden")
        self._built(player, typ, where)
        if typ == DORF:
            self._village = where
            if len(island.buildings.towns(player)) == 2:
                kinds = map(island.board.resource, where)
                self.gain(player, Counter(kind for kind in kinds if kind is not None))
            self._host.statuses[player] = "Straße bauen"
            return
        self._host.statuses[player] = "Warten"
        self._founding.pop(0)
        if self._founding:
            self._host.statuses[self._founding[0]] = "Dorf bauen"
        else:
            island.in_setup = False
            self._next(self._order[0])

    def _buy(self, player: int, fields: Fields) -> None:
        self.may(player, "Handeln oder Bauen")
        self.afford(player, CARD_COST)
        require(bool(self._deck), "Keine Karten mehr")
        card = self._deck.pop()
        self.pay(player, CARD_COST)
        self.owners[player].cards[card] += 1
        self.owners[player].new[card] += 1
        self._host.broadcast("Entwicklungskarte gekauft", [player], Spieler=player, Entwicklungskarte=card)

    def _card(self, player: int, card: str) -> None:
        self.may(player, "Handeln oder Bauen", *(["Würfeln"] if card == "Ritter" else []))
        owner = self.owners[player]
        require(not self._played and owner.cards[card] > owner.new[card], "Diese Karte geht nicht")

    def _play(self, player: int, card: str) -> None:
        self._played = True
        self.owners[player].cards[card] -= 1

    def _knight(self, player: int, fields: Fields) -> None:
        self._card(player, "Ritter")
        to, target = self._robbed(player, fields)
        self._play(player, "Ritter")
        self.owners[player].knights += 1
        self._host.broadcast("Ritter ausspielen", Spieler=player, Ort=ort(to), **_target(target))
        self._steal(player, to, target)

    def _roads(self, player: int, fields: Fields) -> None:
        self._card(player, "Straßenbau")
        roads = [spot(map(at, fields[key])) for key in ("Straße 1", "Straße 2") if key in fields]
        laid: list[Spot] = []
        for road in roads:
            if road in self.island.free(player, STRASSE):
                self.island.buildings[road] = Building(player, STRASSE)
                laid.append(road)
        if laid != roads:
            for road in laid:
                del self.island.buildings[road]
            raise RequestRefused("Dort kann nicht gebaut werden")
        self._play(player, "Straßenbau")
        self._host.broadcast("Straßenbaukarte ausspielen", **{"Spieler": player, **fields})
        for road in roads:
            self._built(player, STRASSE, road)

    def _monopoly(self, player: int, fields: Fields) -> None:
        self._card(player, "Monopol")
        self._play(player, "Monopol")
        kind = fields["Rohstoff"]
        self._host.broadcast("Monopol", Spieler=player, Rohstoff=kind)
        taken = 0
        for other, owner in self.owners.items():
            count = owner.hand[kind]
            if other != player and count:
                self.pay(other, {kind: count})
                taken += count
        self.gain(player, {kind: taken})

    def _invent(self, player: int, fields: Fields) -> None:
        self._card(player, "Erfindung")
        counts: Counts = fields["Rohstoffe"]
        require(sum(counts.values()) == 2, "Zwei Rohstoffe")
        require(all(self.left(kind) >= count for kind, count in counts.items()), "Nicht genug da")
        self._play(player, "Erfindung")
        self._host.broadcast("Erfindung", Spieler=player, Rohstoffe=dict(counts))
        self.gain(player, counts)


_REQUESTS: dict[str, Callable[[SimulatedGame, int, Fields], None]] = {
    "Würfeln": SimulatedGame._roll,
    "Karten abgeben": SimulatedGame._discard,
    "Räuber versetzen": SimulatedGame._move_robber,
    "Zug beenden": SimulatedGame._end_turn,
    "Bauen": SimulatedGame._build,
    "Entwicklungskarte kaufen": SimulatedGame._buy,
    "Ritter ausspielen": SimulatedGame._knight,
    "Straßenbaukarte ausspielen": SimulatedGame._roads,
    "Monopol": SimulatedGame._monopoly,
    "Erfindung": SimulatedGame._invent,
}


def _target(target: int | None) -> dict[str, int]:
    return {} if target is None else {"Ziel": target}
