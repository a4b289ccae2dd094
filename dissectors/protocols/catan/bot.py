"""A Catan bot: makes random choices among what the rules allow and its cards can pay."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from kiebitz.dissectors.conformance.bots import Bot, SendMessage, TargetMessage
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.protocols.catan.board import Spot, at, ort, spot
from kiebitz.dissectors.protocols.catan.game import CARD_COST, COSTS
from kiebitz.dissectors.protocols.catan.island import IslandModel
from kiebitz.dissectors.protocols.catan.words import DORF, FARBEN, ROHSTOFFE, STADT, STRASSE

_SETTLING_S = 0.01
"""Seconds after an answer until its consequences, which may precede or follow it, have been received."""

_DECISION_S = 0.1
"""Seconds for the others to decide about an offer."""

_MAX_ACTIONS = 4
"""Maximum number of actions in a turn."""

_MAX_REFUSALS = 20
"""Number of consecutive refusals after which it makes no more requests."""

_MAX_SPOTS = 6
"""Maximum number of places to consider for a building."""

_GREETING = SendMessage("Chatnachricht senden", {"Nachricht": "Grüß Gott"})


class CatanBot(Bot):
    """A Catan bot for one seat; after each request it waits for the answer."""

    def __init__(self, name: str, seed: int = 1, games: int = 0) -> None:
        super().__init__(name, seed, games)
        self._id: int | None = None
        self._status = ""
        self._island: IslandModel | None = None
        self._hand: Counter[str] = Counter()
        self._cards: Counter[str] = Counter()
        self._new: Counter[str] = Counter()
        """Cards bought in this turn, which cannot be played yet."""
        self._asked: SendMessage | None = None
        self._offered: int | None = None
        """The number of its own open offer."""
        self._colour: str | None = None
        self._colours: dict[int, str] = {}
        """The colours that other players have chosen finally."""
        self._acts = 0
        self._refusals = 0
        self._has_played = False
        self._village: Spot = ()
        self._needs_yes_or_no = False
        """True if the server expects a yes or no for each offer."""

    def _begin(self) -> None:
        self._id, self._asked, self._island, self._colour = None, None, None, None

    def _receive(self, name: str, fields: Fields) -> None:
        match name:
            case "Hallo":
                self._send("Hallo", Version="Kiebitz 1.0 (Probe) (KI)")
            case "Willkommen":
                self._id = fields["id"]
                self._ask(_GREETING)
            case "Statusupdate":
                self._update(fields["Spieler"])
            case "OK" | "Fehler" | "Serverantwort":
                self._answered(is_refused=name == "Fehler")
            case "Spiel gestartet":
                self._island = IslandModel(fields["Karte"])
                self._hand, self._cards = Counter(), Counter()
            case "Spiel beendet":
                self._island, self._offered = None, None
                self.games += 1
            case "Handelsangebot":
                self._consider(fields)
            case "Handelsangebot angenommen":
                self._conclude(fields)
            case "Handelsangebot abgebrochen" | "Handel ausgeführt":
                self._trade_ended(fields)
            case _ if self._island is not None:
                self._process_event(self._island, name, fields)

    def _process_event(self, island: IslandModel, name: str, fields: Fields) -> None:
        is_mine = fields.get("Spieler") == self._id
        match name:
            case "Würfelwurf" if is_mine:
                self._acts, self._has_played, self._offered = 0, False, None
            case "Ertrag" | "Kosten" if is_mine and isinstance(fields["Rohstoffe"], dict):
                sign = 1 if name == "Ertrag" else -1
                self._hand.update({kind: sign * count for kind, count in fields["Rohstoffe"].items()})
            case "Bauvorgang":
                building = fields["Gebäude"]
                island.built(building)
                if building["Typ"] == DORF and building["Eigentümer"] == self._id:
                    self._village = spot(map(at, building["Ort"]))
            case "Straßenbaukarte ausspielen":
                for road in (fields[key] for key in ("Straße 1", "Straße 2") if key in fields):
                    island.built({"Eigentümer": fields["Spieler"], "Typ": STRASSE, "Ort": road})
            case "Räuber versetzt" | "Ritter ausspielen":
                island.robber = at(fields["Ort"])
            case "Entwicklungskarte gekauft" if is_mine:
                self._cards[fields["Entwicklungskarte"]] += 1
                self._new[fields["Entwicklungskarte"]] += 1

    def _update(self, shown: Fields) -> None:
        if shown["id"] != self._id:
            if shown.get("Status") == "Wartet auf Spielbeginn":
                self._colours[shown["id"]] = shown.get("Farbe", "")
            return
        self._status = shown.get("Status", self._status)
        if isinstance(shown.get("Rohstoffe"), dict):
            self._hand = Counter(shown["Rohstoffe"])
        self._schedule_next()

    def _ask(self, *choices: SendMessage) -> None:
        self._queue(*choices)

    def _on_sent(self, sent: SendMessage) -> None:
        if sent.name != "Hallo":
            self._asked = sent
        match sent.name:
            case "Spieler":
                self._colour = sent.fields["Farbe"]
            case "Handel anbieten":
                self._offered = -1
            case "Ritter ausspielen" | "Straßenbaukarte ausspielen" | "Monopol" | "Erfindung":
                self._has_played = True

    def _answered(self, is_refused: bool) -> None:
        asked, self._asked = self._asked, None
        if not is_refused:
            self._refusals = 0
        else:
            self._refusals += 1
            self._acts = _MAX_ACTIONS
            if asked is not None and asked.name in ("Spieler", "Spiel starten"):
                self._colour = None
            if asked is not None and asked.name == "Handel anbieten":
                self._offered = None
            if asked is not None and asked.name == "Handel abschließen":
                self._ask(SendMessage("Handel abbrechen", {"Handel id": asked.fields["Handel id"]}))
        if asked is not None and asked.name in _CARDS and not is_refused:
            self._cards[_CARDS[asked.name]] -= 1
        self._schedule_next()

    def _schedule_next(self) -> None:
        self._schedule(_SETTLING_S, self._continue)

    def _continue(self) -> None:
        """Queue the expected request, if none is pending."""
        if self._asked is not None or self._pending or self._refusals > _MAX_REFUSALS:
            return
        if self._status == "Spiel starten":
            self._start()
        island = self._island
        if island is None:
            return
        match self._status:
            case "Dorf bauen" | "Straße bauen":
                self._found(island)
            case "Würfeln":
                self._new.clear()
                # A knight may be played before the dice are rolled, and chat is possible at any time.
                self._ask(SendMessage("Würfeln", {}), *self._knights(island), _GREETING)
            case "Karten wegen Räuber abgeben":
                self._ask(
                    SendMessage("Karten abgeben", {"Abgeben": self._random_cards(self._hand.total() // 2)})
                )
            case "Räuber versetzen":
                self._ask(*self._robberies(island, "Räuber versetzen"))
            case "Handeln oder Bauen" | "Bauen" if self._offered is None:
                self._act(island)

    def _start(self) -> None:
        if self.is_finished:
            return
        if self._colour is None:
            taken = {*self._colours.values()}
            free = [colour for colour in FARBEN if colour not in taken] or [*FARBEN]
            self._queue_any([SendMessage("Spieler", {"Name": self.name, "Farbe": colour}) for colour in free])
        else:
            self._ask(SendMessage("Spiel starten", {}))

    def _found(self, island: IslandModel) -> None:
        island.in_setup = True
        typ = DORF if self._status == "Dorf bauen" else STRASSE
        spots = island.free(self._number, typ)
        if self._status == "Straße bauen":
            ours = [road for road in island.board.edges_at(self._village) if road in spots]
            spots = ours or spots
        self._ask(*self._buildings(typ, spots))

    @property
    def _number(self) -> int:
        return self._id if self._id is not None else -1

    def _random_cards(self, count: int) -> dict[str, int]:
        held = sorted(self._hand.elements())
        return dict(Counter(self.random.sample(held, min(count, len(held)))))

    def _act(self, island: IslandModel) -> None:
        island.in_setup = False
        self._acts += 1
        end = SendMessage("Zug beenden", {})
        if self._acts > _MAX_ACTIONS:
            self._ask(end)
            return
        kinds = [choices for choices in self._possible_requests(island) if choices]
        self.random.shuffle(kinds)
        choices = [choice for some in kinds for choice in some]
        is_tired = self.random.random() < 1 / (1 + len(kinds))
        self._ask(*((end, *choices) if is_tired else (*choices, end)))

    def _possible_requests(self, island: IslandModel) -> Iterable[list[SendMessage]]:
        for typ in (STRASSE, DORF, STADT):
            if self._hand >= Counter(COSTS[typ]):
                yield self._buildings(typ, island.free(self._number, typ))
        if self._hand >= Counter(CARD_COST):
            yield [SendMessage("Entwicklungskarte kaufen", {})]
        yield self._knights(island)
        yield self._road_card(island)
        if self._may_play("Monopol"):
            yield [SendMessage("Monopol", {"Rohstoff": kind}) for kind in self._shuffled(ROHSTOFFE)]
        if self._may_play("Erfindung"):
            one, other = self.random.choices(ROHSTOFFE, k=2)
            yield [SendMessage("Erfindung", {"Rohstoffe": dict(Counter((one, other)))})]
        yield self._overseas(island)
        if self._hand.total() and self._acts == 1:
            give = self.random.choice(sorted(self._hand.elements()))
            want = self.random.choice([kind for kind in ROHSTOFFE if kind != give])
            yield [SendMessage("Handel anbieten", {"Angebot": {give: 1}, "Nachfrage": {want: 1}})]

    def _shuffled(self, words: Iterable[str]) -> list[str]:
        found = [*words]
        self.random.shuffle(found)
        return found

    def _buildings(self, typ: str, spots: list[Spot]) -> list[SendMessage]:
        some = self.random.sample(spots, min(_MAX_SPOTS, len(spots)))
        return [SendMessage("Bauen", {"Typ": typ, "Ort": _written(where)}) for where in some]

    def _may_play(self, card: str) -> bool:
        return not self._has_played and self._cards[card] > self._new[card]

    def _knights(self, island: IslandModel) -> list[SendMessage]:
        return [*self._robberies(island, "Ritter ausspielen")] if self._may_play("Ritter") else []

    def _robberies(self, island: IslandModel, name: str) -> list[SendMessage]:
        fields = [place for place in island.land if place != island.robber]
        found = []
        for place in self.random.sample(fields, min(_MAX_SPOTS, len(fields))):
            victims = island.robbable(self._number, place)
            target = {"Ziel": self.random.choice(victims)} if victims else {}
            found.append(SendMessage(name, {"Ort": ort(place), **target}))
        return found

    def _road_card(self, island: IslandModel) -> list[SendMessage]:
        if not self._may_play("Straßenbau"):
            return []
        roads = island.free(self._number, STRASSE)
        return [
            SendMessage("Straßenbaukarte ausspielen", {"Straße 1": _written(road)})
            for road in self.random.sample(roads, min(_MAX_SPOTS, len(roads)))
        ]

    def _overseas(self, island: IslandModel) -> list[SendMessage]:
        found = []
        for kind, rate in island.board.rates(island.buildings.towns(self._number)).items():
            if self._hand[kind] >= rate:
                wanted = min(ROHSTOFFE, key=lambda other: (other == kind, self._hand[other]))
                found.append(SendMessage("Seehandel", {"Angebot": {kind: rate}, "Nachfrage": {wanted: 1}}))
        return found

    def _leads_to(self, target_message: TargetMessage, choice: SendMessage) -> bool:
        if target_message.name == "Chatnachricht":
            return choice == _GREETING
        if target_message.name in _CARDS or target_message.name == "Größte Rittermacht":
            if self._hand >= Counter(CARD_COST):
                return choice.name == "Entwicklungskarte kaufen"
            # To get cards, it builds nothing and trades what there is.
            return choice.name == ("Handel anbieten" if self._acts == 1 else "Zug beenden")
        # A player that keeps resources will have too many of them.
        return target_message.name == "Karten abgeben" and choice.name == "Zug beenden"

    def _consider(self, fields: Fields) -> None:
        trade = fields["Handel id"]
        if fields["Spieler"] == self._id:
            self._offered = trade
            self._schedule(_DECISION_S, lambda: self._withdraw(trade))
        elif self._hand >= Counter(fields["Nachfrage"]):
            yes = {"Annehmen": True} if self._needs_yes_or_no else {}
            is_shy = self.random.random() < 0.5
            self._queue(SendMessage("Handel annehmen", {"Handel id": trade, **yes}), optional=is_shy)

    def _conclude(self, fields: Fields) -> None:
        self._needs_yes_or_no = "Annehmen" in fields
        trade, partner = fields["Handel id"], fields["Mitspieler" if self._needs_yes_or_no else "Spieler"]
        if trade == self._offered and partner != self._id and fields.get("Annehmen", True):
            # The others may be deciding about it, too.
            self._schedule(_DECISION_S / 2, lambda: self._deal(trade, partner))

    def _deal(self, trade: int, partner: int) -> None:
        if self._offered == trade and self._asked is None and not self._pending:
            self._ask(SendMessage("Handel abschließen", {"Handel id": trade, "Mitspieler": partner}))

    def _withdraw(self, trade: int) -> None:
        if self._offered == trade and self._asked is None:
            self._ask(SendMessage("Handel abbrechen", {"Handel id": trade}))

    def _trade_ended(self, fields: Fields) -> None:
        if fields["Spieler"] == self._id:
            self._offered = None
            self._schedule_next()


_CARDS = {
    "Ritter ausspielen": "Ritter",
    "Straßenbaukarte ausspielen": "Straßenbau",
    "Monopol": "Monopol",
    "Erfindung": "Erfindung",
}
"""The card that a message plays."""


def _written(where: Spot) -> list[dict[str, Any]]:
    return [ort(place) for place in where]
