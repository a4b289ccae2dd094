"""A CGML server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any
from unittest.mock import patch

from kiebitz.dissectors.conformance.bots import SendMessage
from kiebitz.dissectors.grammar.grammar import Decoded
from kiebitz.dissectors.protocols.cgml.cards import LADDER, PACK, TALON, Rules
from kiebitz.dissectors.protocols.cgml.simulated_server import CgmlServer as Simulated
from peers.frames import Blocks
from peers.program import Link, Setup
from peers.shell import Host

PATIENCE_S = 60.0
"""Time limit in seconds for an answer; the specification mentions a timeout without its value."""


class CgmlServer(Host):
    protocol = "cgml"
    doors = 2
    frames = Blocks

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        assert isinstance(self.simulated, Simulated)
        self.simulated.url = setup.url or self.simulated.url
        self._waiting: dict[int, Link] = {}
        """Players that have logged in, and are in no group."""
        self._members: set[int] = set()
        self._links: dict[int, int] = {}
        """The connection of each player of the group."""
        self._wanted = 0, ""
        """The connection asked last, and the message it was asked for."""
        self._questions = 0
        self._standing = LADDER[0]
        self._held: dict[int, list[str]] = {}
        """The cards dealt to each connection."""
        self._bid = ""
        self._discarded: list[str] = []
        self._why = ""
        self._double: tuple[int, bytes, bytes] | None = None
        """The player whose card is shown as another, and both cards."""

    # Connections.

    def leave(self, link: Link) -> None:
        is_gone = link.number in self._links.values() and self.has("waits-for-who-is-gone")
        if not is_gone and not self.has("keeps-groups-of-who-is-gone"):
            super().leave(link)

    def farewell(self, link: Link, why: str) -> None:
        self.send(link, SendMessage("disconnect", {"disconnect": why}))

    def _too_late(self, question: int) -> None:
        asked = self._at.get(self._wanted[0])
        if question == self._questions and asked in self.links:
            self._why = "timeout"
            self.lose(asked)
            asked.close()

    # What it accepts.

    def misread(self, link: Link, read: Decoded, frame: bytes) -> None:
        self.dies("dies-on-broken-xml", read)
        self.dies("dies-on-a-missing-attribute", read, "missing-attribute")
        self.dies("dies-on-an-unknown-element", read, "unknown-message")
        if read.row is not None or not any(one.code.startswith("unknown-") for one in read.violations):
            self.give_up(link, read.violations[0].text)

    def request(self, link: Link, name: str, fields: dict[str, Any]) -> None:
        asked, wanted = self._wanted
        if name == "connect":
            number = fields["player"]["id"]
            other = self._waiting.get(number, link)
            if other is not link and other in self.links and not self.has("gives-ids-twice"):
                self.give_up(link, f"{number} is here already")
                return
            self._waiting[number] = link
        if name == "newgroup" and fields["player"]["id"] not in self._members:
            if not self.has("takes-anybody-into-a-group"):
                self.give_up(link, "no such group, or not yours")
            return
        if name == "newgroup":
            self._links[fields["player"]["id"]] = link.number
        if name == wanted and asked in self._at and self.has("takes-turn-from-anyone"):
            link = self._at[asked]
        if (link.number, name) == (asked, wanted):
            fields = self._allowed(link.number, name, fields)
        with patch.object(Rules, "allowed", self._rule(fields)):
            if not self.has("gives-tricks-to-the-first"):
                super().request(link, name, fields)
                return
            with patch.object(Rules, "winner", lambda rules, table: 0):
                super().request(link, name, fields)

    def _allowed(self, number: int, name: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Return an answer as the simulated server accepts it, if a fault is planted."""
        self._questions += 1
        if self._double is not None and "card" in fields:
            at, real, shown = self._double
            is_doubled = number == at and shown.decode() in fields["card"]
            fields = {**fields, "card": [real.decode()]} if is_doubled else fields
        if name == "licite" and self.has("takes-any-bid"):
            bid = fields["licite"]
            self._bid = bid
            if bid in LADDER[1:] and LADDER.index(bid) <= LADDER.index(self._standing):
                return {**fields, "licite": LADDER[LADDER.index(self._standing) + 1]}
        if name == "playcard" and fields["to"] == "talon":
            given = fields["card"]
            held = self._held[number]
            is_right = len({*given}) == len(given) == TALON and {*given} <= {*held}
            if not is_right and self.has("takes-any-discard"):
                fields = {**fields, "card": held[:TALON]}
            self._discarded = fields["card"]
        return fields

    def _rule(self, fields: dict[str, Any]) -> Any:
        allowed, card = Rules.allowed, next(iter(fields.get("card") or [""]))

        def lax(rules: Rules, table: list[str], hand: list[str]) -> list[str]:
            if self.has("lets-colours-be") or self._double is not None:
                return hand
            if self.has("takes-any-card") and card in PACK:
                fields["card"][0] = card if card in hand else allowed(rules, table, hand)[0]
                return hand
            return allowed(rules, table, hand)

        return lax

    # What it sends.

    def altered(self, said: SendMessage, batch: Sequence[SendMessage]) -> Iterable[SendMessage]:
        fields, to = dict(said.fields), said.to
        match said.name, fields.get("type") or fields.get("status"):
            case "connect", "complete":
                own = {number for number, link in self._waiting.items() if link.number == to}
                self._members |= own | {player["id"] for player in fields["player"]}
                self._waiting = {number: link for number, link in self._waiting.items() if number not in own}
            case "newgame", _:
                self._standing, self._held, self._why = LADDER[0], {}, ""
                if self.has("says-everything-twice"):
                    yield said
            case "pause", _ if self.has("keeps-pauses-to-itself"):
                return
            case "abort", _:
                fields["message"] = self._why or fields["message"]
            case "dial", "cards" if fields["to"] == "hand":
                self._held.setdefault(to, []).extend(fields["card"])
                self._deal_twice(to, batch)
            case "dial", "info" if self.has("shows-hands") and fields["from"] == "desk":
                fields["card"] = next(
                    one.fields["card"]
                    for one in batch
                    if (one.to, one.name, one.fields["to"])
                    == (self._links[fields["playerid"]], "dial", "hand")
                    and one.fields["type"] == "cards"
                )
            case "playcard", "info" if fields["to"] == "talon" and self.has("shows-discards"):
                fields["card"] = self._discarded
            case "licite", "info" if fields["licite"] in LADDER[1:]:
                self._standing = fields["licite"]
                if self._bid in LADDER[1:] and self.has("takes-any-bid"):
                    fields["licite"] = self._bid
            case "result", _ if self.has("pays-too-much"):
                self._pay_too_much(fields)
        is_talon = (said.name, fields.get("from"), fields.get("type")) == ("dial", "talon", "cards")
        if fields.get("type") == "ask" or is_talon:
            self._wanted = to, "playcard" if is_talon else said.name
            self._questions += 1
            if not self.has("waits-for-ever"):
                self.after(PATIENCE_S, partial(self._too_late, self._questions))
        yield SendMessage(said.name, fields, to)

    def _deal_twice(self, to: int, batch: Sequence[SendMessage]) -> None:
        dealt = [one for one in batch if (one.name, one.fields["type"]) == ("dial", "cards")]
        hands = [one for one in dealt if (one.fields["to"], one.fields["from"]) == ("hand", "desk")]
        if self.has("deals-a-card-twice") and len(hands) > 1 and hands[1].to == to:
            shown, real = (one.fields["card"][0].encode() for one in hands[:2])
            self._double = to, real, shown

    def _pay_too_much(self, fields: dict[str, Any]) -> None:
        side = min("winer", "loser", key=lambda side: len(fields[side]))
        (declarer,) = fields[side]
        money = {**declarer["money"], "money": declarer["money"]["money"] * 3 // 2}
        fields[side] = [{**declarer, "money": money}]

    def written(self, said: SendMessage, data: bytes) -> bytes:
        if self._double is not None and said.name in ("dial", "playcard", "round", "result"):
            data = data.replace(self._double[1], self._double[2])
        if said.name == "flek" and self.has("forgets-the-empty-line"):
            return data.removesuffix(b"\r\n")
        if said.name == "round" and self.has("shouts"):
            return data.replace(b"<round", b"<ROUND").replace(b"</round", b"</ROUND")
        return data
