"""A Schafkopf bot: bids what the hand allows, and follows suit."""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.conformance.bots import Bot, SendMessage, TargetMessage
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.protocols.schafkopf.cards import (
    HAND,
    HOCHZEIT,
    NICHTS,
    SEATS,
    Mode,
    bids,
    mode,
    playable,
)
from kiebitz.dissectors.protocols.schafkopf.grammar import EMPTY

_BOLD = 0.25
"""Probability of knocking, saying Kontra, or taking a Hochzeit; that of a bid is twice as high."""


class SchafkopfBot(Bot):
    """A Schafkopf bot for one seat; each round counts as a game."""

    def __init__(self, name: str, seed: int = 1, games: int = 0) -> None:
        super().__init__(name, seed, games)
        self._seat = 0
        self._best = NICHTS
        self._rules: Mode = mode(NICHTS)
        self._hand: list[str] = []
        self._sends_card_later = False
        """True if the server expects the card of a Hochzeit in a message of its own."""

    def _begin(self) -> None:
        """Wait: the server sends the first message."""
        self._sends_card_later = False

    def _receive(self, name: str, fields: Fields) -> None:
        match name:
            case "NAME":
                self._send("NAME", name=self.name)
            case "ID":
                self._seat = fields["id"]
            case "BESTESSPIEL":
                self._best = fields["modus"]
            case "HOCHZEIT":
                self._sends_card_later = "nichts" in fields
                self._take()
            case "MODUS":
                self._rules = mode(fields["modus"])
                self._queue_yes_or_no("KONTRA", "kontra")
            case "MODEL":
                self._hand = [card for card in fields["spielerhand"] if card is not None]
                self._process_model(fields)
            case "ENDE":
                self.games += 1
                leave = SendMessage("BEENDEN", {"nichts": EMPTY} if self._sends_card_later else {})
                self._queue(leave, optional=not self.is_finished)

    def _queue_yes_or_no(self, name: str, field: str) -> None:
        yes, no = (SendMessage(name, {field: word}) for word in ("JA", "NEIN"))
        self._queue(*((yes, no) if self.random.random() < _BOLD else (no, yes)))

    def _process_model(self, fields: Fields) -> None:
        match fields["flag"]:
            case "ERSTE3":
                self._queue_yes_or_no("ERSTE3", "klopft")
            case "SPIELSTDU":
                self._bid()
            case "SPIEL" if self._hand:
                self._play(fields)

    def _bid(self) -> None:
        *higher, nichts = (
            SendMessage("SPIELSTDU", {"modus": modus}) for modus in bids(self._hand, self._best)
        )
        choices = [*self.random.sample(higher, len(higher)), nichts]
        self._queue(*(choices if self.random.random() < 2 * _BOLD else reversed(choices)))

    def _take(self) -> None:
        if self._sends_card_later:
            self._queue_yes_or_no(HOCHZEIT, "nimmt")
            return
        card = self.random.choice(self._hand)
        yes, no = (
            SendMessage(HOCHZEIT, {"nimmt": "JA", "karte": card}),
            SendMessage(HOCHZEIT, {"nimmt": "NEIN"}),
        )
        self._queue(*((yes, no) if self.random.random() < _BOLD else (no, yes)))

    def _on_sent(self, sent: SendMessage) -> None:
        is_offer = sent.name == "SPIELSTDU" and sent.fields["modus"] == HOCHZEIT
        is_taken = sent.name == HOCHZEIT and sent.fields["nimmt"] == "JA" and "karte" not in sent.fields
        if is_offer or is_taken:
            self._queue_any([SendMessage("KARTE", {"karte": card}) for card in self._hand])

    def _leads_to(self, target_message: TargetMessage, choice: SendMessage) -> bool:
        if choice.name != "SPIELSTDU":
            return False
        if target_message.name in (HOCHZEIT, "KARTE"):
            return bool(choice.fields["modus"] == HOCHZEIT)
        # Without a game no player is asked for Kontra or for a card.
        return target_message.name in ("KONTRA", "MODEL") and choice.fields["modus"] not in (NICHTS, HOCHZEIT)

    def _play(self, fields: Fields) -> None:
        table: list[str | None] = fields["tisch"]
        behind = (table[(self._seat + step) % SEATS] for step in range(1, SEATS))
        laid = [card for card in behind if card is not None]
        self._queue_any(
            [self._card_message(card, fields) for card in playable(self._rules, self._hand, laid)]
        )

    def _card_message(self, card: str, fields: Fields) -> SendMessage:
        left: list[Any] = [other for other in self._hand if other != card]
        table = [*fields["tisch"]]
        table[self._seat] = card
        cards = {
            "spielerhand": left + [None] * (HAND - len(left)),
            "tisch": table,
            "letzter_stich": [*fields["letzter_stich"]],
        }
        return SendMessage("MODEL", {"flag": "SPIEL", **cards})
