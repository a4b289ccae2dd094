"""A Catan player: does at random what the rules allow and its cards can pay."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from kiebitz.dissectors.protocols.catan.words import FARBEN, ROHSTOFFE
from peers.catan_board import Board, Spot, place_of, spot_of, written
from peers.program import Died, LinePlayer, Setup

COSTS = {
    "Straße": Counter(Holz=1, Lehm=1),
    "Dorf": Counter(Holz=1, Lehm=1, Wolle=1, Getreide=1),
    "Stadt": Counter(Getreide=2, Erz=3),
    "Karte": Counter(Wolle=1, Getreide=1, Erz=1),
}
MOST_OF = {"Straße": 15, "Dorf": 5, "Stadt": 4}
RATE = 4
"""Cards for one card of the bank: every harbour is better, none is used."""

MOST_ACTS = 4
"""Maximum number of acts in one turn."""

MOST_REFUSALS = 20
"""Maximum number of consecutive refusals; then it leaves."""

DECISION_S = 0.05
"""Time in seconds for others to answer an offer."""


class CatanPlayer(LinePlayer):
    """A player on one seat. After each request it waits for the answer."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._id = 0
        self._status = ""
        self._board: Board | None = None
        self._hand: Counter[str] = Counter()
        self._cards: Counter[str] = Counter()
        self._new: Counter[str] = Counter()
        self._asked = False
        self._chosen: str | None = None
        self._taken: set[str] = set()
        self._acts = 0
        self._refusals = 0
        self._has_played = False
        self._offer: int | None = None
        self._village: Spot = ()
        self._banned: set[Spot] = set()

    def line(self, line: bytes) -> None:
        try:
            value = json.loads(self.text(line))
        except ValueError as problem:
            if self.has("dies-on-broken-json"):
                raise Died from problem
            return
        if not isinstance(value, dict) or len(value) != 1:
            return
        ((name, body),) = value.items()
        if isinstance(body, dict):
            self._told(name, body)

    def _ask(self, name: str, body: dict[str, Any] | None = None) -> None:
        self._asked = True
        text = json.dumps({name: body or {}}, ensure_ascii=False)
        if self.has("writes-latin-1"):
            self.says.append(text.encode("latin-1", "replace") + b"\n")
            return
        if self.has("breaks-lines"):
            text = json.dumps({name: body or {}}, ensure_ascii=False, indent=1)
        self.says.append(text.encode() + b"\n")

    # Messages of the server.

    def _told(self, name: str, body: dict[str, Any]) -> None:
        match name:
            case "Hallo" if body["Protokoll"] != "1.0":
                self.over = True
            case "Hallo":
                self._ask("Hallo", {"Version": "Probespieler 1.0 (Kiebitze) (KI)"})
                self._asked = False
            case "Willkommen":
                self._id = body["id"]
            case "Statusupdate":
                self._update(body["Spieler"])
            case "OK" | "Fehler":
                if name == "Fehler":
                    if self.has("dies-when-refused"):
                        raise Died(body)
                    self._acts = MOST_ACTS
                    self._refusals += 1
                    self.over |= self._refusals > MOST_REFUSALS
                    self._chosen = None if "Farbe" in str(body) else self._chosen
                else:
                    self._refusals = 0
                self._asked = False
                self._go_on()
            case "Spiel gestartet":
                self._board = Board(body["Karte"])
                self._hand, self._cards, self._new = Counter(), Counter(), Counter()
            case "Spiel beendet":
                self._board = None
                self.count_game()
            case "Würfelwurf" if body["Spieler"] == self._id:
                self._acts, self._has_played, self._offer = 0, False, None
            case "Ertrag" | "Kosten" if body["Spieler"] == self._id:
                sign = 1 if name == "Ertrag" else -1
                self._hand.update({kind: sign * count for kind, count in body["Rohstoffe"].items()})
            case "Bauvorgang" if self._board is not None:
                building = body["Gebäude"]
                at = spot_of(building["Ort"])
                self._board.buildings[at] = building["Eigentümer"], building["Typ"]
                if building["Typ"] == "Dorf" and building["Eigentümer"] == self._id:
                    self._village = at
            case "Räuber versetzt" | "Ritter ausspielen" if self._board is not None:
                self._board.robber = place_of(body["Ort"])
            case "Entwicklungskarte gekauft" if body["Spieler"] == self._id:
                self._cards[body["Entwicklungskarte"]] += 1
                self._new[body["Entwicklungskarte"]] += 1
            case "Handelsangebot":
                self._consider(body)
            case "Handelsangebot angenommen":
                self._conclude(body)
            case _ if name not in _KNOWN and self.has("dies-on-an-unknown-message"):
                raise Died(name)

    def _update(self, shown: dict[str, Any]) -> None:
        if shown.get("id") != self._id:
            if shown.get("Status") == "Wartet auf Spielbeginn":
                self._taken.add(shown.get("Farbe", ""))
            return
        self._status = shown["Status"]
        if isinstance(shown.get("Rohstoffe"), dict):
            self._hand = Counter(shown["Rohstoffe"])
        if not self._asked:
            self._go_on()

    # What it does.

    def _go_on(self) -> None:
        if self._asked or self.over:
            return
        match self._status:
            case "Spiel starten":
                self._start()
            case "Dorf bauen":
                self._build("Dorf", self._some_of(self._map.free_corners()))
            case "Straße bauen":
                roads = self._map.free_roads(self._id, self._village)
                self._build("Straße", self._some_of(roads))
            case "Würfeln":
                self._new.clear()
                self._ask("Würfeln")
                if self.has("rolls-twice"):
                    self._ask("Würfeln")
            case "Karten wegen Räuber abgeben":
                count = self._hand.total() // 2 - self.has("discards-too-few")
                self._ask("Karten abgeben", {"Abgeben": self._some_cards(count)})
            case "Räuber versetzen":
                self._ask("Räuber versetzen", self._robbery())
            case "Handeln oder Bauen" if self._offer is None:
                self._act()
            case "Warten" if self.has("ends-others-turns") and self._board is not None:
                self._status = ""
                self._ask("Zug beenden")

    @property
    def _map(self) -> Board:
        assert self._board is not None
        return self._board

    def _some_of(self, spots: list[Spot]) -> Spot:
        return self.random.choice([at for at in spots if at not in self._banned] or spots)

    def _some_cards(self, count: int) -> dict[str, int]:
        held = sorted(self._hand.elements())
        return dict(Counter(self.random.sample(held, min(count, len(held)))))

    def _start(self) -> None:
        if self._chosen is None:
            free = [colour for colour in FARBEN if colour not in self._taken]
            self._chosen = "Lila" if self.has("wants-an-odd-colour") else self.random.choice(free)
            self._ask("Spieler", {"Name": self.setup.name, "Farbe": self._chosen})
        else:
            self._ask("Spiel starten")

    def _build(self, typ: str, at: Spot) -> None:
        ort = written(at)
        if self.has("builds-between-two-fields") and typ == "Dorf":
            ort = ort[:2]
        if self.has("writes-strasse") and typ == "Straße":
            typ = "Strasse"
        self._ask("Bauen", {"Ort": ort} if self.has("forgets-what-to-build") else {"Typ": typ, "Ort": ort})

    def _robbery(self) -> dict[str, Any]:
        field = self.random.choice(sorted(self._map.land - {self._map.robber}))
        targets = [owner for owner in self._map.owners_at(field) if owner != self._id]
        body: dict[str, Any] = {"Ort": {"x": field[0], "y": field[1]}}
        return body | ({"Ziel": self.random.choice(targets)} if targets else {})

    def _can_pay(self, costs: Counter[str]) -> bool:
        return self._hand >= costs or self.has("builds-without-cards")

    def _act(self) -> None:
        """The next thing in its own turn."""
        self._acts += 1
        choices = self._choices() if self._acts <= MOST_ACTS else []
        if choices:
            self.random.choice(choices)()
        else:
            self._ask("Zug beenden")

    def _choices(self) -> list[Callable[[], None]]:
        board, found = self._map, list[Callable[[], None]]()
        spots = {
            "Straße": board.free_roads(self._id),
            "Dorf": board.free_corners(self._id),
            "Stadt": board.pieces(self._id, "Dorf"),
        }
        for typ, at in spots.items():
            if self._can_pay(COSTS[typ]) and at and len(board.pieces(self._id, typ)) < MOST_OF[typ]:
                found += [partial(self._build, typ, self.random.choice(at))] * 2
        if self._can_pay(COSTS["Karte"]):
            found.append(partial(self._ask, "Entwicklungskarte kaufen"))
        if not self._has_played:
            found += [partial(self._play, card) for card in sorted((self._cards - self._new).keys())]
        for kind in ROHSTOFFE:
            if self._hand[kind] >= RATE:
                wanted = min(ROHSTOFFE, key=lambda other: self._hand[other])
                paid = 1 if self.has("pays-too-little") else RATE
                body = {"Angebot": {kind: paid}, "Nachfrage": {wanted: 1}}
                found.append(partial(self._ask, "Seehandel", body))
        if self._hand.total() and self._acts == 1:
            found.append(self._offer_one)
        return found

    def _play(self, card: str) -> None:
        roads = self._map.free_roads(self._id)
        match card:
            case "Ritter":
                self._ask("Ritter ausspielen", self._robbery())
            case "Straßenbau" if roads and len(self._map.pieces(self._id, "Straße")) < MOST_OF["Straße"]:
                self._ask("Straßenbaukarte ausspielen", {"Straße 1": written(roads[0])})
            case "Monopol":
                self._ask("Monopol", {"Rohstoff": self.random.choice(ROHSTOFFE)})
            case "Erfindung":
                self._ask("Erfindung", {"Rohstoffe": {"Erz": 1, "Getreide": 1}})
            case _:
                self._ask("Zug beenden")
                return
        self._cards[card] -= 1
        self._has_played = True

    # Trade.

    def _offer_one(self) -> None:
        give = self.random.choice(sorted(self._hand.elements()))
        want = self.random.choice([kind for kind in ROHSTOFFE if kind != give])
        self._offer = -1
        self._ask("Handel anbieten", {"Angebot": {give: 1}, "Nachfrage": {want: 1}})

    def _consider(self, body: dict[str, Any]) -> None:
        trade = body["Handel id"]
        if body["Spieler"] == self._id:
            self._offer = trade
            self.after(DECISION_S, partial(self._withdraw, trade))
        elif self._hand >= Counter(body["Nachfrage"]) and self.random.random() < 0.5:
            self._ask("Handel annehmen", {"Handel id": trade + 100 * self.has("accepts-another-offer")})

    def _conclude(self, body: dict[str, Any]) -> None:
        if body["Handel id"] == self._offer:
            self._offer = None
            partner = {"Handel id": body["Handel id"], "Mitspieler": body["Spieler"]}
            self._ask("Handel abschließen", partner)

    def _withdraw(self, trade: int) -> None:
        if self._offer == trade and self._status == "Handeln oder Bauen":
            self._offer = None
            self._ask("Handel abbrechen", {"Handel id": trade})


_KNOWN = (
    *("Chatnachricht", "Handelsangebot abgebrochen", "Handel ausgeführt", "Monopol", "Erfindung"),
    *("Straßenbaukarte ausspielen", "Längste Handelsstraße", "Größte Rittermacht", "Würfelwurf", "Ertrag"),
    *("Kosten", "Entwicklungskarte gekauft", "Spiel gestartet", "Bauvorgang", "Räuber versetzt"),
)
