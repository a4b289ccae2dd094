"""A Schafkopf server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from kiebitz.dissectors.conformance.bots import Bot, SendMessage
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.protocols.schafkopf import simulated_server
from kiebitz.dissectors.protocols.schafkopf.cards import HOCHZEIT, NICHTS, PACK, SEATS, Mode, bids, playable
from kiebitz.dissectors.protocols.schafkopf.grammar import LOST
from peers.frames import Pakete
from peers.program import Died, Link, Setup
from peers.shell import Host

ANSWERS = {
    "ERSTE3": "ERSTE3",
    "SPIELSTDU": "SPIELSTDU",
    "SPIEL": "MODEL",
    "MODUS": "KONTRA",
    "HOCHZEIT": "HOCHZEIT",
}
"""Question, a MODEL's by its flag, and the message that answers it."""


class SchafkopfServer(Host):
    protocol = "schafkopf"
    frames = Pakete

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self._wanted = 0, ""
        """The connection asked last, and the message it was asked for."""
        self._hand: list[str] = []
        """The hand that was shown last for a bid."""
        self._seats: dict[int, int] = {}
        self._named: set[int] = set()
        """The connections that play; those that come later watch."""
        self._latest: dict[int, dict[str, Fields]] = {}
        """The last message of each name on each connection, in their order."""
        self._bots: dict[int, Bot] = {}
        """The bots that play on for clients that have left a game."""
        self._offering: int | None = None
        """The connection whose card for a Hochzeit is awaited."""

    def leave(self, link: Link) -> None:
        number = link.number
        if self.has("waits-for-who-is-gone"):
            return
        is_over = self.simulated.is_finished or not any(other.number in self._named for other in self.links)
        if number in self._seats and not is_over:
            assert self.dissector.conformance.bot is not None
            bot = self._bots[number] = self.dissector.conformance.bot("[BOT]", self.chance, 0)
            for name, fields in self._latest[number].items():
                bot.receive(name, fields, self.now)
            if self._offering == number:
                self.request(link, "KARTE", {"karte": self._latest[number]["MODEL"]["spielerhand"][0]})
            self.go_on()
            return
        for gone in (number, *self._bots) if is_over else (number,):
            self._named.discard(gone)
            self._seats.pop(gone, None)
            self._table.client_disconnected(gone, self.now)
        if is_over:
            self._bots = {}
        self.go_on()

    def go_on(self) -> None:
        super().go_on()
        while any(self._plays_on(number, bot) for number, bot in self._bots.items()):
            super().go_on()

    def _plays_on(self, number: int, bot: Bot) -> bool:
        step = bot.next(self.now)
        if not isinstance(step, SendMessage):
            return False
        bot.confirm(step)
        self._table.receive(number, step.name, step.fields, self.now)
        return True

    def farewell(self, link: Link, why: str) -> None:
        self.send(link, SendMessage("BEENDEN", {}))

    # What it accepts.

    def message(self, link: Link, frame: bytes) -> None:
        # It reads nothing but UTF-8.
        super().message(link, self.text(frame).encode())

    def misread(self, link: Link, read: Decoded, frame: bytes) -> None:
        self.dies("dies-on-a-missing-field", read, "missing-field")
        if read.row is None:
            return
        if read.row.name == "MODEL" and self.has("dies-on-an-unknown-card"):
            known = {part for card in PACK for part in card.split(" ")} | {"§"}
            if odd := {*frame.decode(errors="replace").splitlines()[2:]} - known:
                raise Died(f"{odd}")
        model = frame.splitlines(keepends=True)
        if read.row.name == "MODEL" and model[1] != b"!SPIEL\n" and self.has("takes-any-flag"):
            self.message(link, b"".join([model[0], b"!SPIEL\n", *model[2:]]))
        else:
            self.give_up(link, read.violations[0].text)

    def request(self, link: Link, name: str, fields: dict[str, Any]) -> None:
        if name == "NAME" and len(self._named | {link.number}) > SEATS:
            return
        if name == "BEENDEN":
            self.lose(link)
            link.close()
            return
        if name == "NAME":
            self._named.add(link.number)
        asked, wanted = self._wanted
        if wanted == name and asked != link.number and self.has("takes-turn-from-anyone"):
            link = self._at[asked]
        if name == "KARTE" and self._offering == link.number:
            self._offering = None
        if (asked, wanted) != (link.number, name):
            super().request(link, name, fields)
            return
        self._wanted = (0, "")
        if fields.get("modus") == HOCHZEIT or (fields.get("nimmt") == "JA" and "karte" not in fields):
            self._offering = link.number
        is_right = True

        def judged(rules: Mode, hand: list[str], laid: Sequence[str]) -> list[str]:
            nonlocal is_right
            card = fields["tisch"][self._seats[link.number]]
            if card in PACK and card not in hand and self.has("takes-any-card"):
                hand[0] = card
                return [card]
            allowed = [*hand] if self.has("lets-suits-be") else playable(rules, hand, laid)
            is_right = card in allowed
            return allowed

        if name == "SPIELSTDU" and not self.has("takes-any-bid"):
            is_right = fields["modus"] in bids(self._hand, NICHTS)
        with ExitStack() as stack:
            stack.enter_context(patch.object(simulated_server, "playable", judged))
            if self.has("gives-tricks-to-the-first"):
                stack.enter_context(patch.object(Mode, "winner", lambda rules, cards: 0))
            super().request(link, name, fields)
        if not is_right:
            self.give_up(link, f"{name} breaks a rule")

    # What it sends.

    def altered(self, said: SendMessage, batch: Sequence[SendMessage]) -> Iterable[SendMessage]:
        fields, to = dict(said.fields), said.to
        question = fields["flag"] if said.name == "MODEL" else said.name
        match question:
            case "DRAN" if self.has("tells-turns-twice"):
                yield said
                fields["dran"] = (fields["dran"] + 1) % SEATS
            case "ID":
                self._seats[to] = fields["id"]
                if self.has("numbers-all-alike"):
                    fields["id"] = 0
            case "SPIELSTDU":
                self._hand = fields["spielerhand"]
            case "SPIEL" | "UPDATE" if self.has("shows-a-hand"):
                hands = [one.fields["spielerhand"] for one in batch if one.fields.get("flag") == "SPIEL"]
                fields["spielerhand"] = hands[0] if hands else fields["spielerhand"]
            case "SIEGER" if self.has("names-the-losers"):
                for key in ("spieler", "mitspieler"):
                    code = fields[key]
                    if code != SEATS:
                        fields[key] = code - LOST if code >= LOST else code + LOST
        if question in ANSWERS:
            self._wanted = to, ANSWERS[question]
        self._latest.setdefault(to, {}).pop(said.name, None)
        self._latest[to][said.name] = fields
        if to in self._bots:
            self._bots[to].receive(said.name, fields, self.now)
        yield SendMessage(said.name, fields, to)

    def written(self, said: SendMessage, data: bytes) -> bytes:
        if said.name == "MODEL" and self.has("ends-cards-with-end"):
            data += b"!END\n"
        return data.decode().encode("latin-1", "replace") if self.has("writes-latin-1") else data
