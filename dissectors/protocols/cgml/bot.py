"""A CGML bot: logs in, goes to the server named, bids low, and plays what the eleven steps allow."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import permutations
from typing import Any

from kiebitz.dissectors.conformance.bots import Bot, Reconnect, SendMessage, TargetMessage
from kiebitz.dissectors.grammar.field_type import Fields
from kiebitz.dissectors.protocols.cgml.cards import COLOURS, LADDER, TALON, WITH_TWO_SEVENS, Rules, has_trumps

_GAME = "licitovany_marias"
_HIGHEST_BID = LADDER.index("B7")
"""The highest bid that it chooses by itself."""

_HIGHEST_FLEK = 16
_PAIRS = 12
"""Number of random pairs of cards to consider for the talon."""


class CgmlBot(Bot):
    """A CGML bot, whose number is derived from its name; each hand counts as a game."""

    def __init__(self, name: str, seed: int = 1, games: int = 0) -> None:
        super().__init__(name, seed, games)
        self._self = {"id": 1000 + zlib.crc32(name.encode()) % 9000, "name": name, "race": "bot"}
        self._group: int | None = None
        self._hand: list[str] = []
        self._table: list[str] = []
        self._rules = Rules("G", None)
        self._standing = LADDER[0]

    def _begin(self) -> None:
        about: dict[str, Any] = {"game": _GAME, "player": self._self}
        if self._group is None:
            self._queue(
                *(SendMessage("connect", {"status": status, **about}) for status in ("active", "passive"))
            )
        else:
            group = {"id": self._group, **about}
            self._queue(
                *(SendMessage("newgroup", {"status": status, **group}) for status in ("accept", "reject"))
            )

    def _receive(self, name: str, fields: Fields) -> None:
        match name, fields.get("status") or fields.get("type"):
            case "connect", "complete":
                self._group = fields["id"]
                self._queue(Reconnect(fields["url"]))
            case "newgame", "ask":
                self._new_hand()
            case "dial", "cards" if fields["to"] == "hand":
                self._hand += [card for card in fields["card"] if card is not None]
                if fields["from"] == "talon":
                    self._discard()
                else:
                    self._queue(_leaving("I must go"), optional=True)
            case "licite", "ask":
                self._bid(fields.get("licite"))
            case "licite", "info" if fields["licite"] in LADDER[1:]:
                self._standing = fields["licite"]
            case "gametype", "ask":
                self._name_trumps(fields["licite"])
            case "gametype", "info":
                self._rules = Rules(fields["licite"], (fields.get("trumf") or "")[:1].upper() or None)
            case "flek", "ask":
                self._double(fields["flek"])
            case "playcard", "ask":
                allowed = self._rules.allowed(self._table, self._hand)
                self._queue_any([_played([card], "desk") for card in allowed])
            case "playcard", "info" if fields.get("to", "desk") == "desk":
                self._table += [card for card in fields["card"] if card is not None]
            case "round", _:
                self._table = []
            case "result" | "cancelgame", _:
                self.games += 1

    def _new_hand(self) -> None:
        self._hand, self._table, self._standing = [], [], LADDER[0]
        yes, no = (
            SendMessage("newgame", {"status": word, "player": self._self}) for word in ("accept", "reject")
        )
        self._queue(*((no, _leaving("Good bye")) if self.is_finished else (yes, no, _leaving("Good bye"))))
        self._queue(SendMessage("pause", {"type": "start", "message": "One moment"}), optional=True)

    def _on_sent(self, sent: SendMessage) -> None:
        match sent.name, sent.fields.get("type"):
            case "pause", "start":
                self._send("pause", type="finish")
            case "playcard", _:
                cards = sent.fields["card"]
                self._hand = [card for card in self._hand if card not in cards]
                if sent.fields["to"] == "desk":
                    self._table += cards

    def _leads_to(self, target_message: TargetMessage, choice: SendMessage) -> bool:
        if target_message.name == "abort":
            return choice == _leaving("I must go")
        # Without a bid there is no game.
        is_bid = choice.name == "licite" and choice.fields["licite"] not in ("PASS", "NO")
        return is_bid and target_message.name in ("gametype", "flek", "playcard")

    def _answer(self, name: str, words: Sequence[str]) -> None:
        self._queue(*(SendMessage(name, {"type": "answer", name: word}) for word in words))

    def _bid(self, asked: str | None) -> None:
        if asked:
            is_bold = LADDER.index(asked) < _HIGHEST_BID and self.random.random() < 0.6
            self._answer("licite", ("YES", "NO") if is_bold else ("NO", "YES"))
            return
        higher = LADDER[LADDER.index(self._standing) + 1 :]
        is_bold = bool(higher) and LADDER.index(higher[0]) <= _HIGHEST_BID and self.random.random() < 0.8
        self._answer("licite", (*higher, "PASS") if is_bold else ("PASS", *higher))

    def _discard(self) -> None:
        pairs = [self.random.sample(self._hand, TALON) for _ in range(_PAIRS)]
        self._queue(*(_played(pair, "talon") for pair in pairs))

    def _name_trumps(self, game: str) -> None:
        """Queue naming the trumps; the game may be raised, but not by default."""
        choices = []
        for named in LADDER[LADDER.index(game) :]:
            count = (1 + (named in WITH_TWO_SEVENS)) if has_trumps(named) else 0
            colours = [*permutations(self.random.sample(COLOURS.lower(), len(COLOURS)), count)]
            for chosen in colours:
                trumf = {"trumf": ":".join(chosen)} if chosen else {}
                choices.append(SendMessage("gametype", {"type": "answer", "licite": named, **trumf}))
        self._queue(*choices)

    def _double(self, asked: str) -> None:
        if ":" in asked or int(asked) >= _HIGHEST_FLEK:
            self._answer("flek", (asked,))
            return
        doubled = str(2 * int(asked))
        is_bold = int(asked) < 4 and self.random.random() < 0.2
        self._answer("flek", (doubled, asked) if is_bold else (asked, doubled))


def _played(cards: Sequence[str], to: str) -> SendMessage:
    return SendMessage("playcard", {"type": "cards", "from": "hand", "to": to, "card": [*cards]})


def _leaving(why: str) -> SendMessage:
    return SendMessage("disconnect", {"disconnect": why})
