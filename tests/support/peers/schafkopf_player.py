"""A Schafkopf player."""

from __future__ import annotations

from kiebitz.dissectors.conformance.bots import SendMessage
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.protocols.schafkopf.cards import PACK, mode, playable
from peers.frames import Pakete
from peers.program import Died
from peers.shell import BotPlayer


class SchafkopfPlayer(BotPlayer):
    protocol = "schafkopf"
    frames = Pakete

    def misread(self, read: Decoded) -> None:
        self.dies("dies-on-an-unknown-flag", read, "unknown-flag")

    def told(self, name: str, fields: Fields) -> None:
        if name == "KONTO" and fields["konto"] < 0 and self.has("dies-without-money"):
            raise Died("debts")

    def altered(self, said: SendMessage, data: bytes) -> list[bytes]:
        match said.name:
            case "KONTRA" if self.has("forgets-end"):
                return [data.removesuffix(b"!END\n")]
            case "ERSTE3" if self.has("knocks-undecided"):
                return [b"!ERSTE3\nVIELLEICHT\n!END\n"]
            case "SPIELSTDU" if self.has("bids-what-there-is-not"):
                return [b"!SPIELSTDU\nRAMSCH\n!END\n"]
            case "MODEL":
                return [self._play(said.fields)] * (1 + self.has("plays-twice"))
        return [data]

    def _play(self, fields: Fields) -> bytes:
        """Return the MODEL with a card that it should not play, or with a wrong hand."""
        seat, before = self.latest["ID"]["id"], self.latest["MODEL"]
        hand = [card for card in before["spielerhand"] if card is not None]
        behind = [before["tisch"][(seat + step) % 4] for step in range(1, 4)]
        order = [card for card in behind if card is not None]
        card = fields["tisch"][seat]
        if self.has("does-not-follow-suit"):
            allowed = playable(mode(self.latest["MODUS"]["modus"]), hand, order)
            card = next((other for other in hand if other not in allowed), card)
        left = [other for other in hand if other != card]
        if self.has("plays-what-it-has-not"):
            left = [other for other in hand if other != fields["tisch"][seat]]
            card = next(other for other in sorted(PACK) if other not in hand and other not in order)
        if self.has("keeps-its-card"):
            left = hand
        table = [*before["tisch"][:seat], card, *before["tisch"][seat + 1 :]]
        model = {**fields, "spielerhand": left + [None] * (6 - len(left)), "tisch": table}
        return self.encoded("MODEL", model)
