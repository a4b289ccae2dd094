"""A Schafkopf bot: bids what the hand allows, and follows suit."""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.conformance.bots import Aim, Fields, Player, Say
from kiebitz.dissectors.protocols.schafkopf.cards import HAND, SEATS, Mode, mode
from kiebitz.dissectors.protocols.schafkopf.grammar import EMPTY
from kiebitz.dissectors.protocols.schafkopf.legal import HOCHZEIT, NICHTS, bids, playable

_BOLD = 0.25
"""Probability of knocking, saying Kontra, or taking a Hochzeit; that of a bid is twice as high."""


class SchafkopfPlayer(Player):
    """A Schafkopf bot for one seat; each round counts as a game."""

    def __init__(self, name: str, seed: int = 1, games: int = 0) -> None:
        super().__init__(name, seed, games)
        self._seat = 0
        self._best = NICHTS
        self._rules: Mode = mode(NICHTS)
        self._hand: list[str] = []
        self._gives_later = False
        """True if the server expects the card of a Hochzeit in a message of its own."""

    def _begin(self) -> None:
        """Wait: the server sends the first message."""
        self._gives_later = False

    def _hear(self, name: str, fields: Fields) -> None:
        match name:
            case "NAME":
                self._say("NAME", name=self.name)
            case "ID":
                self._seat = fields["id"]
            case "BESTESSPIEL":
                self._best = fields["modus"]
            case "HOCHZEIT":
                self._gives_later = "nichts" in fields
                self._take()
            case "MODUS":
                self._rules = mode(fields["modus"])
                self._either("KONTRA", "kontra")
            case "MODEL":
                self._hand = [card for card in fields["spielerhand"] if card is not None]
                self._look(fields)
            case "ENDE":
                self.games += 1
                leave = Say("BEENDEN", {"nichts": EMPTY} if self._gives_later else {})
                self._may(leave, optional=not self.had_enough)

    def _either(self, name: str, field: str) -> None:
        yes, no = (Say(name, {field: word}) for word in ("JA", "NEIN"))
        self._may(*((yes, no) if self.random.random() < _BOLD else (no, yes)))

    def _look(self, fields: Fields) -> None:
        match fields["flag"]:
            case "ERSTE3":
                self._either("ERSTE3", "klopft")
            case "SPIELSTDU":
                self._bid()
            case "SPIEL" if self._hand:
                self._play(fields)

    def _bid(self) -> None:
        *higher, nichts = (Say("SPIELSTDU", {"modus": modus}) for modus in bids(self._hand, self._best))
        ways = [*self.random.sample(higher, len(higher)), nichts]
        self._may(*(ways if self.random.random() < 2 * _BOLD else reversed(ways)))

    def _take(self) -> None:
        if self._gives_later:
            self._either(HOCHZEIT, "nimmt")
            return
        card = self.random.choice(self._hand)
        yes, no = Say(HOCHZEIT, {"nimmt": "JA", "karte": card}), Say(HOCHZEIT, {"nimmt": "NEIN"})
        self._may(*((yes, no) if self.random.random() < _BOLD else (no, yes)))

    def _said(self, said: Say) -> None:
        is_offer = said.name == "SPIELSTDU" and said.fields["modus"] == HOCHZEIT
        is_taken = said.name == HOCHZEIT and said.fields["nimmt"] == "JA" and "karte" not in said.fields
        if is_offer or is_taken:
            self._choose([Say("KARTE", {"karte": card}) for card in self._hand])

    def _leads(self, aim: Aim, way: Say) -> bool:
        if way.name != "SPIELSTDU":
            return False
        if aim.name in (HOCHZEIT, "KARTE"):
            return bool(way.fields["modus"] == HOCHZEIT)
        # Without a game no player is asked for Kontra or for a card.
        return aim.name in ("KONTRA", "MODEL") and way.fields["modus"] not in (NICHTS, HOCHZEIT)

    def _play(self, fields: Fields) -> None:
        table: list[str | None] = fields["tisch"]
        behind = (table[(self._seat + step) % SEATS] for step in range(1, SEATS))
        laid = [card for card in behind if card is not None]
        self._choose([self._laying(card, fields) for card in playable(self._rules, self._hand, laid)])

    def _laying(self, card: str, fields: Fields) -> Say:
        left: list[Any] = [other for other in self._hand if other != card]
        table = [*fields["tisch"]]
        table[self._seat] = card
        cards = {
            "spielerhand": left + [None] * (HAND - len(left)),
            "tisch": table,
            "letzter_stich": [*fields["letzter_stich"]],
        }
        return Say("MODEL", {"flag": "SPIEL", **cards})
