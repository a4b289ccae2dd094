"""An Okey server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from kiebitz.dissectors.conformance.bots import SendMessage
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.protocols.okey.simulated_server import OkeyServer as Simulated
from kiebitz.dissectors.protocols.okey.tiles import SEATS, counted, kind
from peers.program import Link, Setup
from peers.shell import Host

SILENCE_S = 15.0
"""Idle timeout of a client in seconds."""


class OkeyServer(Host):
    protocol = "okey"
    bare_cr = True

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        assert isinstance(self.simulated, Simulated)
        self._names = self.simulated.names
        self._heard: dict[Link, float] = {}
        self._decks: dict[int, list[str]] = {}
        self._asked: dict[str, Any] = {}

    # Connections.

    def welcome(self, link: Link) -> None:
        super().welcome(link)
        self._heard[link] = self.now
        self._watch(link)

    def _watch(self, link: Link) -> None:
        if link in self.links and self.now - self._heard[link] >= SILENCE_S:
            self.lose(link)
            link.close()
        elif link in self.links and not self.has("never-times-out"):
            self.after(1.0, partial(self._watch, link))

    def unended(self, link: Link, rest: bytes) -> None:
        self.line(link, rest)

    def leave(self, link: Link) -> None:
        if self.has("waits-for-who-is-gone"):
            super().request(link, "NAME", {"nickname": "gone"})
        elif not self.has("forgets-nobody"):
            super().leave(link)

    # Requests.

    def message(self, link: Link, frame: bytes) -> None:
        self._heard[link] = self.now
        super().message(link, frame)

    def misread(self, link: Link, read: Decoded, frame: bytes) -> None:
        self.dies("dies-on-an-empty-line", read, "empty-line")
        self.dies("dies-on-a-missing-argument", read, "missing-field")
        if frame.startswith(b"JLOB"):
            self.dies("dies-on-a-bad-number", read, "bad-number")
        if not frame.startswith(b"+"):
            self.dies("dies-on-an-unknown-word", read, "unknown-message")
        if not frame.strip() and self.has("closes-all"):
            self.give_up(link, "an empty line")

    def request(self, link: Link, name: str, fields: dict[str, Any]) -> None:
        if name == "PUTT" and link.number in self._decks:
            fields = self._put(link, self._decks[link.number], fields)
        self._asked = fields
        super().request(link, name, fields)

    def _put(self, link: Link, held: list[str], fields: dict[str, Any]) -> dict[str, Any]:
        """Return a put as the simulated server may accept it."""
        tile, deck = fields["tile"], fields["deck"]
        if self.has("lets-anybody-win"):
            super().request(link, "WINC", {})
            return {
                "tile": "0:BLACK",
                "deck": [f"{n}:{colour}" for colour in ("RED", "BLUE") for n in range(1, 8)],
            }
        same = next((other for other in held if tile is not None and kind(other) == kind(tile)), None)
        is_odd = same is None
        left = [*held]
        left.remove(same or held[0])
        is_other = counted(left) != counted(deck)
        if (is_odd and self.has("takes-any-tile")) or (
            is_other and not is_odd and self.has("takes-any-deck")
        ):
            return {"tile": held[0] if is_odd else tile, "deck": left}
        return fields

    # What it sends.

    def altered(self, said: SendMessage, batch: Sequence[SendMessage]) -> Iterable[SendMessage]:
        fields, to = dict(said.fields), said.to
        match said.name:
            case "+LPLA" if self.has("answers-twice"):
                yield said
            case "+LOGI" | "+NAME" if self.has("gives-names-twice"):
                fields["actualname"] = self._asked["nickname"]
            case "+JLOB" if self.has("lets-a-fifth-in"):
                fields["joinsuccessful"] = True
            case "CATS" if fields["messagetype"] == "w" and self.has("whispers-to-all"):
                return
            case "+CATC" if fields["messagetype"] == "w" and self.has("whispers-to-all"):
                told = {"messagetype": "w", "msg": fields["msg"], "sender": self._names[to]}
                yield from (SendMessage("CATS", told, other) for other in self._names if other != to)
                fields["nicknameexists"] = True
            case "STRT":
                self._decks[to] = [*fields["startdeck"]]
                if self.has("deals-too-little"):
                    fields["startdeck"] = fields["startdeck"][1:]
                if self.has("numbers-all-alike"):
                    fields["playeridx"] = 0
            case "STAT" if self.has("tells-the-next-but-one"):
                fields["currentplayeridx"] = (fields["currentplayeridx"] + 1) % SEATS
            case "+DRAW" if fields["tile"] is not None:
                self._decks[to].append(fields["tile"])
                if self.has("shows-what-is-drawn"):
                    yield from (SendMessage("+DRAW", fields, one.to) for one in batch if one.name == "STAT")
            case "+DRAW" if self.has("lets-anybody-draw"):
                fields["tile"] = "1:RED"
            case "+WINC":
                self._decks[to] = [*fields["deck"]]
                if self.has("lets-anybody-win") and "tile" in self._asked:
                    return
            case "+PUTT" if fields["valid"]:
                held = self._decks[to]
                held.remove(next(tile for tile in held if kind(tile) == kind(self._asked["tile"])))
        yield SendMessage(said.name, fields, to)

    def written(self, said: SendMessage, data: bytes) -> bytes:
        return data.replace(b'\\"', b'"') if self.has("escapes-nothing") else data
