"""An Okey player."""

from __future__ import annotations

from kiebitz.dissectors.conformance.bots import SendMessage
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.protocols.okey.tiles import COLOURS
from peers.program import Died, Lines
from peers.shell import BotPlayer

DRAW = b"DRAW m\r\n"


class OkeyPlayer(BotPlayer):
    protocol = "okey"

    def lines(self) -> Lines:
        return Lines(bare_cr=True)

    def told(self, name: str, fields: Fields) -> None:
        if name == "CATS" and '"' in fields["msg"] and self.has("dies-on-quoted-chat"):
            raise Died(fields["msg"])

    def altered(self, said: SendMessage, data: bytes) -> list[bytes]:
        match said.name:
            case "+PING" if self.has("answers-no-ping"):
                return []
            case "+STAT" if self.has("draws-out-of-turn"):
                is_mine = self.latest["STAT"]["currentplayeridx"] == self.latest["STRT"]["playeridx"]
                return [data] if is_mine else [data, DRAW]
            case "DRAW" if self.has("draws-twice"):
                return [data, DRAW]
            case "DRAW" | "PUTT" if self.has("writes-in-lower-case"):
                return [data.lower()]
            case "PUTT":
                return [self._put(said.fields["tile"], said.fields["deck"])]
        return [data]

    def _put(self, tile: str, deck: list[str]) -> bytes:
        if self.has("puts-what-it-has-not"):
            tiles = (f"{number}:{colour}" for colour in COLOURS for number in range(1, 14))
            tile = next(other for other in tiles if other not in (*deck, tile))
        if self.has("keeps-its-tile"):
            deck = [*deck, tile]
        if self.has("sends-no-deck"):
            return f"PUTT {tile}\r\n".encode()
        return self.encoded("PUTT", {"tile": tile, "deck": deck})
