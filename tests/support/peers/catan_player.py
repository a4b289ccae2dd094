"""A Catan player."""

from __future__ import annotations

import json
from typing import Any

from kiebitz.dissectors.conformance.bots import SendMessage
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.grammar.grammar import Decoded
from peers.program import Died
from peers.shell import BotPlayer


class CatanPlayer(BotPlayer):
    protocol = "catan"

    _is_turn_s_first = True
    _again = b""
    """The message to repeat once it is confirmed."""

    def misread(self, read: Decoded) -> None:
        self.dies("dies-on-broken-json", read)
        self.dies("dies-on-an-unknown-message", read, "unknown-message")

    def told(self, name: str, fields: Fields) -> None:
        self.over |= name == "Hallo" and fields["Protokoll"] != "1.0"
        if name == "Fehler" and self.has("dies-when-refused"):
            raise Died(fields["Meldung"])
        if name == "OK":
            self.says += [self._again] if self._again else []
            self._again = b""

    def altered(self, said: SendMessage, data: bytes) -> list[bytes]:
        name, body = self._wrong(said.name, dict(said.fields))
        text = json.dumps({name: body}, ensure_ascii=False, indent=1 if self.has("breaks-lines") else None)
        data = text.encode("latin-1", "replace") if self.has("writes-latin-1") else text.encode()
        data += b"\n"
        if name == "Würfeln" and (self.has("rolls-twice") or self.has("dies-when-refused")):
            self._again = data
        if name == "Zug beenden" and self.has("ends-others-turns"):
            self._again = data
        return [data]

    def _wrong(self, name: str, body: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        match name:
            case "Spieler" if self.has("wants-an-odd-colour"):
                body["Farbe"] = "Lila"
            case "Bauen" if self.has("forgets-what-to-build"):
                del body["Typ"]
            case "Bauen" if body["Typ"] == "Dorf" and self.has("builds-between-two-fields"):
                body["Ort"] = body["Ort"][:2]
            case "Bauen" if body["Typ"] == "Straße" and self.has("writes-strasse"):
                body["Typ"] = "Strasse"
            case "Würfeln":
                self._is_turn_s_first = True
            case "Zug beenden" if self._is_turn_s_first and self.has("builds-without-cards"):
                # It does not ask what it has, once in each turn.
                self._is_turn_s_first = False
                return "Entwicklungskarte kaufen", {}
            case "Karten abgeben" if self.has("discards-too-few"):
                kind = next(iter(body["Abgeben"]))
                body["Abgeben"] = {**body["Abgeben"], kind: body["Abgeben"][kind] - 1}
            case "Seehandel" if self.has("pays-too-little"):
                body["Angebot"] = dict.fromkeys(body["Angebot"], 1)
            case "Handel annehmen" if self.has("accepts-another-offer"):
                body["Handel id"] += 100
        return name, body
