"""A small Catan conversation: Anna and the server, from Hallo to the beginning of a second round.

Two other players' moves are reported to Anna. All follows the specification and the rules.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from typing import Any, NamedTuple

from kiebitz.dissectors.model import Direction

ANNA, BERTA, CARL = 1, 2, 3
NAMES = {ANNA: ("Anna", "Orange"), BERTA: ("Bärta", "Rot"), CARL: ("Carl", "Weiß")}

Place = tuple[int, int]

LAND = [(x, y) for x in range(-2, 3) for y in range(-2, 3) if abs(x + y) <= 2]
SEA = [
    (x, y)
    for x in range(-3, 4)
    for y in range(-3, 4)
    if abs(x + y) <= 3 and 3 in (abs(x), abs(y), abs(x + y))
]
_TERRAIN = [("Wald", "Holz"), ("Weideland", "Wolle"), ("Ackerland", "Getreide"), ("Hügelland", "Lehm")]
_TERRAIN += [("Gebirge", "Erz")]
TERRAIN = {place: _TERRAIN[number % 5] for number, place in enumerate(LAND) if place != (0, 0)}
CHIPS = (5, 2, 6, 3, 8, 10, 9, 12, 11, 4, 8, 10, 9, 4, 5, 6, 3, 11)
ZAHL = dict(zip(TERRAIN, CHIPS, strict=True))

VILLAGES: list[tuple[int, list[Place]]] = [
    (ANNA, [(-1, 2), (-1, 1), (-2, 2)]),
    (BERTA, [(2, -2), (1, -1), (1, -2)]),
    (CARL, [(0, -2), (0, -1), (1, -2)]),
    (CARL, [(0, 1), (0, 2), (1, 1)]),
    (BERTA, [(2, 0), (1, 0), (1, 1)]),
    (ANNA, [(-2, 0), (-1, 0), (-1, -1)]),
]
"""Players with their three fields, in the order in which they are built; the road is between the first
two.
"""


class Step(NamedTuple):
    """A message of the conversation."""

    direction: Direction
    name: str
    data: bytes


class Talk:
    """Writes the conversation down."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.hands: dict[int, Counter[str]] = {player: Counter() for player in NAMES}

    def c2s(self, name: str, **body: Any) -> None:
        self._say("c2s", name, body)

    def s2c(self, name: str, **body: Any) -> None:
        self._say("s2c", name, body)

    def _say(self, direction: Direction, name: str, body: dict[str, Any]) -> None:
        spaced = {key.replace("_", " "): value for key, value in body.items()}
        text = json.dumps({name: spaced}, ensure_ascii=False, separators=(",", ":"))
        self.steps.append(Step(direction, name, f"{text}\n".encode()))

    def status(self, player: int, status: str) -> None:
        name, farbe = NAMES[player]
        self.s2c("Statusupdate", Spieler={"id": player, "Farbe": farbe, "Name": name, "Status": status})

    def gain(self, player: int, gains: Counter[str]) -> None:
        self.hands[player] += gains
        if gains:
            self.s2c("Ertrag", Spieler=player, Rohstoffe=dict(gains))

    def pay(self, player: int, costs: Counter[str]) -> None:
        self.hands[player] -= costs
        self.s2c("Kosten", Spieler=player, Rohstoffe=dict(costs))

    def build(self, player: int, typ: str, places: list[Place]) -> None:
        self.status(player, f"{typ} bauen")
        ort = [{"x": x, "y": y} for x, y in places]
        if player == ANNA:
            self.c2s("Bauen", Typ=typ, Ort=ort)
        self.s2c("Bauvorgang", Gebäude={"Eigentümer": player, "Typ": typ, "Ort": ort})
        if player == ANNA:
            self.s2c("OK")

    def roll(self, player: int, *dice: int) -> None:
        self.status(player, "Würfeln")
        if player == ANNA:
            self.c2s("Würfeln")
        self.s2c("Würfelwurf", Spieler=player, Wurf=dice)
        if player == ANNA:
            self.s2c("OK")
        for owner in NAMES:
            gains: Counter[str] = Counter()
            for other, places in VILLAGES:
                gains.update(
                    TERRAIN[place][1] for place in places if other == owner and ZAHL.get(place) == sum(dice)
                )
            self.gain(owner, gains)

    def meet(self) -> None:
        self.s2c("Hallo", Version="Testserver 1.0 (Kiebitze)", Protokoll="1.0")
        self.c2s("Hallo", Version="TestClient 1.0 (Kiebitze)")
        self.s2c("Willkommen", id=ANNA)
        self.s2c("Statusupdate", Spieler={"id": ANNA, "Status": "Spiel starten"})
        self.status(BERTA, "Wartet auf Spielbeginn")
        self.status(CARL, "Wartet auf Spielbeginn")
        self.c2s("Spieler", Name="Anna", Farbe="Orange")
        self.status(ANNA, "Spiel starten")
        self.s2c("OK")
        self.c2s("Chatnachricht senden", Nachricht="Grüß Gott")
        self.s2c("Chatnachricht", Absender=ANNA, Nachricht="Grüß Gott")
        self.s2c("OK")
        self.c2s("Spiel starten")
        self.status(ANNA, "Wartet auf Spielbeginn")
        self.s2c("OK")

    def begin(self) -> None:
        felder = [
            {"Ort": {"x": x, "y": y}, "Typ": TERRAIN.get((x, y), ("Wüste",))[0]}
            | ({"Zahl": ZAHL[x, y]} if (x, y) in ZAHL else {})
            for x, y in LAND
        ]
        felder += [{"Ort": {"x": x, "y": y}, "Typ": "Meer"} for x, y in SEA]
        häfen = [{"Ort": [{"x": -2, "y": 2}, {"x": -3, "y": 3}], "Typ": "Hafen"}]
        räuber = {"x": 0, "y": 0}
        self.s2c(
            "Spiel gestartet",
            Karte={"Felder": felder, "Gebäude": [], "Häfen": häfen, "Räuber": räuber},
        )
        self.s2c("Chatnachricht", Nachricht="Die Reihenfolge wird ausgewürfelt.")
        for player, dice in ((ANNA, (6, 5)), (BERTA, (4, 4)), (CARL, (1, 2))):
            self.s2c("Würfelwurf", Spieler=player, Wurf=dice)
        for number, (player, places) in enumerate(VILLAGES):
            self.build(player, "Dorf", places)
            if number >= len(NAMES):
                self.gain(player, Counter(TERRAIN[place][1] for place in places if place in TERRAIN))
            self.build(player, "Straße", places[:2])
            self.status(player, "Warten")

    def play(self) -> None:
        self.roll(ANNA, 3, 2)
        self.status(ANNA, "Handeln oder Bauen")
        give, take = Counter([min(+self.hands[ANNA])]), Counter([max(+self.hands[BERTA])])
        self.c2s("Handel anbieten", Angebot=dict(give), Nachfrage=dict(take))
        self.s2c("Handelsangebot", Spieler=ANNA, Handel_id=7, Angebot=dict(give), Nachfrage=dict(take))
        self.s2c("OK")
        self.s2c("Handelsangebot angenommen", Spieler=BERTA, Handel_id=7)
        self.c2s("Handel abschließen", Handel_id=7, Mitspieler=BERTA)
        self.s2c("Handel ausgeführt", Spieler=ANNA, Mitspieler=BERTA)
        for player, gains, costs in ((ANNA, take, give), (BERTA, give, take)):
            self.pay(player, costs)
            self.gain(player, gains)
        self.s2c("OK")
        self.c2s("Zug beenden")
        self.status(ANNA, "Warten")
        self.s2c("OK")
        self.roll(BERTA, 4, 4)
        self.status(BERTA, "Handeln oder Bauen")
        self.s2c("Chatnachricht", Absender=BERTA, Nachricht="Ich habe nichts.")
        self.status(BERTA, "Warten")
        self.roll(CARL, 1, 1)
        self.status(CARL, "Handeln oder Bauen")
        self.status(CARL, "Warten")
        self.roll(ANNA, 3, 4)
        self.status(ANNA, "Räuber versetzen")
        self.c2s("Räuber versetzen", Ort={"x": 1, "y": -1}, Ziel=BERTA)
        self.s2c("Räuber versetzt", Spieler=ANNA, Ort={"x": 1, "y": -1}, Ziel=BERTA)
        stolen = Counter([min(+self.hands[BERTA])])
        self.pay(BERTA, stolen)
        self.gain(ANNA, stolen)
        self.s2c("OK")
        self.status(ANNA, "Handeln oder Bauen")
        self.c2s("Zug beenden")
        self.status(ANNA, "Warten")
        self.s2c("OK")
        self.c2s("Chatnachricht senden", Nachricht="Danke ✓")
        self.s2c("Chatnachricht", Absender=ANNA, Nachricht="Danke ✓")
        self.s2c("OK")
        self.roll(BERTA, 5, 5)


@cache
def conversation() -> list[Step]:
    talk = Talk()
    talk.meet()
    talk.begin()
    talk.play()
    return talk.steps
