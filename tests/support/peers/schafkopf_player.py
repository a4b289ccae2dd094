"""A Schafkopf player: bids what the hand allows, and follows suit."""

from __future__ import annotations

from kiebitz.dissectors.protocols.schafkopf.cards import PACK, Mode, mode
from peers import schafkopf_choices as choices
from peers.program import Died, LinePlayer, Setup
from peers.schafkopf_wire import NOTHING, Pakete, cards_of, model, paket


class SchafkopfPlayer(LinePlayer):
    """A player on one seat, on one connection."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._pakete = Pakete(self._paket)
        self._seat = 0
        self._best = "NICHTS"
        self._rules: Mode = mode("NICHTS")
        self._hand: list[str] = []

    def begin(self) -> None:
        self._pakete = Pakete(self._paket)

    def line(self, line: bytes) -> None:
        self._pakete.line(self.text(line))

    def _say(self, flag: str, *fields: str) -> None:
        if self.has("forgets-end") and flag == "KONTRA":
            self.says.append(paket(flag, *fields).removesuffix(b"!END\n"))
            return
        self.says.append(paket(flag, *fields))

    def _paket(self, flag: str, fields: list[str]) -> None:
        if self.has("dies-without-money") and flag == "KONTO" and fields[0].startswith("-"):
            raise Died("debts")
        if self.has("dies-on-an-unknown-flag") and flag not in _KNOWN:
            raise Died(flag)
        match flag:
            case "NAME":
                self._say("NAME", self.setup.name)
            case "ID" if fields and fields[0].isdigit():
                self._seat = int(fields[0])
            case "BESTESSPIEL" if fields:
                self._best = fields[0]
            case "HOCHZEIT":
                self._hochzeit()
            case "MODUS" if fields:
                self._rules = mode(fields[0])
                self._say("KONTRA", choices.boolean(self.random))
            case "MODEL":
                self._model(fields)
            case "ENDE":
                self.count_game()
                if self.over:
                    self._say("BEENDEN", NOTHING)

    def _hochzeit(self) -> None:
        takes = choices.boolean(self.random)
        self._say("HOCHZEIT", takes)
        if takes == "JA":
            self._say("KARTE", *self.random.choice(self._hand).split(" "))

    def _model(self, fields: list[str]) -> None:
        try:
            hand, table, last = cards_of(fields[1:])
        except ValueError:
            return
        self._hand = hand
        match fields[0]:
            case "!ERSTE3":
                knocks = "VIELLEICHT" if self.has("knocks-undecided") else choices.boolean(self.random)
                self._say("ERSTE3", knocks)
            case "!SPIELSTDU":
                bid = choices.bid(self.random, hand, self._best)
                if self.has("bids-what-there-is-not"):
                    bid = "RAMSCH"
                self._say("SPIELSTDU", bid)
                if bid == "HOCHZEIT":
                    self._say("KARTE", *self.random.choice(hand).split(" "))
            case "!SPIEL" if hand:
                self._play(hand, table, last)

    def _play(self, hand: list[str], table: list[str | None], last: list[str | None]) -> None:
        behind = [table[(self._seat + step) % 4] for step in range(1, 4)]
        order = [card for card in behind if card is not None]
        card = choices.card(self.random, self._rules, hand, order)
        if self.has("does-not-follow-suit"):
            card = next(
                (other for other in hand if other not in choices.playable(self._rules, hand, order)), card
            )
        left = [other for other in hand if other != card]
        if self.has("plays-what-it-has-not"):
            card = next(other for other in sorted(PACK) if other not in hand and other not in order)
        if self.has("keeps-its-card"):
            left = hand
        laid = [*table[: self._seat], card, *table[self._seat + 1 :]]
        self.says.append(model("SPIEL", left, laid, last))
        if self.has("plays-twice"):
            self.says.append(model("SPIEL", left, laid, last))


_KNOWN = (
    *("NAME", "MITSPIELER", "MODUS", "BESTESSPIEL", "KONTRA", "GEKLOPFT", "ID", "SPIELT", "SIEGER"),
    *("HOCHZEIT", "DRAN", "KONTO", "STOCK", "ENDE", "BEENDEN", "MODEL"),
)
