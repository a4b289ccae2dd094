"""A Catan server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kiebitz.dissectors.conformance.bots import SendMessage
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.protocols.catan.simulated_server import CatanServer as Simulated
from peers.program import Link, Setup
from peers.shell import Host

FORGIVEN = {
    "lets-anybody-move": "Du bist nicht an der Reihe",
    "builds-without-paying": "Zu wenig Rohstoffe",
    "builds-anywhere": "Dort kann nicht gebaut werden",
    "trades-cheaply": "Falscher Kurs",
    "lets-few-be-discarded": "Falsche Anzahl",
    "lets-colours-be-shared": "Farbe bereits vergeben",
}
"""Fault -> the reason for which requests are not refused."""


class CatanServer(Host):
    protocol = "catan"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        assert isinstance(self.simulated, Simulated)
        self.simulated.points = setup.points
        self._simulated = self.simulated
        self._ids: dict[int, int] = {}
        """Players by connection."""
        self._asked: dict[str, Any] = {}

    def leave(self, link: Link) -> None:
        self._ids.pop(link.number, None)
        if not self.has("tells-nobody-who-is-gone"):
            super().leave(link)

    def farewell(self, link: Link, why: str) -> None:
        self.send(link, SendMessage("Fehler", {"Meldung": why}))

    def misread(self, link: Link, read: Decoded, frame: bytes) -> None:
        self.dies("dies-on-broken-json", read)
        self.dies("dies-on-a-missing-attribute", read, "missing-attribute")
        self.dies("dies-on-an-unknown-message", read, "unknown-message")
        if not frame.strip():
            return
        if self.has("builds-anywhere") and read.row is not None and "Ort" in read.fields:
            self._send([*self._built(read.fields, link.number), SendMessage("OK", {}, link.number)])
        else:
            self._refuse(link, read.violations[0].text)

    def request(self, link: Link, name: str, fields: dict[str, Any]) -> None:
        if link.number not in self._ids and name != "Hallo":
            self._refuse(link, "Erst Hallo")
            return
        self._asked = fields
        game = self._simulated.game
        if game is None or not self.has("forgets-the-robber"):
            super().request(link, name, fields)
            return
        robber, game.island.robber = game.island.robber, None if name == "Würfeln" else game.island.robber
        super().request(link, name, fields)
        game.island.robber = robber if name == "Würfeln" else game.island.robber

    def _refuse(self, link: Link, why: str) -> None:
        if self.has("closes-all"):
            self.give_up(link, why)
        elif not self.has("refuses-in-silence"):
            self.farewell(link, why)

    def altered(self, said: SendMessage, batch: Sequence[SendMessage]) -> Iterable[SendMessage]:
        fields, to = dict(said.fields), said.to
        match said.name:
            case "Fehler":
                yield from self._forgiven(fields["Meldung"], to)
                return
            case "OK" if self.has("confirms-nothing"):
                return
            case "OK" if self.has("confirms-twice"):
                yield said
            case "Willkommen":
                self._ids[to] = fields["id"]
                if self.has("numbers-all-alike"):
                    fields["id"] = 1
            case "Chatnachricht" if fields.get("Absender") != self._ids[to]:
                if self.has("answers-only-who-asks"):
                    return
            case "Statusupdate":
                self._alter_status(fields, batch)
            case "Ertrag" | "Kosten" if isinstance(fields["Rohstoffe"], int):
                if self.has("shows-what-is-stolen"):
                    fields["Rohstoffe"] = next(
                        one.fields["Rohstoffe"]
                        for one in batch
                        if (one.name, one.fields["Spieler"]) == (said.name, fields["Spieler"])
                        and isinstance(one.fields["Rohstoffe"], dict)
                    )
            case "Kosten" if self.has("charges-too-much") and any(one.name == "Bauvorgang" for one in batch):
                first, *_ = fields["Rohstoffe"]
                fields["Rohstoffe"] = {**fields["Rohstoffe"], first: fields["Rohstoffe"][first] + 1}
        yield SendMessage(said.name, fields, to)

    def _forgiven(self, why: str, to: int) -> Iterable[SendMessage]:
        if self.has(next((fault for fault, reason in FORGIVEN.items() if reason == why), "no fault")):
            if self.has("builds-anywhere"):
                yield from self._built(self._asked, to)
            yield SendMessage("OK", {}, to)
        elif to in self._at:
            self._refuse(self._at[to], why)

    def _built(self, asked: dict[str, Any], builder: int) -> Iterable[SendMessage]:
        building = {"Eigentümer": self._ids[builder], "Typ": asked["Typ"], "Ort": asked["Ort"]}
        return [SendMessage("Bauvorgang", {"Gebäude": building}, to) for to in self._ids]

    def _alter_status(self, fields: dict[str, Any], batch: Sequence[SendMessage]) -> None:
        player = fields["Spieler"] = dict(fields["Spieler"])
        if player.get("Siegpunkte") and self.has("counts-points-wrong"):
            player["Siegpunkte"] += 1
        if isinstance(player.get("Rohstoffe"), int) and self.has("shows-hands"):
            player["Rohstoffe"] = next(
                shown["Rohstoffe"]
                for shown in (one.fields["Spieler"] for one in batch if one.name == "Statusupdate")
                if shown["id"] == player["id"] and isinstance(shown.get("Rohstoffe"), dict)
            )

    def written(self, said: SendMessage, data: bytes) -> bytes:
        if said.name == "Chatnachricht" and self.has("forgets-line-ends"):
            data = data.removesuffix(b"\n") + b"  "
        return data.decode().encode("latin-1", "replace") if self.has("writes-latin-1") else data
