"""A server of Knobeln, the plug-in of the tests over UDP: who comes is taken in, and rolls once."""

from __future__ import annotations

from kiebitz.dissectors.model import Transport
from peers.program import MOST_CLIENTS, Died, Link, Server, Setup


class KnobelnServer(Server):
    transport: Transport = "udp"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._players: dict[str, Link] = {}

    def hear(self, link: Link, data: bytes) -> None:
        match self.text(data).split(" "):
            case ["HALLO", name] if name and (name in self._players or len(self._players) < MOST_CLIENTS):
                self._players[name] = link
                link.send(b"WILLKOMMEN")
                # The dice are made so that the same players always roll the same.
                pips = "sieben" if self.has("rolls-a-word") else len(name) % 6 + 1
                for each in self._players.values():
                    each.send(f"WURF {name} {pips}".encode())
                self.breathe()
            case [word, *_] if self.has("dies-on-an-unknown-word") and word != "HALLO":
                raise Died(word)
