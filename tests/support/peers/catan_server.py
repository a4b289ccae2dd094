"""A Catan server: connections, the lobby and the chat; `catan_table.py` has the game."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from typing import Any

from catan_island import Truth

from kiebitz.dissectors.protocols.catan.words import FARBEN, KARTEN, ROHSTOFFE
from peers.catan_table import REQUESTS, Table, TalkingServer
from peers.catan_words import Refused
from peers.program import Died, LineServer, Link, Setup

FEWEST, MOST = 3, 4
LONGEST_TEXT = 1000


class CatanServer(LineServer):
    """A server that begins once all connected players are ready, `players` at least (three by default)."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._told = TalkingServer(self._speak, self)
        self._by_name: dict[str, Link] = {}
        self._players: dict[Link, int] = {}
        self._ids = count(1)
        self._table: Table | None = None

    # Connections.

    def welcome(self, link: Link) -> None:
        self._send(link, "Hallo", {"Version": "Probestück 1.0 (Kiebitze)", "Protokoll": "1.0"})

    def leave(self, link: Link) -> None:
        player = self._players.pop(link, None)
        if player is None:
            return
        if self.has("tells-nobody-who-is-gone"):
            self._told.ids.pop(str(link.number))
            return
        self._told.hang_up(str(link.number))
        self._told.chosen.pop(player, None)
        self._told.colours.pop(player, None)
        if self._table is not None:
            points = self._told.truth.points
            best = max(self._told.names, key=lambda other: points[other], default=player)
            self._end("Die Verbindung zu einem Spieler ist verloren.", best)

    def farewell(self, link: Link, why: str) -> None:
        self._refuse(link, why)

    def _speak(self, client: str, data: bytes) -> None:
        if self.has("writes-latin-1"):
            data = data.decode().encode("latin-1", "replace")
        if self.has("forgets-line-ends") and data.startswith(b'{"Chat'):
            data = data.removesuffix(b"\n") + b" " * 2
        if self.has("confirms-twice") and data == b'{"OK":{}}\n':
            data *= 2
        if self.has("confirms-nothing") and data == b'{"OK":{}}\n':
            return
        self._by_name[client].send(data)

    def _send(self, link: Link, name: str, body: Mapping[str, Any]) -> None:
        text = json.dumps({name: body}, ensure_ascii=False, separators=(",", ":"))
        link.send(text.encode() + b"\n")

    def _refuse(self, link: Link, why: str) -> None:
        self._send(link, "Fehler", {"Meldung": why})

    # Requests.

    def line(self, link: Link, line: bytes) -> None:
        if not line.strip():
            return
        try:
            name, body = self._read(line)
            if self.has("dies-on-a-missing-attribute"):
                self._look_up(name, body)
            self._request(link, name, body)
        except Refused as refusal:
            if self.has("closes-all"):
                self.give_up(link, str(refusal))
            elif not self.has("refuses-in-silence"):
                self._refuse(link, str(refusal))
        if self._table is not None and self._table.winner is not None:
            winner = self._table.winner
            self._end(f"Spieler {self._told.chosen[winner]} hat das Spiel gewonnen.", winner)

    def _read(self, line: bytes) -> tuple[str, Mapping[str, Any]]:
        """Return a request's name and attributes. Raises Refused."""
        self.text(line)
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as problem:
            if self.has("dies-on-broken-json"):
                raise Died from problem
            raise Refused("Das ist kein JSON") from problem
        if not isinstance(value, dict) or len(value) != 1:
            raise Refused("Ein Objekt mit einer Nachricht wird erwartet")
        ((name, body),) = value.items()
        if not isinstance(body, dict):
            raise Refused("Die Nachricht ist kein Objekt")
        return name, body

    def _look_up(self, name: str, body: Mapping[str, Any]) -> None:
        for key in {"Bauen": ("Typ", "Ort"), "Chatnachricht senden": ("Nachricht",)}.get(name, ()):
            if key not in body:
                raise Died(key)

    def _request(self, link: Link, name: str, body: Mapping[str, Any]) -> None:
        if name == "Hallo" and link not in self._players:
            self._join(link)
            return
        player = self._players.get(link)
        if player is None:
            raise Refused("Erst Hallo")
        match name:
            case "Chatnachricht senden":
                self._chat(player, body)
            case "Spieler":
                self._configure(player, body)
            case "Spiel starten":
                self._ready(player)
            case _ if name in REQUESTS and self._table is not None and self._table.winner is None:
                REQUESTS[name](self._table, player, body)
            case _ if self.has("dies-on-an-unknown-message"):
                raise Died(name)
            case _:
                raise Refused(f"{name[:LONGEST_TEXT]} geht jetzt nicht")

    # The lobby.

    def _join(self, link: Link) -> None:
        if self._table is not None or len(self._players) >= MOST:
            self.give_up(link, "Das Spiel hat schon begonnen, oder es sind alle da")
            return
        player, told = next(self._ids), self._told
        if self.has("numbers-all-alike"):
            player = 1
        key = str(link.number)
        self._players[link], self._by_name[key] = player, link
        told.ids[key], told.names[player] = player, key
        told.statuses[player] = "Spiel starten"
        self._send(link, "Willkommen", {"id": player})
        for other in told.names:
            if other != player:
                told.show(other, told_to=[player])
        told.update()
        self.breathe()

    def _text(self, body: Mapping[str, Any], key: str) -> str:
        value = body.get(key)
        if not isinstance(value, str) or not 0 < len(value) <= LONGEST_TEXT or not _is_unicode(value):
            raise Refused(f"{key} fehlt, oder ist kein Text, oder zu lang")
        return value

    def _chat(self, player: int, body: Mapping[str, Any]) -> None:
        text = self._text(body, "Nachricht")
        visibility = [player] if self.has("answers-only-who-asks") else None
        with self._told.asked(player, "Chatnachricht senden", body):
            self._told.tell("Chatnachricht", {"Absender": player, "Nachricht": text}, told_to=visibility)
        self.breathe()

    def _configure(self, player: int, body: Mapping[str, Any]) -> None:
        name, colour = self._text(body, "Name"), body.get("Farbe")
        if self._told.statuses[player] != "Spiel starten":
            raise Refused("Das Spiel ist schon gestartet")
        if colour not in FARBEN:
            raise Refused("Keine solche Farbe")
        with self._told.asked(player, "Spieler", body):
            self._told.chosen[player], self._told.colours[player] = name, str(colour)

    def _ready(self, player: int) -> None:
        told = self._told
        if told.statuses[player] != "Spiel starten" or player not in told.colours:
            raise Refused("Erst Name und Farbe, und nur einmal")
        started = [other for other in told.names if told.statuses[other] == "Wartet auf Spielbeginn"]
        is_taken = told.colours[player] in [told.colours[other] for other in started]
        if is_taken and not self.has("lets-colours-be-shared"):
            raise Refused("Farbe bereits vergeben")
        with told.asked(player, "Spiel starten", {}):
            told.statuses[player] = "Wartet auf Spielbeginn"
        if len(started) + 1 == len(told.names) >= max(self.setup.players, FEWEST):
            self._begin()

    def _begin(self) -> None:
        told = self._told
        players = [*told.names]
        told.truth = Truth(
            {player: dict.fromkeys(ROHSTOFFE, 0) for player in players},
            {player: dict.fromkeys(KARTEN, 0) for player in players},
            dict.fromkeys(players, 0),
            knights=dict.fromkeys(players, 0),
        )
        told.tell("Spiel gestartet", {"Karte": told.karte()})
        self._table = Table(told, self, self.setup.points)
        self._table.begin()
        self.breathe()

    def _end(self, why: str, winner: int) -> None:
        self._table = None
        self._told.tell("Spiel beendet", {"Nachricht": why, "Sieger": winner})
        self.count_game()
        if self.over:
            self.close_all()
            return
        self._told.statuses = dict.fromkeys(self._told.names, "Spiel starten")
        self._told.update()


def _is_unicode(text: str) -> bool:
    with suppress(UnicodeEncodeError):
        return bool(text.encode())
    return False
