"""A Mäxchen server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from kiebitz.dissectors.conformance.bots import SendMessage
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.model import Transport
from kiebitz.dissectors.protocols.maexchen.dice import MIA, ROLLS, beats
from kiebitz.dissectors.protocols.maexchen.simulated_server import MaexchenServer as Simulated
from peers.program import MOST_CLIENTS, Died, Link, Setup
from peers.shell import Host

LONGEST_NAME = 20


class MaexchenServer(Host):
    transport: Transport = "udp"
    protocol = "maexchen"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        assert isinstance(self.simulated, Simulated)
        self.simulated.answer_timeout_s = 10**6 if self.has("waits-for-ever") else setup.window
        self._clients: dict[str, tuple[int, str]] = {}
        """Connection and IP address of each player, by name."""
        self._first: dict[int, int] = {}
        """The connection on which the player of each connection registered first."""
        self._tokens: dict[int, str] = {}
        """The last token sent on each connection."""
        self._joined: dict[str, int] = {}
        self._twice: list[int] = []
        self._claims: list[tuple[str, str]] = []
        """Claims of which the simulated server was told another one."""
        self._last: dict[str, Any] = {"name": "", "dice": ""}
        """The last announcement in this round."""
        self._seeing = ""
        self._scored: Counter[str] = Counter()
        """Difference between the sent and the true score of each player."""

    # What it accepts.

    def hear(self, link: Link, data: bytes) -> None:
        if link.number not in self._at:
            self.welcome(link)
        self.text(data)
        self.message(link, data)

    def misread(self, link: Link, read: Decoded, frame: bytes) -> None:
        if not frame.startswith((b"R", b"J", b"S", b"A")):
            codes = "unknown-message", "empty-datagram", "byte-order-mark", "not-utf-8"
            self.dies("dies-on-an-unknown-word", read, *codes)
        self.dies("dies-on-a-missing-token", read, "missing-field")
        name, *fields = frame.decode(errors="replace").split(";")
        if name.startswith("REGISTER") and fields:
            self.send(link, SendMessage("REJECTED", {}))
        if name == "ANNOUNCE" and len(fields) > 1 and "missing-field" not in _codes(read):
            self.dies("dies-on-odd-dice", read, *_codes(read))
            if self.has("takes-any-dice"):
                self._claim(self._player(link), fields[0], fields[1])

    def request(self, link: Link, name: str, fields: dict[str, Any]) -> None:
        if name.startswith("REGISTER"):
            if (number := self._number(link, fields["name"])) is None:
                self.send(link, SendMessage("REJECTED", {}))
            elif number != link.number and self.has("forgets-the-new-port"):
                self.send(link, SendMessage("REGISTERED", {}))
            else:
                self._at[number] = link
                self._first[link.number] = number
                self._table.receive(number, name, fields, self.now)
            return
        if name == "JOIN" and self.has("dies-at-a-join"):
            raise Died(name)
        number, token = self._player(link), fields.get("token", "")
        if self.has("takes-any-address"):
            number = next((at for at, sent in self._tokens.items() if sent == token), number)
        if token and self.has("takes-any-token"):
            fields["token"] = self._tokens.get(number, token)
        if name == "JOIN" and self._joined.get(token, 0) == number and self.has("takes-used-tokens"):
            self._twice.append(number)
        self._joined[token] = number
        if name == "ANNOUNCE" and self.has("lets-low-dice-pass"):
            self._claim(number, fields["dice"], fields["token"])
        else:
            self._table.receive(number, name, fields, self.now)

    def _player(self, link: Link) -> int:
        """Return the connection on which the player of a connection registered first."""
        return self._first.get(link.number, link.number)

    def _number(self, link: Link, name: str) -> int | None:
        """Return the connection of a player that registers; None if it is rejected."""
        number, host = self._clients.get(name, (link.number, link.host))
        is_odd = len(name) > LONGEST_NAME or not name or any(letter in " ,;:\ufffd" for letter in name)
        is_full = name not in self._clients and len(self._clients) >= MOST_CLIENTS
        if is_odd or is_full or (host != link.host and not self.has("gives-away-names")):
            return None
        self._clients[name] = number, link.host
        return number

    def _claim(self, number: int, dice: str, token: str) -> None:
        """Announce dice that the simulated server would not let pass: it is told higher ones."""
        last = self._last["dice"]
        told = dice
        if dice not in ROLLS or (last and not beats(dice, last)):
            told = next((roll for roll in ROLLS if roll != MIA and (not last or beats(roll, last))), MIA)
            self._claims.append((told, dice))
        self._table.receive(number, "ANNOUNCE", {"dice": told, "token": token}, self.now)

    # What it sends.

    def altered(self, said: SendMessage, batch: Sequence[SendMessage]) -> Iterable[SendMessage]:
        fields, to = dict(said.fields), said.to
        is_first = next(one for one in batch if one.name == said.name) is said
        if "token" in fields:
            self._tokens[to] = fields["token"]
        match said.name:
            case "REGISTERED" if self.has("confirms-twice"):
                yield said
            case "REGISTERED" if self.has("answers-the-first-client"):
                to = next(iter(self._clients.values()))[0]
            case "ROUND STARTING":
                self._last = {"name": "", "dice": ""}
            case "ROUND STARTED":
                names = {number: name for name, (number, _) in self._clients.items()}
                fields["players"] = [*fields["players"], *(names[number] for number in self._twice)]
            case "ANNOUNCED":
                self._last = fields
            case "PLAYER WANTS TO SEE":
                self._seeing = fields["name"]
            case "ROLLED" if self.has("shows-rolls"):
                yield from (SendMessage("ROLLED", fields, at) for at, _ in self._clients.values() if at != to)
            case "PLAYER LOST":
                self._twice = []
                fields = self._lost(fields, is_first)
            case "SCORE":
                fields["scores"] = {
                    name: points + self._scored[name] for name, points in fields["scores"].items()
                }
        yield SendMessage(said.name, fields, to)

    def _lost(self, fields: dict[str, Any], is_first: bool) -> dict[str, Any]:
        swapped = {"SEE_FAILED": "CAUGHT_BLUFFING", "CAUGHT_BLUFFING": "SEE_FAILED"}
        before, losers, reason = fields["names"], fields["names"], fields["reason"]
        if reason in swapped and self.has("blames-who-saw"):
            reason = swapped[reason]
            losers = [self._seeing if reason == "SEE_FAILED" else self._last["name"]]
        if is_first:
            self._scored.update({name: 1 for name in before if name not in losers})
            self._scored.subtract({name: 1 for name in losers if name not in before})
            if self.has("counts-a-loss-twice"):
                self._scored.subtract(losers)
        return {"names": losers, "reason": reason}

    def written(self, said: SendMessage, data: bytes) -> bytes:
        if said.name == "ANNOUNCED" and self._claims and self._claims[-1][0] == said.fields["dice"]:
            data = data.replace(self._claims[-1][0].encode(), self._claims[-1][1].encode())
        return data + b"\n" if self.has("ends-lines") and b";" not in data else data


def _codes(read: Decoded) -> list[str]:
    return [violation.code for violation in read.violations]
