"""A Mäxchen player."""

from __future__ import annotations

import re

from kiebitz.dissectors.conformance.bots import SendMessage
from kiebitz.dissectors.grammar.grammar import Decoded
from peers.shell import BotPlayer


class MaexchenPlayer(BotPlayer):
    protocol = "maexchen"

    _used = b""

    def misread(self, read: Decoded) -> None:
        self.dies("dies-on-an-unknown-word", read, "unknown-message")

    def altered(self, said: SendMessage, data: bytes) -> list[bytes]:
        if said.name in ("ROLL", "SEE"):
            if self.has("forgets-the-token"):
                data = said.name.encode()
            if self.has("keeps-its-token"):
                word, _, token = data.partition(b";")
                self._used = self._used or token
                data = b";".join((word, self._used))
        if said.name == "ANNOUNCE":
            if self.has("announces-no-dice"):
                data = re.sub(rb";.*?;", b";7,7;", data)
            if self.has("is-silent-after-the-roll"):
                return []
            if self.has("answers-twice"):
                return [data, data]
        return [data + b"\r\n" * self.has("ends-lines")]
