"""A CGML player."""

from __future__ import annotations

from typing import Any

from kiebitz.dissectors.conformance.bots import SendMessage
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.protocols.cgml.cards import PACK, Rules
from peers.frames import Blocks
from peers.program import Setup
from peers.shell import BotPlayer


class CgmlPlayer(BotPlayer):
    protocol = "cgml"
    frames = Blocks

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._hand: list[str] = []
        self._table: list[str] = []

    def misread(self, read: Decoded) -> None:
        self.dies("dies-on-broken-xml", read)
        self.dies("dies-on-an-unknown-element", read, "unknown-message")

    def told(self, name: str, fields: Fields) -> None:
        match name, fields.get("type"):
            case "newgame", _:
                self._hand, self._table = [], []
            case "dial", "cards" if fields["to"] == "hand":
                self._hand += fields["card"]
            case "playcard", "info" if fields.get("to") == "desk":
                self._table += fields["card"]
            case "round", _:
                self._table = []

    def altered(self, said: SendMessage, data: bytes) -> list[bytes]:
        fields = {**said.fields}
        match said.name, said.fields.get("type"):
            case (("newgroup" | "newgame"), _) if self.has("answers-for-another"):
                fields["player"] = {**fields["player"], "id": fields["player"]["id"] + 1}
            case "licite", _:
                return [self._bid(fields, data)]
            case "gametype", _ if self.has("names-no-trumps"):
                fields.pop("trumf", None)
            case "flek", _ if self.has("lowers-the-level"):
                return [data.replace(fields["flek"].encode(), b"0")]
            case "flek", _ if self.has("shouts"):
                return [data.upper()]
            case "playcard", _:
                return self._play(fields)
        return [self.encoded(said.name, fields)]

    def _bid(self, fields: Fields, data: bytes) -> bytes:
        asked = self.latest["licite"].get("licite")
        if asked and self.has("repeats-the-bid"):
            data = self.encoded("licite", {**fields, "licite": asked})
        if not asked and self.has("bids-what-there-is-not"):
            data = data.replace(f">{fields['licite']}<".encode(), b">8<")
        return data.removesuffix(b"\r\n") if self.has("forgets-the-empty-line") else data

    def _play(self, fields: dict[str, Any]) -> list[bytes]:
        cards = fields["card"]
        self._hand = [card for card in self._hand if card not in cards]
        if fields["to"] == "talon":
            some = cards[:1] if self.has("discards-too-few") else cards
            return [self.encoded("playcard", {**fields, "card": some})]
        card = cards[0]
        if self.has("does-not-follow"):
            info = self.latest["gametype"]
            rules = Rules(info["licite"], (info.get("trumf") or "")[:1].upper() or None)
            allowed = rules.allowed(self._table, [*self._hand, card])
            card = next((other for other in self._hand if other not in allowed), card)
            self._hand = [other for other in (*self._hand, *cards) if other != card]
            self.done = SendMessage("playcard", {**fields, "card": [card]})
        if self.has("plays-what-it-has-not"):
            card = next(other for other in PACK if other not in (*self._hand, *self._table, card))
        self._table.append(card)
        data = self.encoded("playcard", {**fields, "card": [card]})
        if self.has("leaves-elements-open"):
            data = data.replace(b"</playcard>", b"")
        return [data] * (1 + self.has("answers-twice"))
