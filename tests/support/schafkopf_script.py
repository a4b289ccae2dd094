"""Random rounds of Schafkopf, as a server and its clients would play them, and the expected events.

The script is a list of steps: sender, receiver and message, in order. It can be passed to an inspector, or
sent
over real sockets.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

from kiebitz.dissectors.model import Direction
from kiebitz.dissectors.protocols.schafkopf.cards import MODI, PACK, TO_WIN, mode, points
from kiebitz.dissectors.protocols.schafkopf.dissector import SCHAFKOPF

EMPTY_TABLE: list[str | None] = [None] * 4


class Step(NamedTuple):
    """A message between the server and the client of this name."""

    client: str
    direction: Direction
    name: str
    fields: dict[str, Any]

    @property
    def data(self) -> bytes:
        return SCHAFKOPF.codec.encode(self.name, self.direction, self.fields)


class Dialect(NamedTuple):
    """Differences between releases."""

    turns: bool = True
    updates: bool = True
    stock: bool = True


class Script:
    """Speaks rounds. `clients` have a conversation each; the others at the table are the server's bots."""

    def __init__(self, seed: int, clients: Sequence[str], dialect: Dialect | None = None) -> None:
        self.random = random.Random(seed)
        self.dialect = dialect or Dialect()
        self.clients = list(clients)
        self.players = [*clients, *(f"[BOT]-{number}" for number in range(4 - len(clients)))]
        self.accounts = dict.fromkeys(self.players, 1000)
        self.stock = 0
        self.steps: list[Step] = []
        self.rounds: list[dict[str, Any]] = []
        for client in clients:
            self.server(client, "NAME", name="§")
            self.client(client, "NAME", name=client)

    def server(self, client: str, name: str, /, **fields: Any) -> None:
        if client in self.clients:
            self.steps.append(Step(client, "s2c", name, fields))

    def client(self, client: str, name: str, /, **fields: Any) -> None:
        if client in self.clients:
            self.steps.append(Step(client, "c2s", name, fields))

    def everybody(self, seats: list[str], name: str, /, **fields: Any) -> None:
        for player in seats:
            self.server(player, name, **fields)

    def turn(self, seats: list[str], seat: int) -> None:
        if self.dialect.turns:
            self.everybody(seats, "DRAN", dran=seat)

    def account(self, name: str, client: str) -> None:
        stock = {"stock": self.stock} if self.dialect.stock else {}
        self.server(client, name, konto=self.accounts[client], **stock)

    def model(
        self, flag: str, hand: list[str], table: list[str | None], last: list[str | None]
    ) -> dict[str, Any]:
        return {
            "flag": flag,
            "spielerhand": [*hand, *[None] * (6 - len(hand))],
            "tisch": list(table),
            "letzter_stich": list(last),
        }

    def round(self, modus: str | None = None) -> dict[str, Any]:
        """Return one more round, of this Modus (or one at random); NICHTS and SI are not played."""
        rng = self.random
        modus = modus or rng.choice(MODI)
        first = len(self.rounds) % len(self.players)
        seats = [self.players[(first + seat) % len(self.players)] for seat in range(4)]
        pack = sorted(PACK)
        rng.shuffle(pack)
        hands = {seat: pack[6 * seat : 6 * seat + 6] for seat in range(4)}
        log: dict[str, Any] = {
            "seats": seats,
            "hands": {seat: list(hand) for seat, hand in hands.items()},
            "mode": modus,
            "cards": [],
            "tricks": [],
            "winners": None,
        }
        self.rounds.append(log)
        for seat, player in enumerate(seats):
            self.server(player, "ID", id=seat)
        self.everybody(seats, "MITSPIELER", namen=seats)
        for player in seats:
            self.account("KONTO", player)
        knocks = [rng.choice(("JA", "NEIN")) for _ in seats]
        for seat, player in enumerate(seats):
            self.turn(seats, seat)
            self.server(player, "MODEL", **self.model("ERSTE3", hands[seat][:3], EMPTY_TABLE, EMPTY_TABLE))
            self.client(player, "ERSTE3", klopft=knocks[seat])
        self.everybody(seats, "GEKLOPFT", geklopft=knocks)
        log["knocked"] = [seat for seat, answer in enumerate(knocks) if answer == "JA"]
        if modus == "SI":
            bidder = 0
        elif modus.startswith("SAUSPIEL"):
            called = mode(modus).called
            bidder = next(seat for seat in range(4) if called not in hands[seat])
        else:
            bidder = rng.randrange(4)
        best = "NICHTS"
        given: dict[int, str] = {}
        for seat, player in enumerate(seats):
            self.turn(seats, seat)
            self.server(player, "BESTESSPIEL", modus=best)
            self.server(player, "MODEL", **self.model("SPIELSTDU", hands[seat], EMPTY_TABLE, EMPTY_TABLE))
            bid = modus if seat == bidder else "NICHTS"
            self.client(player, "SPIELSTDU", modus=bid)
            best = bid if bid != "NICHTS" else best
            if bid == "HOCHZEIT":
                given[seat] = hands[seat][0]
                self.client(player, "KARTE", karte=given[seat])
        if modus in ("NICHTS", "SI"):
            if modus == "NICHTS":
                for player in seats:
                    self.accounts[player] -= 10
                self.stock += 40
            for player in seats:
                self.account("ENDE", player)
            return log
        partner = 4
        if modus == "HOCHZEIT":
            partner = self._hochzeit(seats, hands, bidder, given)
            log["hands"] = {seat: list(hand) for seat, hand in hands.items()}
        self.everybody(seats, "SPIELT", spieler=bidder, mitspieler=partner)
        kontras = [rng.choice(("JA", "NEIN")) for _ in seats]
        for seat, player in enumerate(seats):
            self.turn(seats, seat)
            self.server(player, "MODUS", modus=modus)
            self.client(player, "KONTRA", kontra=kontras[seat])
        self.everybody(seats, "KONTRA", kontra=kontras)
        log["kontra"] = [seat for seat, answer in enumerate(kontras) if answer == "JA"]
        self._play(seats, hands, modus, log)
        self._settle(seats, bidder, partner, modus, log)
        return log

    def _hochzeit(
        self, seats: list[str], hands: dict[int, list[str]], bidder: int, given: dict[int, str]
    ) -> int:
        partner = (bidder + self.random.randrange(1, 4)) % 4
        for step in range(1, 4):
            seat = (bidder + step) % 4
            self.turn(seats, seat)
            self.server(seats[seat], "HOCHZEIT", nichts="§")
            if seat == partner:
                given[seat] = hands[seat][0]
                self.client(seats[seat], "HOCHZEIT", nimmt="JA")
                self.client(seats[seat], "KARTE", karte=given[seat])
                break
            self.client(seats[seat], "HOCHZEIT", nimmt="NEIN")
        for giver, taker in ((bidder, partner), (partner, bidder)):
            hands[giver].remove(given[giver])
            hands[taker].append(given[giver])
        return partner

    def _play(self, seats: list[str], hands: dict[int, list[str]], modus: str, log: dict[str, Any]) -> None:
        rules = mode(modus)
        leader = 0
        last = list(EMPTY_TABLE)
        for number in range(1, 7):
            table = list(EMPTY_TABLE)
            order: list[str] = []
            for step in range(4):
                seat = (leader + step) % 4
                self.turn(seats, seat)
                for other, player in enumerate(seats):
                    if other == seat:
                        self.server(player, "MODEL", **self.model("SPIEL", hands[seat], table, last))
                    elif self.dialect.updates:
                        self.server(player, "MODEL", **self.model("UPDATE", hands[other], table, last))
                free = rules.must_follow(order[0], hands[seat]) if order else []
                card = self.random.choice(free or hands[seat])
                hands[seat].remove(card)
                self.random.shuffle(hands[seat])
                table[seat] = card
                order.append(card)
                log["cards"].append((seat, card))
                self.client(seats[seat], "MODEL", **self.model("SPIEL", hands[seat], table, last))
            if self.dialect.updates:
                for other, player in enumerate(seats):
                    self.server(player, "MODEL", **self.model("UPDATE", hands[other], table, last))
            winner = (leader + rules.winner(order)) % 4
            log["tricks"].append((number, leader, winner, points(order)))
            leader = winner
            last = table

    def _settle(self, seats: list[str], bidder: int, partner: int, modus: str, log: dict[str, Any]) -> None:
        rules = mode(modus)
        if rules.called is not None:
            partner = next(seat for seat, card in log["cards"] if card == rules.called)
        party = {bidder, partner} - {4}
        taken = [trick for trick in log["tricks"] if trick[2] in party]
        won = len(taken) == 6 if rules.du else sum(trick[3] for trick in taken) >= TO_WIN
        for player in seats:
            self.account("ENDE", player)
        lost = 0 if won else 10
        codes = {"spieler": bidder + lost, "mitspieler": 4 if partner == 4 else partner + lost}
        self.everybody(seats, "SIEGER", **codes)
        log["player"] = bidder
        log["partner"] = None if partner == 4 else partner
        log["winners"] = sorted(party if won else {0, 1, 2, 3} - party)
        for seat, player in enumerate(seats):
            self.accounts[player] += 50 if seat in log["winners"] else -50
        log["accounts"] = {player: self.accounts[player] for player in seats}

    def leave(self) -> None:
        for client in self.clients:
            self.server(client, "BEENDEN", nichts="§")
