"""A Catan server that speaks as specified and keeps the true state.

It does what a test demands, whether the rules allow it or not.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, NamedTuple

from catan_island import COSTS, HARBOURS, LAND, SEA, YIELDS, Counts, Place, Spot, Truth, spot
from catan_wire import Moment, Step, found

from kiebitz.dissectors.model import Direction, Findings
from kiebitz.dissectors.protocols.catan.grammar import OTHER_SPELLINGS
from kiebitz.dissectors.protocols.catan.words import FARBEN, KARTEN, ROHSTOFFE

NAMES = ("Anna", "Bert", "Cleo", "Dora")
ROLL_FOR = {"Holz": 6, "Lehm": 8, "Wolle": 5, "Getreide": 9, "Erz": 10}


class Dialect(NamedTuple):
    """Differences between servers. `costs` are sent before or after what they pay for."""

    confirms: str = "after"
    costs: str = "before"
    ascii: bool = False
    unbekannt: bool = False
    discards_told: bool = True
    thefts_told: bool = True
    """True if all clients learn of a theft, not only the two involved."""
    robber_too: bool = False
    """True if a knight is also reported as a move of the robber."""


class Server:
    """A server with its clients by name; a player's id is its place among them, from 1."""

    def __init__(self, *names: str, dialect: Dialect | None = None, mirrored: bool = False) -> None:
        self.dialect = dialect or Dialect()
        self.mirrored = mirrored
        self.steps: list[Step | Moment] = []
        self.ids: dict[str, int] = {}
        self.names: dict[int, str] = {}
        self.colours: dict[int, str] = {}
        self.statuses: dict[int, str] = {}
        self.games = 0
        self._shown: dict[int, Any] = {}
        self._pause_ms = 1.0
        self.truth = Truth({}, {}, {})
        for name in names:
            self.join(name)

    # Messages.

    def pause(self, ms: float) -> None:
        """Let this much time pass."""
        self._pause_ms += ms

    def say(self, client: str, direction: Direction, message: Mapping[str, Any] | bytes) -> None:
        """Send a message; bytes are sent as they are."""
        if not isinstance(message, bytes):
            text = json.dumps(message, ensure_ascii=False, separators=(",", ":"))
            message = (OTHER_SPELLINGS.plain(text) if self.dialect.ascii else text).encode() + b"\n"
        self.steps.append(Step(client, direction, message, self._pause_ms))
        self._pause_ms = 1.0

    def ask(self, player: int, name: str, body: Mapping[str, Any]) -> None:
        """Send a client's request."""
        self.say(self.names[player], "c2s", {name: body})

    def tell(
        self,
        name: str,
        body: Mapping[str, Any],
        shown_to: Collection[int] | None = None,
        told_to: Collection[int] | None = None,
    ) -> None:
        """Send a message to all clients or some; cards are hidden from those who may not see them."""
        for client, player in self.ids.items():
            if told_to is None or player in told_to:
                is_open = shown_to is None or player in shown_to
                self.say(client, "s2c", {name: body if is_open else self._hidden(body)})

    def _hidden(self, body: Mapping[str, Any]) -> dict[str, Any]:
        hidden = dict(body)
        for key in ("Rohstoffe", "Entwicklungskarten"):
            if key in body:
                count = sum(body[key].values())
                hidden[key] = {"Unbekannt": count} if self.dialect.unbekannt else count
        if "Entwicklungskarte" in body:
            hidden["Entwicklungskarte"] = "Unbekannt" if self.dialect.unbekannt else 1
        return hidden

    def at(self, place: Place) -> dict[str, int]:
        """Return a place as it is sent."""
        return {"x": place[0], "y": -place[1] if self.mirrored else place[1]}

    def where(self, at: Iterable[Place]) -> list[dict[str, int]]:
        return [self.at(place) for place in at]

    @contextmanager
    def asked(self, player: int, name: str, body: Mapping[str, Any]) -> Iterator[None]:
        """Send a client's request, run the block for the server's reaction, then report changed players."""
        self.ask(player, name, body)
        if self.dialect.confirms == "before":
            self.say(self.names[player], "s2c", {"OK": {}})
        yield
        self.update()
        if self.dialect.confirms == "after":
            self.say(self.names[player], "s2c", {"OK": {}})
        self.moment()

    def refused(self, player: int, name: str, body: Mapping[str, Any], why: str = "Geht nicht") -> None:
        """Send a client's request, and its refusal."""
        self.ask(player, name, body)
        self.say(self.names[player], "s2c", {"Fehler": {"Meldung": why}})

    def moment(self) -> None:
        """Keep the true state of this moment."""
        self.steps.append(Moment(deepcopy(self.truth), self.games))

    def update(self) -> None:
        """Report each player that has changed."""
        for player in self.names:
            now = self.spieler(player)
            if now != self._shown.get(player):
                self._shown[player] = now
                self.show(player)

    def spieler(self, player: int, is_open: bool = True) -> dict[str, Any]:
        """Return a player's data: complete only for that player."""
        truth = self.truth
        shown: dict[str, Any] = {"id": player, "Status": self.statuses[player], "Name": self.names[player]}
        if player in self.colours:
            shown["Farbe"] = self.colours[player]
        if player in truth.hands:
            hidden = 0 if is_open else truth.cards[player]["Siegpunkt"]
            shown |= {
                "Siegpunkte": truth.points[player] - hidden,
                "Rohstoffe": {kind: count for kind, count in truth.hands[player].items() if count},
                "Rittermacht": truth.knights[player],
                "Entwicklungskarten": {kind: count for kind, count in truth.cards[player].items() if count},
                "Größte Rittermacht": truth.army == player,
                "Längste Handelsstraße": truth.longest == player,
            }
        return shown if is_open else self._hidden(shown)

    def show(self, player: int, told_to: Collection[int] | None = None) -> None:
        """Report a player."""
        for client, other in self.ids.items():
            if told_to is None or other in told_to:
                shown = self.spieler(player, is_open=other == player)
                self.say(client, "s2c", {"Statusupdate": {"Spieler": shown}})

    # The lobby.

    def join(self, name: str, number: int | None = None) -> None:
        player = len(self.names) + 1 if number is None else number
        self.ids[name], self.names[player] = player, name
        self.statuses[player] = "Spiel starten"
        self.say(name, "s2c", {"Hallo": {"Version": "Probe 1.0 (Kiebitz)", "Protokoll": "1.0"}})
        self.say(name, "c2s", {"Hallo": {"Version": "ProbeClient (KI)"}})
        self.say(name, "s2c", {"Willkommen": {"id": player}})
        for other in self.names:
            if other != player:
                self.show(other, told_to=[player])
        self.update()

    def hang_up(self, name: str) -> None:
        """Disconnect a client and report it to the others."""
        player = self.ids.pop(name)
        self.gone(name)
        self.statuses[player] = "Verbindung verloren"
        self.update()
        del self.names[player]

    def gone(self, name: str) -> None:
        """End a client's connection without a word about it."""
        self.steps.append(Step(name, "c2s", b""))

    def ready(self, player: int, colour: str | None = None) -> None:
        """Set a player's name and colour, and make it ready."""
        colour = colour or FARBEN[(player - 1) % len(FARBEN)]
        with self.asked(player, "Spieler", {"Name": self.names[player], "Farbe": colour}):
            self.colours[player] = colour
        with self.asked(player, "Spiel starten", {}):
            self.statuses[player] = "Wartet auf Spielbeginn"

    def start(self, *settled: tuple[int, Spot, Spot], karte: Mapping[str, Any] | None = None) -> None:
        """Begin a game: all are ready, then each of these builds a village and a road, in order."""
        for player in self.names:
            self.ready(player)
        self.games += 1
        players = [*self.names]
        self.truth = Truth(
            {player: dict.fromkeys(ROHSTOFFE, 0) for player in players},
            {player: dict.fromkeys(KARTEN, 0) for player in players},
            dict.fromkeys(players, 0),
            knights=dict.fromkeys(players, 0),
        )
        self.tell("Spiel gestartet", {"Karte": karte or self.karte()})
        for player in players if karte is None else ():
            self.truth.dice = [6 - player % 6, 1]
            self.tell("Würfelwurf", {"Spieler": player, "Wurf": self.truth.dice})
        for player, village, road in settled:
            self.settle(player, village, road)

    def begin_with(self, *buildings: tuple[int, str, Spot]) -> None:
        """Begin a game whose map has these buildings already; Anna has the turn."""
        shown = [{"Eigentümer": owner, "Typ": typ, "Ort": self.where(at)} for owner, typ, at in buildings]
        self.start(karte=self.karte() | {"Gebäude": shown})
        self.truth.buildings = {at: (owner, typ) for owner, typ, at in buildings}
        self.rounds("3")

    def settle(self, player: int, village: Spot, road: Spot, gains: Counts | None = None) -> None:
        """Found a village and a road of a player; `gains` are the correct ones by default."""
        self.expect(player, "Dorf bauen")
        with self.asked(player, "Bauen", {"Typ": "Dorf", "Ort": self.where(village)}):
            self.built(player, "Dorf", village)
            if len(self.truth.towns(player)) == 2:
                terrains = [LAND[place][0] for place in village if place in LAND]
                kinds = [YIELDS[terrain] for terrain in terrains if terrain in YIELDS]
                right = {kind: kinds.count(kind) for kind in kinds}
                self.gain(player, right if gains is None else gains)
        self.expect(player, "Straße bauen")
        with self.asked(player, "Bauen", {"Typ": "Straße", "Ort": self.where(road)}):
            self.built(player, "Straße", road)

    def karte(self) -> dict[str, Any]:
        felder: list[dict[str, Any]] = [{"Ort": self.at(place), "Typ": "Meer"} for place in SEA]
        for place, (terrain, number) in LAND.items():
            feld: dict[str, Any] = {"Ort": self.at(place), "Typ": terrain}
            felder.append(feld | ({"Zahl": number} if number else {}))
        häfen = [{"Ort": self.where(edge), "Typ": typ} for edge, typ in HARBOURS.items()]
        return {"Felder": felder, "Gebäude": [], "Häfen": häfen, "Räuber": self.at(self.truth.robber)}

    def finish(self, winner: int) -> None:
        """Let a player win."""
        text = f"Spieler {self.names.get(winner)} hat das Spiel gewonnen."
        self.tell("Spiel beendet", {"Nachricht": text, "Sieger": winner})
        self.statuses = dict.fromkeys(self.statuses, "Spiel starten")
        self.update()

    # The game. What the truth does not allow is done all the same, and is true then.

    def expect(self, player: int, status: str) -> None:
        """Report the status of the player that is to act."""
        self.statuses = dict.fromkeys(self.names, "Warten") | {player: status}
        if status not in ("Karten wegen Räuber abgeben", "Warten"):
            self.truth.turn = player
        self.update()

    def gain(self, player: int, counts: Counts, shown_to: Collection[int] | None = None, **to: Any) -> None:
        self._resources("Ertrag", 1, player, counts, shown_to, **to)

    def pay(self, player: int, counts: Counts, shown_to: Collection[int] | None = None, **to: Any) -> None:
        self._resources("Kosten", -1, player, counts, shown_to, **to)

    def _resources(
        self,
        name: str,
        sign: int,
        player: int,
        counts: Counts,
        shown_to: Collection[int] | None,
        told_to: Collection[int] | None = None,
    ) -> None:
        for kind, count in counts.items():
            self.truth.hands[player][kind] += sign * count
        if counts:
            self.tell(name, {"Spieler": player, "Rohstoffe": dict(counts)}, shown_to, told_to)

    def roll(self, player: int, dice: Sequence[int], gains: Mapping[int, Counts] | None = None) -> None:
        """Begin a player's turn with these dice; `gains` default to the right ones."""
        self.expect(player, "Würfeln")
        with self.asked(player, "Würfeln", {}):
            self.tell("Würfelwurf", {"Spieler": player, "Wurf": list(dice)})
            self.truth.dice = list(dice)
            if gains is None:
                gains = self.truth.dues(sum(dice)) if sum(dice) != 7 else {}
            for owner, counts in gains.items():
                self.gain(owner, counts)
            self.statuses[player] = "Handeln oder Bauen" if sum(dice) != 7 else "Räuber versetzen"

    def end_turn(self, player: int) -> None:
        with self.asked(player, "Zug beenden", {}):
            self.statuses[player] = "Warten"

    def discard(self, player: int, counts: Counts) -> None:
        """Let a player discard because of the robber."""
        before = dict(self.statuses)
        self.expect(player, "Karten wegen Räuber abgeben")
        with self.asked(player, "Karten abgeben", {"Abgeben": dict(counts)}):
            self.pay(player, counts, [player], told_to=None if self.dialect.discards_told else [])
            self.statuses = before

    def robber(self, player: int, place: Place, target: int | None = None, stolen: str | None = None) -> None:
        """Let a player move the robber after a 7, and steal from another."""
        body = {"Ort": self.at(place)} | ({} if target is None else {"Ziel": target})
        with self.asked(player, "Räuber versetzen", body):
            self.tell("Räuber versetzt", {"Spieler": player, **body})
            self._robbed(player, place, target, stolen)
            self.statuses[player] = "Handeln oder Bauen"

    def _robbed(self, player: int, place: Place, target: int | None, stolen: str | None) -> None:
        self.truth.robber = place
        if target is not None and stolen is not None:
            both = [player, target]
            told_to = None if self.dialect.thefts_told else both
            self.pay(target, {stolen: 1}, both, told_to=told_to)
            self.gain(player, {stolen: 1}, both, told_to=told_to)

    def build(self, player: int, typ: str, at: Spot, costs: Counts | None = None) -> None:
        """Let a player build; `costs` default to the right ones."""
        with self.asked(player, "Bauen", {"Typ": typ, "Ort": self.where(at)}):
            costs = COSTS[typ] if costs is None else costs
            if self.dialect.costs == "before":
                self.pay(player, costs)
            self.built(player, typ, at)
            if self.dialect.costs == "after":
                self.pay(player, costs)

    def built(self, player: int, typ: str, at: Spot) -> None:
        """Place a building."""
        building = {"Eigentümer": player, "Typ": typ, "Ort": self.where(at)}
        self.truth.buildings[at] = (player, typ)
        self.truth.points[player] += typ != "Straße"
        self.tell("Bauvorgang", {"Gebäude": building})

    def longest(self, player: int | None) -> None:
        """Announce the holder of the longest road."""
        before, self.truth.longest = self.truth.longest, player
        self._honour("Längste Handelsstraße", before, player)

    def army(self, player: int) -> None:
        """Announce the holder of the largest army."""
        before, self.truth.army = self.truth.army, player
        self._honour("Größte Rittermacht", before, player)

    def _honour(self, name: str, before: int | None, player: int | None) -> None:
        self.tell(name, {} if player is None else {"Spieler": player})
        for number, points in ((before, -2), (player, 2)):
            if number is not None:
                self.truth.points[number] += points
        self.update()

    def buy(self, player: int, card: str, costs: Counts | None = None) -> None:
        """Let a player buy a development card; `costs` default to the right ones."""
        with self.asked(player, "Entwicklungskarte kaufen", {}):
            costs = COSTS["Karte"] if costs is None else costs
            if self.dialect.costs == "before":
                self.pay(player, costs)
            self.truth.cards[player][card] += 1
            self.truth.points[player] += card == "Siegpunkt"
            self.tell("Entwicklungskarte gekauft", {"Spieler": player, "Entwicklungskarte": card}, [player])
            if self.dialect.costs == "after":
                self.pay(player, costs)

    def knight(self, player: int, place: Place, target: int | None = None, stolen: str | None = None) -> None:
        body = {"Ort": self.at(place)} | ({} if target is None else {"Ziel": target})
        with self.asked(player, "Ritter ausspielen", body):
            if self.dialect.robber_too and self.dialect.costs == "before":
                self.tell("Räuber versetzt", {"Spieler": player, **body})
            self.tell("Ritter ausspielen", {"Spieler": player, **body})
            if self.dialect.robber_too and self.dialect.costs == "after":
                self.tell("Räuber versetzt", {"Spieler": player, **body})
            self._robbed(player, place, target, stolen)
            self.truth.cards[player]["Ritter"] -= 1
            self.truth.knights[player] += 1

    def roads(self, player: int, *roads: Spot) -> None:
        body = {f"Straße {number}": self.where(road) for number, road in enumerate(roads, 1)}
        with self.asked(player, "Straßenbaukarte ausspielen", body):
            self.tell("Straßenbaukarte ausspielen", {"Spieler": player, **body})
            for road in roads:
                self.built(player, "Straße", road)
            self.truth.cards[player]["Straßenbau"] -= 1

    def fund(self, player: int, counts: Counts) -> None:
        """Let the players roll until one has these resources, given by the others, and the turn."""
        hands = self.truth.hands
        while True:
            lacking = {kind: count - hands[player][kind] for kind, count in counts.items()}
            everywhere = {kind: sum(hand[kind] for hand in hands.values()) for kind in ROHSTOFFE}
            wanted = [ROLL_FOR[kind] for kind, count in counts.items() if everywhere[kind] < count]
            self.rounds(str(wanted[0] if wanted else 3))
            turn = self.truth.turn
            assert turn is not None
            if turn == player and max(lacking.values()) <= 0:
                return
            given = {kind: min(count, hands[turn][kind]) for kind, count in lacking.items() if count > 0}
            if turn != player and any(given.values()):
                self.give(turn, player, {kind: count for kind, count in given.items() if count})

    def has(self, player: int, counts: Counts) -> None:
        """Make it true that a player has these numbers of resources, cards, or points."""
        for kind, count in counts.items():
            if kind == "Siegpunkte":
                self.truth.points[player] = count
            else:
                truth = self.truth.hands if kind in ROHSTOFFE else self.truth.cards
                truth[player][kind] = count

    def give(self, player: int, partner: int, counts: Counts) -> None:
        """Let the player to act give another something for nothing."""
        trade = len(self.steps)
        self.offer(player, trade, counts, {})
        self.accept(partner, trade)
        self.conclude(player, partner, trade, counts, {})

    def rounds(self, numbers: str) -> None:
        """Let the next players roll these numbers; the last of them keeps the turn."""
        for number in map(int, numbers.split()):
            before = self.truth.turn
            player = 1
            if self.truth.rolled and before is not None:
                self.end_turn(before)
                player = before % len(self.names) + 1
            self.truth.rolled = True
            self.pause(500)
            self.roll(player, (number // 2, number - number // 2))

    def monopoly(self, player: int, kind: str) -> None:
        with self.asked(player, "Monopol", {"Rohstoff": kind}):
            self.tell("Monopol", {"Spieler": player, "Rohstoff": kind})
            others = {n: hand[kind] for n, hand in self.truth.hands.items() if n != player and hand[kind]}
            if others:
                self.gain(player, {kind: sum(others.values())})
            for number, count in others.items():
                self.pay(number, {kind: count})
            self.truth.cards[player]["Monopol"] -= 1

    def invention(self, player: int, counts: Counts) -> None:
        with self.asked(player, "Erfindung", {"Rohstoffe": dict(counts)}):
            self.tell("Erfindung", {"Spieler": player, "Rohstoffe": dict(counts)})
            self.gain(player, counts, [player])
            self.truth.cards[player]["Erfindung"] -= 1

    def overseas(self, player: int, paid: Counts, gained: Counts) -> None:
        body = {"Angebot": dict(paid), "Nachfrage": dict(gained)}
        with self.asked(player, "Seehandel", body):
            if self.dialect.costs == "before":
                self.pay(player, paid)
            self.gain(player, gained)
            if self.dialect.costs == "after":
                self.pay(player, paid)

    def offer(self, player: int, trade: int, offer: Counts, demand: Counts) -> None:
        body = {"Angebot": dict(offer), "Nachfrage": dict(demand)}
        with self.asked(player, "Handel anbieten", body):
            self.tell("Handelsangebot", {"Spieler": player, "Handel id": trade, **body})
            self.truth.trades.add(trade)

    def accept(self, player: int, trade: int) -> None:
        with self.asked(player, "Handel annehmen", {"Handel id": trade}):
            self.tell("Handelsangebot angenommen", {"Spieler": player, "Handel id": trade})

    def cancel(self, player: int, trade: int, is_offer: bool = True) -> None:
        with self.asked(player, "Handel abbrechen", {"Handel id": trade}):
            self.tell("Handelsangebot abgebrochen", {"Spieler": player, "Handel id": trade})
            if is_offer:
                self.truth.trades.discard(trade)

    def conclude(self, player: int, partner: int, trade: int, offer: Counts, demand: Counts) -> None:
        with self.asked(player, "Handel abschließen", {"Handel id": trade, "Mitspieler": partner}):
            done = {"Spieler": player, "Mitspieler": partner}
            if self.dialect.costs == "after":
                self.tell("Handel ausgeführt", done)
            for giver, taker, counts in ((player, partner, offer), (partner, player, demand)):
                self.pay(giver, counts)
                self.gain(taker, counts)
            if self.dialect.costs == "before":
                self.tell("Handel ausgeführt", done)
            self.truth.trades.discard(trade)

    # What is found in it.

    def found(self) -> Findings:
        """Inspect the messages, then end the streams."""
        return found(self.steps)


# Three players' villages with their roads, on the corners between fields of these terrains.
ANNA = (spot((0, 0), (1, 0), (1, -1)), spot((0, 0), (1, 0)))  # Wald 6, Hügelland 8
BERT = (spot((0, 0), (0, -1), (-1, 0)), spot((0, 0), (0, -1)))  # Weideland 5, Ackerland 9
CLEO = (spot((0, 0), (-1, 1), (0, 1)), spot((0, 0), (0, 1)))  # Gebirge 10, Wald 4
CLEO_2 = (spot((0, 1), (0, 2), (-1, 2)), spot((0, 1), (-1, 2)))  # Wald 4, and the harbour for it
BERT_2 = (spot((-1, 0), (-1, 1), (-2, 1)), spot((-1, 0), (-1, 1)))  # Ackerland 9, Gebirge 10
ANNA_2 = (spot((1, 0), (2, 0), (1, 1)), spot((1, 0), (1, 1)))  # Wald 6, and the harbour for everything


def a_game(numbers: str = "", dialect: Dialect | None = None, mirrored: bool = False) -> Server:
    """Anna, Bert and Cleo have two villages each, and have rolled these numbers since."""
    server = Server(*NAMES[:3], dialect=dialect, mirrored=mirrored)
    server.start((1, *ANNA), (2, *BERT), (3, *CLEO), (3, *CLEO_2), (2, *BERT_2), (1, *ANNA_2))
    server.rounds(numbers)
    return server
